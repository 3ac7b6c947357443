"""Why there is no plan, in words, once that is proven."""

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.capacity import Addressed, CapacityModel
from spmilp.solvers.cpsat.constraints import Constraints
from spmilp.solvers.cpsat.structure import Structure
from spmilp.solvers.cpsat.variables import Variables
from spmilp.solvers.formulation.infeasibility import what_cannot_be, what_is_short
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Bytes, MemoryIdx

SECONDS = 10.0
"""Deterministic time for finding out how many bytes are short."""


def why_infeasible(tables: ProblemTables, relaxed: Structure, seed: int) -> str:
    """Return why the relaxation has no solution: what cannot be reached, or the bytes short."""
    ending = {key[:2] for key in relaxed.lifecycles}
    reason = what_cannot_be(
        tables.problem,
        runs=lambda task: bool(relaxed.scope.pools[task]),
        is_served=lambda task, position: bool(relaxed.servers[task, position]),
        ends=lambda buffer, memory: (buffer, memory) in ending,
    )
    return reason or what_is_short(tables.problem, _bytes_short(tables, relaxed, seed))


def _bytes_short(
    tables: ProblemTables, relaxed: Structure, seed: int
) -> dict[MemoryIdx, Bytes] | None:
    """Let every memory be larger than it is, and return how much each needs at the least."""
    model = cp_model.CpModel()
    variables = Variables(model, tables, relaxed, relaxed.sequential_cycles(tables))
    capacity = CapacityModel(variables, Addressed(), may_grow=True)
    Constraints(variables, capacity).add_all()
    memories = tables.machine.memories
    model.minimize(sum(memories[m].alignment * more for m, more in capacity.growth.items()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = SECONDS
    solver.parameters.catch_sigint_signal = False
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return {m: solver.value(more) * memories[m].alignment for m, more in capacity.growth.items()}
