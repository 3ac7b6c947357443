"""Stream: two convolutions on its quad-core, and fused layers beside layers one after another."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from onnx import TensorProto, helper

from benchmarks.peers.stream import MACHINE, TWO_CONVOLUTIONS, two_convolutions
from benchmarks.published.rows import Row, Source
from spmilp.checker.check import check
from spmilp.frontend.find import LIGHT_PREFIX
from spmilp.pipeline import tiled_problem
from spmilp.policies.scheduled import Layers, Schedules
from spmilp.policies.stream import Stream
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.schedule.assignments import along_the_chip
from spmilp.solvers.schedule.kernels.records import Ints
from spmilp.solvers.schedule.orders import depth_first
from spmilp.units import Cycles

NETWORKS = ("light_squeezenet", "light_shufflenet")
ENERGY = "its figure is energy times delay, on other machines and networks"


def measure(data: Path) -> Iterator[Row]:
    """Measure its two convolutions and both orders."""
    problem = its_convolutions()
    found = _makespan(problem)
    yield Row(
        quantity="makespan of two convolutions on its quad-core",
        published="15,340 (its newer MILP)",
        ours=f"{found:,}",
        reason="transfers overlap computing here; other cycles of tasks (see [peers](peers.md))",
    )
    for network in NETWORKS:
        tiled, _ = tiled_problem(LIGHT_PREFIX + network, MACHINE)
        where = f"{network.removeprefix('light_')} on `{MACHINE}`"
        one_by_one, fused = on_all_cores(tiled.problem)
        best = _makespan(tiled.problem)
        yield Row(
            quantity=f"layers one after another ÷ fused, all on all cores, makespan, {where}",
            published="up to 2.2 from fusion",
            ours=f"{one_by_one / fused:.2f}",
            reason=ENERGY,
        )
        yield Row(
            quantity=f"layers one after another on all cores ÷ `stream`, makespan, {where}",
            published="none of this kind",
            ours=f"{one_by_one / best:.2f}",
        )


def its_convolutions() -> Problem:
    """Return two convolutions with the shapes that the name of Stream's file states, in float16."""
    kind = TensorProto.FLOAT16
    weights = [
        TensorProto(name=f"w{place}", dims=dims, data_type=kind)
        for place, dims in enumerate(((16, 8, 3, 3), (32, 16, 3, 3)))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["between"], "Conv1", pads=[1] * 4),
        helper.make_node("Conv", ["between", "w1"], ["y"], "Conv2", pads=[1] * 4),
    ]
    ends = [
        helper.make_tensor_value_info(name, kind, (1, channels, 32, 32))
        for name, channels in (("x", 8), ("y", 32))
    ]
    graph = helper.make_graph(nodes, "2conv", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with TemporaryDirectory() as folder:
        path = Path(folder) / TWO_CONVOLUTIONS
        path.parent.mkdir(parents=True)
        onnx.save(model, path)
        return two_convolutions(Path(folder))


def on_all_cores(problem: Problem) -> tuple[Cycles, Cycles]:
    """Return makespans with all layers on all cores: layer by layer, and fused."""
    layers, along = Layers(problem), along_the_chip(problem)
    every = [one for layer in range(len(layers.work)) for one in layers.spread(layer, along)]
    order, cores = layers.in_order(every)
    schedules = Schedules[Ints](
        SearchContext(problem, SolveOptions()), "stream", lambda order: (order, cores)
    )
    made = [schedules.make(one) for one in (order, depth_first(problem))]
    if made[0] is None or made[1] is None:
        raise SystemExit(f"stream on {problem.name}: {schedules.reason}")
    return made[0][0], made[1][0]


def _makespan(problem: Problem) -> Cycles:
    result = Stream().solve(problem, SolveOptions())
    if result.plan is None or check(problem, result.plan):
        raise SystemExit(f"stream on {problem.name}: no plan that passes the checker")
    return result.plan.claim.makespan


SOURCE = Source(
    title="Stream",
    citation=(
        "Symons et al., IEEE TC 2025, arXiv 2212.10612: up to 2.2 times less energy times delay "
        "by fusing layers, as a summary of it has it. The cycles of the two convolutions are of "
        "Stream 2.1.1, as [measured](peers.md); its genetic algorithm is gone from there."
    ),
    setting=(
        f"Its quad-core, `{MACHINE}`; the two convolutions in float16 with tile sizes found by "
        "search, networks with the first choice of them; 25 generations of 16. Plans passed the "
        "checker."
    ),
    rows=measure,
)
