"""What each pass over a network changes of plan and traffic.

Usage: python -m benchmarks.passes [NETWORK ...] [--machine M] [--instances]

Each pass is switched off by itself, and fusion is done in the other ways; tiles are of the first
choice, plans the list scheduler's, checked. Makespan and DRAM traffic are given as multiples of
those with all passes on; what changes nothing is left out. One network has every Relu between
transpositions, as converters from frameworks with channels last write it. With ``--instances`` it
is ``no-sharing`` on the instances instead, whose scratchpads are small: cycles and DRAM bytes with
all passes and without this one.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from onnx import helper

import spmilp
from spmilp.frontend.passes import SWITCHES, Fuse
from spmilp.problem.file import read_problem
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions

INSTANCES = Path(__file__).parents[1] / "instances" / "problems"

CHANNELS_LAST = "resnet8_f32, Relu channels last"
NETWORKS = (
    "models/resnet8_f32.onnx",
    CHANNELS_LAST,
    "models/tiny_lstm_f32.onnx",
    "models/tiny_gru_f32.onnx",
    "models/bert_tiny_f32.onnx",
)
DIMENSIONS = {"models/bert_tiny_f32.onnx": {"batch": 1, "sequence": 64}}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--machine", default="mesh4x4")
    parser.add_argument("--instances", action="store_true")
    given = parser.parse_args()
    if given.instances:
        instances_without_sharing()
        return
    print("| network | passes | operators | groups | tasks | makespan | DRAM traffic |")
    print("|---|---|--:|--:|--:|--:|--:|")
    others = (f"fuse={how}" for how in Fuse if how is not Fuse.DEFAULT)
    changes = ("", *(f"no-{name}" for name in SWITCHES), *others)
    folder = TemporaryDirectory()
    for name in given.networks:
        file = channels_last(Path(folder.name)) if name == CHANNELS_LAST else Path(name)
        base: spmilp.Result | None = None
        base_counts: list[str] = []
        for passes in changes:
            found = spmilp.solve(
                file,
                given.machine,
                dim=DIMENSIONS.get(name),
                solver="list",
                time_limit=None,
                passes=passes,
            )
            if found.plan is None or found.origin is None:
                raise SystemExit(f"{name}, {passes}: {found.reason}")
            base = base or found
            groups = found.origin.network.groups
            values = [
                f"{found.makespan:,}" if base is found else f"{found.makespan / base.makespan:.3f}",
                f"{found.dram_traffic:,}"
                if base is found
                else f"{found.dram_traffic / base.dram_traffic:.3f}",
            ]
            counts = [sum(len(group.operators) for group in groups), len(groups)]
            counts.append(len(found.problem.tasks))
            cells = [*map("{:,}".format, counts), *values]
            if cells != [*base_counts, "1.000", "1.000"]:
                shown = [name.split("/")[-1], passes or "all on", *cells]
                print(f"| {' | '.join(shown)} |", flush=True)
            base_counts = base_counts or cells[:3]


def instances_without_sharing() -> None:
    """Print a row for each instance whose plan changes when no result may take over bytes."""
    print("| instance | all on | no-sharing |")
    print("|---|--:|--:|")
    solver, count = find_solver("list"), 0
    for file in sorted(INSTANCES.glob("*.json")):
        problem = read_problem(file)
        if len(problem.tasks) > 30 or not any(task.in_place for task in problem.tasks):
            continue
        count += 1
        tasks = tuple(replace(task, in_place=()) for task in problem.tasks)
        cells = []
        for each in (problem, replace(problem, tasks=tasks)):
            plan = solver.solve(each, SolveOptions()).plan
            claim = None if plan is None else plan.claim
            cells.append("none" if claim is None else f"{claim.makespan:,}, {claim.dram_traffic:,}")
        if cells[0] != cells[1]:
            print(f"| {file.stem} | {' | '.join(cells)} |", flush=True)
    print(f"\n{count} instances have such results.")


def channels_last(folder: Path) -> Path:
    """Write ResNet-8 with a transposition before and behind every Relu."""
    model = onnx.load(NETWORKS[0])
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type != "Relu":
            model.graph.node.append(node)
            continue
        (source,), (result,) = node.input, node.output
        there, back = f"{result}_there", f"{result}_back"
        perm = {"there": [0, 2, 3, 1], "back": [0, 3, 1, 2]}
        model.graph.node.extend(
            (
                helper.make_node("Transpose", [source], [there], name=there, perm=perm["there"]),
                helper.make_node("Relu", [there], [back], name=node.name),
                helper.make_node("Transpose", [back], [result], name=back, perm=perm["back"]),
            )
        )
    file = folder / "resnet8_channels_last.onnx"
    onnx.save(model, file)
    return file


if __name__ == "__main__":
    main()
