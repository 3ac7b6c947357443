"""Why there is no plan, as a message."""

from spmilp.machine.machine import MemoryKind
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.bruteforce.tables import CoreGroup, ProblemTables
from spmilp.solvers.bruteforce.transfer_options import UNREACHABLE, TransferOptions
from spmilp.units import Bytes, SliceIdx, TaskIdx


def least_bytes(tables: ProblemTables, task: Task, group: CoreGroup) -> Bytes:
    """Return the bytes that a task needs at least at one time in the memory of its core.

    Of each buffer that it reads, its largest slice, unless cores read remotely; its results,
    unless they may overwrite something; its scratch. Padding between them is left aside.
    """
    problem = tables.problem
    largest: dict[int, Bytes] = {}
    if len(group.readable) == 1:
        for read in task.reads:
            if tables.home(read, group.memory) is None:
                size = problem.slices[read].bytes
                buffer = tables.whole[read]
                largest[buffer] = max(largest.get(buffer, 0), size)
    overwriting = {written for _, written in task.in_place}
    written = sum(
        problem.buffers[buffer].bytes
        for buffer in task.writes
        if buffer not in overwriting and tables.home(buffer, group.memory) is None
    )
    return sum(largest.values()) + written + task.scratch


def least_peak(problem: Problem) -> Bytes:
    """Return a lower bound on the peak of the scratchpads: the most that a single task needs."""
    tables = ProblemTables(problem)
    kinds = [memory.kind for memory in problem.machine.memories]
    return max(
        (
            min(
                (
                    least_bytes(tables, task, group) if kinds[group.memory] is MemoryKind.SPM else 0
                    for _, group, _ in tables.able[task.index]
                ),
                default=0,
            )
            for task in problem.tasks
        ),
        default=0,
    )


def why_too_small(tables: ProblemTables) -> str:
    """Return why some task fits on no core, however empty; nothing if each one may fit."""
    reasons = (_why_nowhere(tables, task) for task in tables.problem.tasks)
    return next((reason for reason in reasons if reason), "")


def why_no_plan(problem: Problem, states: int) -> str:
    """Return why a problem is infeasible although each task fits alone."""
    return _why_unreachable(ProblemTables(problem)) or (
        f"all {states} states that plans can pass through were searched and none is complete: each "
        "task fits alone, but no order of tasks and transfers leaves room for all that must stay; "
        "give the memories more bytes or cut the tiles smaller"
    )


def _why_nowhere(tables: ProblemTables, task: Task) -> str:
    """Say how many bytes are missing for a task on the cores where the fewest are."""
    shortages: list[tuple[Bytes, str]] = []
    for _, group, _ in tables.able[task.index]:
        memory = tables.machine.memories[group.memory]
        needed = least_bytes(tables, task, group)
        if memory.usable is None or needed <= memory.usable:
            return ""
        shortages.append(
            (
                needed - memory.usable,
                f"task {task.index} ({task.name}) needs {needed} B in {memory.name} while it runs "
                f"> {memory.usable} B that can be used: {needed - memory.usable} B short",
            )
        )
    return min(shortages)[1] if shortages else _no_core(task)


def _no_core(task: Task) -> str:
    return f"task {task.index} ({task.name}) can run on no kind of core that the machine has"


def _why_unreachable(tables: ProblemTables) -> str:
    """Name a slice that no chain of transfers brings to where it is needed."""
    options = TransferOptions(tables)
    problem = tables.problem

    def is_reachable(slice_: SliceIdx, targets: set[int]) -> bool:
        buffer = problem.buffers[tables.whole[slice_]]
        writer = tables.writer[buffer.index]
        sources = {buffer.starts_in} if writer is None else _memories_of(tables, writer)
        cycles = options.fastest[slice_]
        return any(cycles[a][b] < UNREACHABLE for a in sources if a is not None for b in targets)

    for task in problem.tasks:
        readable = {m for _, group, _ in tables.able[task.index] for m in group.readable}
        for read in task.reads:
            if not is_reachable(read, readable):
                return (
                    f"no engine and route bring slice {read} "
                    f"({problem.buffers[tables.whole[read]].name}) where task {task.index} "
                    f"({task.name}) can read it"
                )
    for buffer in problem.buffers:
        if buffer.ends_in is not None and not is_reachable(buffer.index, {buffer.ends_in}):
            memory = problem.machine.memories[buffer.ends_in].name
            return f"no engine and route bring buffer {buffer.index} ({buffer.name}) to {memory}"
    return ""


def _memories_of(tables: ProblemTables, task: TaskIdx) -> set[int | None]:
    return {group.memory for _, group, _ in tables.able[task]}
