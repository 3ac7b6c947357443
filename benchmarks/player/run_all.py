"""Compile and run the C player for the MLPerf Tiny networks in int8 on several machines.

Usage: python -m benchmarks.player.run_all [--machines A,B] [--models A,B] [--profile debug]
           [--keep DIR]

Each plan is built with the address and undefined-behaviour sanitizers (run with threads and in one
loop), with the thread sanitizer, and without an operating system for an Arm Cortex-M3 (QEMU) where
the tools are installed. The outputs must be those of the value replay, bit for bit.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.player import programs
from spmilp.export.footprint import footprint
from spmilp.export.subject import Profile, Subject, stamp_of
from spmilp.frontend.graph import Network
from spmilp.frontend.load import load_network
from spmilp.pipeline import solve

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("resnet8_int8", "ds_cnn_int8", "mobilenetv1_025_int8", "autoencoder_int8")
MACHINES = ("gap8", "gap9", "mesh4x4")
HEAD = (
    "| network | machine | tasks | transfers | lists | events | constants B | tables B "
    "| threads, ASan+UBSan | loop, ASan+UBSan | threads, TSan | Cortex-M3 | text, data B "
    "| seconds |\n"
    "|---|---|--:|--:|--:|--:|--:|--:|---|---|---|---|--:|--:|"
)
SAME, LEFT_OUT = "same bits", "not run"


def main() -> int:
    """Print a row for each plan; 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--profile", choices=list(Profile), default=Profile.RELEASE)
    parser.add_argument("--keep", type=Path, help="where exports and programs stay")
    arguments = parser.parse_args()
    print(HEAD, flush=True)
    wrong = 0
    for model in arguments.models.split(","):
        for machine in arguments.machines.split(","):
            with tempfile.TemporaryDirectory() as temporary:
                folder = arguments.keep or Path(temporary)
                profile = Profile(arguments.profile)
                row = list(cells(model, machine, profile, folder / f"{model}-{machine}"))
            print(f"| {' | '.join([model, machine, *row])} |", flush=True)
            wrong += sum(cell.startswith("wrong") for cell in row)
    return 1 if wrong else 0


def cells(model: str, machine: str, profile: Profile, folder: Path) -> Iterator[str]:
    """Yield what the table says of one plan."""
    began = time.monotonic()
    path = ROOT / "models" / f"{model}.onnx"
    result = solve(path, machine, solver="list", tiles="first")
    if result.plan is None:
        yield f"no plan: {result.status.value}"
        return
    problem, plan = result.problem, result.plan
    network = load_network(path, kinds=problem.machine.kinds)
    stamp = stamp_of(problem, plan)
    subject = Subject(problem=problem, plan=plan, stamp=stamp, network=network, profile=profile)
    programs.write_player(subject, folder)
    yield from sizes(folder)
    taken = footprint(subject)
    yield f"{taken.constants:,}"
    yield f"{taken.tables:,}"
    inputs, wanted = programs.expected_outputs(problem, plan, network)

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
    yield f"{loaded_bytes(program):,}"


def loaded_bytes(program: Path) -> int:
    """Return the bytes of an ELF file's text and data."""
    said = subprocess.run(
        ["arm-none-eabi-size", program], capture_output=True, text=True, check=True
    )
    text, data = said.stdout.splitlines()[1].split()[:2]
    return int(text) + int(data)


def verdict(network: Network, found: programs.Arrays, wanted: programs.Arrays) -> str:
    """Say whether outputs are the same bits."""
    for name in network.outputs:
        if found[name].tobytes() != np.ascontiguousarray(wanted[name]).tobytes():
            different = int(np.count_nonzero(found[name] != wanted[name]))
            return f"wrong: {different} of {found[name].size} values of {name}"
    return SAME


if __name__ == "__main__":
    sys.exit(main())
