"""Moves that change the order of tasks."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spmilp.solvers.local_search.candidate import Candidate
from spmilp.solvers.local_search.neighbourhood_state import NeighbourhoodState
from spmilp.solvers.local_search.sequence import in_order_of

NEAR_AND_FAR = (0.003, 0.03, 0.2)
BLENDS = (0.0, 0.5, 1.0)
FEW = 8
STRETCHES = (0.02, 0.05, 0.15)


def shift_a_task(now: NeighbourhoodState) -> Candidate | None:
    """Place a task earlier or later."""
    keys = now.position.astype(np.float64)
    keys[now.a_task()] += now.a_distance(NEAR_AND_FAR)
    return _reordered(now, keys)


def shift_an_operator(now: NeighbourhoodState) -> Candidate | None:
    """Place all tasks of an operator earlier or later."""
    keys = now.position.astype(np.float64)
    keys[now.an_operator()] += now.a_distance(NEAR_AND_FAR)
    return _reordered(now, keys)


def advance_a_task(now: NeighbourhoodState) -> Candidate | None:
    """Place a task earlier, and with it all that it waits for and that would come after."""
    task = now.a_task()
    target = float(now.position[task]) - abs(now.a_distance(NEAR_AND_FAR))
    pulled = {task}
    waiting = [task]
    while waiting:
        for earlier in now.index.before.row(waiting.pop()).tolist():
            if now.position[earlier] > target and earlier not in pulled:
                pulled.add(earlier)
                waiting.append(earlier)
    keys = now.position.astype(np.float64)
    moved = np.array(sorted(pulled))
    keys[moved] = target + keys[moved] / keys.size
    return _reordered(now, keys)


def sort_a_stretch(now: NeighbourhoodState) -> Candidate | None:
    """Place the tasks of a stretch as another candidate does, which may be by another rule."""
    count = now.position.size
    length = max(4, int(count * now.pick(STRETCHES)))
    middle = int(now.position[now.a_task()])
    first = max(0, middle - length // 2)
    stretch = now.candidate.order[first : first + length]
    other = now.pick(now.others)
    rank = np.empty(count, np.int64)
    rank[other.order] = np.arange(count)
    keys = now.position.astype(np.float64)
    keys[stretch[np.argsort(rank[stretch], kind="stable")]] = first + np.arange(stretch.size)
    return _reordered(now, keys)


def sort_by_time(now: NeighbourhoodState) -> Candidate | None:
    """Place the tasks in the order in which they start, or could start but for their core."""
    starts = now.evaluated.state.tasks["start"].astype(np.float64)
    part = now.pick(BLENDS)
    keys = part * now.ready + (1 - part) * starts
    noise = now.rng.normal(size=starts.size) * now.rng.choice([0.0, 0.002, 0.01])
    return _reordered(now, keys + noise * starts.max(initial=0.0))


def fill_a_gap(now: NeighbourhoodState) -> Candidate | None:
    """Let a core that waits for one task run another one first, one that is ready by then."""
    tasks = now.evaluated.state.tasks
    total = int(now.idle.sum())
    if total == 0:
        return None
    waiting = int(np.searchsorted(np.cumsum(now.idle), now.rng.integers(total), side="right"))
    core = int(tasks["core"][waiting])
    since = int(tasks["start"][waiting] - now.idle[waiting])
    late = np.flatnonzero((now.ready <= since) & (tasks["start"] > since))
    late = late[late != waiting]
    if now.rng.random() < 0.5:
        late = late[tasks["core"][late] == core]
    if late.size == 0:
        return None
    soonest = late[np.argsort(tasks["start"][late], kind="stable")]
    task = int(soonest[int(now.rng.integers(min(FEW, soonest.size)))])
    keys = now.position.astype(np.float64)
    keys[task] = min(keys[task], keys[waiting] - 0.5)
    unit = now.unit_of(task)
    cores = now.candidate.cores.copy()
    cores[unit] = core
    if not now.can_run(unit, cores):
        return None
    return replace(now.candidate, order=in_order_of(now.index, keys), cores=cores)


def run_as_another(now: NeighbourhoodState) -> Candidate | None:
    """Run an operator where another candidate does, and its tasks in the other's order."""
    other = now.pick(now.others)
    tasks = now.an_operator()
    cores = now.candidate.cores.copy()
    cores[tasks] = other.cores[tasks]
    rank = np.empty(now.position.size, np.int64)
    rank[other.order] = np.arange(rank.size)
    keys = now.position.astype(np.float64)
    keys[tasks[np.argsort(rank[tasks], kind="stable")]] = np.sort(keys[tasks])
    order = in_order_of(now.index, keys)
    if (order == now.candidate.order).all() and (cores == now.candidate.cores).all():
        return None
    return replace(now.candidate, order=order, cores=cores)


def _reordered(now: NeighbourhoodState, keys: NDArray[np.float64]) -> Candidate | None:
    order = in_order_of(now.index, keys)
    if (order == now.candidate.order).all():
        return None
    return replace(now.candidate, order=order)
