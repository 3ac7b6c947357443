"""Neighbourhoods of the best plan, searched by CP-SAT's own large-neighbourhood search within them.

The kinds differ in what is free besides orders and times: what fills the plan's residencies and
serves the reads; with it all residencies; with them the cores of tasks that run at about one time,
or of all. The fewer decisions a model has, the more steps CP-SAT makes in it.
"""

from collections.abc import Callable, Iterator
from random import Random

from spmilp.plan.plan import Plan
from spmilp.solvers.cpsat.parameters import Way
from spmilp.solvers.cpsat.phases import Budget, find_plans
from spmilp.solvers.cpsat.scope import Scope, scope_around, scope_of_residencies
from spmilp.solvers.cpsat.state import SearchState
from spmilp.solvers.cpsat.structure import structure_of
from spmilp.units import TaskIdx

SHARE = 0.75
"""Of the limits, by which neighbourhoods have been searched."""

FIRST, MOST = 0.1, 0.4
"""Deterministic time of a turn, at first and at most; a unit takes 10 to 30 seconds."""

IN_POOLS = 0.1
"""Deterministic time for plans in given pools."""

LITERALS = 200_000
"""What of a model is built in a unit of deterministic time."""

HOPED = 1e-3
"""Share of the objective that each turn may save, for all that is known."""

KEPT = 0.5
"""Weight of what is known of a kind when another turn of it is."""

WINDOW = 8
"""Tasks whose cores are free together; the next window begins half as many tasks later."""


class Kind:
    """One way to leave something free.

    Parameters
    ----------
    scope
        Makes what may be decided around the best plan.

    Attributes
    ----------
    deterministic
        Deterministic time of the next turn.
    is_through
        Whether even the longest turn has found nothing.
    """

    def __init__(self, scope: Callable[[], Scope]) -> None:
        self.scope = scope
        self.deterministic = FIRST
        self.is_through = False
        self._saved = 0.0
        self._spent = 0.0

    @property
    def pays(self) -> float:
        """Share of the objective that a unit of deterministic time is expected to save."""
        return (HOPED + self._saved) / (FIRST + self._spent)

    def learn(self, saved: float, spent: float) -> None:
        """Note a turn; after one that has saved nothing the next one is longer."""
        self._saved = KEPT * self._saved + saved
        self._spent = KEPT * self._spent + spent
        if saved > 0:
            self.deterministic = FIRST
        elif self.deterministic < MOST:
            self.deterministic *= 2
        else:
            self.is_through = True


def plan_in_pools(state: SearchState, pools: tuple[int, ...]) -> None:
    """Look for plans in which tasks run in these pools."""
    if not _is_over(state):
        whole = state.builder.scope(relaxed=False)
        scope = scope_around(state.tables, whole, pools, frozenset())
        _search(state, scope, Budget(SHARE, IN_POOLS))


def improve_around(state: SearchState) -> None:
    """Improve the incumbent until no kind of neighbourhood finds anything.

    The kind is next that is expected to pay most for its time (an adaptive choice as that of Ropke
    and Pisinger 2006, but always of the best).
    """
    plan = state.incumbent.plan
    if plan is None or not state.settings.neighbourhoods:
        return
    kinds, turn = _kinds(state, plan), 0
    while not _is_over(state):
        waiting = [kind for kind in kinds if not kind.is_through]
        if not waiting:
            return
        kind = max(waiting, key=lambda one: one.pays)
        before = state.incumbent.values[0]
        budget = Budget(SHARE, kind.deterministic, Way.NEIGHBOURHOODS, turn)
        spent = _search(state, kind.scope(), budget)
        saved = before - state.incumbent.values[0]
        if saved > 0:
            for one in kinds:
                one.is_through = False
        kind.learn(saved / max(1, before), spent)
        turn += 1


def _is_over(state: SearchState) -> bool:
    return state.is_done or state.clock.is_over(SHARE)


def _search(state: SearchState, scope: Scope, budget: Budget) -> float:
    """Look for plans within a scope; return about what that takes, in deterministic time."""
    before = state.clock.spent
    structure = structure_of(state.tables, scope, state.addressed_memories())
    find_plans(state, budget, structure)
    return state.clock.spent - before + structure.literals / LITERALS


def _kinds(state: SearchState, plan: Plan) -> list[Kind]:
    tables, builder = state.tables, state.builder
    windows = _windows(plan, Random(state.context.options.seed))

    def around(free: frozenset[TaskIdx]) -> Scope:
        best = state.incumbent.plan or plan
        return scope_around(tables, builder.scope(relaxed=False), tables.pools_of_plan(best), free)

    def residencies() -> Scope:
        reading, whole = state.reading(), builder.scope(relaxed=False)
        return whole if reading is None else scope_of_residencies(tables, reading, whole)

    return [
        Kind(residencies),
        Kind(lambda: around(frozenset())),
        Kind(lambda: around(next(windows))),
        Kind(lambda: builder.scope(relaxed=False)),
    ]


def _windows(plan: Plan, random: Random) -> Iterator[frozenset[TaskIdx]]:
    """Yield windows of successive tasks, all in an order by lot, then again."""
    tasks = [placement.task for placement in sorted(plan.placements, key=lambda p: p.start)]
    while True:
        starts = list(range(0, len(tasks), WINDOW // 2))
        random.shuffle(starts)
        yield from (frozenset(tasks[first : first + WINDOW]) for first in starts)
