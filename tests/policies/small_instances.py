"""The problems on which every policy is tried: the instances of up to 30 tasks."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from spmilp.checker.check import check
from spmilp.problem.file import read_problem
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.common.solver import Solver

INSTANCES = Path(__file__).parents[2] / "instances" / "problems"


def tasks_in(path: Path) -> int:
    """Return the number of tasks that a file's name states."""
    return next(int(part[:-1]) for part in path.stem.split("-") if part[:-1].isdigit())


SMALL = tuple(path.stem for path in sorted(INSTANCES.glob("*.json")) if tasks_in(path) <= 30)
QUICK = (
    "attention-24t-2c-crossbar-verytight-balanced-dramtraffic",
    "branch-15t-4c-mesh2x2-remote-tight-balanced",
    "lstm-27t-3c-crossbar-tight-compute",
    "mlp-8t-4c-bus-shared4-tight-compute",
)
REFUSED = {
    "layers-20t-3c": "1 DRAM; this one has 0",
    "stages-24t-4c-crossbar-staged-tight-compute": "B) from ",
}
"""By policies that know one DRAM and scratchpads beside it, with what they say."""


def small_instance(name: str) -> Problem:
    return read_problem(INSTANCES / f"{name}.json")


def assert_plans_or_refusals(
    policy: Solver, names: Iterable[str], refused: Mapping[str, str] = REFUSED
) -> None:
    """Every plan passes the checker, and a refusal has a name and a number."""
    for name in names:
        problem = small_instance(name)
        result = policy.solve(problem, SolveOptions())
        if name in refused:
            assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None), name
            assert refused[name] in result.reason
        else:
            assert result.plan is not None, (name, result.reason)
            assert check(problem, result.plan) == (), name
            assert result.plan.solver == policy.name
