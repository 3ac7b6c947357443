"""The C tables: they compile without a warning and are the same bytes as the binary file's."""

import shutil
import subprocess
from pathlib import Path

import pytest

from export.subjects import lowered, subject, with_hostile_names
from spmilp.export.binary import binary
from spmilp.export.c_files import c_files
from spmilp.export.c_text import LARGEST_IMAGE_IN_C
from spmilp.export.subject import Subject
from spmilp.export.tables import layouts

GCC = shutil.which("gcc")
FLAGS = (
    *("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror"),
    *("-Wcast-qual", "-Wstrict-prototypes", "-Wcomment", "-Wtrigraphs", "-Woverlength-strings"),
)

needs_gcc = pytest.mark.skipif(GCC is None, reason="gcc is not installed")


def written(given: Subject, folder: Path) -> list[str]:
    """Write the files and return the names of the sources."""
    files = c_files(given)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [name for name in files if name.endswith(".c")]


def gcc(folder: Path, *arguments: str) -> None:
    """Compile in a folder; a failure shows what the compiler says."""
    done = subprocess.run([GCC, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


def dump(prefix: str) -> str:
    """Return a program that writes all tables to stdout, as the binary file has them."""
    tables = [f"{prefix}_plan_{layout.table}" for layout in layouts.LAYOUTS]
    lines = [
        "#include <stdio.h>",
        f'#include "{prefix}_plan.h"',
        f'#include "{prefix}_names.h"',
        "int main(void) {",
        f"    const struct spmilp_tables tables = {prefix.upper()}_PLAN_TABLES;",
        "    if (tables.words_count > UINT32_C(100000000)) { return 1; }",
    ]
    for layout, name in zip(layouts.LAYOUTS, tables, strict=True):
        lines.append(
            f"    if (tables.{layout.table} != {name}) {{ return 1; }}\n"
            f"    fwrite({name}, {layout.stride}U, tables.{layout.table}_count, stdout);"
        )
    for pool, size in (("words", 4), ("texts", 1)):
        lines.append(f"    fwrite(tables.{pool}, {size}U, tables.{pool}_count, stdout);")
    lines.append("    fwrite(tables.image, 1U, (size_t)tables.image_count, stdout);")
    return "\n".join([*lines, "    return 0;", "}", ""])


def content_of_binary(given: Subject) -> bytes:
    """Return the rows of all tables and the pools, one behind the other."""
    import struct

    data = binary(given)["plan.spmb"]
    index, _, count = struct.unpack_from("<III", data, 8)
    parts = []
    for number in range(count):
        _, offset, rows, stride = struct.unpack_from("<IIII", data, index + 16 * number)
        parts.append(data[offset : offset + rows * stride])
    return b"".join(parts)


@needs_gcc
@pytest.mark.parametrize("standard", ["c99", "c11"])
@pytest.mark.parametrize("which", ["worked example", "hostile names", "ds_cnn_int8"])
def test_tables_compile_without_a_warning_and_are_what_the_binary_file_has(
    which: str, standard: str, tmp_path: Path
) -> None:
    given = {
        "worked example": lambda: subject(),
        "hostile names": with_hostile_names,
        "ds_cnn_int8": lambda: lowered("ds_cnn_int8", 5, 1),
    }[which]()
    sources = written(given, tmp_path)
    (tmp_path / "dump.c").write_text(dump("spmilp"))
    gcc(tmp_path, f"-std={standard}", *FLAGS, *sources, "dump.c", "-o", "dump")
    done = subprocess.run([tmp_path / "dump"], capture_output=True, check=True)
    assert done.stdout == content_of_binary(given)


@needs_gcc
def test_two_plans_with_prefixes_of_their_own_link_into_one_program(tmp_path: Path) -> None:
    first, second = (
        written(subject(prefix="one"), tmp_path),
        written(subject(prefix="two"), tmp_path),
    )
    main = '#include "one_plan.h"\n#include "two_plan.h"\n#include "one_names.h"\n'
    main += '#include "two_names.h"\nint main(void) {\n'
    main += "    return one_plan_summary[0].makespan != two_plan_summary[0].makespan;\n}\n"
    (tmp_path / "main.c").write_text(main)
    gcc(tmp_path, "-std=c99", *FLAGS, *first, *second, "main.c", "-o", "main")
    assert subprocess.run([tmp_path / "main"]).returncode == 0


@needs_gcc
def test_headers_are_c_for_a_compiler_of_cpp(tmp_path: Path) -> None:
    written(subject(), tmp_path)
    (tmp_path / "main.cpp").write_text('#include "spmilp_plan.h"\n#include "spmilp_names.h"\n')
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    gcc(tmp_path, "-x", "c++", "-Wall", "-Wextra", "-Werror", "-c", "main.cpp", "-o", "main.o")


@needs_gcc
def test_a_plan_that_is_larger_than_its_memory_does_not_compile(tmp_path: Path) -> None:
    written(subject(), tmp_path)
    header = (tmp_path / "spmilp_plan.h").read_text()
    changed = header.replace("MEMORY2_BYTES UINT64_C(512)", "MEMORY2_BYTES UINT64_C(255)")
    assert changed != header
    (tmp_path / "spmilp_plan.h").write_text(changed)
    done = subprocess.run(
        [GCC, "-c", "spmilp_plan.c"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "spmilp_plan_fits_memory2" in done.stderr


def test_types_are_the_same_bytes_for_every_plan() -> None:
    other = c_files(lowered("ds_cnn_int8", 5, 1))["spmilp_types.h"]
    assert c_files(subject())["spmilp_types.h"] == other


def test_a_large_image_is_a_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    given = lowered("ds_cnn_int8", 5, 1)
    files = c_files(given)
    assert len(files["spmilp_image.bin"]) <= LARGEST_IMAGE_IN_C
    monkeypatch.setattr("spmilp.export.c_text.LARGEST_IMAGE_IN_C", 100)
    smaller = c_files(given)
    assert "spmilp_image.c" not in smaller
    assert smaller["spmilp_image.bin"] == files["spmilp_image.bin"]
    assert b"(const uint8_t *)0" in smaller["spmilp_plan.h"]


def test_names_stand_in_comments_and_numbers_only() -> None:
    for content in c_files(with_hostile_names()).values():
        text = content.decode("ascii")
        assert '/etc/passwd"' not in text
        assert "??" not in text
        assert "\\\n" not in text.replace(" \\\n", "")
        assert all(len(line) < 400 for line in text.splitlines())
