"""Bytes of tables, memories and straight code of the C exports, for networks and machines.

Usage: python -m benchmarks.player.footprints [--machines A,B] [--models A,B]

Straight code is compiled for a Cortex-M3 (-Os), if the compiler is there; its bytes are functions
and constants, without weights, kernels and the few functions of the platform. Plans of
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.player import programs
from benchmarks.player.run_all import loaded_bytes
from spmilp.export.footprint import footprint
from spmilp.export.subject import Profile, Subject, stamp_of
from spmilp.frontend.load import load_network
from spmilp.pipeline import solve

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("ds_cnn_int8", "resnet8_int8", "mobilenetv1_025_int8", "autoencoder_int8")
MACHINES = ("gap8", "gap9", "mesh4x4")
HEAD = (
    "| network | machine | tasks | transfers | constants B | tables, debug B | tables, release B "
    "| of constants | code, resumed B | code, blocking B | DRAM, debug B | DRAM, release B "
    "| CPU s |\n"
    "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def main() -> int:
    """Print a row for each plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--machines", default=",".join(MACHINES))
    arguments = parser.parse_args()
    print(HEAD, flush=True)
    for model in arguments.models.split(","):
        for machine in arguments.machines.split(","):
            print(f"| {' | '.join([model, machine, *cells(model, machine)])} |", flush=True)
    return 0


def cells(model: str, machine: str) -> list[str]:
    """Return what the table says of one plan."""
    path = ROOT / "models" / f"{model}.onnx"
    result = solve(path, machine, solver="list", tiles="first")
    if result.plan is None:
        return [f"no plan: {result.status.value}"]
    problem, plan = result.problem, result.plan
    network = load_network(path, kinds=problem.machine.kinds)
    stamp = stamp_of(problem, plan)
    subject = Subject(problem=problem, plan=plan, stamp=stamp, network=network)
    large = footprint(subject)
    began = time.process_time()
    small = footprint(replace(subject, profile=Profile.RELEASE))
    used = time.process_time() - began
    dram = problem.machine.memories[0].name
    return [
        *(f"{len(rows):,}" for rows in (problem.tasks, plan.transfers)),
        *(f"{each:,}" for each in (small.constants, large.tables, small.tables)),
        f"{small.tables / small.constants:.1%}",
        *(code_bytes(subject, flags) for flags in ((), ("-DSPMILP_BLOCKING",))),
        *(f"{dict(each.memories)[dram]:,}" for each in (large, small)),
        f"{used:.1f}",
    ]


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
        return f"{sum(map(loaded_bytes, folder.glob('*.o'))):,}"


if __name__ == "__main__":
    sys.exit(main())
