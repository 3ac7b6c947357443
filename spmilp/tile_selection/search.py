"""Tile sizes chosen by search: tilings are tried, and evaluated by the list scheduler's plans."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from spmilp.errors import DoesNotFitError, SpmilpError
from spmilp.lowering.groups import class_of
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tilings
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import ROWS_OF_A_READ, Clock, OutOfTimeError, Step
from spmilp.solvers.list_scheduler.rules import EVALUATION_RULES
from spmilp.solvers.list_scheduler.schedules import schedules_by
from spmilp.tile_selection.coarse import (
    MOST_PIECES_EVER,
    CoarseTilings,
    fast_initial_tilings,
    refuse_too_many_pieces,
    tasks_of,
    tilings_that_fit,
)
from spmilp.tile_selection.evaluation import SHARE_AT_MOST, Evaluation
from spmilp.tile_selection.first_choice import FirstChoice, NetworkOnMachine, first_choice
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.refine import refine_tilings
from spmilp.tile_selection.tiled_problem import TiledProblem

MOST_TASKS_EVALUATED, MOST_WITHIN_TIME = 120_000, 2_000_000
"""Tasks of all problems together, and where there is a limit of time besides."""

SOON_COMPARED = 30
"""Groups that differ from each other: the candidates of so many are compared as soon as a plan
without comparing could be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSearch:
    """Limits of a search for tile sizes.

    Parameters
    ----------
    seconds
        Wall time from the first choice on; ``None`` without limit. It makes the result depend on
        the clock only where it ends before ``tasks`` does.
    tasks
        Tasks of all problems that are evaluated, together, once for each rule that evaluates them.
    problems
        So many are evaluated at most; ``None`` without limit.
    justifies
        Whether schedules may be justified: not for the plans of solvers that do no such thing.
    on_better
        Called with each better value of the objective and the tasks of its problem.
    """

    seconds: float | None = None
    tasks: int = MOST_TASKS_EVALUATED
    problems: int | None = None
    justifies: bool = True
    on_better: Callable[[int, int], None] = lambda value, tasks: None


def fast_initial_problem(
    subject: NetworkOnMachine, limits: TileSearch, clock: Clock, quickest: CoarseTilings
) -> TiledProblem | None:
    """Return a problem and a schedule of it within seconds, in case of an early interrupt.

    ``None`` where the first choice comes as soon, and where many more tiles are needed than cores.

    Parameters
    ----------
    clock
        Of the whole solve. Where there is no time to make a plan of a tile for each core, it is one
        of the quickest tilings.
    """
    network, machine = subject.network, subject.machine
    if len({class_of(network, group) for group in network.groups}) <= SOON_COMPARED:
        return None
    tilings = fast_initial_tilings(network, machine)
    if tilings is None:
        return None
    pace, tasks, reads = clock.pace, tasks_of(tilings), quickest.counts.of_all(tilings)
    tiled: TiledProblem | None = None
    if clock.has_seconds(pace.seconds_from_scratch(tasks, reads)):
        problem = subject.lower(tilings)
        if groups_that_do_not_fit(problem):
            return None
        with pace.measured(Step.SCHEDULE, reads):
            schedules = schedules_by(problem, EVALUATION_RULES[:1])
            found = (TiledProblem(problem=problem, schedule=schedule) for schedule in schedules)
            tiled = next(found, None)
    # Now it is known how quick this machine is.
    if tiled is None or not clock.has_seconds(
        pace.seconds_to_finish(tasks + ROWS_OF_A_READ * reads)
    ):
        with suppress(SpmilpError):
            return coarse_problem(subject, quickest, limits)
    if tiled is not None and tiled.value is not None:
        limits.on_better(tiled.value, len(tiled.problem.tasks))
    return tiled


