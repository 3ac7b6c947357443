"""The portfolio on Dask workers: turns from the best plan of all, and rounds of its stretches."""

import pickle
import zlib
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from spmilp.code_cache import hash_of_imports
from spmilp.dask_client import connected
from spmilp.errors import SpmilpError
from spmilp.files import sha256_of
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.auto import TIES, Auto, Member, ended, is_over, members_for, moves_too_much
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.context import SearchContext, rows_of
from spmilp.solvers.common.reports import Reports
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.workers import Future, Workers
from spmilp.version import __version__

if TYPE_CHECKING:
    from spmilp.solvers.lns.rounds import Rounds, StretchTurn

EXACT = ("cpsat", "milp")
"""Members that go on until the end, once each: what they have proven is lost with them."""

SHARE_OF_START, SHARE_OF_TURN = 0.1, 0.14
"""Of the time limit: for a first plan, where there is none, and for each of the later turns."""

LEAST_TURN = 2.0
"""Seconds: less is over before it has found anything."""

SHARE_TO_RETURN, LEAST_TO_RETURN = 0.02, 0.4
"""Of the time limit, and seconds at least, for the plans of the last turns to arrive."""

TURNS_WITHOUT_LIMIT = 2
"""For each thread of the workers."""

LEAST_ROWS = 4_000
"""Of a plan's tables, for each stretch: a smaller one has too little to decide."""

TIMES_JOINING = 6
"""How many times as long as joining them takes, stretches are worked on at least."""

PATIENCE = 2
"""Rounds in a row without a better plan, before whole plans have turns again."""

ROUNDS_WITHOUT_LIMIT = 4

MOST_LOST = 10
"""Turns in a row that nothing came of, with the same consequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a worker is asked.

    Parameters
    ----------
    problem
        Pickled and compressed; ``key`` is its SHA-256, by which a worker knows it again.
    version
        Of the code that asks: that which answers must be the same.
    plan
        To begin with.
    """

    problem: bytes
    key: str
    version: str
    member: Member
    options: SolveOptions
    plan: Plan | None


@cache
def code_version() -> str:
    """Return the version, and a hash of all sources that turns depend on, on any computer."""
    return f"{__version__}+{hash_of_imports(Path(__file__))}"


def packed(problem: Problem) -> tuple[bytes, str]:
    """Return a problem as turns have it, and its key."""
    content = zlib.compress(pickle.dumps(problem), 1)
    return content, sha256_of(content)


_known: dict[str, SearchContext] = {}
_knowing = Lock()


def take(turn: Turn) -> SolverResult:
    """Let a solver search from a plan; the worker keeps what it finds out about the problem.

    Raises
    ------
    SpmilpError
        If this is other code than that which asks.
    """
    clock, options = Clock(turn.options.time_limit), turn.options
    _refuse_other_code(turn.version)
    known = _known_of(turn.problem, turn.key)
    context = known.member(clock.seconds_left(), turn.plan)
    context.options = replace(options, time_limit=context.options.time_limit)
    context.reports = Reports(None)
    # The verdict has the whole problem, and is not believed anyway.
    return replace(turn.member.make(options).search(context), verdict=None)


def _known_of(problem: bytes, key: str) -> SearchContext:
    with _knowing:
        if key not in _known:
            _known.clear()
            _known[key] = SearchContext(pickle.loads(zlib.decompress(problem)), SolveOptions())
        return _known[key]


def take_stretch(fixed: ScheduleContext, turn: "StretchTurn", version: str) -> TimedSchedule:
    """Improve a stretch of a plan.

    Raises
    ------
    SpmilpError
        If this is other code than that which asks.
    """
    from spmilp.solvers.lns.rounds import improved

    _refuse_other_code(version)
    return improved(fixed, turn)


def _refuse_other_code(version: str) -> None:
    if version != code_version():
        raise SpmilpError(
            f"the search is of spmilp {version}, and this worker has {code_version()}; "
            "install the same version on all workers"
        )


