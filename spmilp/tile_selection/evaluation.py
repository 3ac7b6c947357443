"""What tilings are worth: by the list scheduler's plans, justified where that says more."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from spmilp.lowering.tiling import Tilings
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock, Step
from spmilp.solvers.common.context import reads_of
from spmilp.solvers.kernels.records import NEVER, Shares
from spmilp.solvers.list_scheduler.orders import operators_of
from spmilp.solvers.list_scheduler.portfolio import Found
from spmilp.solvers.list_scheduler.rules import EVALUATION_RULES, advances_of
from spmilp.solvers.list_scheduler.schedules import Rule, promising_schedules
from spmilp.tile_selection.coarse import tasks_of
from spmilp.tile_selection.open_values import OpenValues, shares_of
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.tiled_problem import TiledProblem, Worth

if TYPE_CHECKING:
    from spmilp.tile_selection.search import TileSearch

MARGIN = 1.05
"""A rule whose best schedule takes so many times as long as the best of all is asked no more."""

RULES_WHEN_OPEN = 2
"""Rules that are asked at most behind the first problem where schedules leave addresses open: once
these are justified, by which rule they were made matters less than that there are more trials."""

SHARE_AT_MOST = 0.55
"""Of the time limit, by which tile sizes are chosen, however long all before has taken."""

SHARE_OF_FIRST, LITTLE = 0.25, 0.1
"""Of the time limit, after which no further rule is asked about the first tilings unless it takes
so little of what is left: where one schedule takes seconds, justifying the best one gains more."""

LARGE, LONGER = 1_000, 1.4
"""Tasks from which on, where schedules with open addresses are soon justified, steps of
large-neighbourhood search gain little, and how many times as long the search for tiles takes then.
"""

MOST_TASKS_OF_ONE = 120_000
"""Of a problem that is evaluated."""

PROMISING = 1.1
"""Schedules that take more than so many times as long as the best one are given up: other rules
make no better ones of these tiles, and they are not justified."""

TIMES_AS_LONG, LEAST_SECONDS = 5.0, 1.0
"""Schedules that take so many times as long to make as the best one are given up, but none within a
second: the search after this one would have few steps for plans that take so long."""

SHARE_TO_FINISH = 0.85
"""Of the time limit, until which addresses are looked for in the end."""

SHARE_OF_PLANS = 0.4
"""Of the time of the search, at most, for plans of tilings that are the best so far."""


class Evaluation:
    """Evaluates the problems of a search, and keeps the best one and its plan.

    Where makespans are justified, a problem's value is what its best schedule takes once that is
    justified with open addresses (:mod:`spmilp.tile_selection.open_values`), for they are nearly
    always found; else what the schedule takes.

    Attributes
    ----------
    best
        The shortest plan so far, or the schedule of one.
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
        self._began = monotonic()
        self.interrupted = False
        self._least: dict[Rule, int] = {}
        self.best = known
        self._promising: TiledProblem | None = None
        self._unplanned: TiledProblem | None = None
        self._shares: Shares | None = None
        self._open = OpenValues(clock)
        self._seconds_of_plans = 0.0
        self._said = None if known is None else known.value
        self._is_begun = known is not None and known.has_plan

    def is_over(self) -> bool:
        """Return whether a limit is reached."""
        longer = LONGER if self._is_large() else 1.0
        seconds = self._limits.seconds
        late = seconds is not None and monotonic() > self._began + longer * seconds
        late = late or self._clock.is_over(self._share_at_most())
        late = late or not self._clock.has_seconds(self._seconds_to_finish(), SHARE_TO_FINISH)
        return self.interrupted or self._left <= 0 or late

    def go_on(self) -> None:
        """Raise ``OutOfTimeError`` when the time is over and there is a schedule."""
        if self.best is not None:
            self._clock.go_on(self._share_at_most())

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
            pace.seconds_to_schedule(tasks, reads), self._share_at_most()
        ) and self._clock.has_seconds(pace.seconds_from_scratch(tasks, reads))

    def value_of(self, problem: Problem) -> Worth | None:
        """Return what the best of a problem's schedules is worth, and keep the best one of all."""
        best: TiledProblem | None = None
        try:
            for schedule in self._schedules(problem):
                one = TiledProblem(problem=problem, schedule=schedule)
                if _is_better(one, best):
                    best = one
                    self._keep_if_better(best)
            return None if best is None else self._value_once_opened(best)
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
        self._shares = shares_of(problem) if self._limits.justifies else None
        reads = reads_of(problem)
        began = self._clock.without_compiling()
        is_makespan = problem.objective.first is Quantity.MAKESPAN
        latest = self._latest() if is_makespan else NEVER
        is_first = not self._least
        rules, most = self._rules_worth_asking(), self._seconds_at_most()
        for schedule in promising_schedules(problem, rules, latest, most, self._shares):
            self._left -= len(problem.tasks)
            self._note(schedule.trial.rule, schedule.score)
            self._seconds_of_last = self._clock.without_compiling() - began
            self._clock.pace.note(Step.SCHEDULE, reads, self._seconds_of_last)
            yield schedule
            if not self._has_time_for_another_rule(is_first):
                return
            began = self._clock.without_compiling()

    def _has_time_for_another_rule(self, is_first: bool) -> bool:
        """Return whether there is time for a schedule as long in the making as the last one."""
        seconds, share = self._seconds_of_last, self._share_at_most()
        if not is_first:
            return self._clock.has_seconds(seconds, share)
        is_early = self._clock.has_seconds(seconds, SHARE_OF_FIRST)
        return is_early or self._clock.has_seconds(seconds / LITTLE, share)

    def _value_once_opened(self, tiled: TiledProblem) -> Worth | None:
        """Return what a schedule is worth once it is justified with open addresses.

        Of what seems to be the best it is what its plan takes, if that is made at once. What cannot
        be the best, or has no time for that, is worth no less than the best.
        """
        if not self._limits.justifies or tiled.problem.objective.first is not Quantity.MAKESPAN:
            return tiled.worth
        least = None if self._promising is None else self._promising.worth
        share = self._share_at_most()
        has_time = self._clock.has_seconds(self._open.seconds_to_open(tiled.problem), share)
        if not has_time or not self._open.is_worth_opening(tiled):
            return _greater(self._open.expected(tiled), least)
        opened = self._open.once_opened(tiled, share)
        if not _is_better(opened, self._promising):
            return opened.worth
        if not self._plans_soon(opened):
            self._promising = self._unplanned = opened
            self._open.note(opened)
            return opened.worth
        planned = self._planned(opened, share)
        if not _is_better(planned, self._promising):
            return _greater(planned.worth, least)
        self._promising, self._unplanned = planned, None
        self._open.note(opened)
        return planned.worth

    def _plans_soon(self, opened: TiledProblem) -> bool:
        """Return whether to make the plan of the best tilings so far at once.

        Of the first ones, and until that has taken much of the time.
        """
        if not self._clock.is_limited or not self._is_begun:
            return True
        needed = self._seconds_of_plans + self._open.seconds_to_have_plan(opened.problem)
        return needed <= SHARE_OF_PLANS * (monotonic() - self._began)

    def _planned(self, opened: TiledProblem, share: float) -> TiledProblem:
        began = monotonic()
        planned = self._open.with_plan(opened, share)
        self._is_begun = True
        self._seconds_of_plans += monotonic() - began
        self._keep_if_better(planned)
        return planned

    def _seconds_to_finish(self) -> float:
        """Return how long it takes to make the plan of the best tilings, if that is to be made."""
        if self._unplanned is None:
            return 0.0
        return self._open.seconds_to_have_plan(self._unplanned.problem)

    def finish(self) -> TiledProblem | None:
        """Return the shortest plan, once there is one of the best tilings, too.

        After an interrupt, or where there is not enough memory for that, it is what there is.
        """
        try:
            if self._unplanned is not None and not self.interrupted:
                with suppress(MemoryError):
                    self._planned(self._unplanned, SHARE_TO_FINISH)
        except KeyboardInterrupt:
            self.interrupted = True
        return None if self.best is None else replace(self.best, interrupted=self.interrupted)

    def delays(self) -> dict[str, int]:
        """Return how many cycles each group advances the best schedule, by the group's name."""
        best = self._promising or self.best
        if best is None or best.schedule is None:
            return {}
        tasks = best.problem.tasks
        groups = {task.tile.of: None for task in tasks if task.tile is not None}
        advances = advances_of(operators_of(best.problem), best.schedule.state)
        return dict(zip(groups, advances.tolist(), strict=True))

    def _is_large(self) -> bool:
        """Return whether the search for tiles gains more than the one behind it.

        Plans are large then, but soon justified.
        """
        best = self._promising
        if self._shares is None or best is None or len(best.problem.tasks) <= LARGE:
            return False
        return self._open.opens_soon(best.problem)

    def _share_at_most(self) -> float:
        return LONGER * SHARE_AT_MOST if self._is_large() else SHARE_AT_MOST

    def _seconds_at_most(self) -> float | None:
        """Return for how long a schedule may be made; ``None`` without a limit of time."""
        if self.best is None or not self._clock.is_limited:
            return None
        return max(LEAST_SECONDS, TIMES_AS_LONG * self._seconds_of_best)

    def _rules_worth_asking(self) -> list[Rule]:
        """Return the rules, the best first, without those that were always far behind others."""
        least = min(self._least.values(), default=0)
        known = {rule: self._least.get(rule, least) for rule in EVALUATION_RULES}
        near = [one for one in known if known[one] <= MARGIN * least]
        most = RULES_WHEN_OPEN if self._least and self._shares is not None else len(near)
        return sorted(near, key=known.__getitem__)[:most]

    def _latest(self) -> int:
        """Return the cycles that a promising schedule takes at most."""
        least = min(self._least.values(), default=NEVER)
        return NEVER if least == NEVER else int(PROMISING * least)

    def _note(self, rule: Rule, worth: Worth) -> None:
        self._least[rule] = min(worth[0], self._least.get(rule, worth[0]))

    def _keep_if_better(self, tiled: TiledProblem) -> None:
        if tiled.value is None:
            return
        if not tiled.has_plan:
            if self.best is not None:
                return
            # Its addresses may be long in coming: until then there is a plan by the same rule.
            self.best = tiled
            tiled = tiled.with_addresses()
            if not tiled.has_plan:
                return
        if self.best is None or not self.best.has_plan or _is_better(tiled, self.best):
            self.best = tiled
            self._seconds_of_best = self._seconds_of_last
            self._say_if_shorter(tiled)

    def _say_if_shorter(self, tiled: TiledProblem) -> None:
        """Tell of a plan unless one that is as short was told of."""
        if tiled.value is not None and (self._said is None or tiled.value < self._said):
            self._said = tiled.value
            self._limits.on_better(tiled.value, len(tiled.problem.tasks))


def _greater(one: Worth | None, other: Worth | None) -> Worth | None:
    return max((some for some in (one, other) if some is not None), default=None)


def _is_better(one: TiledProblem, other: TiledProblem | None) -> bool:
    least = None if other is None else other.worth
    return least is None or (one.worth is not None and one.worth < least)
