"""A bad CSV gives one message that names the file, the line and the numbers, and quickly."""

import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.errors import FileError
from spmilp.packing.minimalloc import parse_table, read_table

GOOD = b"id,lower,upper,size\nb1,0,3,4\n"


def message(data: bytes) -> str:
    with pytest.raises(FileError) as caught:
        parse_table(data, "some.csv")
    return str(caught.value)


BAD_LINES = [
    ("id,lower,upper\n", 1, "no column size"),
    ("name,from,to,size\n", 1, "no columns id, lower and upper"),
    ("id;lower;upper;size\n", 1, "separated by commas"),
    ("b1,0,3,4\n", 1, "first line must name the columns"),
    ("id,lower,start,upper,size\n", 1, "'lower' and 'start'"),
    ("id,lower,upper,size\nb1,0,3,-4\n", 2, "size is -4 B, expected 1 or more"),
    ("id,lower,upper,size\nb1,0,3,0\n", 2, "size is 0 B"),
    ("id,lower,upper,size\n\nb1,5,5,4\n", 3, "lower 5 and upper 5"),
    ("id,start,end,size\nb1,7,6,4\n", 2, "lower 7 and upper 6"),
    ("id,lower,upper,size\nb1,0,3,4\nb1,3,9,4\n", 3, "id 'b1' is that of line 2 too"),
    ("id,lower,upper,size\n ,0,3,4\n", 2, "the id is empty"),
    ("id,lower,upper,size\nb\x1b[2J,0,3,4\n", 2, "control characters"),
    ("id,lower,upper,size\nb1,0,3,9223372036854775808\n", 2, "'9223372036854775808'"),
    (f"id,lower,upper,size\nb1,0,{'9' * 5000},4\n", 2, "expected less than 2^60"),
    ("id,lower,upper,size\nb1,0,3,4.5\n", 2, "size is '4.5', expected a whole number"),
    ("id,lower,upper,size\nb1,0,3,0x10\n", 2, "size is '0x10'"),
    ("id,lower,upper,size\nb1,0,3,٣\n", 2, "expected a whole number"),
    ("id,lower,upper,size\nb1,0,,4\n", 2, "upper is ''"),
    ("id,lower,upper,size\nb1,0,3\n", 2, "3 cells, but the first line has 4"),
    ("id,lower,upper,size\nb1,0,3,4,5\n", 2, "5 cells, but the first line has 4"),
    ("id,lower,upper,size\nb1,0,3,4\n# the end\n", 3, "1 cells"),
    ('id,lower,upper,size\n"b1,0,3,4\n', 2, "no line of a CSV file"),
    ("id,lower,upper,size,offset\nb1,0,3,4,-1\n", 2, "offset is -1 B"),
    ("id,lower,upper,size,alignment,offset\nb1,0,3,4,8,12\n", 2, "12 B is no multiple of 8 B"),
    ("id,lower,upper,size,alignment\nb1,0,3,4,0\n", 2, "alignment is 0 B"),
    ("id,lower,upper,size,gaps\nb1,0,9,4,3\n", 2, "not of the form 3-5"),
    ("id,lower,upper,size,gaps\nb1,0,9,4,3-11\n", 2, "outside the lifetime"),
    ("id,lower,upper,size,gaps\nb1,0,9,4,3-6 5-7\n", 2, "overlaps another"),
    ("id,lower,upper,size,gaps\nb1,0,9,4,0-9\n", 2, "leave nothing"),
    ("id,lower,upper,size,gaps\nb1,0,9,4,3-5@0:2\n", 2, "not supported"),
    (f"id,lower,upper,size\nb1,0,3,{2**59}\nb2,0,3,{2**59}\n", 3, "2^60 B or more"),
]


@pytest.mark.parametrize(("text", "line", "says"), BAD_LINES)
def test_the_message_names_the_line_and_what_is_wrong(text: str, line: int, says: str) -> None:
    found = message(text.encode())
    assert found.startswith(f"some.csv, line {line}: ")
    assert says in found
    assert "\n" not in found
    assert len(found) < 300


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "some.csv: is empty"),
        (b"\r\n \n\n", "some.csv: is empty"),
        (GOOD.decode().encode("utf-16"), "some.csv: is UTF-16"),
        (GOOD + "größe,0,3,4\n".encode("latin-1"), "some.csv, line 3: byte 0xf6 is not UTF-8"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "some.csv, line 1: has a zero byte"),
        (b"\x89PNG\r\n\x1a\n\0\0", "some.csv, line 1: byte 0x89 is not UTF-8"),
    ],
)
def test_what_is_no_text_is_called_so(data: bytes, says: str) -> None:
    assert message(data).startswith(says)


def ten_megabytes(seed: int) -> list[bytes]:
    noise = random.Random(seed).randbytes(10 * 2**20)
    readable = noise.hex().encode()[: 10 * 2**20]
    lines = b"\n".join(readable[i : i + 60] for i in range(0, len(readable), 60))
    return [noise, readable, lines, GOOD + noise, GOOD + readable, GOOD + lines, b'"' * 2**23]


@pytest.mark.full
@pytest.mark.parametrize("data", ten_megabytes(1), ids=lambda data: str(data[:8]))
def test_ten_megabytes_of_garbage_are_refused_at_once(data: bytes) -> None:
    began = time.process_time()
    assert len(message(data)) < 300
    assert time.process_time() - began < 1.0


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"absent\.csv: cannot be read: No such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        read_table(tmp_path)
    with pytest.raises(FileError, match="/dev/zero: cannot be read: is no ordinary file"):
        read_table("/dev/zero")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "huge.csv").touch()
    os.truncate(tmp_path / "huge.csv", 2**40)
    with pytest.raises(FileError, match=f"has {2**40} B, more than"):
        read_table(tmp_path / "huge.csv")


@pytest.mark.full
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*b'0123456789-,"\n\r @', *b"idlowerupsz", 0, 255]), max_size=40))
def test_any_bytes_are_read_or_refused_with_a_message(tail: list[int]) -> None:
    for start in (b"", GOOD, b"id,lower,upper,size,gaps,alignment,offset\n"):
        refused = ""
        try:
            parse_table(start + bytes(tail), "some.csv")
        except FileError as error:
            refused = str(error)
        assert refused == "" or refused.startswith("some.csv")
