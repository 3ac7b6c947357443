"""Orders of tasks, and the points between them at which loads are prefetched. Compiled."""

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from spmilp.compiled import compiled
from spmilp.solvers.kernels.records import Ints, Rows
from spmilp.solvers.local_search.candidate import Candidate
from spmilp.solvers.local_search.problem_index import ProblemIndex


def in_order_of(index: ProblemIndex, keys: Ints | NDArray[np.float64]) -> Ints:
    """Return the tasks in topological order; among those that are ready, the least key first.

    Equal keys stand in the order of the tasks.
    """
    by_key = np.argsort(keys, kind="stable")
    before, followers = index.before, index.followers
    return _topological(by_key, np.diff(before.begin), followers)


@compiled
def _topological(by_key: Ints, waiting: Ints, followers: Rows) -> Ints:
    count = by_key.size
    rank = np.empty(count, np.int64)
    for position in range(count):
        rank[by_key[position]] = position
    ready = [rank[task] for task in range(count) if waiting[task] == 0]
    heapify(ready)
    order = np.empty(count, np.int64)
    for position in range(count):
        task = by_key[heappop(ready)]
        order[position] = task
        for entry in range(followers.begin[task], followers.begin[task + 1]):
            follower = followers.items[entry]
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heappush(ready, rank[follower])
    return order


def steps_of(index: ProblemIndex, candidate: Candidate) -> Ints:
    """Return the scheduler's steps: it places tasks, and sets bytes aside for prefetched reads.

    Bytes for a read are set aside right before the task of the same memory that comes as many tasks
    before its reader as its lead says (before the first one at the earliest); see
    :func:`~spmilp.solvers.kernels.serial.generate.generate_schedule` for the numbers.
    """
    if not candidate.leads.any():
        return candidate.order
    memory = index.memory_of_core[candidate.cores]
    return _interleaved(
        candidate.order, memory, index.memory_bytes.size, index.reads.begin, candidate.leads
    )


@compiled
def _interleaved(order: Ints, memory: Ints, memories: int, reads: Ints, leads: Ints) -> Ints:
    tasks, begin, at = _tasks_by_memory(order, memory, memories)
    count = order.size
    before_task = np.zeros(count + 1, np.int64)
    for task in order:
        for read in range(reads[task], reads[task + 1]):
            if leads[read] != 0:
                anchor = tasks[max(begin[memory[task]], at[task] - abs(leads[read]))]
                before_task[anchor + 1] += 1
    ends = np.cumsum(before_task)
    filled = ends[:-1].copy()
    waiting = np.empty(ends[-1], np.int64)
    for task in order:
        for read in range(reads[task], reads[task + 1]):
            if leads[read] != 0:
                anchor = tasks[max(begin[memory[task]], at[task] - abs(leads[read]))]
                at_once = leads.size if leads[read] < 0 else 0
                waiting[filled[anchor]] = count + at_once + read
                filled[anchor] += 1
    steps = np.empty(count + waiting.size, np.int64)
    step = 0
    for task in order:
        for entry in range(ends[task], ends[task + 1]):
            steps[step] = waiting[entry]
            step += 1
        steps[step] = task
        step += 1
    return steps


@compiled
def _tasks_by_memory(order: Ints, memory: Ints, memories: int) -> tuple[Ints, Ints, Ints]:
    """Return each memory's tasks in a row, where they begin, and where each task stands."""
    begin = np.zeros(memories + 1, np.int64)
    for task in order:
        begin[memory[task] + 1] += 1
    begin = np.cumsum(begin)
    filled = begin[:-1].copy()
    tasks = np.empty(order.size, np.int64)
    at = np.empty(order.size, np.int64)
    for task in order:
        place = filled[memory[task]]
        tasks[place] = task
        at[task] = place
        filled[memory[task]] += 1
    return tasks, begin, at


def leads_by_share(index: ProblemIndex, order: Ints, cores: Ints, share: float) -> Ints:
    """Return leads by which loads are prefetched as early as they fill a share of each memory.

    Bytes are set aside for what is there at cycle 0, at its first use in a memory, in the order of
    use, as long as what waits takes at most ``share`` of the memory.
    """
    memory = index.memory_of_core[cores]
    capacity = (index.memory_bytes * share).astype(np.int64)
    seen = np.full(index.buffer_of.size, -1, np.int64)
    return _leads(order, memory, capacity, index.reads, index.from_outside, seen)


@compiled
def _leads(
    order: Ints, memory: Ints, capacity: Ints, reads: Rows, outside: Ints, seen: Ints
) -> Ints:
    tasks, begin, _ = _tasks_by_memory(order, memory, capacity.size)
    leads = np.zeros(outside.size, np.int64)
    wanted = np.zeros(order.size, np.int64)
    for place in range(capacity.size):
        for position in range(begin[place], begin[place + 1]):
            task = tasks[position]
            for read in range(reads.begin[task], reads.begin[task + 1]):
                if outside[read] > 0 and seen[reads.items[read]] != place:
                    seen[reads.items[read]] = place
                    wanted[position] += outside[read]
                    leads[read] = 1
        front, waiting = begin[place], np.int64(0)
        for position in range(begin[place], begin[place + 1]):
            if front < position:
                front = position
            while front < begin[place + 1] and waiting + wanted[front] <= capacity[place]:
                task = tasks[front]
                for read in range(reads.begin[task], reads.begin[task + 1]):
                    leads[read] *= front - position
                waiting += wanted[front]
                front += 1
            if front > position:
                waiting -= wanted[position]
            else:
                task = tasks[position]
                for read in range(reads.begin[task], reads.begin[task + 1]):
                    leads[read] = 0
                front = position + 1
    return leads
