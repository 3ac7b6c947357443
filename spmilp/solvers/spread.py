"""The portfolio on Dask workers, in turns, each of which begins with the best plan of all."""

import pickle
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any

from spmilp.code_cache import hash_of_imports
from spmilp.dask_client import connected
from spmilp.errors import SpmilpError
from spmilp.files import sha256_of
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.auto import TIES, Auto, Member, ended, is_over, members_for, moves_too_much
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.reports import Reports
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.version import __version__

if TYPE_CHECKING:
    from distributed import Client

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

HEARTBEAT = 0.2
WITHOUT_WORKERS = 15.0
"""Seconds without any worker after which the search goes on in this process."""

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
    if turn.version != code_version():
        raise SpmilpError(
            f"the search is of spmilp {turn.version}, and this worker has {code_version()}; "
            "install the same version on all workers"
        )
    with _knowing:
        if turn.key not in _known:
            _known.clear()
            problem = pickle.loads(zlib.decompress(turn.problem))
            _known[turn.key] = SearchContext(problem, SolveOptions())
        known = _known[turn.key]
    context = known.member(turn.options.time_limit, turn.plan)
    context.options, context.reports = turn.options, Reports(None)
    # The verdict has the whole problem, and is not believed anyway.
    return replace(turn.member.make(turn.options).search(context), verdict=None)


def turns_of(context: SearchContext) -> Iterator[Member]:
    """Yield what turns are for, the share of the time limit that each takes in ``until``.

    First come the portfolio's members in its order, the exact ones for all of the time that is
    left. Then those that improve plans have further turns; of ``lns``, without other initial
    solutions.
    """
    members = list({member.name: member for member in members_for(context.problem)}.values())
    first = members_for(context.problem)[0].until
    improving = [member for member in members if member.name not in EXACT]
    yield from (replace(member, until=first) for member in improving)
    yield from (replace(member, until=1.0) for member in members if member.name in EXACT)
    again = replace(improving[-1], until=SHARE_OF_TURN)
    if again.name == "lns":
        again = replace(again, make=_lns_from_the_plan)
    while True:
        yield again


def _lns_from_the_plan(options: SolveOptions) -> Solver:
    from spmilp.solvers.lns.options import LnsOptions
    from spmilp.solvers.lns.solver import LnsSolver

    return LnsSolver(LnsOptions(several_initial_solutions=False))


class Spread(Solver):
    """Lets the members of the portfolio work side by side on the workers of a Dask scheduler.

    A turn begins with the best plan at that time, has a seed of its own, and ends after a share of
    the time; the next one begins at once. Every plan that comes back is checked here. A worker that
    is lost costs its turn; where all are lost, or the scheduler is, the portfolio goes on in this
    process. Which plan is found depends on how quick each worker is.

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
            turns = _Turns(context, client, start)
            try:
                turns.run()
            except KeyboardInterrupt:
                return replace(turns.result, interrupted=True)
            finally:
                turns.cancel()
        if turns.is_lost and not is_over(context, turns.result):
            own = context.member(context.clock.seconds_left(), turns.result.plan)
            return context.better(turns.result, Auto().search(own))
        return ended(context, turns.result)


class _Turns:
    """Gives turns to workers, and keeps the best plan and the best bound of all."""

    def __init__(self, context: SearchContext, client: "Client", start: SolverResult) -> None:
        self.result = start
        self.is_lost = False
        self._context = context
        self._client = client
        self._problem, self._key = packed(context.problem)
        self._members = turns_of(context)
        self._running: dict[str, tuple[Any, str]] = {}
        self._back: SimpleQueue[Any] = SimpleQueue()
        self._count = self._done = self._lost = 0
        self._without = context.clock.now()

    def run(self) -> None:
        """Give turns until the time is over, the best plan is good enough, or Dask is lost."""
        context = self._context
        while not is_over(context, self.result) and not context.clock.is_over():
            slots = self._slots()
            while len(self._running) < slots and self._begin(slots):
                pass
            if slots > 0:
                self._without = context.clock.now()
            self.is_lost = self._is_lost()
            if self.is_lost or (slots > 0 and not self._running):
                return
            try:
                self._take(self._back.get(timeout=HEARTBEAT))
            except Empty:
                continue

    def cancel(self) -> None:
        """Leave turns that nobody waits for any more."""
        try:
            self._client.cancel([future for future, _ in self._running.values()], force=True)
        except Exception:  # whatever a scheduler that is lost leads to
            self._running.clear()

    def _slots(self) -> int:
        """Return the threads of all workers."""
        try:
            return sum(self._client.nthreads().values())
        except Exception:  # whatever a scheduler that is lost leads to
            return 0

    def _is_lost(self) -> bool:
        gone = self._context.clock.now() - self._without
        is_lost = self._client.status != "running" or gone > WITHOUT_WORKERS
        return is_lost or self._lost >= MOST_LOST

    def _begin(self, slots: int) -> bool:
        """Submit the next turn, if there is time for one; say whether there is."""
        member = next(self._members)
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
        name = f"spmilp-{self._key[:8]}-{id(self)}-{self._count}"
        self._count += 1
        future = self._client.submit(take, turn, key=name, pure=False, retries=0)
        self._running[name] = (future, member.name)
        future.add_done_callback(self._back.put)
        return True

    def _seconds_for(self, member: Member) -> float | None:
        context, limit = self._context, self._context.options.time_limit
        until = TIES if moves_too_much(context, self.result.plan) else 1.0
        left = context.clock.seconds_left(until)
        if limit is None or left is None:
            return None
        left -= max(LEAST_TO_RETURN, SHARE_TO_RETURN * limit)
        return min(left, max(LEAST_TURN, member.until * limit))

    def _take(self, future: Any) -> None:
        """Take what a turn has led to.

        Raises
        ------
        SpmilpError
            If no turn has led to anything yet, and this one says what is to be done about it.
        """
        _, name = self._running.pop(future.key, (None, ""))
        context = self._context
        if future.status != "finished":
            self._lost += 1
            error = future.exception() if future.status == "error" else None
            if isinstance(error, SpmilpError) and self._done == 0:
                raise error
            return
        found: SolverResult = future.result()
        if found.plan is not None and not context.accepts(found.plan):
            self._lost += 1
            return
        self._lost, self._done = 0, self._done + 1
        self.result = context.better(self.result, found)
        plan = self.result.plan
        if plan is not None:
            context.report(context.values(plan)[0], self.result.bound, f"{name}, turn {self._done}")


def _start(context: SearchContext) -> SolverResult:
    """Return a valid hint, or the list scheduler's plan."""
    hint = context.valid_hint
    if hint is not None:
        return context.found(hint, context.fast_bound)
    limit = context.clock.seconds_left(SHARE_OF_START)
    return ListScheduler().search(context.member(limit, None))