def first_choice_in_time(
    subject: NetworkOnMachine, clock: Clock, quickest: CoarseTilings, *, has_plan: bool
) -> FirstChoice | None:
    """Return the first choice; ``None`` where there is no time to make it, or to go on from it.

    Parameters
    ----------
    clock
        Of the whole solve.
    quickest
        The choice has until the moment from which on there is just enough time to make a plan of
        the first of these and write it.
    has_plan
        There is a plan already that takes less time.
    """
    pace, needed, has_quicker = clock.pace, 0.0, has_plan
    counts = quickest.counts
    if not has_plan and clock.is_limited:
        coarse = next(iter(quickest), None)
        has_quicker = coarse is not None
        if coarse is not None:
            needed = pace.seconds_from_scratch(tasks_of(coarse), counts.of_all(coarse))

    def go_on() -> None:
        clock.go_on(SHARE_AT_MOST)
        if not clock.has_seconds(needed):
            raise OutOfTimeError

    try:
        go_on()
        found = first_choice(
            subject.network,
            subject.machine,
            objective=subject.objective,
            sources=subject.sources,
            go_on=go_on,
            pinned=subject.pinned,
        )
    except OutOfTimeError:
        return None
    # What follows is not cut by the deadline of the choice.
    found = replace(found, subject=subject)
    tilings = found.tilings
    refuse_too_many_pieces(counts, tilings, MOST_PIECES_EVER)
    takes = pace.seconds_from_scratch(tasks_of(tilings), counts.of_all(tilings))
    return found if clock.has_seconds(takes) or not has_quicker or takes <= needed else None


def coarse_problem(
    subject: NetworkOnMachine, quickest: CoarseTilings, limits: TileSearch | None = None
) -> TiledProblem:
    """Return a problem of few tasks, and a schedule of it if there is one: the quickest plan.

    Parameters
    ----------
    limits
        Of the search that there is no time for: it hears of the schedule.

    Raises
    ------
    DoesNotFitError
        If some group fits no scratchpad in this way, or there is no schedule.
    SpmilpError
        If even these tiles read too many pieces.
    """
    for problem in _coarse_problems(subject, quickest):
        for rule in EVALUATION_RULES:
            for schedule in schedules_by(problem, [rule]):
                if limits is not None:
                    limits.on_better(schedule.score[0], len(problem.tasks))
                return TiledProblem(problem=problem, schedule=schedule)
    raise DoesNotFitError(
        "there was no time to look for tile sizes that fit; give more time (time limit)",
        is_proven=False,
    )


def _coarse_problems(subject: NetworkOnMachine, quickest: CoarseTilings) -> Iterator[Problem]:
    """Yield problems whose tasks fit; where none do as they come, one of which they do."""
    tried = []
    for tilings in quickest:
        refuse_too_many_pieces(quickest.counts, tilings, remedy="more time (--time-limit), ")
        problem = subject.lower(tilings)
        if not groups_that_do_not_fit(problem):
            yield problem
        tried.append(tilings)
    if tried:
        yield tilings_that_fit(subject.network, subject.machine, tried, subject.lower)[1]


def search_tilings(
    first: FirstChoice,
    limits: TileSearch,
    known: TiledProblem | None = None,
    clock: Clock | None = None,
    start: Tilings | None = None,
) -> TiledProblem:
    """Return a problem with tilings that are evaluated to be at least as good as the first ones.

    A ``KeyboardInterrupt`` ends the search; it passes on as long as there is no schedule.

    Parameters
    ----------
    known
        The answer unless something better is found.
    clock
        Of the whole solve. Once there is a schedule nothing is begun that would take too long, and
        what does take too long is given up.
    start
        Other tilings, which are evaluated before the first ones.
    """
    counts = PieceCounts(first.subject.network, first.subject.machine)
    evaluation = Evaluation(counts, limits, known, clock or Clock(None))
    first = replace(first, subject=replace(first.subject, go_on=evaluation.go_on))
    try:
        tilings = refine_tilings(
            first,
            evaluation.value_of,
            start=start,
            budget=limits.problems,
            is_over=evaluation.is_over,
            affords=evaluation.affords,
            delays=evaluation.delays,
        )
    except (OutOfTimeError, MemoryError):
        tilings = first.tilings
    except KeyboardInterrupt:
        if evaluation.best is None:
            raise
        evaluation.interrupted = True
    found = evaluation.finish()
    if found is not None:
        return found
    return TiledProblem(problem=first.lower(tilings))
