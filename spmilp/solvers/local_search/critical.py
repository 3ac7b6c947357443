"""Which tasks hold a schedule up: those on a chain of waits back from its end. Compiled.

Each activity (a task, or behind all tasks a transfer) starts when something has ended that it
waited for: what brings its data, what was on its core or engine before, what held its bytes. Of the
activities that end in that very cycle the one is followed that most probably is the cause.
"""

import numpy as np

from spmilp.compiled import compiled
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.kernels.schedule_state import ScheduleState
from spmilp.solvers.local_search.problem_index import ProblemIndex


def critical_tasks(index: ProblemIndex, state: ScheduleState) -> Ints:
    """Return the tasks on a critical chain and those that read what it brings, latest first."""
    tasks = state.tasks
    moves, residencies = state.made_transfers(), state.made_residencies()
    count = len(tasks)
    starts = np.concatenate([tasks["start"], moves["start"]])
    ends = np.concatenate([tasks["end"], moves["end"]])
    filler = np.where(
        residencies["filled_by_task"] >= 0,
        residencies["filled_by_task"],
        np.where(
            residencies["filled_by_transfer"] >= 0, residencies["filled_by_transfer"] + count, -1
        ),
    )
    memory = np.concatenate(
        [index.memory_of_core[tasks["core"]], residencies["memory"][moves["destination"]]]
    )
    # What runs one at a time: cores, then engines.
    server = np.concatenate([tasks["core"], moves["engine"] + len(state.cores)])
    served_by = state.reads["served_by"]
    reader = np.full(count + len(moves), -1, np.int64)
    reader[:count] = np.arange(count)
    brought = filler[served_by]
    by_transfer = brought >= count
    reader[brought[by_transfer]] = state.reads["reader"][by_transfer]
    chain = _chain(
        starts,
        ends,
        np.argsort(ends, kind="stable"),
        memory,
        server,
        filler[moves["source"]],
        index.reads.begins,
        brought,
    )
    found = reader[chain]
    kept = found[found >= 0]
    _, first = np.unique(kept, return_index=True)
    latest_first: Ints = kept[np.sort(first)]
    return latest_first


@compiled
def _chain(
    starts: Ints,
    ends: Ints,
    by_end: Ints,
    memory: Ints,
    server: Ints,
    source: Ints,
    reads: Ints,
    brought: Ints,
) -> Ints:
    """Return the activities of the chain, the last first."""
    count = reads.size - 1
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
                for read in range(reads[one], reads[one + 1]):
                    if brought[read] == other:
                        rank = 4
            elif source[one - count] == other:
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
