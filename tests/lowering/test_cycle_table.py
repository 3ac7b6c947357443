from pathlib import Path

import pytest

from spmilp.errors import FileError
from spmilp.lowering.cycle_table import read_cycle_table

BOX = ((0, 1), (0, 16))


def written(folder: Path, text: str) -> Path:
    path = folder / "cycles.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_are_found_by_name_tile_and_kind(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'group,tile,core_kind,cycles\nfc,"0:1, 0:16/0:8",pe,70\nfc,1x16,pe,80\nGemm,,pe,90\n',
    )
    table = read_cycle_table(path)
    assert table.find(("fc", "Gemm"), "pe", BOX, (0, 8)) == 70
    assert table.find(("fc", "Gemm"), "pe", BOX, None) == 80
    assert table.find(("fc2", "Gemm"), "pe", BOX, None) == 90
    assert table.find(("fc", "Gemm"), "other", BOX, None) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group,tile,cycles\n", "column core_kind is missing"),
        ("group,tile,core_kind,cycles\nfc,,pe,fast\n", "line 2: cycles is 'fast'"),
        ("group,tile,core_kind,cycles\nfc,,pe,0\n", "line 2: cycles is '0'"),
        ("group,tile,core_kind,cycles\n,,pe,3\n", "line 2: group is empty"),
        ("group,tile,core_kind,cycles\nfc,,pe\n", "line 2: cycles is ''"),
        ("group,tile,core_kind,cycles\nfc,,pe,1\nfc,,pe,2\n", "given twice, with 1 and 2"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read_cycle_table(written(tmp_path, text))


def test_a_missing_table_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        read_cycle_table(tmp_path / "absent.csv")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cycles.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="cannot be read"):
        read_cycle_table(path)
