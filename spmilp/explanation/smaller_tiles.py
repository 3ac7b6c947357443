"""Groups of a network cut into smaller tiles until a plan is found."""

from collections.abc import Callable
from functools import partial

from spmilp.errors import DoesNotFitError
from spmilp.explanation.cause import Misfit
from spmilp.explanation.misfit import misfit_of
from spmilp.explanation.remedies import Remedy, Trials
from spmilp.explanation.shortages import misfit_in_schedule
from spmilp.frontend.graph import Network
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.group_model import GroupModel, TileShrinker
from spmilp.units import Cycles

MOST_CUTS = 12
"""Groups that are cut smaller one after another, the same one more than once."""


def smaller_tiles(
    network: Network,
    machine: Machine,
    trials: Trials,
    solved: Callable[[Problem], Cycles | None],
) -> Remedy | None:
    """Return tiles of a few groups with which a checked plan was found.

    What is in the way of a plan names a group; its tiles are cut until they need half as much, and
    again, as long as something else is in the way.

    Parameters
    ----------
    solved
        The makespan of a checked plan; ``None`` where none is found.
    """
    try:
        first = first_choice(network, machine)
    except DoesNotFitError:
        return None
    tilings = dict(first.tilings)
    cut: dict[str, tuple[Tiling, Tiling]] = {}
    for _ in range(MOST_CUTS):
        problem = first.lower(tilings)
        misfit = misfit_of(problem)
        if misfit is None:
            makespan = trials.tried(partial(solved, problem))
            if makespan is not None and cut:
                return Remedy(change=_in_words(cut), makespan=makespan)
            misfit = misfit_in_schedule(problem)
        name = None if misfit is None else _group_in_the_way(problem, misfit)
        group = next((each for each in network.groups if each.name == name), None)
        if group is None:
            return None
        model, own = GroupModel(network, group, machine), tilings[group.index]
        half = model.footprint(own).bytes // 2
        options = (TileShrinker(model, split).until_it_fits(own, half) for split in (False, True))
        smaller = next(filter(None, options), None)
        if smaller is None:
            return None
        tilings[group.index] = smaller
        cut[group.name] = first.tilings[group.index], smaller
    return None


def _group_in_the_way(problem: Problem, misfit: Misfit) -> str | None:
    tasks = (task for task in problem.tasks if task.name == misfit.task and task.tile is not None)
    return next((task.tile.of for task in tasks if task.tile is not None), None)


def _in_words(cut: dict[str, tuple[Tiling, Tiling]]) -> str:
    each = (
        f"group {name} in {smaller.describe()} tiles instead of {own.describe()}"
        for name, (own, smaller) in cut.items()
    )
    return "smaller tiles: " + ", ".join(each)
