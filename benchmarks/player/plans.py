"""The plans that the tables of the player are about, and how their rows are printed.

Plans of the list scheduler for the first choice of tile sizes: the same on every computer.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from spmilp.export.subject import Subject
from spmilp.frontend.load import load_network
from spmilp.pipeline import solve

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("resnet8_int8", "ds_cnn_int8", "mobilenetv1_025_int8", "autoencoder_int8")
MACHINES = ("gap8", "gap9", "mesh4x4")


def arguments_of(
    description: str | None,
    models: Iterable[str] = MODELS,
    machines: Iterable[str] = MACHINES,
) -> argparse.ArgumentParser:
    """Return a parser of what all tables have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--models", default=",".join(models))
    parser.add_argument("--machines", default=",".join(machines))
    return parser


def print_rows(
    head: str, given: argparse.Namespace, cells: Callable[[Subject, str], Iterable[str]]
) -> int:
    """Print a row for each plan and return 1 if a cell says that something is wrong.

    Parameters
    ----------
    cells
        Gives what a row says of a subject; its second argument names model and machine.
    """
    print(head, flush=True)
    wrong = 0
    for model in given.models.split(","):
        for machine in given.machines.split(","):
            row = _row(model, machine, cells)
            print(f"| {' | '.join([model, machine, *row])} |", flush=True)
            wrong += sum(cell.startswith("wrong") for cell in row)
    return int(wrong > 0)


def _row(model: str, machine: str, cells: Callable[[Subject, str], Iterable[str]]) -> list[str]:
    path = ROOT / "models" / f"{model}.onnx"
    result = solve(path, machine, solver="list", tiles="first")
    if result.plan is None:
        return [f"no plan: {result.status.value}"]
    network = load_network(path, machine=result.problem.machine)
    subject = Subject(problem=result.problem, plan=result.plan, network=network)
    return list(cells(subject, f"{model}-{machine}"))
