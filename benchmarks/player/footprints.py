"""Bytes of tables, memories and straight code of the C exports, for networks and machines.

Usage: python -m benchmarks.player.footprints [--machines A,B] [--models A,B]

Straight code is compiled for a Cortex-M3 (-Os), if the compiler is there; its bytes are functions
and constants, without weights, kernels and the few functions of the platform.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.player import programs
from benchmarks.player.plans import arguments_of, print_rows
from spmilp.export.packed import footprint
from spmilp.export.subject import Subject

HEAD = (
    "| network | machine | tasks | transfers | constants B | tables B | of constants "
    "| code, resumed B | code, blocking B | DRAM B | CPU s |\n"
    "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def main() -> int:
    """Print a row for each plan."""
    return print_rows(HEAD, arguments_of(__doc__).parse_args(), cells)


def cells(subject: Subject, _: str) -> Iterator[str]:
    """Yield what the table says of one plan."""
    began = time.process_time()
    taken = footprint(subject)
    used = time.process_time() - began
    dram = subject.problem.machine.memories[0].name
    yield from (f"{len(rows):,}" for rows in (subject.problem.tasks, subject.plan.transfers))
    yield from (f"{each:,}" for each in (taken.constants, taken.tables))
    yield f"{taken.tables / taken.constants:.1%}"
    yield from (code_bytes(subject, flags) for flags in ((), ("-DSPMILP_BLOCKING",)))
    yield f"{dict(taken.memories)[dram]:,}"
    yield f"{used:.1f}"


def code_bytes(subject: Subject, flags: Sequence[str]) -> str:
    """Return the bytes of a plan's functions and of the constants that they name."""
    if programs.missing(("arm-none-eabi-gcc", "arm-none-eabi-size")):
        return ""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs.write_code(subject, folder)
        others = ("main.c", "mps2.c", "program.c")
        sources = [
            file.name for file in folder.glob("spmilp_code*.c") if not file.name.endswith(others)
        ]
        compiler = ("arm-none-eabi-gcc", "-std=c99", "-Os", "-mcpu=cortex-m3", "-mthumb")
        subprocess.run([*compiler, *flags, "-c", *sources], cwd=folder, check=True)
        return f"{sum(map(programs.loaded_bytes, folder.glob('*.o'))):,}"


if __name__ == "__main__":
    sys.exit(main())
