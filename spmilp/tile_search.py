"""Tile sizes chosen by search: tilings are tried, and the list scheduler's plans judge them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic

from spmilp.frontend.graph import Network
from spmilp.lowering.refine import refine_tilings
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.judge import Judge

MOST_TASKS_JUDGED = 40_000

SHARE_OF_TILES = 0.4
"""Of the time limit of a search for a plan, for the search for tile sizes that goes before it."""

LEAST_SECONDS = 1.0
"""For the solver, when everything before it has taken all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSearch:
    """Limits of a search for tile sizes.

    Parameters
    ----------
    seconds
        Wall time; ``None`` without limit. It makes the result depend on the clock only where it
        ends before ``tasks`` does.
    tasks
        Tasks of all problems that are judged, together.
    on_better
        Called with each better value of the objective and the tasks of its problem.
    """

    seconds: float | None = None
    tasks: int = MOST_TASKS_JUDGED
    on_better: Callable[[int, int], None] = lambda value, tasks: None


def search_tilings(
    network: Network,
    machine: Machine,
    tilings: Mapping[int, Tiling],
    objective: Quantity,
    limits: TileSearch,
) -> dict[int, Tiling]:
    """Return tilings at least as good as the given ones, by :class:`Judge`'s word."""
    deadline = None if limits.seconds is None else monotonic() + limits.seconds
    judge = Judge(machine)
    left = limits.tasks
    best: int | None = None

    def value_of(problem: Problem) -> int | None:
        nonlocal best, left
        left -= len(problem.tasks)
        value = judge(problem)
        if value is not None and (best is None or value < best):
            best = value
            limits.on_better(value, len(problem.tasks))
        return value

    def is_over() -> bool:
        return left <= 0 or (deadline is not None and monotonic() > deadline)

    return refine_tilings(
        network, machine, tilings, value_of, objective=Objective.of(objective), is_over=is_over
    )
