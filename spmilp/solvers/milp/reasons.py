"""Why there is no plan, in words, once that is proven."""

from spmilp.problem.objective import Quantity
from spmilp.solvers.milp.lookup import Lookup
from spmilp.solvers.milp.model import Aim, Model, cycles_in_turn
from spmilp.solvers.milp.options import MilpOptions
from spmilp.solvers.milp.outcome import Limits
from spmilp.solvers.milp.process import run
from spmilp.solvers.milp.repair import repaired
from spmilp.solvers.milp.stays import Structure


def why_impossible(
    lookup: Lookup, structure: Structure, settings: MilpOptions, backend: str, limits: Limits
) -> str:
    """Return what cannot be reached, or how many bytes are short."""
    return _what_cannot_be(lookup, structure) or _what_is_short(
        lookup, structure, settings, backend, limits
    )


def _what_cannot_be(lookup: Lookup, structure: Structure) -> str:
    """Return a task without a core, an operand without a way, or a buffer that cannot end."""
    problem = lookup.problem
    for task in problem.tasks:
        if not lookup.memories_of(task.index):
            largest = max([task.scratch, *(problem.buffers[b].bytes for b in task.writes)])
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
                    "that can run the task; check the engines' reach, longest transfer, dimensions "
                    "and congruence"
                )
    for buffer in problem.buffers:
        if buffer.ends_in is not None and not structure.of(buffer.index, buffer.ends_in):
            name = problem.machine.memories[buffer.ends_in].name
            return f"buffer {buffer.name} ({buffer.bytes} B): no engine can bring it to {name}"
    return ""


def _what_is_short(
    lookup: Lookup, structure: Structure, settings: MilpOptions, backend: str, limits: Limits
) -> str:
    """Let every memory be larger than it is, and return which has to be, by how much at least."""
    aim = Aim(
        quantity=Quantity.MAKESPAN,
        ceilings={},
        floor=0,
        ceiling=None,
        horizon=cycles_in_turn(lookup, structure),
    )
    model = Model(lookup, structure, settings, aim, growing=True)
    outcome = run(model.program, backend, limits)
    values = repaired(model.program, outcome.values) if outcome.values is not None else None
    if values is None or not outcome.complete:
        return "no plan exists: the tasks' operands and results do not fit the memories"
    memories = lookup.machine.memories
    short = [
        f"{memories[m].name} is {growth.value(values) * memories[m].alignment} B short"
        for m, growth in sorted(model.room.growth.items())
        if growth.value(values)
    ]
    if not short:
        return "no plan exists: reserved ranges leave no piece that is long enough"
    return (
        f"no plan exists: {' and '.join(short)} for all operands and results that have to lie "
        "there at one time, in any order of the tasks; use smaller tiles or a larger memory"
    )
