"""Why there is no plan, in words, once that is proven."""

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.builder import Builder
from spmilp.solvers.cpsat.constraints import Constraints
from spmilp.solvers.cpsat.room import Room
from spmilp.solvers.cpsat.structure import Structure
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.cpsat.variables import Variables

SECONDS = 10.0
"""Deterministic time for finding out how many bytes are short."""


def why_impossible(tables: Tables, builder: Builder, seed: int) -> str:
    """Return why the relaxation has no solution: what cannot be reached, or the bytes short."""
    structure = builder.structure(relaxed=True)
    return _what_cannot_run(tables, structure) or _what_is_short(tables, structure, seed)


def _what_cannot_run(tables: Tables, structure: Structure) -> str:
    """Return a task without a core, an operand without a way, or a buffer that cannot end."""
    problem = tables.problem
    for task in problem.tasks:
        if not structure.scope.pools[task.index]:
            sizes = [problem.buffers[written].bytes for written in task.writes]
            largest = max([task.scratch, *sizes])
            return (
                f"task {task.name}: no memory of a core that can run it has {largest} B in one "
                "piece for a result or its scratch; use smaller tiles or a larger scratchpad"
            )
        for position, read in enumerate(task.reads):
            if not structure.servers[task.index, position]:
                slice_ = problem.slices[read]
                name = problem.buffers[slice_.buffer].name
                return (
                    f"task {task.name}: no engine can bring {name} ({slice_.bytes} B) to a core "
                    "that can run the task; check the engines' reach, longest transfer and "
                    "dimensions"
                )
    for buffer in problem.buffers:
        there = any(stay[:2] == (buffer.index, buffer.ends_in) for stay in structure.shapes)
        if buffer.ends_in is not None and not there:
            name = problem.machine.memories[buffer.ends_in].name
            return f"buffer {buffer.name} ({buffer.bytes} B): no engine can bring it to {name}"
    return ""


def _what_is_short(tables: Tables, structure: Structure, seed: int) -> str:
    """Give every memory more room, and return which need it at the least."""
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
        return "no plan exists: the tasks' operands and results do not fit the memories"
    short = [
        f"{memories[memory].name} is {solver.value(blocks) * memories[memory].alignment} B short"
        for memory, blocks in sorted(room.growth.items())
        if solver.value(blocks)
    ]
    return (
        f"no plan exists: {' and '.join(short)} for all operands and results that have to lie "
        "there at one time, in any order of the tasks; use smaller tiles or a larger memory"
    )
