"""The breadth- or depth-first order: which task runs next is a matter of what limits it."""

from collections import deque
from collections.abc import Collection, Sequence
from enum import StrEnum

from spmilp.policies.one_after_another import quickest_transfer
from spmilp.problem.problem import BufferKind
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Cycles, MemoryIdx, TaskIdx


class NodeClass(StrEnum):
    """What takes a task longest: its own cycles, the loads of its weights, or other transfers."""

    COMPUTE = "compute"
    ACTIVATION = "activation"
    WEIGHT = "weight"


def node_class(work: Cycles, weights: Cycles, activations: Cycles) -> NodeClass:
    """Return the class of a task from its cycles and those of its transfers."""
    if work >= max(weights, activations):
        return NodeClass.COMPUTE
    return NodeClass.WEIGHT if weights > activations else NodeClass.ACTIVATION


def task_classes(
    tables: ProblemTables, pools: Sequence[int], dram: MemoryIdx
) -> tuple[NodeClass, ...]:
    """Return the class of each task, with each operand loaded and each result stored once."""
    return tuple(
        _task_class(tables, task.index, pools[task.index], dram) for task in tables.problem.tasks
    )


def _task_class(tables: ProblemTables, task: TaskIdx, pool: int, dram: MemoryIdx) -> NodeClass:
    problem, memory = tables.problem, tables.pools[pool].memory
    moving: dict[bool, Cycles] = {True: 0, False: 0}
    for read in problem.tasks[task].reads:
        buffer = problem.buffers[problem.slices[read].buffer]
        is_weight = buffer.kind is BufferKind.WEIGHT
        moving[is_weight] += _cycles(tables, read, dram, memory)
    for written in problem.tasks[task].writes:
        moving[False] += _cycles(tables, written, memory, dram)
    return node_class(tables.cycles_on(task, pool), moving[True], moving[False])


def _cycles(tables: ProblemTables, slice_: int, source: MemoryIdx, to: MemoryIdx) -> Cycles:
    buffer = tables.problem.slices[slice_].buffer
    option = quickest_transfer(tables, slice_, buffer, source, to)
    return 0 if option is None else option.cycles


def breadth_or_depth_first(
    before: Sequence[Collection[TaskIdx]], classes: Sequence[NodeClass]
) -> tuple[TaskIdx, ...]:
    """Return the tasks in an order in which each follows its predecessors.

    A queue begins with the tasks that follow none. When a task is taken from its head, those that
    only waited for it join: at the head if activations limit them, so that what was just written is
    read soon; at the tail if not.
    """
    followers: list[list[TaskIdx]] = [[] for _ in before]
    waiting = [len(some) for some in before]
    for task, some in enumerate(before):
        for earlier in some:
            followers[earlier].append(task)
    queue = deque(task for task, count in enumerate(waiting) if count == 0)
    order = []
    while queue:
        task = queue.popleft()
        order.append(task)
        ready = []
        for later in followers[task]:
            waiting[later] -= 1
            if waiting[later] == 0:
                ready.append(later)
        near = [task for task in ready if classes[task] is NodeClass.ACTIVATION]
        queue.extendleft(reversed(near))
        queue.extend(task for task in ready if task not in near)
    return tuple(order)
