"""Cores of tasks: each rule returns a core for each task, or -1 to leave it open.

The rule ``locality`` takes the core that holds most of what a tile touches; that part is compiled.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, groupby
from typing import NamedTuple

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.kernels.records import NONE, ZERO, Ints, Rows, numbers, rows_of
from spmilp.solvers.list_scheduler.orders import banded_chains, banded_operators, operator_of
from spmilp.units import CoreIdx, TaskIdx


class Holders(NamedTuple):
    """The cores that touched each slice, a linked list for each.

    ``first`` entry of each slice; the ``core`` of an entry and the ``following`` entry; ``used``
    counts the entries.
    """

    first: Ints
    core: Ints
    following: Ints
    used: Ints


class Tiles(NamedTuple):
    """The tiles of one operator, in order: the slices that each reads, those that it touches, and
    the ``default`` core on which it runs where no other is nearer."""

    reads: Rows
    touches: Rows
    default: Ints


class Cores(NamedTuple):
    """The cores while the tiles of one operator are given out.

    ``position`` in the order of preference, or -1 if it cannot run the operator; tiles ``taken``;
    bytes of the tile at hand that are ``near``; the last read for which it was ``counted``.
    """

    position: Ints
    taken: Ints
    near: Ints
    counted: Ints


def no_holders(slices: int, entries: int) -> Holders:
    """Return empty lists that can take so many entries in all."""
    core, following = np.zeros((2, entries), np.int64)
    return Holders(np.full(slices, NONE, np.int64), core, following, np.zeros(1, np.int64))


def idle_cores(preferred: Sequence[CoreIdx], cores: int) -> Cores:
    """Return cores without tiles, of which the preferred ones can run the operator."""
    position = np.full(cores, NONE, np.int64)
    position[preferred] = np.arange(len(preferred))
    taken, near, counted = np.zeros((3, cores), np.int64)
    return Cores(position, taken, near, counted + NONE)


@kernel
def nearest_cores(
    tiles: Tiles,
    holders: Holders,
    cores: Cores,
    buffers: Ints,
    sizes: Ints,
    share: int,
    found: Ints,
) -> None:
    """Give each tile the core that touched most of the bytes it reads and can take one more tile.

    Among equals it is the tile's default core, then the one with fewest tiles, then the first.

    Parameters
    ----------
    buffers, sizes
        Of each slice; sizes in bytes.
    share
        Tiles that one core takes at most.
    found
        Takes the core of each tile.
    """
    for tile in range(found.size):
        cores.near[:] = ZERO
        for entry in range(tiles.reads.begin[tile], tiles.reads.begin[tile + 1]):
            read = tiles.reads.items[entry]
            _count(holders, cores, read, sizes[read], entry)
            _count(holders, cores, buffers[read], sizes[read], entry)
        best = _best_core(cores, tiles.default[tile], share)
        found[tile] = best
        cores.taken[best] += 1
        for entry in range(tiles.touches.begin[tile], tiles.touches.begin[tile + 1]):
            _add(holders, tiles.touches.items[entry], best)


@part
def _count(holders: Holders, cores: Cores, slice_: int, size: int, now: int) -> None:
    """Count the bytes of a slice for each core that touched it and was not counted ``now``."""
    entry = holders.first[slice_]
    while entry != NONE:
        core = holders.core[entry]
        if cores.counted[core] != now:
            cores.counted[core] = now
            cores.near[core] += size
        entry = holders.following[entry]


@part
def _best_core(cores: Cores, default: int, share: int) -> int:
    best = NONE
    for core in range(cores.position.size):
        if cores.position[core] == NONE or cores.taken[core] >= share:
            continue
        if best == NONE or _is_better(cores, core, best, default):
            best = core
    return best


@part
def _is_better(cores: Cores, core: int, best: int, default: int) -> bool:
    if cores.near[core] != cores.near[best]:
        return cores.near[core] > cores.near[best]
    if core == default or best == default:
        return core == default
    if cores.taken[core] != cores.taken[best]:
        return cores.taken[core] < cores.taken[best]
    return cores.position[core] < cores.position[best]


@part
def _add(holders: Holders, slice_: int, core: int) -> None:
    """Remember that a core touched a slice."""
    entry = holders.first[slice_]
    while entry != NONE:
        if holders.core[entry] == core:
            return
        entry = holders.following[entry]
    entry = holders.used[0]
    holders.used[0] += 1
    holders.core[entry] = core
    holders.following[entry] = holders.first[slice_]
    holders.first[slice_] = entry


@dataclass(frozen=True, slots=True)
class Unit:
    """Tasks that belong on one core: the partial sums of one tile, or a single task."""

    tasks: tuple[Task, ...]
    cycles: tuple[int | None, ...]


def contiguous(problem: Problem) -> Ints:
    """Give each core one run of neighbouring tiles of each operator.

    With tiles in row-major order these are spatial strips where an operator is split over rows, and
    ranges of output channels where it is split over channels; neighbours on the chip hold
    neighbouring tiles.
    """
    cores = along_the_chip(problem)
    return _by_operator(problem, lambda units: in_shares(problem, units, cores))


def rotating_contiguous(problem: Problem) -> Ints:
    """Like :func:`contiguous`, but each operator begins at the core after the last one's."""
    cores = deque(along_the_chip(problem))

    def shares(units: Sequence[Unit]) -> list[CoreIdx]:
        chosen = in_shares(problem, units, list(cores))
        cores.rotate(-len(units))
        return chosen

    return _by_operator(problem, shares)


