"""Problems in which tasks cost what another tool says they cost."""

from collections.abc import Callable
from dataclasses import replace
from math import prod

from spmilp.frontend.graph import Network
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.list_scheduler.tiling_evaluator import TilingEvaluator
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.refine import refine_tilings
from spmilp.units import Cycles

Costs = Callable[[Task], tuple[Cycles | None, ...]]
"""Cycles of a task on each kind of core, instead of those of the cost model."""

MOST_TASKS_JUDGED = 40_000


def lowered(
    network: Network,
    machine: Machine,
    costs: Costs | None = None,
    *,
    sources: tuple[tuple[str, str], ...] = (),
) -> Problem:
    """Return the problem of a network with tile sizes found by search.

    As ``spmilp solve --tiles search`` does it: the first choice, then others that the list
    scheduler judges, until it has judged so many tasks; no clock has a say.

    Parameters
    ----------
    costs
        What tasks cost, for the search, too; ``None`` for the cost model.
    sources
        ``(what, SHA-256)`` of the files that it comes from.
    """

    def adjusted(problem: Problem) -> Problem:
        return problem if costs is None else with_costs(problem, costs)

    judge = TilingEvaluator(machine)
    left = MOST_TASKS_JUDGED

    def value_of(problem: Problem) -> int | None:
        nonlocal left
        left -= len(problem.tasks)
        return judge(adjusted(problem))

    first = first_choice(network, machine, sources=sources)
    return adjusted(first.lower(refine_tilings(first, value_of, is_over=lambda: left <= 0)))


def with_costs(problem: Problem, costs: Costs) -> Problem:
    """Return a problem whose tasks take other cycles."""
    tasks = (replace(task, cycles=costs(task)) for task in problem.tasks)
    return replace(problem, tasks=tuple(tasks))


def share_of(task: Task, network: Network) -> tuple[int, int]:
    """Return a task's share of its group, in elements of the output: ``part, whole``."""
    if task.tile is None:
        return 1, 1
    group = next(group for group in network.groups if group.name == task.tile.of)
    whole = prod(network.tensors[group.output].shape)
    return prod(stop - start for start, stop in task.tile.box), whole
