"""Tiles for streams: few and long ones may do, for inferences that overlap keep all cores busy."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from spmilp.bounds.period import period_bound, work_period
from spmilp.lowering.tiling import Tilings
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.clock import Clock, OutOfTimeError, Step
from spmilp.solvers.modulo.solver import MOST_TASKS, of_period, stream_answer
from spmilp.solvers.modulo.stream import quick_stream, worth_of
from spmilp.solvers.schedule.portfolio import OF_STREAMS
from spmilp.solvers.schedule.solver import ListScheduler
from spmilp.tile_selection.coarse import CoarseTilings, tasks_of
from spmilp.tile_selection.first_choice import FirstChoice
from spmilp.tile_selection.given_tiles import tilings_still_there
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.refine import Trials, refine_tilings
from spmilp.tile_selection.settings import SEARCH, TileOptions
from spmilp.tile_selection.tiled_problem import TiledProblem, Worth

RULES = OF_STREAMS[:3]
"""Rules of the list scheduler whose plans are overlapped."""

ACTIVITIES = 4
"""Of a task, about: itself and transfers."""


def tiles_for_streams(
    first: FirstChoice, options: TileOptions, known: TiledProblem, clock: Clock
) -> TiledProblem:
    """Return a problem with tiles of which a shorter period is found, or the known one.

    The search is that for one inference, from the known tiles, and as long as there is time from
    others. Each tiling is worth the best stream that is soon found of plans by a few rules.
    """
    evaluation = _Evaluation(first, options, clock)
    own = tilings_still_there(known.problem, first.subject.network)
    few_tasks = sorted(CoarseTilings(first.subject.network, first.subject.machine), key=tasks_of)
    quick = [one for one in (own, first.tilings) if evaluation.affords(one, SEARCH.at_first)]
    starts = [*quick, *few_tasks, *(one for one in (own, first.tilings) if one not in quick)]
    try:
        for start in starts if clock.is_limited else [own]:
            if evaluation.affords(start) and not evaluation.is_over():
                evaluation.begin_anew()
                trials = Trials(
                    first.lower,
                    evaluation.value_of,
                    is_over=evaluation.is_over,
                    affords=evaluation.affords,
                )
                refine_tilings(first, trials, [start], evaluation.delays)
        evaluation.decide_small()
    except (OutOfTimeError, MemoryError):
        pass
    except KeyboardInterrupt:
        known = replace(known, interrupted=True)
    # Where its own tiles took too long to evaluate, their makespan is a period, too.
    most = inf if known.value is None else max(known.value, options.period or 1)
    best = evaluation.best if evaluation.period <= most else None
    return known if best is None else replace(best, interrupted=known.interrupted)


class _Evaluation:
    """Evaluates the problems of searches by streams.

    ``best`` is the best one of all; ``None`` at first.
    """

    def __init__(self, first: FirstChoice, options: TileOptions, clock: Clock) -> None:
        self._first = first
        self._counts = PieceCounts(first.subject.network, first.subject.machine)
        self._options, self._clock, self._enough = options, clock, options.period or 1
        self.best: TiledProblem | None = None
        self._best_worth: Sequence[int] | None = None
        self._small: TiledProblem | None = None
        self._bound = 0
        self._left = inf if options.problems is None else options.problems
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what has to be better in a new search."""
        self._worth: Sequence[int] | None = None
        self._problem: Problem | None = None

    def is_over(self) -> bool:
        """Return whether there is no time left, or the period is short enough."""
        worth = self._best_worth
        is_enough = worth is not None and [*worth[:2]] == [0, self._enough]
        is_over = self._left <= 0 or self._clock.is_over() or self._seconds_left() == 0.0
        return is_enough or is_over

    @property
    def period(self) -> float:
        """The period of the best one of all."""
        return inf if self._best_worth is None else self._best_worth[1]

    def affords(self, tilings: Tilings, times: int = SEARCH.evaluations) -> bool:
        """Return whether there is time to evaluate such tilings several times."""
        pace, tasks, reads = self._clock.pace, tasks_of(tilings), self._counts.of_all(tilings)
        seconds = len(RULES) * pace.seconds_to_schedule(tasks, reads)
        seconds += SEARCH.evaluations * pace.seconds(Step.OVERLAP, ACTIVITIES * tasks)
        left = self._seconds_left()
        return left is None or times * seconds < left

    def _seconds_left(self) -> float | None:
        """Return the seconds that leave enough to overlap the best problem by other rules."""
        clock, best = self._clock, self.best
        if clock.limit is None:
            return None
        tasks = 0
        worth = self._best_worth
        if best is not None and worth is not None and worth[1] > self._bound:
            tasks = len(best.problem.tasks)
        later = SEARCH.overlaps * clock.pace.seconds(Step.OVERLAP, ACTIVITIES * tasks)
        later = min(max(later, SEARCH.least_share * clock.limit), SEARCH.most_share * clock.limit)
        return max(0.0, clock.limit - clock.seconds_gone - later)

    def value_of(self, problem: Problem) -> Worth | None:
        """Return what the best stream that is soon found is worth if none is better."""
        clock = Clock(self._seconds_left(), self._clock.pace)
        at_once = SolveOptions(time_limit=0.0, pace=clock.pace)
        clock.pace.count(Step.TRY, len(problem.tasks))
        self._left -= 1
        solved = (ListScheduler(greedy=rule).solve(problem, at_once) for rule in RULES)
        plans: list[Plan] = [one.plan for one in solved if one.plan is not None]
        found = quick_stream(problem, plans, clock, self._enough, self._worth)
        if found is None:
            return None
        stream, self._worth = found
        self._problem = problem
        if self._best_worth is None or list(self._worth) < list(self._best_worth):
            self._best_worth, self._bound = self._worth, work_period(problem)
            self.best = TiledProblem(problem=problem, known=plans[0], stream=stream)
            self._options.on_better(self._worth[1], len(problem.tasks))
        if len(problem.tasks) <= MOST_TASKS:
            self._small = TiledProblem(problem=problem, known=plans[0], stream=stream)
        return tuple(self._worth)

    def decide_small(self) -> None:
        """Have the last problem that is small enough decided as a whole, if it can be the best."""
        small, limit = self._small, self._clock.limit
        if small is None or small is self.best or small.known is None:
            return
        bound = period_bound(small.problem).value
        left = self._clock.seconds_left() if limit is None else limit - self._clock.seconds_gone
        if bound >= self.period or left == 0.0:
            return
        time_limit = None if left is None else SEARCH.share_of_small * left
        known = SolverResult(
            status=SolveStatus.FEASIBLE, plan=small.known, bound=0, bound_source="none"
        )
        options = SolveOptions(
            time_limit=time_limit, pace=self._clock.pace, on_warning=lambda said: None
        )
        found = stream_answer(
            of_period(small.problem), known, options, self._options.period, stream=small.stream
        )
        if found.plan is not None and found.plan.stream is not None:
            worth = worth_of(small.problem, found.plan, self._enough)
            if self._best_worth is None or worth < list(self._best_worth):
                self._best_worth, self.best = worth, replace(small, stream=found.plan)
                self._options.on_better(worth[1], len(small.problem.tasks))
        if found.interrupted:
            raise KeyboardInterrupt

    def delays(self) -> dict[str, int]:
        """Return the least period of each group of the search's best problem alone, by its name."""
        cycles: defaultdict[str, list[int]] = defaultdict(list)
        for task in () if self._problem is None else self._problem.tasks:
            if task.tile is not None:
                cycles[task.tile.of].append(min(own for own in task.cycles if own is not None))
        cores = len(self._first.subject.machine.cores)
        return {of: max(*some, sum(some) // cores) for of, some in cycles.items()}
