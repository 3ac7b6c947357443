"""What tilings are worth: by the list scheduler's plans, justified where that says more."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import ROWS_OF_A_READ, Clock, Step
from spmilp.solvers.common.context import reads_of
from spmilp.solvers.kernels.records import NEVER
from spmilp.solvers.list_scheduler.orders import operators_of
from spmilp.solvers.list_scheduler.portfolio import Found
from spmilp.solvers.list_scheduler.rules import EVALUATION_RULES, advances_of
from spmilp.solvers.list_scheduler.schedules import Rule, promising_schedules
from spmilp.tile_selection.helpers import Question, Values
from spmilp.tile_selection.initial import Tilings, tasks_of
from spmilp.tile_selection.piece_counts import PieceCounts
from spmilp.tile_selection.race import cycles_after_a_moment
from spmilp.tile_selection.tiled_problem import TiledProblem, Worth
from spmilp.units import Cycles

if TYPE_CHECKING:
    from spmilp.tile_selection.search import TileSearch

MARGIN = 1.05
"""A rule whose best schedule takes so many times as long as the best of all is asked no more."""

SHARE_AT_MOST = 0.55
"""Of the time limit, by which tile sizes are chosen, however long all before has taken."""

SHARE_OF_FIRST = 0.25
"""Of the time limit, after which no further rule is asked about the first tilings: where one
schedule takes seconds, justifying the best one gains more."""

MOST_TASKS_OF_ONE = 120_000
"""Of a problem that is evaluated."""

PROMISING = 1.1
"""Schedules that take more than so many times as long as the best one are given up: other rules
make no better ones of these tiles, and they are not justified."""

TIMES_AS_LONG, LEAST_SECONDS = 5.0, 1.0
"""Schedules that take so many times as long to make as the best one are given up, but none within a
second: the search after this one would have few steps for plans that take so long."""

LEAST_FOR_RACE = 40.0
"""Seconds left, without which no plans are compared by what search makes of them."""

SHARE_OF_RACE = 0.05
"""Of the seconds left, for each plan."""

LEAST_GAIN = 0.03
"""Schedules are justified where that makes the first one shorter by this share; else none is, so
that all values are of one kind."""


class Evaluation:
    """Evaluates the problems of a search, and keeps the best one and its plan.

    A problem's value is that of its best schedule. Its makespan is first justified
    (:func:`~spmilp.solvers.partial_order.repacking.justified`) where that makes the first schedule
    shorter by a good part: how much is gained then differs from tiling to tiling, and the search
    after this one begins with it.

    Attributes
    ----------
    best
        The answer so far, with a plan or the schedule of its value.
    interrupted
        Whether there was a ``KeyboardInterrupt``.
    """

    def __init__(
        self, counts: PieceCounts, limits: "TileSearch", known: TiledProblem | None, clock: Clock
    ) -> None:
        self._counts = counts
        self._limits = limits
        self._clock = clock
        self._left = limits.tasks
        self._seconds_of_last = self._seconds_of_best = 0.0
        self._deadline = None if limits.seconds is None else monotonic() + limits.seconds
        self.interrupted = False
        self._least: dict[Rule, int] = {}
        self._justifies = None if limits.justifies else False
        self.best = known
        self._shortest: TiledProblem | None = None
        self._said = None if known is None else known.value
        self._scheduled = None if known is None or known.schedule is None else known

    def is_over(self) -> bool:
        """Return whether a limit is reached."""
        late = self._deadline is not None and monotonic() > self._deadline
        late = late or self._clock.is_over(SHARE_AT_MOST)
        return self.interrupted or self._left <= 0 or late

    def go_on(self) -> None:
        """Raise ``OutOfTimeError`` when the time is over and there is a schedule."""
        if self.best is not None:
            self._clock.go_on(SHARE_AT_MOST)

    def affords(self, tilings: Tilings) -> bool:
        """Return whether there is time to evaluate tilings, and to write the plan they lead to.

        Those of very many tasks take too long, and too much memory, always.
        """
        pace, tasks = self._clock.pace, tasks_of(tilings)
        if tasks > min(self._limits.tasks, MOST_TASKS_OF_ONE):
            return False
        if not self._clock.is_limited:
            return True
        reads = self._counts.of_all(tilings)
        return self._clock.has_seconds(
            pace.seconds_to_schedule(tasks, reads), SHARE_AT_MOST
        ) and self._clock.has_seconds(pace.seconds_from_scratch(tasks, reads))

    def question(self, tilings: Tilings) -> Question | None:
        """Return what to ask a helper about tilings; ``None`` before anything is known."""
        if not self._least:
            return None
        return Question(
            tilings=tilings,
            rules=tuple(self._rules_worth_asking()),
            latest=self._latest(),
            justifies=self._justifies is True,
            seconds=self._seconds_at_most(),
        )

    def learn(self, values: Values) -> None:
        """Note what a helper has found."""
        self._left -= values.tasks * (1 + len(values.schedules))
        for rule, worth in values.schedules:
            self._note(rule, worth)

    def value_of(self, problem: Problem) -> Worth | None:
        """Return what the best of a problem's schedules is worth, and keep the best one of all."""
        best: TiledProblem | None = None
        try:
            for schedule in self._schedules(problem):
                one = TiledProblem(problem=problem, schedule=schedule)
                if _is_better(one, best):
                    best = one
                    self._keep_if_better(best)
            return None if best is None else self._value_once_justified(best)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.interrupted = True
            return None if best is None else best.worth

    def _schedules(self, problem: Problem) -> Iterator[Found]:
        """Yield schedules by the rules that are worth asking, while there is time.

        Where that by the best rule so far is not promising, those by the others are not, either.
        """
        self._left -= len(problem.tasks)
        reads = reads_of(problem)
        began = self._clock.now()
        is_makespan = problem.objective.first is Quantity.MAKESPAN
        latest = self._latest() if is_makespan else NEVER
        until = SHARE_AT_MOST if self._least else SHARE_OF_FIRST
        rules, most = self._rules_worth_asking(), self._seconds_at_most()
        for schedule in promising_schedules(problem, rules, latest, most):
            self._left -= len(problem.tasks)
            self._note(schedule.trial.rule, schedule.score)
            self._seconds_of_last = self._clock.now() - began
            self._clock.pace.note(Step.SCHEDULE, reads, self._seconds_of_last)
            yield schedule
            if not self._clock.has_seconds(self._seconds_of_last, until):
                return
            began = self._clock.now()

    def _value_once_justified(self, tiled: TiledProblem) -> Worth | None:
        if not self._is_worth_justifying(tiled):
            return tiled.worth
        with self._clock.pace.measured(Step.JUSTIFY, _rows_of_a_plan(tiled.problem)):
            shorter = tiled.once_justified()
        if shorter.justified is None:
            return tiled.worth
        if self._justifies is None:
            makespan = shorter.justified.makespan
            self._justifies = makespan <= (1 - LEAST_GAIN) * (tiled.value or 0)
            if not self._justifies:
                return tiled.worth
        if _is_better(shorter, self.best):
            self._keep_if_better(shorter)
        return shorter.worth

    def _is_worth_justifying(self, tiled: TiledProblem) -> bool:
        is_makespan = tiled.problem.objective.first is Quantity.MAKESPAN
        if self._justifies is False or not is_makespan:
            return False
        is_near = (tiled.value or 0) <= self._latest()
        needed = self._seconds_to_justify(tiled.problem)
        return is_near and self._clock.has_seconds(needed, SHARE_AT_MOST)

    def _seconds_to_justify(self, problem: Problem) -> float:
        return self._clock.pace.seconds(Step.JUSTIFY, _rows_of_a_plan(problem))

    def winner_of(self, problems: Sequence[Problem]) -> int | None:
        """Return which problem's plan search makes the shortest in a moment, and go on with it.

        ``None`` where there is no time for that, or no schedule of one of them. An interrupt still
        has the shortest schedule of all for an answer.
        """
        left = self._clock.seconds_left()
        is_makespan = all(one.objective.first is Quantity.MAKESPAN for one in problems)
        may_race = is_makespan and self._limits.justifies
        if left is None or left < LEAST_FOR_RACE or not may_race:
            return None
        moment = SHARE_OF_RACE * left
        rivals: list[tuple[Cycles, int, TiledProblem]] = []
        for number, problem in enumerate(problems):
            some = (TiledProblem(problem=problem, schedule=one) for one in self._schedules(problem))
            tiled = min(some, key=lambda one: one.worth or (), default=None)
            needed = (len(problems) - number) * (moment + self._seconds_to_justify(problem))
            if tiled is None or not self._clock.has_seconds(needed, SHARE_AT_MOST):
                return None
            plan = tiled.plan()
            if plan is None:
                return None
            rivals.append((cycles_after_a_moment(problem, plan, moment), number, tiled))
        _, number, winner = min(rivals, key=lambda one: one[:2])
        self._shortest = self.best
        self.best = self._scheduled = winner
        return number

    @property
    def answer(self) -> TiledProblem | None:
        """What to go on with; after an interrupt, the shortest schedule."""
        best = self.best
        if self.interrupted and best is not None and self._shortest is not None:
            best = self._shortest if _is_better(self._shortest, best) else best
        return None if best is None else replace(best, interrupted=self.interrupted)

    def delays(self) -> dict[str, int]:
        """Return how many cycles each group advances the best schedule, by the group's name."""
        best = self._scheduled
        if best is None or best.schedule is None:
            return {}
        tasks = best.problem.tasks
        groups = {task.tile.of: None for task in tasks if task.tile is not None}
        advances = advances_of(operators_of(best.problem), best.schedule.state)
        return dict(zip(groups, advances.tolist(), strict=True))

    def _seconds_at_most(self) -> float | None:
        """Return for how long a schedule may be made; ``None`` without a limit of time."""
        if self.best is None or not self._clock.is_limited:
            return None
        return max(LEAST_SECONDS, TIMES_AS_LONG * self._seconds_of_best)

    def _rules_worth_asking(self) -> list[Rule]:
        """Return the rules, the best first, without those that were always far behind others."""
        least = min(self._least.values(), default=0)
        known = {rule: self._least.get(rule, least) for rule in EVALUATION_RULES}
        return sorted((one for one in known if known[one] <= MARGIN * least), key=known.__getitem__)

    def _latest(self) -> int:
        """Return the cycles that a promising schedule takes at most."""
        least = min(self._least.values(), default=NEVER)
        return NEVER if least == NEVER else int(PROMISING * least)

    def _note(self, rule: Rule, worth: Worth) -> None:
        self._least[rule] = min(worth[0], self._least.get(rule, worth[0]))

    def _keep_if_better(self, tiled: TiledProblem) -> None:
        if tiled.justified is None and _is_better(tiled, self._scheduled):
            self._scheduled = tiled
        if tiled.value is not None and _is_better(tiled, self.best):
            self.best = tiled
            self._seconds_of_best = self._seconds_of_last
            # Behind a race and among ties, what is better than the best is not shorter than all.
            if self._said is None or tiled.value < self._said:
                self._said = tiled.value
                self._limits.on_better(tiled.value, len(tiled.problem.tasks))


def _rows_of_a_plan(problem: Problem) -> int:
    """Return about how many rows a plan of a problem has."""
    return len(problem.tasks) + ROWS_OF_A_READ * reads_of(problem)


def _is_better(one: TiledProblem, other: TiledProblem | None) -> bool:
    least = None if other is None else other.worth
    return least is None or (one.worth is not None and one.worth < least)
