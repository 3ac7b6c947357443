"""CDM: one layer over 4 to 64 cores, by the full placement and by less of it."""

from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from onnx import TensorProto, helper

from benchmarks.published.rows import Row, Source
from spmilp.checker.check import check
from spmilp.machine.read import MachineFile, read_machine
from spmilp.pipeline import tiled_problem
from spmilp.policies.cdm import Accesses, Cdm, Choice
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.units import BufferIdx

MESHES = ((2, 2), (4, 2), (4, 4), (8, 4), (8, 8))
"""Columns and rows."""

Less = Callable[[Accesses, BufferIdx, Choice], bool]
"""Says whether a buffer may have a choice, to compare with all of them."""

LESS: dict[str, Less] = {
    "everything off chip": lambda all_, buffer, one: not one.keeps,
    "shared data off chip": lambda all_, buffer, one: len(all_.users(buffer)) == 1 or not one.keeps,
    "without replication": lambda all_, buffer, one: (
        not any(fetch.once for fetch in one.fetches.values())
    ),
}


class CdmOfLess(Cdm):
    """The policy with fewer choices."""

    def __init__(self, less: Less | None) -> None:
        self._less = less

    def allows(self, accesses: Accesses, buffer: BufferIdx, choice: Choice) -> bool:
        """Say whether a choice is left."""
        return self._less is None or self._less(accesses, buffer, choice)


SIDE = 128
BOARD = "its figure is an average of unknown programs on a board with 16 cores"


def measure(data: Path) -> Iterator[Row]:
    """Measure the speed-ups over less of the placement, and over fewer cores."""
    first = None
    for columns, rows in MESHES:
        problem, cores = one_layer(columns, rows), columns * rows
        full = estimated_and_checked(problem, None)
        first = first or full
        yield Row(
            quantity=f"speed-up over 4 cores, {cores} cores",
            published="none",
            ours=_ratios(first, full),
        )
        for name, one in LESS.items():
            less = estimated_and_checked(problem, one)
            is_main = cores == 16 and "off chip" in name
            yield Row(
                quantity=f"speed-up over {name}, {cores} cores",
                published="1.84 over existing approaches" if is_main else "none",
                ours=_ratios(less, full),
                reason=BOARD if is_main else "",
            )


def one_layer(columns: int, rows: int) -> Problem:
    """Return a product of matrices on a mesh of Epiphany's cores, the external port in a corner."""
    weight = TensorProto(name="weights", dims=(SIDE, SIDE), data_type=TensorProto.FLOAT)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (SIDE, SIDE)) for name in ("x", "y")
    ]
    node = helper.make_node("MatMul", ["x", "weights"], ["y"], "product")
    graph = helper.make_graph([node], "product", ends[:1], ends[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "product.onnx"
        onnx.save(model, path)
        tiled, _ = tiled_problem(path, mesh_of_epiphany(columns, rows))
    return tiled.problem


def mesh_of_epiphany(columns: int, rows: int) -> MachineFile:
    """Return the preset with another number of cores."""
    text = files("spmilp.machine.presets").joinpath("epiphany3.yaml").read_text(encoding="utf-8")
    for old, new in (
        ("columns: 4", f"columns: {columns}"),
        ("rows: 4", f"rows: {rows}"),
        ("r_3_2", f"r_{columns - 1}_{rows - 1}"),
    ):
        text = text.replace(old, new)
    return read_machine(text.encode(), f"epiphany {columns}x{rows}")


def estimated_and_checked(problem: Problem, less: Less | None) -> tuple[int, int]:
    """Return the cycles that the placement counts, and the makespan of its checked plan."""
    result = CdmOfLess(less).solve(problem, SolveOptions())
    if result.plan is None or check(problem, result.plan):
        raise SystemExit(f"cdm on {problem.name}: no plan that passes the checker")
    return int(dict(result.plan.options)["estimated_cycles"]), result.plan.claim.makespan


def _ratios(less: tuple[int, int], full: tuple[int, int]) -> str:
    return f"{less[0] / full[0]:.2f}; of plans {less[1] / full[1]:.2f}"


SOURCE = Source(
    title="CDM",
    citation=(
        "Venkataramani, Chan and Mitra, ACM TECS 2019, doi 10.1145/3301308, abstract: on the "
        "Parallella board execution time divided by 1.84 and energy by 1.83. Its programs, its "
        "baselines and its equations could not be read, so that this is no more than an order of "
        "magnitude."
    ),
    setting=(
        f"A product of two float32 matrices of {SIDE} × {SIDE} elements, tiles of the first "
        "choice, on meshes with the numbers of the preset `epiphany3` and the external port in a "
        "corner. The first figure is in cycles of the placement, what the policy makes small; the "
        "second one in makespans of plans that passed the checker, where transfers overlap work."
    ),
    rows=measure,
)
