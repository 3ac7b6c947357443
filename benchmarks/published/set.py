"""SET: ResNet-50 on its mesh by layers one after another, by pipelines, and by its search."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.peers.set_resnet50 import MACHINE, in_bytes, write_resnet50
from benchmarks.published.rows import Row, Source
from spmilp.checker.check import check
from spmilp.lowering.lower import lower
from spmilp.policies.scheduled import Layers, Schedules
from spmilp.policies.set import Set, Tree, first_trees, tasks_of
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.schedule.assignments import along_the_chip
from spmilp.source import load
from spmilp.tile_selection.first_choice import choose_tilings
from spmilp.units import Cycles

IMAGES = 1
STEPS = 10
SMALLER = "one image here, 64 there; schedules with transfers here, formulas there"


def measure(data: Path) -> Iterator[Row]:
    """Measure its two schemes, and what the search makes of them."""
    problem = resnet50()
    one_by_one, *pipelines = first_makespans(problem)
    best = min(one_by_one, *pipelines)
    yield Row(
        quantity="layers one after another ÷ the best pipeline of neighbours, makespan",
        published="1.37 (17,485,280 ÷ 12,809,627)",
        ours=f"{one_by_one / min(pipelines):.2f} ({one_by_one:,} ÷ {min(pipelines):,})",
        reason=SMALLER,
    )
    result = Set(STEPS).solve(problem, SolveOptions())
    if result.plan is None or check(problem, result.plan):
        raise SystemExit(f"set on {problem.name}: no plan that passes the checker")
    found = result.plan.claim.makespan
    yield Row(
        quantity=f"the better of both ÷ `set` after {STEPS} steps of its search, makespan",
        published="0.99 (24,050,136 ÷ 24,386,748, its shortest search)",
        ours=f"{best / found:.2f} ({best:,} ÷ {found:,})",
        reason=f"{SMALLER}; the search here begins with the better one",
    )
    yield Row(
        quantity="`set` ÷ proven bound, makespan",
        published="none",
        ours=f"{found / result.bound:.2f}",
    )


def resnet50() -> Problem:
    """Return the network with one byte for each element."""
    with write_resnet50(IMAGES) as folder:
        network, target = load(Path(folder) / "resnet50.onnx", MACHINE)
    network = in_bytes(network)
    return lower(network, target.machine, choose_tilings(network, target.machine))


def first_makespans(problem: Problem) -> list[Cycles]:
    """Return the makespans of the trees that the search begins with."""
    layers, cores = Layers(problem), along_the_chip(problem)
    schedules = Schedules[Tree](
        SearchContext(problem, SolveOptions()),
        "set",
        lambda tree: layers.in_order(tasks_of(tree, layers, cores)),
    )
    found = []
    for tree in first_trees(len(layers.work)):
        made = schedules.make(tree)
        if made is None:
            raise SystemExit(f"set on {problem.name}: {schedules.reason}")
        found.append(made[0])
    return found


SOURCE = Source(
    title="SET",
    citation=(
        "Cai et al., ISCA 2023, doi 10.1145/3579371.3589048. The cycles are of its public code "
        "(SET-ISCA2023 at a7bd739) on its example, 64 images, as [measured](peers.md) with "
        "`round=10`, and with `round=1` for its search, which did not end within seven minutes "
        "otherwise. A note by others has 1.78 times the performance of Tangram, of which there is "
        "nothing here."
    ),
    setting=(
        "ResNet-50, one image, a byte for each element, tiles of the first choice, on "
        "`set_8x8`, the 8 × 8 cores of its example; pipelines of two, four or eight neighbours "
        "with one or four sub-batches. Plans passed the checker."
    ),
    rows=measure,
)
