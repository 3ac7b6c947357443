"""What tilings are worth: by the list scheduler's plans, justified where that says more."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from spmilp.lowering.tiling import Tilings
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import ROWS_OF_A_READ, Clock, Step
from spmilp.solvers.common.context import reads_of
from spmilp.solvers.justify.repacking import AT_ONCE, Effort
from spmilp.solvers.schedule.kernels.extract import can_be_open
from spmilp.solvers.schedule.kernels.records import NEVER
from spmilp.solvers.schedule.orders import operators_of
from spmilp.solvers.schedule.portfolio import (
    EVALUATION_RULES,
    Found,
    Rule,
    advances_of,
    promising_schedules,
)
from spmilp.tile_selection.coarse import tasks_of
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.settings import SEARCH, TileOptions
from spmilp.tile_selection.tiled_problem import TiledProblem, Worth
from spmilp.units import Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What new problems are compared with.

    ``best`` is the worth of the shortest plan, or of a schedule while there is no plan; ``seconds``
    what its schedule took to make. ``promising`` is the worth of the tilings that are worth most,
    with their tasks, rows of a plan, and cycles of the schedule as it was made. ``least`` has the
    cycles of the shortest schedule by each rule. ``effort`` says how full schedules make memories:
    less full once memories filled whole had no addresses, and those with more room had some.
    """

    best: Worth | None = None
    has_plan: bool = False
    seconds: float = 0.0
    promising: Worth | None = None
    tasks: int = 0
    rows: int = 0
    scheduled: Cycles = NEVER
    effort: Effort = AT_ONCE
    least: Mapping[Rule, int] = field(default_factory=dict)


