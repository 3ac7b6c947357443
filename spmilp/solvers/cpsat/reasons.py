"""Why there is no plan, in words, once that is proven."""

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.builder import Builder
from spmilp.solvers.cpsat.constraints import Constraints
from spmilp.solvers.cpsat.room import Room
from spmilp.solvers.cpsat.structure import Structure
from spmilp.solvers.cpsat.variables import Variables
from spmilp.solvers.formulation.infeasibility import what_cannot_be, what_is_short
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Bytes, MemoryIdx

SECONDS = 10.0
"""Deterministic time for finding out how many bytes are short."""


def why_impossible(tables: ProblemTables, builder: Builder, seed: int) -> str:
    """Return why the relaxation has no solution: what cannot be reached, or the bytes short."""
    structure = builder.structure(relaxed=True)
    ending = {stay[:2] for stay in structure.shapes}
    reason = what_cannot_be(
        tables.problem,
        runs=lambda task: bool(structure.scope.pools[task]),
        is_served=lambda task, position: bool(structure.servers[task, position]),
        ends=lambda buffer, memory: (buffer, memory) in ending,
    )
    return reason or what_is_short(tables.problem, _bytes_short(tables, structure, seed))


def _bytes_short(
    tables: ProblemTables, structure: Structure, seed: int
) -> dict[MemoryIdx, Bytes] | None:
    """Give every memory more room, and return how much each needs at the least."""
    model = cp_model.CpModel()
    variables = Variables(model, tables, structure, structure.cycles_in_turn(tables))
    room = Room(model, tables, variables, {}, everywhere=False, may_grow=True)
    Constraints(model, tables, variables, room).add_all()
    memories = tables.machine.memories
    model.minimize(sum(memories[m].alignment * more for m, more in room.growth.items()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = SECONDS
    solver.parameters.catch_sigint_signal = False
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return {m: solver.value(more) * memories[m].alignment for m, more in room.growth.items()}
