"""How tile sizes are chosen: at first sight, by a search, as SMAUG does; and what time allows."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice

from spmilp.errors import DoesNotFitError, SpmilpError
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tilings
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock, OutOfTimeError
from spmilp.solvers.schedule.portfolio import EVALUATION_RULES, schedules_by
from spmilp.tile_selection.coarse import (
    MOST_PIECES,
    MOST_PIECES_EVER,
    CoarseTilings,
    refuse_too_many_pieces,
    refuse_too_many_tiles,
    tasks_of,
    tilings_that_fit,
)
from spmilp.tile_selection.evaluation import Evaluation
from spmilp.tile_selection.first_choice import FirstChoice, NetworkOnMachine, first_choice_of
from spmilp.tile_selection.for_streams import tiles_for_streams
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.refine import Trials, refine_tilings
from spmilp.tile_selection.settings import SEARCH, TileOptions, Tiles
from spmilp.tile_selection.smaug import smaug_problem
from spmilp.tile_selection.tiled_problem import TiledProblem

FIRST = TileOptions()


def choose_tiles(
    subject: NetworkOnMachine,
    options: TileOptions = FIRST,
    clock: Clock | None = None,
    *,
    known: TiledProblem | None = None,
    start: Tilings | None = None,
) -> TiledProblem:
    """Choose tile sizes and lower to a problem, with a plan where the choice rests on one.

    The first choice is by an estimate; a search tries others and evaluates them by the list
    scheduler's plans, the best of which is kept. An interrupt ends that search; before the first
    schedule it passes on. Where there is no time for the first choice, tiles are as large as
    memories allow; where that choice takes long, there is a plan with such tiles before it.

    Parameters
    ----------
    clock
        Of the whole solve; without one it takes as long as it takes.
    known
        A problem with a plan, which is the answer unless something better is found.
    start
        Tilings to evaluate before those of the first choice.

    Raises
    ------
    SpmilpError
        If no kind of core can run a group, or tiles are too many.
    PinnedTilesError
        If pinned tiles fit no scratchpad.
    DoesNotFitError
        If a group's smallest tile fits no scratchpad, or no tiles are found that do.
    """
    clock = clock or Clock(None)
    refuse_too_many_tiles(subject.network, subject.machine)
    if options.how is Tiles.SMAUG:
        return TiledProblem(problem=smaug_problem(subject))
    searches = options.how is Tiles.SEARCH
    has_hint = known is not None or start is not None
    quickest = CoarseTilings(subject.network, subject.machine)
    quick = QuickPlans(quickest, clock)
    try:
        if searches and known is None and len({*quickest.counts.classes}) > SEARCH.soon_compared:
            with suppress(SpmilpError):
                known = coarse_problem(subject, quick, quickest, options)
        first = first_choice_in_time(subject, clock, quick, has_plan=known is not None)
        starts = [] if start is None else [start]
        if first is None or not clock.has_seconds(quick.seconds_of(first.tilings)):
            promising = quickest if first is None else promising_first(first, quick)
            if first is None or not searches:
                known = known or coarse_problem(subject, quick, promising, options)
                return replace(known, is_fallback=True)
            starts += promising
    except KeyboardInterrupt:
        if known is None:
            raise
        return replace(known, interrupted=True)
    if searches or has_hint:
        limits = options if searches else TileOptions(problems=1 if start is None else 2)
        found = search_tilings(first, limits, known, clock, starts)
        if searches and options.period is not None and not found.interrupted:
            return tiles_for_streams(first, options, found, clock)
        is_quick = known is not None and found.problem is known.problem
        return replace(found, is_fallback=is_quick and not has_hint)
    return TiledProblem(problem=first.lower(first.tilings))


class QuickPlans:
    """Plans that are made where there is no time to compare tiles, and how long they take.

    The ``quickest`` have few tasks.
    """

    def __init__(self, quickest: CoarseTilings, clock: Clock) -> None:
        self.quickest, self.clock = quickest, clock

    @cached_property
    def for_all_cores(self) -> Tilings | None:
        """Tilings with work for every core; none if a plan takes a good part of the time left.

        They are chosen in about the same time as the quickest.
        """
        began = self.clock.now()
        some = next(iter(self.quickest), None)
        took = self.clock.now() - began
        if some is None or not self._is_small_part(took + self.seconds_of(some)):
            return None
        found = self.quickest.for_all_cores()
        if found is None or self.quickest.counts.of_all(found) > MOST_PIECES:
            return None
        return found if self._is_small_part(self.seconds_of(found)) else None

    def _is_small_part(self, seconds: float) -> bool:
        return self.clock.has_seconds(seconds / SEARCH.share_for_all_cores)

    def seconds_of(self, tilings: Tilings) -> float:
        """Return how long it will take until a plan of some tilings is written."""
        reads = self.quickest.counts.of_all(tilings)
        return self.clock.pace.seconds_from_scratch(tasks_of(tilings), reads)

    @property
    def seconds(self) -> float:
        """How long it will take until there are plans of both."""
        both = [*islice(self.quickest, 1), self.for_all_cores]
        return sum(self.seconds_of(one) for one in both if one is not None)

    def affords(self, tilings: Tilings) -> bool:
        """Say whether there is time for a plan of some tilings."""
        return self.clock.has_seconds(self.seconds_of(tilings))


def first_choice_in_time(
    subject: NetworkOnMachine, clock: Clock, quick: QuickPlans, *, has_plan: bool
) -> FirstChoice | None:
    """Return the first choice; ``None`` where there is no time to make it, or to go on from it.

    Parameters
    ----------
    quick
        The choice has until the moment from which on there is just enough time for these plans.
    has_plan
        There is a plan already that takes less time.
    """
    needed = quick.seconds if clock.is_limited and not has_plan else 0.0

    def go_on() -> None:
        clock.go_on(SEARCH.share_at_most)
        if not clock.has_seconds(needed):
            raise OutOfTimeError

    try:
        go_on()
        found = first_choice_of(replace(subject, go_on=go_on))
    except OutOfTimeError:
        return None
    # What follows is not cut by the deadline of the choice.
    found = found.going_on(subject.go_on)
    refuse_too_many_pieces(quick.quickest.counts, found.tilings, MOST_PIECES_EVER)
    return found


def promising_first(first: FirstChoice, quick: QuickPlans) -> list[Tilings]:
    """Return the first choice and quicker ones: those for which there is time, the best first."""

    def worth(tilings: Tilings) -> tuple[float, float]:
        is_in_time = quick.affords(tilings)
        return (0.0, first.cycles_of(tilings)) if is_in_time else (quick.seconds_of(tilings), 0.0)

    return sorted([first.tilings, *quick.quickest], key=worth)


def coarse_problem(
    subject: NetworkOnMachine, quick: QuickPlans, tilings: Iterable[Tilings], options: TileOptions
) -> TiledProblem:
    """Return a problem of the first tilings that fit, and a schedule of it: the quickest plan.

    Where there is time for it, tilings with work for all cores are compared with these.

    Raises
    ------
    DoesNotFitError
        If some group fits no scratchpad in this way, or there is no schedule.
    SpmilpError
        If even these tiles read too many pieces.
    """
    found = _scheduled(_coarse_problems(subject, quick.quickest.counts, tilings))
    wide = quick.for_all_cores
    if wide is not None and (found is None or quick.affords(wide)):
        problem = subject.lower(wide)
        other = None if groups_that_do_not_fit(problem) else _scheduled([problem])
        found = min(filter(None, (found, other)), key=lambda one: one.worth or (), default=None)
    if found is None:
        raise DoesNotFitError(
            "there was no time to look for tile sizes that fit; give more time (time limit)",
            is_proven=False,
        )
    if options.how is Tiles.SEARCH:
        options.on_better(found.value or 0, len(found.problem.tasks))
    return found


def _scheduled(problems: Iterable[Problem]) -> TiledProblem | None:
    """Return the first problem of which there is a schedule, with that."""
    for problem in problems:
        for rule in EVALUATION_RULES:
            for schedule in schedules_by(problem, [rule]):
                return TiledProblem(problem=problem, schedule=schedule)
    return None


def _coarse_problems(
    subject: NetworkOnMachine, counts: PieceCounts, tilings: Iterable[Tilings]
) -> Iterator[Problem]:
    """Yield problems whose tasks fit; where none do as they come, one of which they do."""
    tried = []
    for one in tilings:
        refuse_too_many_pieces(counts, one, remedy="give more time (--time-limit), or ")
        problem = subject.lower(one)
        if not groups_that_do_not_fit(problem):
            yield problem
        tried.append(one)
    if tried:
        yield tilings_that_fit(subject.network, subject.machine, tried, subject.lower)[1]


def search_tilings(
    first: FirstChoice,
    options: TileOptions,
    known: TiledProblem | None = None,
    clock: Clock | None = None,
    starts: Sequence[Tilings] = (),
) -> TiledProblem:
    """Return a problem with tilings that are evaluated to be at least as good as the first ones.

    Once there is a schedule nothing is begun that would take too long, and what does take too long
    is given up. A ``KeyboardInterrupt`` ends the search; it passes on as long as there is no
    schedule.
    """
    counts = PieceCounts(first.subject.network, first.subject.machine)
    evaluation = Evaluation(counts, options, known, clock or Clock(None))
    first = first.going_on(evaluation.go_on)
    trials = Trials(
        first.lower,
        evaluation.value_of,
        options.problems,
        evaluation.is_over,
        evaluation.affords,
    )
    try:
        tilings = refine_tilings(first, trials, starts, evaluation.delays)
    except (OutOfTimeError, MemoryError):
        tilings = first.tilings
    except KeyboardInterrupt:
        if evaluation.best is None:
            raise
        evaluation.interrupted = True
    return evaluation.finish() or TiledProblem(problem=first.lower(tilings))