class Evaluation:
    """Evaluates the problems of a search, and keeps the best one and its plan.

    Where makespans are justified, a problem's value is what its best schedule takes once that is
    justified with open addresses, for they are nearly always found; else what the schedule takes.

    Parameters
    ----------
    clock
        Of the whole solve.

    Attributes
    ----------
    findings
        What it has found so far.
    best
        The shortest plan so far, or the schedule of one.
    promising
        The tilings that are worth most, with their plan.
    interrupted
        Whether there was a ``KeyboardInterrupt``.
    """

    def __init__(
        self, counts: PieceCounts, options: TileOptions, known: TiledProblem | None, clock: Clock
    ) -> None:
        self._counts, self._options, self.clock = counts, options, clock
        self._began = clock.now()
        usual = SEARCH.tasks_within_time if clock.is_limited else SEARCH.tasks
        self._left = self._most = usual if options.tasks is None else options.tasks
        self.best = known
        self.promising: TiledProblem | None = None
        self.findings = Findings()
        if known is not None:
            self.findings = Findings(best=known.worth, has_plan=known.has_plan)
        self.interrupted = False
        self._said = None if known is None else known.value
        self._is_opened = False
        self._seconds_of_last = 0.0

    def is_over(self) -> bool:
        """Return whether a limit is reached."""
        clock, limit = self.clock, self.clock.limit
        share = self._extended(SEARCH.share)
        late = limit is not None and clock.now() > self._began + share * limit
        return self.interrupted or self._left <= 0 or late or clock.is_over(self._share_at_most)

    def go_on(self) -> None:
        """Raise ``OutOfTimeError`` when the time is over and there is a schedule."""
        if self.findings.best is not None:
            self.clock.go_on(self._share_at_most)

    def affords(self, tilings: Tilings) -> bool:
        """Return whether there is time to evaluate tilings, and to write the plan they lead to.

        Those of very many tasks take too long, and too much memory, always.
        """
        clock, pace, tasks = self.clock, self.clock.pace, tasks_of(tilings)
        if tasks > min(self._most, SEARCH.tasks_of_one):
            return False
        if not clock.is_limited:
            return True
        reads = self._counts.of_all(tilings)
        schedule = pace.seconds_to_schedule(tasks, reads)
        is_soon = clock.has_seconds(schedule, self._share_at_most)
        return is_soon and clock.has_seconds(pace.seconds_from_scratch(tasks, reads))

    def value_of(self, problem: Problem) -> Worth | None:
        """Return what the best of a problem's schedules is worth, and keep the best one of all."""
        best: TiledProblem | None = None
        self.clock.pace.count(Step.TRY, len(problem.tasks))
        try:
            for schedule in self._schedules(problem):
                one = TiledProblem(problem=problem, schedule=schedule)
                if best is None or _is_less(one.worth, best.worth):
                    best = one
                    self._keep_if_better(best)
            return None if best is None else self._value_once_opened(best)
        except KeyboardInterrupt:
            if self.findings.best is None:
                raise
            self.interrupted = True
            return None if best is None else best.worth

    def finish(self) -> TiledProblem | None:
        """Return the shortest plan; ``None`` where there is no schedule."""
        return None if self.best is None else replace(self.best, interrupted=self.interrupted)

    def delays(self) -> dict[str, int]:
        """Return how many cycles each group advances the best schedule, by the group's name."""
        best = self.promising or self.best
        if best is None or best.schedule is None:
            return {}
        tasks = best.problem.tasks
        groups = {task.tile.of: None for task in tasks if task.tile is not None}
        advances = advances_of(operators_of(best.problem), best.schedule.columns)
        return dict(zip(groups, advances.tolist(), strict=True))

    def _schedules(self, problem: Problem) -> Iterator[Found]:
        """Yield schedules by the rules that are worth asking, while there is time.

        Where that by the best rule so far is not promising, those by the others are not, either.
        """
        clock, reads, least = self.clock, reads_of(problem), self.findings.least
        is_makespan = problem.objective.first is Quantity.MAKESPAN
        self._is_opened = self._options.justifies and is_makespan and can_be_open(problem)
        self._left -= len(problem.tasks)
        latest = int(SEARCH.promising * min(least.values())) if is_makespan and least else NEVER
        seconds: float | None = None
        # How long the quickest plan took says nothing of how long a better one may take.
        is_known = self.findings.seconds > 0.0
        if is_known and clock.is_limited and not clock.pace.counts_work:
            seconds = max(SEARCH.least_seconds, SEARCH.times_as_long * self.findings.seconds)
        fill = self.findings.effort.share
        rules = self._rules_worth_asking()
        began = clock.now()
        for found in promising_schedules(problem, rules, latest, seconds, clock.pace, fill):
            self._left -= len(problem.tasks)
            rule = found.trial.rule
            if found.score[0] < least.get(rule, NEVER):
                least = {**least, rule: found.score[0]}
                self.findings = replace(self.findings, least=least)
            self._seconds_of_last = clock.now() - began
            clock.pace.note(Step.SCHEDULE, reads, self._seconds_of_last)
            yield found
            # Where one schedule takes seconds, justifying the best one gains more than another.
            needed = SEARCH.schedules_left * self._seconds_of_last
            if not clock.has_seconds(needed, self._share_at_most):
                return
            began = clock.now()

    def _rules_worth_asking(self) -> list[Rule]:
        """Return all rules at first, then the few that were best."""
        best_first = sorted(self.findings.least, key=self.findings.least.__getitem__)
        return best_first[: SEARCH.rules] or list(EVALUATION_RULES)

    def _value_once_opened(self, tiled: TiledProblem) -> Worth | None:
        """Return what a schedule is worth once it is justified with open addresses.

        Of what seems to be the best it is what its plan takes. What cannot be the best, or has no
        time for that, is worth no less than the best.
        """
        problem, share, pace = tiled.problem, self._share_at_most, self.clock.pace
        if not self._options.justifies or problem.objective.first is not Quantity.MAKESPAN:
            return tiled.worth
        least, rows = self.findings.promising, _rows_of_a_plan(problem)
        has_time = self.clock.has_seconds(pace.seconds(Step.OPEN, rows), share)
        if not has_time or not self._is_worth_opening(tiled):
            return tiled.worth if least is None else least
        clock = Clock(self.clock.seconds_left(share), pace)
        opened = self._once_opened(tiled, clock)
        if not _is_less(opened.worth, least):
            return opened.worth
        with pace.measured(Step.PACK, rows):
            planned = self._with_plan(opened, clock)
        self._keep_if_better(planned)
        if not _is_less(planned.worth, least):
            return planned.worth or least
        self.promising, tasks = planned, len(problem.tasks)
        self.findings = replace(self.findings, promising=planned.worth, tasks=tasks, rows=rows)
        if opened.schedule is not None:
            self.findings = replace(self.findings, scheduled=opened.schedule.score[0])
        return planned.worth

    def _is_worth_opening(self, tiled: TiledProblem) -> bool:
        """Return whether a schedule may become the shortest once it is justified."""
        most = SEARCH.worth_opening if self._opens_soon(_rows_of_a_plan(tiled.problem)) else 1.0
        return (tiled.value or 0) <= most * self.findings.scheduled

    def _once_opened(self, tiled: TiledProblem, clock: Clock) -> TiledProblem:
        """Return it with its schedule at justified times, by which tilings are compared."""
        with self.clock.pace.measured(Step.OPEN, _rows_of_a_plan(tiled.problem)):
            return tiled.once_opened(clock, self.findings.effort)

    def _with_plan(self, opened: TiledProblem, clock: Clock) -> TiledProblem:
        """Return it with the plan of its schedule, or of another by the same rule.

        Nearly always addresses are found for all of memory, and it takes no longer than before.
        Where they are not, the same rule fills less of each memory, or gives addresses at once.
        """
        planned = opened.once_packed(clock)
        if planned.has_plan:
            return planned
        addressed = replace(opened, opened=None).with_addresses()
        if not clock.is_over():
            addressed = addressed.once_justified()
        # A schedule with more room is worth more than what the search behind this one gains.
        clock = Clock(self.clock.seconds_left(SEARCH.share_for_room), self.clock.pace)
        roomier = self.findings.effort.roomier() if opened.is_open else None
        while roomier is not None and not clock.is_over():
            roomy = opened.with_room(clock, roomier)
            if roomy.has_plan and _is_less(roomy.worth, addressed.worth):
                self.findings = replace(self.findings, effort=roomier)
                return roomy
            roomier = None if roomy.has_plan else roomier.roomier()
        return addressed

    def _opens_soon(self, rows: int) -> bool:
        """Return whether a schedule is soon justified, as far as there is a limit of time."""
        seconds = self.clock.pace.seconds(Step.OPEN, rows)
        return not self.clock.is_limited or seconds < SEARCH.seconds_to_open

    def _extended(self, share: float) -> float:
        """Return a share of the time, more where the search behind this one gains little.

        Plans are large then, but soon justified.
        """
        if self._options.period is not None:
            return share * SEARCH.share_of_one
        if not self._is_opened or self.findings.tasks <= SEARCH.large:
            return share
        return share * (SEARCH.longer if self._opens_soon(self.findings.rows) else 1.0)

    @property
    def _share_at_most(self) -> float:
        return self._extended(SEARCH.share_at_most)

    def _keep_if_better(self, tiled: TiledProblem) -> None:
        """Keep what is the best so far, and tell of a plan unless one as short was told of."""
        if tiled.value is None:
            return
        if not tiled.has_plan:
            if self.findings.best is not None:
                return
            # Its addresses may be long in coming: until then there is a plan by the same rule.
            self._keep(tiled)
            tiled = tiled.with_addresses()
        if tiled.value is None or not tiled.has_plan:
            return
        if not self.findings.has_plan or _is_less(tiled.worth, self.findings.best):
            self._keep(tiled)
            self.findings = replace(self.findings, seconds=self._seconds_of_last)
            self._tell_of(tiled)

    def _keep(self, tiled: TiledProblem) -> None:
        self.best = tiled
        self.findings = replace(self.findings, best=tiled.worth, has_plan=tiled.has_plan)

    def _tell_of(self, best: TiledProblem) -> None:
        value = best.value
        is_news = self._said is None or (value is not None and value < self._said)
        if value is not None and best.has_plan and is_news:
            self._said = value
            self._options.on_better(value, len(best.problem.tasks))


def _rows_of_a_plan(problem: Problem) -> int:
    """Return about how many rows a plan of a problem has."""
    return len(problem.tasks) + ROWS_OF_A_READ * reads_of(problem)


def _is_less(one: Worth | None, other: Worth | None) -> bool:
    return other is None or (one is not None and one < other)
