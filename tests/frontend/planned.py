"""From a model to a plan by the list scheduler, checked, and run on numbers."""

from collections.abc import Mapping
from pathlib import Path

import spmilp
from spmilp.checker.values.replay import replay
from spmilp.frontend.load import load_network
from tests.frontend.running import Array


def plan_of(path: Path, machine: str = "gap8", solver: str = "list") -> spmilp.Result:
    """Return a plan that the checker accepts."""
    limit = None if solver == "list" else 10.0
    result = spmilp.solve(path, machine, solver=solver, time_limit=limit)
    assert result.plan is not None, result.reason
    assert not spmilp.check(result.problem, result.plan)
    return result


def planned_outputs(
    path: Path, inputs: Mapping[str, Array], machine: str = "gap8", solver: str = "list"
) -> dict[str, Array]:
    """Return what a plan's tasks compute, tile by tile, from the bytes at their addresses."""
    result = plan_of(path, machine, solver)
    assert result.plan is not None
    network = load_network(path, kinds=result.problem.machine.kinds)
    return dict(replay(result.problem, result.plan, network, inputs))
