"""Why there is no plan, in words, once a solver has proven that there is none."""

from collections.abc import Callable, Mapping

from spmilp.problem.problem import Problem
from spmilp.units import BufferIdx, Bytes, MemoryIdx, TaskIdx


def what_cannot_be(
    problem: Problem,
    runs: Callable[[TaskIdx], bool],
    is_served: Callable[[TaskIdx, int], bool],
    ends: Callable[[BufferIdx, MemoryIdx], bool],
) -> str:
    """Return a task without a core, an operand without a way, or a buffer that cannot end.

    Parameters
    ----------
    runs
        Whether some memory of a core that can run the task has room for each of its results.
    is_served
        Whether the read of the task at this position can find its slice anywhere.
    ends
        Whether the buffer can be in the memory in which it has to be at the end.

    Returns
    -------
    str
        The first of these, with its bytes and what to do; empty when all is possible.
    """
    for task in problem.tasks:
        if not runs(task.index):
            largest = max([task.scratch, *(problem.buffers[b].bytes for b in task.writes)])
            return (
                f"task {task.name}: no memory of a core that can run it has {largest} B in one "
                "piece for a result or its scratch; use smaller tiles or a larger scratchpad"
            )
        for position, read in enumerate(task.reads):
            if not is_served(task.index, position):
                slice_ = problem.slices[read]
                name = problem.buffers[slice_.buffer].name
                return (
                    f"task {task.name}: no engine can bring {name} ({slice_.bytes} B) to a core "
                    "that can run the task; check the engines' reach, longest transfer, dimensions "
                    "and congruence"
                )
    for buffer in problem.buffers:
        if buffer.ends_in is not None and not ends(buffer.index, buffer.ends_in):
            name = problem.machine.memories[buffer.ends_in].name
            return f"buffer {buffer.name} ({buffer.bytes} B): no engine can bring it to {name}"
    return ""


def what_is_short(problem: Problem, short: Mapping[MemoryIdx, Bytes] | None) -> str:
    """Return which memories have too few bytes.

    Parameters
    ----------
    short
        The bytes that each needs more, at the least; ``None`` when they are not known.
    """
    if short is None and problem.pins:
        kinds = ", ".join(sorted(problem.pins.kinds()))
        return f"no plan keeps to all pins ({kinds}): leave some out"
    if short is None:
        return "no plan exists: the tasks' operands and results do not fit the memories"
    wanted = {memory: size for memory, size in sorted(short.items()) if size}
    if not wanted:
        return "no plan exists: reserved ranges leave no piece that is long enough"
    memories = problem.machine.memories
    lacking = " and ".join(f"{memories[m].name} is {size} B short" for m, size in wanted.items())
    return (
        f"no plan exists: {lacking} for all operands and results that have to lie there at one "
        "time, in any order of the tasks; use smaller tiles or a larger memory"
    )
