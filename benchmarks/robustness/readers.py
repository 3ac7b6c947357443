"""The readers that are tried, and the files to begin with."""

import tempfile
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np

import spmilp
from benchmarks.convert import read_job_shop
from spmilp.checker.check import check
from spmilp.checker.values.inputs import random_inputs, read_values
from spmilp.frontend.load import load_network
from spmilp.machine.read import load_machine, read_machine
from spmilp.packing.minimalloc import parse_table
from spmilp.plan.file import read_plan
from spmilp.problem.file import read_problem

ROOT = Path(__file__).parents[2]


def from_file(read: Callable[[Path], object], ending: str) -> Callable[[bytes, Path], object]:
    """Return a reader of bytes that writes them to a file and reads that."""

    def read_bytes(data: bytes, folder: Path) -> object:
        file = folder / f"file{ending}"
        file.write_bytes(data)
        return read(file)

    return read_bytes


def contents(pattern: str, folder: Path = ROOT) -> list[bytes]:
    """Return the content of files."""
    return [path.read_bytes() for path in sorted(folder.glob(pattern))]


def arrays() -> list[bytes]:
    """Return files with inputs of a network, compressed and plain."""
    found = []
    for save in (np.savez, np.savez_compressed):
        made = BytesIO()
        save(made, **random_inputs(NETWORK, 0))
        found.append(made.getvalue())
    return found


def of_pair(name: str) -> list[bytes]:
    """Return a file of a plan that is made for it."""
    with tempfile.TemporaryDirectory() as made:
        spmilp.solve(SMALL, solver="list", time_limit=2).save(made)
        spmilp.read(made).export("bin", made)
        return contents(name, Path(made))


SMALL = ROOT / "instances" / "problems" / "branch-6t-2c-crossbar-nolinks-tight-compute.json"
PROBLEM = spmilp.load_problem(SMALL)
PRESETS = Path(str(files("spmilp.machine") / "presets"))
BUFFERS = b"id,lower,upper,size\na,0,3,4\nb,3,9,4\nc,0,9,4\n"
JOB_SHOP = b"2 3 1\n2 1 1 5 2 1 3 2 4\n1 2 1 6 3 2\n"
MACHINE = load_machine("mesh4x4").machine
NETWORK = load_network(ROOT / "models" / "ds_cnn_int8.onnx", {}, MACHINE)

READERS: dict[str, tuple[Callable[[bytes, Path], object], Callable[[], list[bytes]]]] = {
    "problem": (
        from_file(read_problem, ".json"),
        partial(contents, "instances/problems/*.json"),
    ),
    "plan": (
        from_file(lambda file: check(PROBLEM, read_plan(file, PROBLEM)), ".json"),
        partial(of_pair, "plan.json"),
    ),
    "machine": (
        lambda data, folder: read_machine(data, "case"),
        partial(contents, "*.yaml", PRESETS),
    ),
    "buffers": (
        lambda data, folder: parse_table(data, "case"),
        lambda: [BUFFERS, *contents("docs/example/*.csv")],
    ),
    "job shop": (from_file(read_job_shop, ".fjs"), lambda: [JOB_SHOP]),
    "inputs": (from_file(lambda file: read_values(file, NETWORK), ".npz"), arrays),
    "model": (
        from_file(lambda file: load_network(file, {}, MACHINE), ".onnx"),
        partial(contents, "models/*.onnx"),
    ),
}
