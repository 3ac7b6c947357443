"""Moves that change the cores of tasks. What belongs together, a unit, moves together."""

from dataclasses import replace

import numpy as np

from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.local_search.candidate import Candidate
from spmilp.solvers.local_search.neighbourhood_state import NeighbourhoodState


def move_a_task(now: NeighbourhoodState) -> Candidate | None:
    """Run a task on any other core."""
    task = now.a_task()
    return _with_core(now, task, now.one_of(now.index.able.row(task)))


def move_to_the_data(now: NeighbourhoodState) -> Candidate | None:
    """Run a task where what it reads is written or read by others."""
    index, task = now.index, now.a_task()
    reads = index.reads.row(task)
    if reads.size == 0:
        return None
    buffer = int(index.buffer_of[now.one_of(reads)])
    users = np.append(index.readers.row(buffer), index.writers[buffer])
    users = users[(users >= 0) & (users != task)]
    if users.size == 0:
        return None
    return _with_core(now, task, int(now.candidate.cores[now.one_of(users)]))


def move_to_an_idle_core(now: NeighbourhoodState) -> Candidate | None:
    """Run a task on the core that computes least while it is in flight."""
    tasks, task = now.evaluated.state.tasks, now.a_task()
    able = now.index.able.row(task)
    around = 2 * int(tasks["end"][task] - tasks["start"][task])
    first, last = tasks["start"][task] - around, tasks["end"][task] + around
    overlap = np.minimum(tasks["end"], last) - np.maximum(tasks["start"], first)
    busy = np.bincount(tasks["core"], np.maximum(overlap, 0), len(now.evaluated.state.cores))
    return _with_core(now, task, int(able[np.argmin(busy[able])]))


def swap_two_tasks(now: NeighbourhoodState) -> Candidate | None:
    """Let two tasks of an operator change places."""
    tasks = now.an_operator()
    one, other = now.one_of(tasks), now.one_of(tasks)
    cores = now.candidate.cores
    if cores[one] == cores[other]:
        return None
    if cores[other] not in now.index.able.row(one) or cores[one] not in now.index.able.row(other):
        return None
    changed = cores.copy()
    changed[now.unit_of(one)] = cores[other]
    changed[now.unit_of(other)] = cores[one]
    return replace(now.candidate, cores=changed)


def permute_cores(now: NeighbourhoodState) -> Candidate | None:
    """Let the cores of an operator change places, in a round or at random."""
    tasks = now.an_operator()
    cores = now.candidate.cores
    used = np.unique(cores[tasks])
    if used.size < 2:
        return None
    if now.rng.random() < 0.5:
        onto = np.roll(used, int(now.rng.integers(1, used.size)))
    else:
        onto = now.rng.permutation(used)
    changed = cores.copy()
    changed[tasks] = onto[np.searchsorted(used, cores[tasks])]
    return _if_able(now, tasks, changed)


def assign_as_another(now: NeighbourhoodState) -> Candidate | None:
    """Run an operator, and perhaps those next to it, where another candidate does."""
    index = now.index
    other = now.pick(now.others)
    first = int(index.operator_of[now.a_task()])
    last = min(index.operators.begin.size - 1, first + int(now.rng.integers(1, 4)))
    tasks = index.operators.items[index.operators.begin[first] : index.operators.begin[last]]
    changed = now.candidate.cores.copy()
    changed[tasks] = other.cores[tasks]
    return _if_able(now, tasks, changed)


def _with_core(now: NeighbourhoodState, task: int, core: int) -> Candidate | None:
    unit = now.unit_of(task)
    changed = now.candidate.cores.copy()
    changed[unit] = core
    return _if_able(now, unit, changed)


def _if_able(now: NeighbourhoodState, tasks: Ints, cores: Ints) -> Candidate | None:
    """Return the candidate with other cores, if they differ and can run the tasks."""
    before = now.candidate.cores
    moved = tasks[cores[tasks] != before[tasks]]
    if moved.size == 0 or not now.can_run(moved, cores):
        return None
    return replace(now.candidate, cores=cores)
