"""Moves to other cores, orders, leads and weights, and all of them by name.

What belongs together, a unit, changes cores together.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spmilp.solvers.kernels.records import Ints, owners_of
from spmilp.solvers.kernels.schedule_state import Weights
from spmilp.solvers.local_search.candidate import Candidate, in_order_of, leads_by_share
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


WHOLE = 0.4
"""How often all loads are set anew."""
LEADS = (0, 1, 2, 3, 5, 8, 13, 21, -1, -2, -3, -5, -8, -13, -21)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def prefetch_a_task(now: NeighbourhoodState) -> Candidate | None:
    """Prefetch what a task reads earlier or later."""
    return _with_leads(now, np.array([now.a_task()]))


def prefetch_an_operator(now: NeighbourhoodState) -> Candidate | None:
    """Prefetch what all tasks of an operator read earlier or later."""
    return _with_leads(now, now.an_operator())


def prefetch_by_share(now: NeighbourhoodState) -> Candidate | None:
    """Prefetch anew what fills a share of each memory, for all tasks or a stretch of them."""
    share = now.pick(SHARES)
    sign = 1 if now.rng.random() < 0.5 else -1
    found = sign * leads_by_share(now.index, now.candidate.order, now.candidate.cores, share)
    count = now.position.size
    first, last = sorted(now.rng.integers(0, count + 1, 2).tolist())
    if now.rng.random() < WHOLE:
        first, last = 0, count
    reader = owners_of(now.index.reads)
    inside = (now.position[reader] >= first) & (now.position[reader] < last)
    return _changed(now, np.where(inside, found, now.candidate.leads))


def change_a_weight(now: NeighbourhoodState) -> Candidate | None:
    """Multiply one of the scheduler's weights."""
    weights = now.candidate.weights
    name = now.pick(Weights._fields)
    factor = float(np.exp(now.rng.normal() * 0.7))
    return replace(
        now.candidate, weights=weights._replace(**{name: getattr(weights, name) * factor})
    )


def _with_leads(now: NeighbourhoodState, tasks: Ints) -> Candidate | None:
    """Give the reads of tasks one lead: those of what is there at cycle 0, or all."""
    begin = now.index.reads.begin
    entries = np.concatenate([np.arange(begin[task], begin[task + 1]) for task in tasks])
    if now.rng.random() < 0.8:
        entries = entries[now.index.from_outside[entries] > 0]
    changed = now.candidate.leads.copy()
    changed[entries] = now.pick(LEADS)
    return _changed(now, changed)


def _changed(now: NeighbourhoodState, leads: Ints) -> Candidate | None:
    if (leads == now.candidate.leads).all():
        return None
    return replace(now.candidate, leads=leads)


Move = Callable[[NeighbourhoodState], Candidate | None]

MOVES: dict[str, Move] = {
    "shift task": shift_a_task,
    "shift operator": shift_an_operator,
    "advance task": advance_a_task,
    "sort stretch": sort_a_stretch,
    "sort by time": sort_by_time,
    "fill gap": fill_a_gap,
    "move task": move_a_task,
    "move to data": move_to_the_data,
    "move to idle": move_to_an_idle_core,
    "swap tasks": swap_two_tasks,
    "permute cores": permute_cores,
    "assign as another": assign_as_another,
    "run as another": run_as_another,
    "prefetch task": prefetch_a_task,
    "prefetch operator": prefetch_an_operator,
    "prefetch by share": prefetch_by_share,
    "change weight": change_a_weight,
}
