"""On which cores tasks run. Each rule returns a core for each task, or -1 to leave it open."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

import numpy as np

from spmilp.problem.problem import Problem, Task
from spmilp.solvers.list_scheduler.records import NONE, Ints
from spmilp.units import CoreIdx, SliceIdx


@dataclass(frozen=True, slots=True)
class Unit:
    """Tasks that belong on one core: the partial sums of one tile, or a single task."""

    tasks: tuple[Task, ...]
    cycles: tuple[int | None, ...]


def contiguous_blocks(problem: Problem) -> Ints:
    """Give each core one run of neighbouring tiles of each operator.

    With tiles in row-major order these are spatial strips where an operator is split over rows, and
    ranges of output channels where it is split over channels; neighbours on the chip hold
    neighbouring tiles.
    """
    cores = _along_the_chip(problem)
    chosen = np.full(len(problem.tasks), NONE, np.int64)
    for units in _operators(problem):
        for unit, core in zip(units, _shares(problem, units, cores), strict=True):
            _set(chosen, unit, core)
    return chosen


def rotating_blocks(problem: Problem) -> Ints:
    """Like contiguous blocks, but each operator begins at the core after the last one's."""
    cores = _along_the_chip(problem)
    chosen = np.full(len(problem.tasks), NONE, np.int64)
    offset = 0
    for units in _operators(problem):
        turned = cores[offset:] + cores[:offset]
        for unit, core in zip(units, _shares(problem, units, turned), strict=True):
            _set(chosen, unit, core)
        offset = (offset + len(units)) % len(cores)
    return chosen


def dealt_out(problem: Problem) -> Ints:
    """Give each operator's tiles to the cores in turn, like cards."""
    cores = _along_the_chip(problem)
    chosen = np.full(len(problem.tasks), NONE, np.int64)
    for units in _operators(problem):
        able = _able(problem, units[0], cores)
        for position, unit in enumerate(units):
            _set(chosen, unit, able[position % len(able)])
    return chosen


def near_the_data(problem: Problem) -> Ints:
    """Give each tile to the core that reads or writes most of its bytes already.

    No core takes more of an operator than an equal share (rounded up to whole tiles), so that the
    work stays balanced.
    """
    cores = _along_the_chip(problem)
    chosen = np.full(len(problem.tasks), NONE, np.int64)
    holders: list[set[CoreIdx]] = [set() for _ in problem.slices]
    for units in _operators(problem):
        able = _able(problem, units[0], cores)
        defaults = _shares(problem, units, cores)
        most = -(-len(units) // len(able))
        taken = dict.fromkeys(able, 0)
        for unit, default in zip(units, defaults, strict=True):
            near = _bytes_at_cores(problem, unit, holders)
            open_cores = [core for core in able if taken[core] < most]
            core = max(open_cores, key=lambda c: (near.get(c, 0), c == default, -taken[c]))
            taken[core] += 1
            _set(chosen, unit, core)
            _hold(unit, core, holders)
    return chosen


def wherever_it_ends_first(problem: Problem) -> Ints:
    """Leave every core open: the scheduler takes the one on which the task would end first."""
    return np.full(len(problem.tasks), NONE, np.int64)


def _operators(problem: Problem) -> Iterator[list[Unit]]:
    """Yield the units of each operator, in order; tasks without origin are operators alone."""

    def operator(task: Task) -> tuple[str, int]:
        return (task.tile.of, NONE) if task.tile else ("", task.index)

    for _, tasks in groupby(problem.tasks, operator):
        yield [
            _unit(problem, tuple(parts))
            for _, parts in groupby(tasks, lambda task: task.tile.box if task.tile else task.index)
        ]


def _unit(problem: Problem, tasks: tuple[Task, ...]) -> Unit:
    cycles: list[int | None] = []
    for kind in problem.machine.kinds:
        each = [task.cycles[kind.index] for task in tasks]
        known = [some for some in each if some is not None]
        cycles.append(sum(known) if len(known) == len(each) else None)
    if all(some is None for some in cycles):
        # No kind runs all of its tasks: the core stays open.
        return Unit((), tuple(cycles))
    return Unit(tasks, tuple(cycles))


def _shares(problem: Problem, units: Sequence[Unit], cores: Sequence[CoreIdx]) -> list[CoreIdx]:
    """Cut the units into runs so that each core's run takes about as long as the others'."""
    able = _able(problem, units[0], cores)
    work = [min((c for c in unit.cycles if c is not None), default=1) for unit in units]
    speeds = [_speed(problem, units[0], core) for core in able]
    ends = list(accumulate(speeds))
    shares = []
    done = 0
    for amount in work:
        middle = (done + amount / 2) / sum(work) * ends[-1]
        done += amount
        shares.append(
            able[next(i for i, end in enumerate(ends) if middle < end or end == ends[-1])]
        )
    return shares


def _able(problem: Problem, unit: Unit, cores: Sequence[CoreIdx]) -> list[CoreIdx]:
    """Return the cores that can run a unit; all of them for a unit that stays open."""
    kind_of = [core.kind for core in problem.machine.cores]
    return [core for core in cores if unit.cycles[kind_of[core]] is not None] or list(cores)


def _speed(problem: Problem, unit: Unit, core: CoreIdx) -> float:
    cycles = unit.cycles[problem.machine.cores[core].kind]
    return 1.0 if cycles is None else 1.0 / cycles


def _along_the_chip(problem: Problem) -> list[CoreIdx]:
    """Return the cores row by row, every other row backwards, so that neighbours are near."""

    def place(core: CoreIdx) -> tuple[int, int, int]:
        x, y = problem.machine.cores[core].position or (core, 0)
        return (y, x if y % 2 == 0 else -x, core)

    return sorted(range(len(problem.machine.cores)), key=place)


def _set(chosen: Ints, unit: Unit, core: CoreIdx) -> None:
    for task in unit.tasks:
        chosen[task.index] = core


def _bytes_at_cores(
    problem: Problem, unit: Unit, holders: Sequence[set[CoreIdx]]
) -> dict[CoreIdx, int]:
    near: dict[CoreIdx, int] = {}
    for task in unit.tasks:
        for read in task.reads:
            slice_ = problem.slices[read]
            for core in sorted(holders[read] | holders[slice_.buffer]):
                near[core] = near.get(core, 0) + slice_.bytes
    return near


def _hold(unit: Unit, core: CoreIdx, holders: list[set[CoreIdx]]) -> None:
    """Remember that a core has what a unit reads and writes."""
    held: set[SliceIdx] = set()
    for task in unit.tasks:
        held.update(task.reads, task.writes)
    for one in held:
        holders[one].add(core)


ASSIGNMENTS: dict[str, Callable[[Problem], Ints]] = {
    "blocks": contiguous_blocks,
    "near": near_the_data,
    "rotating": rotating_blocks,
    "dealt": dealt_out,
    "earliest": wherever_it_ends_first,
}
