"""Tile sizes chosen by search: tilings are tried, and evaluated by the list scheduler's plans.

The first of them fit, and are chosen without comparing any, for a plan in the first seconds.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from math import prod
from time import monotonic

from spmilp.frontend.graph import Network
from spmilp.lowering.groups import class_of
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.lower import lower
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.orders import operators_of
from spmilp.solvers.list_scheduler.portfolio import Trial
from spmilp.solvers.list_scheduler.rules import EVALUATION_RULES, advances_of
from spmilp.solvers.list_scheduler.schedules import Rule, TilingEvaluator
from spmilp.tile_selection.candidates import TileShrinker
from spmilp.tile_selection.first_choice import FirstChoice
from spmilp.tile_selection.group_model import GroupModel
from spmilp.tile_selection.refine import refine_tilings
from spmilp.tile_selection.tiled_problem import TiledProblem
from spmilp.units import Bytes

FIRST_WORKING_SET = 0.7
"""Part of a core's memory that a tile may need: larger tiles are fewer, and sooner scheduled."""

MOST_PAIRS = 400_000
"""Of tiles of a group and of one that it reads: of more it takes too long to make a problem."""


def fast_initial_tilings(network: Network, machine: Machine) -> dict[int, Tiling] | None:
    """Return a tiling for each group, by index: a tile for each core, or as many as fit.

    The longest axes of the output are cut. ``None`` where a group does not fit in this way, and
    where tiles become so many that the plan would not come soon.
    """
    capacity = int(FIRST_WORKING_SET * machine_rates(machine).least_share)
    cache: dict[Hashable, Tiling | None] = {}
    found: dict[int, Tiling] = {}
    for group in network.groups:
        kind = class_of(network, group)
        if kind not in cache:
            model = GroupModel(network, group, machine)
            cache[kind] = _fitting(model, _one_for_each(model, len(machine.cores)), capacity)
        tiling = cache[kind]
        if tiling is None:
            return None
        found[group.index] = tiling
    return None if _pairs(network, found) > MOST_PAIRS else found


def _pairs(network: Network, tilings: Mapping[int, Tiling]) -> int:
    """Return how many tiles of one group there may be for those of another that reads it."""
    tiles = {group.output: prod(tilings[group.index].counts) for group in network.groups}
    return sum(
        tiles[group.output] * tilings[group.index].parts * tiles.get(name, 1)
        for group in network.groups
        for name in group.inputs
    )


