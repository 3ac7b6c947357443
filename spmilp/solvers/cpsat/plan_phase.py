"""The search for plans: new times, neighbourhoods of the best plan, later objectives."""

from spmilp.problem.objective import Quantity
from spmilp.solvers.cpsat.restricted_scopes import free_sets, scope_around, scope_of_plan
from spmilp.solvers.cpsat.runs import Budget, find_plans
from spmilp.solvers.cpsat.state import SearchState
from spmilp.solvers.cpsat.structure import structure_of
from spmilp.units import TaskIdx

RETIMING = Budget(0.1, 2.0)
NEIGHBOURHOODS = Budget(0.6, 0.5)
TIES = 0.99
"""The share of the time limit by which later objectives have been made small."""


def retime(state: SearchState) -> None:
    """Choose the times of the incumbent anew, its other decisions kept."""
    wanted = state.settings.retime and state.order[0] is Quantity.MAKESPAN
    reading = state.reading()
    if reading is None or not wanted or state.is_done:
        return
    scope = scope_of_plan(state.tables, reading, state.builder.scope(relaxed=False))
    structure = structure_of(state.tables, scope, frozenset())
    if structure.literals <= state.settings.literals:
        find_plans(state, RETIMING, structure)


def improve_around(state: SearchState) -> None:
    """Improve the incumbent: most tasks keep their pools, some are free."""
    plan = state.incumbent.plan
    if plan is None or not state.settings.neighbourhoods:
        return
    for free in free_sets(plan, state.context.options.seed):
        best = state.incumbent.plan or plan
        plan_in_pools(state, state.tables.pools_of_plan(best), free)


def plan_in_pools(
    state: SearchState, pools: tuple[int, ...], free: frozenset[TaskIdx] = frozenset()
) -> None:
    """Look for plans in which tasks run in these pools, the free ones in any."""
    if state.is_done or state.clock.is_over(NEIGHBOURHOODS.share):
        return
    scope = scope_around(state.tables, state.builder.scope(relaxed=False), pools, free)
    structure = structure_of(state.tables, scope, state.addressed_memories())
    find_plans(state, NEIGHBOURHOODS, structure)


def break_ties(state: SearchState) -> None:
    """Make the later quantities small in turn, each with those before it held."""
    for position in range(1, len(state.order)):
        if state.incumbent.plan is None or state.clock.is_over(TIES):
            return
        if state.order[position] is Quantity.PEAK_SPM:
            state.builder.ample = False
        if state.structure(relaxed=False).literals <= state.settings.literals:
            find_plans(state, Budget(TIES, state.settings.tie_breaks), position=position)
