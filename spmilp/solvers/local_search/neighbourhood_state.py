"""The schedule that moves start from: its critical tasks, and what moves draw at random.

Critical tasks are those on a chain of waits back from the schedule's end (compiled). Each activity
(a task, or behind all tasks a transfer) starts when something has ended that it waited for: what
brings its data, what was on its core or engine before, what held its bytes. Of the activities that
end in that very cycle the one is followed that most probably is the cause.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from spmilp.compiled import compiled
from spmilp.solvers.kernels.records import NONE, Ints, Rows, owners_of
from spmilp.solvers.kernels.schedule_state import ScheduleState
from spmilp.solvers.local_search.candidate import Candidate, Evaluated
from spmilp.solvers.local_search.problem_index import ProblemIndex

T = TypeVar("T")

SHARE_OF_CRITICAL = 0.6
"""How often a move looks at a critical task rather than at any."""


class Activities(NamedTuple):
    """The tasks and transfers of a schedule, tasks first.

    Parameters
    ----------
    starts, ends
        Of each activity.
    by_end
        All of them, the first that ends first.
    memory
        Where each runs, or where each transfer goes.
    server
        The core or engine of each.
    filler
        The activity that fills what each transfer copies, or -1.
    """

    starts: Ints
    ends: Ints
    by_end: Ints
    memory: Ints
    server: Ints
    filler: Ints


def critical_tasks(index: ProblemIndex, state: ScheduleState) -> Ints:
    """Return the tasks on a critical chain and those that read what it brings, latest first."""
    tasks, moves, residencies = state.tasks, state.made_transfers(), state.made_residencies()
    count = len(tasks)
    ends = np.concatenate([tasks["end"], moves["end"]])
    task, move = residencies["filled_by_task"], residencies["filled_by_transfer"]
    filler = np.where(task >= 0, task, np.where(move >= 0, move + count, NONE))
    activities = Activities(
        starts=np.concatenate([tasks["start"], moves["start"]]),
        ends=ends,
        by_end=np.argsort(ends, kind="stable"),
        memory=np.concatenate(
            [index.memory_of_core[tasks["core"]], residencies["memory"][moves["destination"]]]
        ),
        server=np.concatenate([tasks["core"], moves["engine"] + len(state.cores)]),
        filler=filler[moves["source"]],
    )
    brought = Rows(index.reads.begin, filler[state.reads["served_by"]])
    by_transfer = brought.items >= count
    reader = np.full(ends.size, NONE, np.int64)
    reader[:count] = np.arange(count)
    reader[brought.items[by_transfer]] = state.reads["reader"][by_transfer]
    found = reader[_chain(activities, brought)]
    kept = found[found >= 0]
    _, first = np.unique(kept, return_index=True)
    latest_first: Ints = kept[np.sort(first)]
    return latest_first


@compiled
def _chain(activities: Activities, brought: Rows) -> Ints:
    """Return the activities of the chain, the last first.

    Parameters
    ----------
    brought
        The activities that fill what each task reads.
    """
    starts, ends, by_end = activities.starts, activities.ends, activities.by_end
    memory, server = activities.memory, activities.server
    count = brought.begin.size - 1
    sorted_ends = ends[by_end]
    chain = [by_end[-1]]
    one = chain[0]
    while starts[one] > 0:
        last = np.searchsorted(sorted_ends, starts[one], side="right") - 1
        if last < 0:
            break
        best, best_rank = by_end[last], -1
        entry = last
        while entry >= 0 and sorted_ends[entry] == starts[one]:
            other = by_end[entry]
            entry -= 1
            rank = 0
            if one < count:
                for read in range(brought.begin[one], brought.begin[one + 1]):
                    if brought.items[read] == other:
                        rank = 4
            elif activities.filler[one - count] == other:
                rank = 4
            if rank == 0 and server[other] == server[one]:
                rank = 3
            if rank == 0 and memory[other] == memory[one]:
                rank = 2
            if rank == 0 and (other >= count) == (one >= count):
                rank = 1
            if rank > best_rank:
                best, best_rank = other, rank
        if starts[best] >= starts[one]:
            break
        one = best
        chain.append(one)
    return np.array(chain)


@dataclass(slots=True, kw_only=True, eq=False)
class NeighbourhoodState:
    """The schedule that moves start from.

    Parameters
    ----------
    others
        Candidates from which a part may be taken over.
    position
        Of each task in the order.
    critical
        Tasks that hold the schedule up, the latest first.
    ready
        For each task the cycle at which all that it follows has ended.
    idle
        For each task the cycles that its core is idle before it.
    """

    index: ProblemIndex
    evaluated: Evaluated
    others: tuple[Candidate, ...]
    rng: np.random.Generator
    position: Ints = field(init=False)
    critical: Ints = field(init=False)
    ready: Ints = field(init=False)
    idle: Ints = field(init=False)

    def __post_init__(self) -> None:
        order = self.evaluated.candidate.order
        self.position = np.empty(order.size, np.int64)
        self.position[order] = np.arange(order.size)
        self.critical = critical_tasks(self.index, self.evaluated.state)
        tasks = self.evaluated.state.tasks
        before = self.index.before
        self.ready = np.zeros(order.size, np.int64)
        np.maximum.at(self.ready, owners_of(before), tasks["end"][before.items])
        by_core = np.lexsort((tasks["start"], tasks["core"]))
        ends = np.where(
            np.diff(tasks["core"][by_core], prepend=-1) == 0, np.roll(tasks["end"][by_core], 1), 0
        )
        self.idle = np.empty(order.size, np.int64)
        self.idle[by_core] = tasks["start"][by_core] - ends

    @property
    def candidate(self) -> Candidate:
        """What the schedule was made from."""
        return self.evaluated.candidate

    def a_task(self) -> int:
        """Draw a task, most often a critical one."""
        if self.critical.size > 0 and self.rng.random() < SHARE_OF_CRITICAL:
            return int(self.critical[self.rng.integers(self.critical.size)])
        return int(self.rng.integers(self.position.size))

    def an_operator(self) -> Ints:
        """Draw an operator; return its tasks."""
        return self.index.operators.row(int(self.index.operator_of[self.a_task()]))

    def one_of(self, items: Ints) -> int:
        """Draw one of several numbers."""
        return int(items[self.rng.integers(items.size)])

    def pick(self, items: Sequence[T]) -> T:
        """Draw one of several things."""
        return items[int(self.rng.integers(len(items)))]

    def unit_of(self, task: int) -> Ints:
        """Return the tasks that belong on one core with a task."""
        return self.index.units.row(int(self.index.unit_of[task]))

    def can_run(self, tasks: Ints, cores: Ints) -> bool:
        """Say whether each of some tasks can run on its core in ``cores``."""
        return all(cores[task] in self.index.able.row(task) for task in tasks.tolist())

    def a_distance(self, scales: tuple[float, ...]) -> float:
        """Draw by how many tasks to move something; ``scales`` are shares of all tasks."""
        scale = max(2.0, self.position.size * self.pick(scales))
        return float(self.rng.normal() * scale)