def turns_of(problem: Problem) -> tuple[list[Member], Member]:
    """Return what turns are for, the share of the time limit that each takes in ``until``.

    First come the portfolio's members in its order, the exact ones for all of the time that is
    left. Then one that improves plans has further turns; ``lns`` without other initial solutions.
    """
    members = list({member.name: member for member in members_for(problem)}.values())
    until = members_for(problem)[0].until
    until = SHARE_OF_TURN if until == 1.0 else until
    improving = [member for member in members if member.name not in EXACT]
    first = [replace(member, until=until) for member in improving]
    first += [replace(member, until=1.0) for member in members if member.name in EXACT]
    again = replace(improving[-1], until=SHARE_OF_TURN)
    if again.name == "lns":
        again = replace(again, make=_lns_from_the_plan)
    return first, again


def _lns_from_the_plan(options: SolveOptions) -> Solver:
    from spmilp.solvers.lns.options import LnsOptions
    from spmilp.solvers.lns.solver import LnsSolver

    return LnsSolver(LnsOptions(several_initial_solutions=False))


class Spread(Solver):
    """Lets the members of the portfolio work side by side on the workers of a Dask scheduler.

    A turn begins with the best plan at that time, has a seed of its own, and ends after a share of
    the time; the next one begins at once. When all members have had one, large plans are improved
    in rounds: each worker gets a stretch, and what all have saved adds up. Every plan that comes of
    it is checked here. A worker that is lost costs its turn; where all are lost, or the scheduler
    is, the portfolio goes on in this process. Which plan is found depends on how quick each is.

    Parameters
    ----------
    address
        The scheduler's.
    """

    name = "auto"

    def __init__(self, address: str) -> None:
        self._address = address

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found."""
        start = _start(context)
        if is_over(context, start):
            return start
        with connected(self._address) as client:
            workers = Workers(client, context.clock)
            turns = _Turns(context, workers, start)
            try:
                turns.run()
            except KeyboardInterrupt:
                return replace(turns.result, interrupted=True)
            finally:
                workers.cancel()
        if workers.are_lost and not is_over(context, turns.result):
            own = context.member(context.clock.seconds_left(), turns.result.plan)
            return context.better(turns.result, Auto().search(own))
        return ended(context, turns.result)


class _Turns:
    """Gives turns to workers, and keeps the best plan and the best bound of all."""

    def __init__(self, context: SearchContext, workers: Workers, start: SolverResult) -> None:
        self.result = start
        self._context = context
        self._workers = workers
        self._problem, self._key = packed(context.problem)
        self._first, self._again = turns_of(context.problem)
        self._members: dict[str, str] = {}
        self._count = self._done = self._lost = 0
        self._before_rounds = len(self._first)

    def run(self) -> None:
        """Give turns until the time is over, the best plan is good enough, or Dask is lost."""
        context, workers = self._context, self._workers
        while not is_over(context, self.result) and not context.clock.is_over():
            slots = workers.slots()
            if workers.are_lost or self._lost >= MOST_LOST:
                workers.are_lost = True
                return
            are_due = self._are_rounds_due(slots)
            while not are_due and len(workers.running) < slots and self._begin(slots):
                are_due = self._are_rounds_due(slots)
            if are_due and not workers.running:
                self._take_rounds(slots)
            elif slots > 0 and not workers.running:
                return
            answer = workers.answer()
            if answer is not None:
                self._take(answer)

    def _are_rounds_due(self, slots: int) -> bool:
        """Say whether all members have had their turns, and stretches are long enough for more."""
        plan, limit = self.result.plan, self._context.options.time_limit
        if plan is None or slots < 2 or self._count < self._before_rounds:
            return False
        if self._again.name != "lns" or rows_of(plan) < slots * LEAST_ROWS:
            return False
        least = max(LEAST_TURN, SHARE_OF_TURN * (limit or 0.0))
        return limit is None or self._seconds_until_return() >= least

    def _take_rounds(self, slots: int) -> None:
        """Let workers improve the best plan's stretches, until that no longer pays."""
        from spmilp.solvers.lns.rounds import Rounds

        plan = self.result.plan
        if plan is None:
            return
        rounds = Rounds(self._context, plan)
        fixed = self._workers.shared(rounds.fixed)
        idle = 0
        for number in count(1):
            seconds = self._seconds_for_round(rounds)
            slots = self._workers.slots()
            is_last = number > ROUNDS_WITHOUT_LIMIT if seconds is None else seconds < LEAST_TURN / 2
            if idle == PATIENCE or slots < 2 or is_last or fixed is None:
                break
            turns = rounds.turns(slots, seconds, self._context.options.seed + 1000 * number)
            for turn in turns:
                self._workers.submit(self._name(), take_stretch, fixed, turn, code_version())
            self._offer(rounds, number - 1)
            idle = 0 if rounds.join(self._workers.answers(seconds)) else idle + 1
            if self._context.is_enough(rounds.makespan, self.result.bound):
                break
        self._offer(rounds, number)
        self._before_rounds = self._count + slots

    def _offer(self, rounds: "Rounds", number: int) -> None:
        """Make a plan of what rounds have led to, and take it if it is better."""
        context, plan = self._context, self.result.plan
        if plan is not None and rounds.makespan < plan.claim.makespan:
            found = rounds.plan()
            if found is not None:
                self._keep(context.found(found, context.fast_bound), f"stretches, round {number}")

    def _keep(self, found: SolverResult, source: str) -> None:
        context = self._context
        self.result = context.better(self.result, found)
        if self.result.plan is not None:
            value = context.values(self.result.plan)[0]
            context.report(value, self.result.bound, source)

    def _name(self) -> str:
        """Return a name for what a worker is asked."""
        self._count += 1
        return f"spmilp-{self._key[:8]}-{id(self)}-{self._count}"

    def _begin(self, slots: int) -> bool:
        """Submit the next turn, if there is time for one; say whether there is."""
        is_first = self._count < len(self._first)
        member = self._first[self._count] if is_first else self._again
        seconds = self._seconds_for(member)
        limit = self._context.options.time_limit
        if limit is None and self._count >= TURNS_WITHOUT_LIMIT * slots:
            return False
        if limit is not None and (seconds is None or seconds < min(LEAST_TURN, limit / 4)):
            return False
        options = self._context.options
        turn = Turn(
            problem=self._problem,
            key=self._key,
            version=code_version(),
            member=member,
            options=SolveOptions(
                time_limit=seconds,
                gap=options.gap,
                seed=options.seed + self._count,
                workers=options.workers,
            ),
            plan=self.result.plan,
        )
        name = self._name()
        self._members[name] = member.name
        self._workers.submit(name, take, turn)
        return True

    def _seconds_for(self, member: Member) -> float | None:
        limit = self._context.options.time_limit
        if limit is None:
            return None
        return min(self._seconds_until_return(), max(LEAST_TURN, member.until * limit))

    def _seconds_for_round(self, rounds: "Rounds") -> float | None:
        limit = self._context.options.time_limit
        if limit is None:
            return None
        least = max(LEAST_TURN, TIMES_JOINING * rounds.seconds)
        left = self._seconds_until_return() - 2 * rounds.seconds
        return min(left, max(least, SHARE_OF_TURN * limit))

    def _seconds_until_return(self) -> float:
        """Return the seconds, of a limit, until the last turns have to come back."""
        context, limit = self._context, self._context.options.time_limit or 0.0
        until = TIES if moves_too_much(context, self.result.plan) else 1.0
        left = context.clock.seconds_left(until) or 0.0
        return left - max(LEAST_TO_RETURN, SHARE_TO_RETURN * limit)

    def _take(self, future: Future) -> None:
        """Take what a turn has led to.

        Raises
        ------
        SpmilpError
            If no turn has led to anything yet, and this one says what is to be done about it.
        """
        name = self._members.pop(future.key, "")
        if future.status != "finished":
            self._lost += 1
            error = future.exception() if future.status == "error" else None
            if isinstance(error, SpmilpError) and self._done == 0:
                raise error
            return
        found: SolverResult = future.result()
        if found.plan is not None and not self._context.accepts(found.plan):
            self._lost += 1
            return
        self._lost, self._done = 0, self._done + 1
        self._keep(found, f"{name}, turn {self._done}")


def _start(context: SearchContext) -> SolverResult:
    """Return a valid hint, or the list scheduler's plan."""
    hint = context.valid_hint
    if hint is not None:
        return context.found(hint, context.fast_bound)
    limit = context.clock.seconds_left(SHARE_OF_START)
    return ListScheduler().search(context.member(limit, None))
