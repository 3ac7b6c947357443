"""Compile and run the C player for the MLPerf Tiny networks in int8 on several machines.

Usage: python -m benchmarks.player.run_all [--machines A,B] [--models A,B] [--keep DIR]

Each plan is built with the address and undefined-behaviour sanitizers (run with threads and in one
loop), with the thread sanitizer, and without an operating system for an Arm Cortex-M3 (QEMU) where
the tools are installed. The outputs must be those of the value replay, bit for bit.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.player import programs
from benchmarks.player.plans import arguments_of, print_rows
from spmilp.export.packed import footprint
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network

HEAD = (
    "| network | machine | tasks | transfers | lists | events | constants B | tables B "
    "| threads, ASan+UBSan | loop, ASan+UBSan | threads, TSan | Cortex-M3 | text, data B "
    "| seconds |\n"
    "|---|---|--:|--:|--:|--:|--:|--:|---|---|---|---|--:|--:|"
)
SAME, LEFT_OUT = "same bits", "not run"


def main() -> int:
    """Print a row for each plan; 1 if one is wrong."""
    parser = arguments_of(__doc__)
    parser.add_argument("--keep", type=Path, help="where exports and programs stay")
    given = parser.parse_args()

    def cells(subject: Subject, name: str) -> list[str]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (given.keep or Path(temporary)) / name
            return list(judged(subject, folder))

    return print_rows(HEAD, given, cells)


def judged(subject: Subject, folder: Path) -> Iterator[str]:
    """Yield what the table says of one plan."""
    began = time.monotonic()
    network = subject.network
    if network is None:
        raise ValueError("a player needs the model")
    programs.write_player(subject, folder)
    yield from sizes(folder)
    taken = footprint(subject)
    yield f"{taken.constants:,}"
    yield f"{taken.tables:,}"
    inputs, wanted = programs.expected_outputs(subject.problem, subject.plan, network)

    def judge(found: programs.Arrays) -> str:
        return verdict(network, found, wanted)

    address = programs.build(folder, "spmilp_play", "address")
    yield judge(programs.play([address], network, inputs, folder))
    yield judge(programs.play([address, "--loop"], network, inputs, folder))
    thread = programs.build(folder, "spmilp_play", "thread")
    yield judge(programs.play([thread], network, inputs, folder))
    if programs.missing(programs.ARM_TOOLS):
        yield LEFT_OUT
        yield ""
    else:
        yield from on_bare_metal(network, inputs, wanted, folder)
    yield f"{time.monotonic() - began:.0f}"


def sizes(folder: Path) -> Iterator[str]:
    """Yield how many tasks, transfers, lists and events a plan has."""
    lines = map(str.split, (folder / "spmilp_plan.h").read_text().splitlines())
    numbers = {words[1]: words[2] for words in lines if len(words) > 2 and words[0] == "#define"}
    for name in ("TASKS", "TRANSFERS", "LISTS", "EVENTS"):
        yield numbers[f"SPMILP_PLAN_{name}"].rstrip("U")


def on_bare_metal(
    network: Network, inputs: programs.Arrays, wanted: programs.Arrays, folder: Path
) -> Iterator[str]:
    """Yield whether the bits are the same on a Cortex-M3, and the bytes of its program."""
    try:
        program = programs.build(folder, "mps2", program="spmilp_mps2.elf")
    except RuntimeError as error:
        if "will not fit in region" not in str(error):
            raise
        yield "does not fit"
        yield ""
        return
    yield verdict(network, programs.play_on_bare_metal(program, network, inputs, folder), wanted)
    yield f"{programs.loaded_bytes(program):,}"


def verdict(network: Network, found: programs.Arrays, wanted: programs.Arrays) -> str:
    """Say whether outputs are the same bits."""
    for name in network.outputs:
        if found[name].tobytes() != np.ascontiguousarray(wanted[name]).tobytes():
            different = int(np.count_nonzero(found[name] != wanted[name]))
            return f"wrong: {different} of {found[name].size} values of {name}"
    return SAME


if __name__ == "__main__":
    sys.exit(main())
