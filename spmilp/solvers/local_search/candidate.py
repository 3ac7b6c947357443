"""Points of the search space: decisions, the scheduler's steps made from them, their schedule.

The steps are an order of tasks with the points at which loads are prefetched. Compiled.
"""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from spmilp.compiled import compiled, part
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NEVER, Ints, Rows
from spmilp.solvers.kernels.schedule_state import ScheduleState, Stop, Weights
from spmilp.solvers.kernels.serial.extract import Scorer
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.local_search.problem_index import ProblemIndex


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """Decisions from which the list scheduler makes one schedule. The arrays are never changed.

    Parameters
    ----------
    order
        Every task once, each after all that it follows.
    cores
        For each task its core.
    leads
        For each read of each task, how many tasks of the same memory before its reader bytes are
        set aside for it; 0 for none. Where it is negative, the slice is loaded at once, so many
        tasks before.
    weights
        Of the scheduler.
    """

    order: Ints
    cores: Ints
    leads: Ints
    weights: Weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """A candidate, the schedule made from it, and its value.

    Parameters
    ----------
    score
        The quantities in the problem's order; less is better.
    source
        What made the candidate, in words for people.
    exact
        Whether the candidate leads to this very schedule. If not, the scheduler chose cores on its
        way, and with these cores from the start it would have decided otherwise here and there.
    """

    candidate: Candidate
    score: tuple[int, ...]
    state: ScheduleState
    source: str
    exact: bool = True


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


@part
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


class Evaluator:
    """Lets the list scheduler make schedules of candidates, for any number of threads."""

    def __init__(self, problem: Problem, runner: Runner, index: ProblemIndex) -> None:
        self._problem = problem
        self._score = Scorer(problem)
        self._index = index
        self._runner = runner

    def evaluate(
        self, candidate: Candidate, source: str, limit: tuple[int, ...] | None = None
    ) -> Evaluated | None:
        """Return what a candidate leads to; ``None`` without schedule or when it exceeds a limit.

        Parameters
        ----------
        limit
            A score that is still good enough.
        """
        by_makespan = self._problem.objective.first is Quantity.MAKESPAN
        latest = limit[0] if limit is not None and by_makespan else NEVER
        steps = steps_of(self._index, candidate)
        stop, state = self._runner.run(steps, candidate.cores, candidate.weights, latest)
        if stop is not Stop.DONE or (by_makespan and state.makespan() > latest):
            return None
        found = self._score(state)
        if limit is not None and found > limit:
            return None
        return Evaluated(candidate=candidate, score=found, state=state, source=source)

    def fixed(self, order: np.ndarray, state: ScheduleState) -> Candidate:
        """Return the candidate behind a schedule whose cores the scheduler may have chosen."""
        return Candidate(
            order=order,
            cores=state.tasks["core"].copy(),
            leads=np.zeros(self._index.reads.items.size, np.int64),
            weights=state.weights,
        )
