"""The phases of a search: for plans, and for proofs.

Plans come from new times and later objectives; proofs from the small relaxations of loads and the
one with open candidates. Each phase runs models within a budget; what they find goes into the state
of the search.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.solvers.cpsat.inquiry import Limits, Way, run
from spmilp.solvers.cpsat.options import CpSatState
from spmilp.solvers.cpsat.relaxation import LoadRelaxation, can_relax
from spmilp.solvers.formulation.candidates import (
    Scope,
    Structure,
    scope_around,
    scope_of_plan,
    scope_of_residencies,
    structure_of,
)
from spmilp.solvers.formulation.model import Model
from spmilp.solvers.formulation.state import Found
from spmilp.units import TaskIdx

ROUNDS = 12
"""Models built in one step to make packings possible."""

LITERALS_PER_SECOND = 10_000
"""What of a model is built in a second; one that takes more than half of the time left is not."""


class Budget(NamedTuple):
    """What a step may spend.

    Parameters
    ----------
    share
        Of the time limit, by which it has ended.
    deterministic
        Deterministic time of each of its runs; ``None`` for no limit of its own.
    way
        How its runs look for solutions.
    turn
        Others than those of an earlier turn may be found.
    """

    share: float
    deterministic: float | None = None
    way: Way = Way.QUESTIONS
    turn: int = 0


def find_plans(
    state: CpSatState, budget: Budget, structure: Structure | None = None, position: int = 0
) -> Found | None:
    """Improve one of the quantities within a structure, by default the whole problem's.

    Where the best solution has no addresses, those that stand in each other's way get theirs into
    the model, and the search begins again.

    Returns
    -------
    Found or None
        The last run; ``None`` if its best solution has no addresses, or time was out before.
    """
    for _ in range(ROUNDS):
        if state.clock.is_over(budget.share):
            return None
        within = structure or state.structure(relaxed=False)
        if not has_time_to_build(state, within, budget):
            return None
        found = _run(state, state.model(within, position), budget, finds=position == 0)
        conflict = state.take(found)
        if conflict is None:
            return found
        if not state.learn(conflict):
            return None
    return None


def has_time_to_build(state: CpSatState, structure: Structure, budget: Budget) -> bool:
    """Say whether a model can be built in good time before a budget is spent."""
    left = state.clock.seconds_left(budget.share)
    return left is None or structure.literals <= LITERALS_PER_SECOND * left / 2


def prove(state: CpSatState, model: Model | LoadRelaxation, budget: Budget) -> Found:
    """Search a relaxation for anything better than the incumbent, and take its bounds."""
    found = _run(state, model, budget, proves=True)
    state.conclude(found)
    return found


def _run(
    state: CpSatState,
    model: Model | LoadRelaxation,
    budget: Budget,
    *,
    finds: bool = False,
    proves: bool = False,
) -> Found:
    """Run a model; it may find values of the first quantity, or prove bounds on it."""
    incumbent, options, settings = state.incumbent, state.context.options, state.settings
    limits = Limits(
        seconds=state.clock.seconds_left(budget.share),
        deterministic=state.clock.deterministic_left(budget.deterministic, budget.share),
        workers=options.workers,
        seed=options.seed + budget.turn,
        enough=state.enough if finds else None,
        way=budget.way,
        round_robin=settings.round_robin,
        log=settings.log,
    )
    found = run(
        model,
        limits,
        state.context.reports,
        proves=proves,
        on_solution=lambda value: incumbent.report(value) if finds else None,
        on_bound=lambda bound: incumbent.prove(bound) if proves else None,
    )
    state.clock.spend(found.deterministic)
    if found.interrupted:
        if finds:
            state.take(found)
        raise KeyboardInterrupt
    return found


RETIMING = Budget(0.1, 2.0)
TIES = 0.99
"""The share of the time limit by which later objectives have been made small."""


def retime(state: CpSatState) -> None:
    """Choose the times of the incumbent anew, its other decisions kept."""
    wanted = state.settings.retime and state.order[0] is Quantity.MAKESPAN
    reading = state.reading()
    if reading is None or not wanted or state.is_done:
        return
    scope = scope_of_plan(state.tables, reading, state.builder.scope(relaxed=False))
    structure = structure_of(state.tables, scope, frozenset())
    if structure.literals <= state.settings.literals:
        find_plans(state, RETIMING, structure)


def break_ties(state: CpSatState) -> None:
    """Make the later quantities small in turn, each with those before it held."""
    for position in range(1, len(state.order)):
        if state.incumbent.plan is None or state.clock.is_over(TIES):
            return
        if state.order[position] is Quantity.PEAK_SPM:
            state.builder.ample = False
        if state.structure(relaxed=False).literals <= state.settings.literals:
            find_plans(state, Budget(TIES, state.settings.tie_breaks), position=position)


PROOF = Budget(0.95)

AT_FIRST = {False: 0.2, True: 0.3}
"""Shares of the time limit by which the small relaxations end, without and with retention."""

AT_LAST = {False: 0.82, True: PROOF.share}
"""Those when plans have been looked for."""

WITHOUT_LIMIT = 20.0
"""Deterministic time for a small relaxation where nothing else limits it."""

FOLLOWED = 2
"""Solutions of each small relaxation whose pools are tried."""


class ProofPhase:
    """Proves bounds, and says what of its solutions may lead to plans."""

    def __init__(self, state: CpSatState) -> None:
        self._state = state
        self._unfinished: set[bool] = set()

    def relax_loads(self) -> list[tuple[int, ...]]:
        """Prove what the small relaxations can; return the pools of their best solutions, last."""
        pools: list[tuple[int, ...]] = []
        for retention, share in AT_FIRST.items():
            found = self._relax_loads(retention, share)
            solutions = [] if found is None else found.solutions[-FOLLOWED:]
            pools += [tuple(run.pool for run in decisions.runs) for decisions in solutions]
        return pools

    def _relax_loads(self, retention: bool, share: float) -> Found | None:
        """Search a small relaxation for anything better than the incumbent."""
        state, settings = self._state, self._state.settings
        wanted = settings.retention if retention else settings.load_relaxation
        if not wanted or not can_relax(state.tables, state.order[0]) or state.is_done:
            return None
        if state.clock.is_over(share):
            return None
        aim = state.aim(state.builder.structure(relaxed=True), 0)
        model = LoadRelaxation(state.tables, aim, retention=retention)
        budget = Budget(share, None if state.clock.is_limited else WITHOUT_LIMIT)
        found = prove(state, model, budget)
        self._unfinished -= {retention}
        if not found.complete:
            self._unfinished |= {retention}
        return found

    def prove(self) -> bool:
        """Search the relaxation for anything better; say whether more candidates may help.

        A solution that is better and uses nothing late would be a plan if it had addresses. Those
        that have none get addresses into the plans' model as into this one, and the search begins
        again. As long as the small relaxations are not through, they are worth more time than this.
        """
        state = self._state
        if self._unfinished and state.clock.is_limited:
            for retention in sorted(self._unfinished):
                self._relax_loads(retention, AT_LAST[retention])
            return False
        for _ in range(ROUNDS):
            structure = state.structure(relaxed=True)
            if not has_time_to_build(state, structure, PROOF):
                return False
            found = prove(state, state.model(structure, 0), PROOF)
            conflict = state.take(found)
            if state.is_done or not found.solutions or not found.complete:
                return False
            late = found.solutions[-1].late
            if late:
                return state.builder.add_candidates(late)
            if conflict is None or not state.learn(conflict):
                return False
        return False


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


def plan_in_pools(state: CpSatState, pools: tuple[int, ...]) -> None:
    """Look for plans in which tasks run in these pools."""
    if not _is_over(state):
        whole = state.builder.scope(relaxed=False)
        scope = scope_around(state.tables, whole, pools, frozenset())
        _search(state, scope, Budget(SHARE, IN_POOLS))


def improve_around(state: CpSatState) -> None:
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


def _is_over(state: CpSatState) -> bool:
    return state.is_done or state.clock.is_over(SHARE)


def _search(state: CpSatState, scope: Scope, budget: Budget) -> float:
    """Look for plans within a scope; return about what that takes, in deterministic time."""
    before = state.clock.spent
    structure = structure_of(state.tables, scope, state.addressed_memories())
    find_plans(state, budget, structure)
    return state.clock.spent - before + structure.literals / LITERALS


def _kinds(state: CpSatState, plan: Plan) -> list[Kind]:
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