def round_robin(problem: Problem) -> Ints:
    """Give each operator's tiles to the cores in turn."""
    cores = along_the_chip(problem)
    return _by_operator(problem, lambda units: cycle(_able(problem, units[0], cores)))


def locality(problem: Problem) -> Ints:
    """Give each tile to the core that reads or writes most of its bytes already.

    No core takes more of an operator than an equal share (rounded up to whole tiles), so that the
    work stays balanced. Operators that are added up block by block take turns, so that all cores
    share each block.
    """
    return _nearest(problem, banded_chains(problem))


def _nearest(problem: Problem, in_turn: frozenset[tuple[str, TaskIdx]]) -> Ints:
    """Return cores near to what tiles read; those of some operators go to the cores in turn."""
    along = along_the_chip(problem)
    buffers = numbers(slice_.buffer for slice_ in problem.slices)
    sizes = numbers(slice_.bytes for slice_ in problem.slices)
    touched = sum(len(task.reads) + len(task.writes) for task in problem.tasks)
    holders = no_holders(len(problem.slices), touched)

    def nearest(units: Sequence[Unit]) -> Iterable[CoreIdx]:
        able = _able(problem, units[0], along)
        share = -(-len(units) // len(able))
        found = np.zeros(len(units), np.int64)
        if all(u.tasks for u in units) and operator_of(units[0].tasks[0]) in in_turn:
            # With nothing read, each tile comes to its default.
            tiles = _tiles(units, _band_by_band(units, able))
            tiles = tiles._replace(reads=rows_of([[] for _ in units]))
        else:
            tiles = _tiles(units, in_shares(problem, units, along))
        nearest_cores(tiles, holders, idle_cores(able, len(along)), buffers, sizes, share, found)
        return found.tolist()

    return _by_operator(problem, nearest)


def across_bands(problem: Problem) -> Ints:
    """Like :func:`locality`, but tiles of banded operators go to the cores in turn.

    So the cores share each band, and the tiles of a core lie above each other: it keeps a few rows
    of each result for its own next tile, and little moves between cores.
    """
    return _nearest(problem, banded_operators(problem))


def _band_by_band(units: Sequence[Unit], cores: Sequence[CoreIdx]) -> list[CoreIdx]:
    """Give the tiles to the cores in turn, along the axis that is cut most often the slowest.

    That is the last one for tiles with partial sums, as for the pieces that these add up.
    """
    boxes = [unit.tasks[0].tile.box if unit.tasks[0].tile else () for unit in units]
    cuts = [len(set(intervals)) for intervals in zip(*boxes, strict=False)]
    slowest = max(range(len(cuts)), key=cuts.__getitem__, default=0)
    if len(units[0].tasks) > 1:
        slowest = len(cuts) - 1
    found = [cores[0]] * len(units)
    order = sorted(range(len(units)), key=lambda unit: (boxes[unit][slowest:], boxes[unit]))
    for place, unit in enumerate(order):
        found[unit] = cores[place % len(cores)]
    return found


def earliest_finish(problem: Problem) -> Ints:
    """Leave every core open: the scheduler takes the one on which the task would end first."""
    return np.full(len(problem.tasks), NONE, np.int64)


def _by_operator(problem: Problem, choose: Callable[[Sequence[Unit]], Iterable[CoreIdx]]) -> Ints:
    """Return the core of each task, as chosen for the units of one operator after another.

    It is chosen among cores that can run the first of them. Where pins tell them apart, another one
    takes the only core that can run it, or stays open.
    """
    cores = np.full(len(problem.tasks), NONE, np.int64)
    kind_of = [core.kind for core in problem.machine.cores]
    for units in units_of_operators(problem):
        for unit, chosen in zip(units, choose(units), strict=False):
            core = chosen
            if unit.tasks and unit.cycles[kind_of[chosen]] is None:
                able = [c for c, kind in enumerate(kind_of) if unit.cycles[kind] is not None]
                core = able[0] if len(able) == 1 else NONE
            for task in unit.tasks:
                cores[task.index] = core
    return cores


def units_of_operators(problem: Problem) -> Iterator[list[Unit]]:
    """Yield the units of each operator, in order; tasks without origin are operators alone."""
    for _, tasks in groupby(problem.tasks, operator_of):
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


def in_shares(problem: Problem, units: Sequence[Unit], cores: Sequence[CoreIdx]) -> list[CoreIdx]:
    """Cut the units into runs so that each core's run takes about as long as the others'."""
    able = _able(problem, units[0], cores)
    work = [min((c for c in unit.cycles if c is not None), default=1) for unit in units]
    speeds = [_speed(problem, units[0], core) for core in able]
    ends = list(accumulate(speeds))
    all_work = sum(work)
    last = bisect_left(ends, ends[-1])
    shares = []
    done = 0
    for amount in work:
        middle = (done + amount / 2) / all_work * ends[-1]
        done += amount
        shares.append(able[min(bisect_right(ends, middle), last)])
    return shares


def _able(problem: Problem, unit: Unit, cores: Sequence[CoreIdx]) -> list[CoreIdx]:
    """Return the cores that can run a unit; all of them for a unit that stays open."""
    kind_of = [core.kind for core in problem.machine.cores]
    return [core for core in cores if unit.cycles[kind_of[core]] is not None] or list(cores)


def _speed(problem: Problem, unit: Unit, core: CoreIdx) -> float:
    cycles = unit.cycles[problem.machine.cores[core].kind]
    return 1.0 if cycles is None else 1.0 / cycles


def along_the_chip(problem: Problem) -> list[CoreIdx]:
    """Return the cores row by row, every other row backwards, so that neighbours are near."""

    def place(core: CoreIdx) -> tuple[int, int, int]:
        x, y = problem.machine.cores[core].position or (core, 0)
        return (y, x if y % 2 == 0 else -x, core)

    return sorted(range(len(problem.machine.cores)), key=place)


def _tiles(units: Sequence[Unit], default: Sequence[CoreIdx]) -> Tiles:
    reads = [[read for task in unit.tasks for read in task.reads] for unit in units]
    writes = ([written for task in unit.tasks for written in task.writes] for unit in units)
    touched = ([*read, *written] for read, written in zip(reads, writes, strict=True))
    return Tiles(rows_of(reads), rows_of(touched), numbers(default))


ASSIGNMENTS: dict[str, Callable[[Problem], Ints]] = {
    "contiguous": contiguous,
    "locality": locality,
    "across_bands": across_bands,
    "rotating_contiguous": rotating_contiguous,
    "round_robin": round_robin,
    "earliest_finish": earliest_finish,
}
