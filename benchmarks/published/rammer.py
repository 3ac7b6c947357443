"""RAMMER: all operators of a wave side by side, beside one operator at a time."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.published.rows import Row, Source
from spmilp.checker.check import check
from spmilp.frontend.find import LIGHT_PREFIX
from spmilp.pipeline import tiled_problem
from spmilp.policies.rammer import appended_tasks
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.orders import operators_of
from spmilp.units import Cycles

MACHINES = ("edge16",)
NETWORKS = ("light_squeezenet", "light_inception_v1", "light_shufflenet")
GPUS = "its figures are of GPUs and an IPU, against compilers that launch kernel after kernel"


def measure(data: Path) -> Iterator[Row]:
    """Measure on networks with parallel branches."""
    for network in NETWORKS:
        for machine in MACHINES:
            tiled, _ = tiled_problem(LIGHT_PREFIX + network, machine)
            problem = tiled.problem
            where = f"{network.removeprefix('light_')} on `{machine}`"
            alone = cycles_of_tasks(problem, one_by_one=True)
            yield Row(
                quantity=f"one operator at a time ÷ waves, cycles of tasks alone, {where}",
                published="none of this kind",
                ours=f"{alone / cycles_of_tasks(problem, one_by_one=False):.3f}",
                reason=GPUS,
            )
            yield Row(
                quantity=f"`rammer` ÷ `list`, makespan, {where}",
                published="none",
                ours=f"{_makespan(problem, 'rammer') / _makespan(problem, 'list'):.3f}",
            )


def cycles_of_tasks(problem: Problem, *, one_by_one: bool) -> Cycles:
    """Return when the last task ends if transfers take no time.

    Parameters
    ----------
    one_by_one
        Whether each operator waits until all tasks of the one before it have ended.
    """
    operators, before = operators_of(problem), problem.predecessors()
    free: list[Cycles] = [0] * len(problem.machine.cores)
    ends: dict[int, Cycles] = {}
    begun = barrier = 0
    for task, core in appended_tasks(problem):
        if one_by_one and operators[task] != operators[begun]:
            begun, barrier = task, max(ends.values(), default=0)
        starts = max(barrier, free[core], *(ends[one] for one in before[task]), 0)
        taken = problem.tasks[task].cycles[problem.machine.cores[core].kind]
        if taken is None:
            raise ValueError(f"task {task} was appended to core {core}, which cannot run it")
        ends[task] = free[core] = starts + taken
    return max(ends.values(), default=0)


def _makespan(problem: Problem, solver: str) -> Cycles:
    result = find_solver(solver).solve(problem, SolveOptions())
    if result.plan is None or check(problem, result.plan):
        raise SystemExit(f"{solver} on {problem.name}: no plan that passes the checker")
    return result.plan.claim.makespan


SOURCE = Source(
    title="RAMMER",
    citation=(
        "Ma et al., OSDI 2020; its abstract has up to 20.1 times the speed of XLA and TVM and up "
        "to 3.1 times that of TensorRT."
    ),
    setting=(
        "Whole networks with the first choice of tile sizes, each operator cut for all cores. "
        "In cycles of tasks alone transfers take no time, as in RAMMER's profiles of kernels."
    ),
    rows=measure,
)
