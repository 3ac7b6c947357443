"""The linker fragment: it links, names every residency, and refuses what does not fit."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from checker.worked_example import PLAN, SPM0
from export.subjects import subject, with_hostile_names
from spmilp.export.linker import linker, region
from spmilp.export.subject import Subject

LD, GCC, NM = (shutil.which(name) for name in ("ld", "gcc", "nm"))

needs_ld = pytest.mark.skipif(None in (LD, GCC, NM), reason="ld, gcc and nm are not all installed")

BASE = 0x10000000


def link(given: Subject, folder: Path, size: int = 0x1000, extra: str = "") -> tuple[int, str]:
    """Link an empty program with the fragment; return the code and what ld says."""
    (folder / "spmilp.ld").write_bytes(linker(given)["spmilp.ld"])
    lines = ["MEMORY {", "  CODE (rx) : ORIGIN = 0x1000, LENGTH = 0x100000"]
    lines += (
        f"  {region(memory)} (rw) : ORIGIN = {BASE * (memory.index + 1):#x}, LENGTH = {size:#x}"
        for memory in given.problem.machine.memories
    )
    lines += ["}", "SECTIONS {", extra, "  .text : { *(.text*) } > CODE", "}"]
    (folder / "main.ld").write_text("\n".join([*lines, "INCLUDE spmilp.ld", ""]))
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([GCC, "-c", "main.c", "-o", "main.o"], cwd=folder, check=True)
    done = subprocess.run(
        [LD, "-T", "main.ld", "-e", "main", "main.o", "-o", "main.elf"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


@needs_ld
@pytest.mark.parametrize("hostile", [False, True])
def test_every_residency_has_a_symbol_at_its_address(hostile: bool, tmp_path: Path) -> None:
    given = with_hostile_names() if hostile else subject()
    code, said = link(given, tmp_path)
    assert code == 0, said
    listed = subprocess.run(
        [NM, tmp_path / "main.elf"], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r"^([0-9a-f]+) \S (__spmilp_\w+_m(\d+)_r(\d+)\w*)$", listed, re.MULTILINE)
    addresses = {int(number): int(address, 16) for address, _, _, number in found}
    assert addresses == {
        residency.index: BASE * (residency.memory + 1) + residency.offset
        for residency in PLAN.residencies
    }


@needs_ld
def test_a_region_that_is_too_small_is_refused_with_the_bytes_needed(tmp_path: Path) -> None:
    code, said = link(subject(), tmp_path, size=0x100)
    assert code != 0
    assert "spmilp: the plan uses 320 B of SPMILP_MEMORY3_SPM1" in said


@needs_ld
def test_what_else_is_put_on_the_plans_bytes_is_refused(tmp_path: Path) -> None:
    place = f"  .mine {BASE * (SPM0 + 1) + 0x80:#x} : {{ LONG(1) }}"
    code, said = link(subject(), tmp_path, extra=place)
    assert code != 0
    assert "overlap" in said
