"""The phases of a search: for plans, and for proofs.

Plans come from new times, later objectives and neighbourhoods of the best plan; proofs from the
relaxation with open candidates. Each phase runs models within a budget; what they find goes into
the state of the search.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, TypeAlias

from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.solvers.common.operator_selection import OperatorSelection
from spmilp.solvers.exact.cpsat.inquiry import Limits, Way, run
from spmilp.solvers.exact.formulation.candidates import (
    Scope,
    Structure,
    scope_around,
    scope_of_plan,
    scope_of_residencies,
    structure_of,
)
from spmilp.solvers.exact.formulation.model import Model, ModelOptions
from spmilp.solvers.exact.formulation.state import Found, SearchState
from spmilp.units import TaskIdx

ROUNDS = 12
"""Models built in one step to make packings possible."""

LITERALS_PER_SECOND = 10_000
"""Literals of a model that are built in a second, about. A model that would take more than half of
the time left is not built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpSatOptions(ModelOptions):
    """Settings of the search: what it may spend, and a switch for each of its phases.

    Parameters
    ----------
    retime
        First keep the decisions of the list scheduler's plan, and choose all times anew.
    round_robin
        With few workers several strategies alternate in proofs, and none looks for solutions.
    neighbourhoods
        Improve the best plan with most of it kept (:mod:`~spmilp.solvers.exact.cpsat.phases`).
    literals
        The largest model that is tried.
    deterministic_limit
        Limit on the solver's own deterministic time, all models together; ``None`` for none.
    tie_breaks
        Deterministic time for each objective behind the first.
    """

    retime: bool = True
    round_robin: bool = True
    neighbourhoods: bool = True
    literals: int = 2_000_000
    deterministic_limit: float | None = None
    tie_breaks: float = 3.0


CpSatState: TypeAlias = SearchState[CpSatOptions]
"""What every step of one search reads and changes."""


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


def _run(
    state: CpSatState,
    model: Model,
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


def prove(state: CpSatState) -> bool:
    """Search the relaxation for anything better; say whether more candidates may help.

    A solution that is better and uses nothing late would be a plan if it had addresses. Those that
    have none get addresses into the plans' model as into this one, and the search begins again.
    """
    for _ in range(ROUNDS):
        structure = state.structure(relaxed=True)
        if not has_time_to_build(state, structure, PROOF):
            return False
        found = _run(state, state.model(structure, 0), PROOF, proves=True)
        state.conclude(found)
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
"""Share of the limits by which the search in neighbourhoods ends."""

FIRST, MOST = 0.1, 0.4
"""Deterministic time of a turn, at first and at most; a unit takes 10 to 30 seconds."""

LITERALS = 200_000
"""Literals of a model that are built in a unit of deterministic time, about."""

HOPED, KEPT = 1e-3, 0.5
"""Share of the objective that each turn may save at first, and weight of what is known of a kind of
neighbourhood when another turn of it is."""

WINDOW = 8
"""Tasks whose cores are free together; the next window begins half as many tasks later."""


def improve_around(state: CpSatState) -> None:
    """Improve the incumbent until no kind of neighbourhood finds anything, in its longest turn.

    The kind is next that has paid most for its time lately; after a turn that has saved nothing its
    next one is longer.
    """
    plan = state.incumbent.plan
    if plan is None or not state.settings.neighbourhoods:
        return
    kinds = _kinds(state, plan)
    hoped = dict.fromkeys(kinds, HOPED / FIRST)
    selection = OperatorSelection(hoped, cost=FIRST, memory=KEPT, least=0.0)
    waiting, turn = dict.fromkeys(kinds, FIRST), 0
    while waiting and not _is_over(state):
        kind = max(waiting, key=selection.rate)
        before = state.incumbent.values[0]
        budget = Budget(SHARE, waiting[kind], Way.NEIGHBOURHOODS, turn)
        spent = _search(state, kinds[kind](), budget)
        saved = before - state.incumbent.values[0]
        selection.learn(kind, saved / max(1, before), spent)
        if saved > 0:
            waiting = {one: waiting.get(one, MOST) for one in kinds} | {kind: FIRST}
        elif waiting[kind] < MOST:
            waiting[kind] *= 2
        else:
            del waiting[kind]
        turn += 1


def _is_over(state: CpSatState) -> bool:
    return state.is_done or state.clock.is_over(SHARE)


def _search(state: CpSatState, scope: Scope, budget: Budget) -> float:
    """Look for plans within a scope; return about what that takes, in deterministic time."""
    before = state.clock.spent
    structure = structure_of(state.tables, scope, state.addressed_memories())
    find_plans(state, budget, structure)
    return state.clock.spent - before + structure.literals / LITERALS


def _kinds(state: CpSatState, plan: Plan) -> dict[str, Callable[[], Scope]]:
    """Return ways to leave something free besides orders and times.

    What fills the plan's residencies and serves the reads; with it all residencies; with them the
    cores of tasks that run at about one time, or of all. The fewer decisions a model has, the more
    steps CP-SAT makes in it.
    """
    tables, windows = state.tables, _windows(plan, Random(state.context.options.seed))

    def whole() -> Scope:
        return state.builder.scope(relaxed=False)

    def around(free: frozenset[TaskIdx]) -> Scope:
        best = state.incumbent.plan or plan
        return scope_around(tables, whole(), tables.pools_of_plan(best), free)

    def residencies() -> Scope:
        reading = state.reading()
        return whole() if reading is None else scope_of_residencies(tables, reading, whole())

    return {
        "fillings": residencies,
        "residencies": lambda: around(frozenset()),
        "cores in a window": lambda: around(next(windows)),
        "everything": whole,
    }


def _windows(plan: Plan, random: Random) -> Iterator[frozenset[TaskIdx]]:
    """Yield windows of successive tasks, all in an order by lot, then again."""
    tasks = [placement.task for placement in sorted(plan.placements, key=lambda p: p.start)]
    while True:
        starts = list(range(0, len(tasks), WINDOW // 2))
        random.shuffle(starts)
        yield from (frozenset(tasks[first : first + WINDOW]) for first in starts)