def _one_for_each(model: GroupModel, cores: int) -> Tiling:
    """Cut the longest axis into a tile for each core, or the next ones, too, if it is short."""
    counts = [1] * len(model.shape)
    # The batch, if it is one, is cut last: what its parts share is loaded again for each.
    batch = 0 if len(model.shape) > 2 else -1
    axes = [axis for axis, can_be_cut in enumerate(model.splittable) if can_be_cut]
    missing = cores
    for axis in sorted(axes, key=lambda axis: (axis == batch, -model.shape[axis], axis)):
        counts[axis] = min(missing, model.shape[axis])
        missing = -(-missing // counts[axis])
    return Tiling(counts=tuple(counts))


def _fitting(model: GroupModel, tiling: Tiling, capacity: Bytes) -> Tiling | None:
    for splits_reduction in (False, True):
        fitting = TileShrinker(model, splits_reduction).until_it_fits(tiling, capacity)
        if fitting is not None:
            return fitting
    return None


MOST_TASKS_EVALUATED = 120_000

SOON_COMPARED = 30
"""Groups that differ from each other: the candidates of so many are compared as soon as a plan
without comparing could be made."""

MARGIN = 1.05
"""A rule whose best schedule takes so many times as long as the best of all is asked no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSearch:
    """Limits of a search for tile sizes.

    Parameters
    ----------
    seconds
        Wall time; ``None`` without limit. It makes the result depend on the clock only where it
        ends before ``tasks`` does.
    tasks
        Tasks of all problems that are evaluated, together, once for each of the evaluator's rules.
    on_better
        Called with each better value of the objective and the tasks of its problem.
    """

    seconds: float | None = None
    tasks: int = MOST_TASKS_EVALUATED
    on_better: Callable[[int, int], None] = lambda value, tasks: None


def fast_initial_problem(
    network: Network,
    machine: Machine,
    limits: TileSearch,
    *,
    objective: Objective = DEFAULT_OBJECTIVE,
    sources: tuple[tuple[str, str], ...] = (),
) -> TiledProblem | None:
    """Return a problem and a schedule of it within seconds, in case of an early interrupt.

    ``None`` where the first choice comes as soon, and where many more tiles are needed than cores.
    """
    if len({class_of(network, group) for group in network.groups}) <= SOON_COMPARED:
        return None
    tilings = fast_initial_tilings(network, machine)
    if tilings is None:
        return None
    problem = lower(network, machine, tilings, objective=objective, sources=sources)
    if groups_that_do_not_fit(problem):
        return None
    schedules = TilingEvaluator(machine).schedules(problem, EVALUATION_RULES[:1])
    found = (TiledProblem(problem=problem, schedule=schedule) for schedule in schedules)
    tiled = next(found, None)
    if tiled is not None and tiled.value is not None:
        limits.on_better(tiled.value, len(problem.tasks))
    return tiled


def search_tilings(
    first: FirstChoice, limits: TileSearch, known: TiledProblem | None = None
) -> TiledProblem:
    """Return a problem with tilings that the evaluator finds at least as good as the first ones.

    A ``KeyboardInterrupt`` ends the search; it passes on as long as there is no schedule.

    Parameters
    ----------
    known
        The answer unless something better is found.
    """
    evaluation = _Evaluation(first.subject.machine, limits, known)
    try:
        tilings = refine_tilings(
            first, evaluation.value_of, is_over=evaluation.is_over, delays=evaluation.delays
        )
    except KeyboardInterrupt:
        if evaluation.best is None:
            raise
        evaluation.interrupted = True
    if evaluation.best is not None:
        return replace(evaluation.best, interrupted=evaluation.interrupted)
    return TiledProblem(problem=first.lower(tilings))


class _Evaluation:
    """Evaluates the problems of a search with the list scheduler and keeps the best."""

    def __init__(self, machine: Machine, limits: TileSearch, known: TiledProblem | None) -> None:
        self._evaluator = TilingEvaluator(machine)
        self._limits = limits
        self._left = limits.tasks
        self._deadline = None if limits.seconds is None else monotonic() + limits.seconds
        self.interrupted = False
        self._least: dict[Rule, int] = {}
        self.best = known

    def is_over(self) -> bool:
        """Return whether a limit is reached."""
        late = self._deadline is not None and monotonic() > self._deadline
        return self.interrupted or self._left <= 0 or late

    def value_of(self, problem: Problem) -> int | None:
        """Return the least value of a problem's schedules, and keep the best one of all."""
        rules = self._rules_worth_asking()
        self._left -= len(rules) * len(problem.tasks)
        values = []
        try:
            for schedule in self._evaluator.schedules(problem, rules):
                values.append(schedule.score[0])
                self._note(schedule.trial, schedule.score[0])
                self._keep_if_better(TiledProblem(problem=problem, schedule=schedule))
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.interrupted = True
        return min(values, default=None)

    def delays(self) -> dict[str, int]:
        """Return how many cycles each group advances the best schedule, by the group's name."""
        if self.best is None or self.best.schedule is None:
            return {}
        tasks = self.best.problem.tasks
        groups = {task.tile.of: None for task in tasks if task.tile is not None}
        advances = advances_of(operators_of(self.best.problem), self.best.schedule.state)
        return dict(zip(groups, advances.tolist(), strict=True))

    def _rules_worth_asking(self) -> list[Rule]:
        """Return the rules without those that have always been far behind others."""
        least = min(self._least.values(), default=0)
        return [rule for rule in EVALUATION_RULES if self._least.get(rule, least) <= MARGIN * least]

    def _note(self, trial: Trial, value: int) -> None:
        rule = trial.assignment, trial.order
        self._least[rule] = min(value, self._least.get(rule, value))

    def _keep_if_better(self, tiled: TiledProblem) -> None:
        best = None if self.best is None else self.best.value
        if tiled.value is not None and (best is None or tiled.value < best):
            self.best = tiled
            self._limits.on_better(tiled.value, len(tiled.problem.tasks))
