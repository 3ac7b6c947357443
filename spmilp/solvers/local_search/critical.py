"""The critical tasks of a schedule: those on a chain of waits back from its end. Compiled.

Each activity (a task, or behind all tasks a transfer) starts when something has ended that it
waited for: what brings its data, what was on its core or engine before, what held its bytes. Of the
activities that end in that very cycle the one is followed that most probably is the cause.
"""

from typing import NamedTuple

import numpy as np

from spmilp.compiled import compiled
from spmilp.solvers.kernels.records import NONE, Ints, Rows
from spmilp.solvers.kernels.schedule_state import ScheduleState
from spmilp.solvers.local_search.problem_index import ProblemIndex


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
