"""What a search for tiles, or the list scheduler, has found no room for."""

from dataclasses import replace

from spmilp.bounds.best import Bound
from spmilp.errors import DoesNotFitError
from spmilp.explanation.cause import Cause, Misfit, memory_named, of_shortage
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.portfolio import Schedules


def misfit_of_tiles(machine: Machine, error: DoesNotFitError) -> Misfit | None:
    """Return what keeps a network from being cut into tiles that fit, where the error tells."""
    short = error.shortage
    if short is None:
        return None
    memory = machine.memories[memory_named(machine, short.memory)]
    if memory.kind is MemoryKind.DRAM:
        said = f"inputs, weights and outputs up to it are more than {memory.name} holds"
        found = of_shortage(machine, short, Cause.DRAM, is_proven=error.is_proven)
        return replace(found, said=said)
    found = of_shortage(machine, short, Cause.TILE, is_proven=error.is_proven)
    if error.is_proven:
        return found
    said = f"however it and what it reads were cut, some task needs more than {memory.name} holds"
    return replace(found, said=f"{said}; its smallest tile alone would fit")


def misfit_in_schedule(problem: Problem) -> Misfit | None:
    """Return for what the list scheduler has no room in its first schedule; it proves nothing."""
    schedules = Schedules(problem)
    found = next(iter(schedules), None)
    short = schedules.shortage
    if found is not None:
        try:
            schedules.plan(found, Bound("zero", problem.objective.first, 0))
        except DoesNotFitError as error:
            short = error.shortage
    if short is None:
        return None
    memory = problem.machine.memories[memory_named(problem.machine, short.memory)]
    if memory.kind is MemoryKind.DRAM:
        said = f"it does not fit {memory.name} beside inputs, weights and outputs"
    elif short.needed > short.usable:
        said = f"it needs more than {memory.name} holds, beside what must stay there"
    else:
        said = f"it fits {memory.name} by size, but not between the gaps that are left"
    found_short = of_shortage(problem.machine, short, Cause.ROOM, is_proven=False)
    return replace(found_short, said=said)
