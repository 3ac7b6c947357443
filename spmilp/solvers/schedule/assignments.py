"""Cores of tasks: each rule returns a core for each task, or -1 to leave it open.

A rule may be told to use the first so many cores along the chip alone (``most``).
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, cycle, groupby

import numpy as np

from spmilp.problem.problem import Problem, Task
from spmilp.solvers.schedule.kernels.records import NONE, Ints
from spmilp.solvers.schedule.orders import operator_of
from spmilp.units import CoreIdx


@dataclass(frozen=True, slots=True)
class Unit:
    """Tasks that belong on one core: the partial sums of one tile, or a single task."""

    tasks: tuple[Task, ...]
    cycles: tuple[int | None, ...]


def contiguous(problem: Problem, most: int | None = None) -> Ints:
    """Give each core one run of neighbouring tiles of each operator.

    With tiles in row-major order these are spatial strips where an operator is split over rows, and
    ranges of output channels where it is split over channels; neighbours on the chip hold
    neighbouring tiles.
    """
    cores = along_the_chip(problem)[:most]
    return _by_operator(problem, lambda units: in_shares(problem, units, cores))


def rotating_contiguous(problem: Problem, most: int | None = None) -> Ints:
    """Like :func:`contiguous`, but each operator begins at the core after the last one's."""
    cores = deque(along_the_chip(problem)[:most])

    def shares(units: Sequence[Unit]) -> list[CoreIdx]:
        chosen = in_shares(problem, units, list(cores))
        cores.rotate(-len(units))
        return chosen

    return _by_operator(problem, shares)


def round_robin(problem: Problem, most: int | None = None) -> Ints:
    """Give each operator's tiles to the cores in turn."""
    cores = along_the_chip(problem)[:most]
    return _by_operator(problem, lambda units: cycle(_able(problem, units[0], cores)))


def locality(problem: Problem, most: int | None = None) -> Ints:
    """Give each tile to the core that reads or writes most of its bytes already.

    No core takes more of an operator than an equal share (rounded up to whole tiles), so that the
    work stays balanced. Among equally near cores it is the one that an equal share gives, then the
    one with fewest tiles, then the first.
    """
    along = along_the_chip(problem)[:most]
    touched: list[set[CoreIdx]] = [set() for _ in problem.slices]

    def nearest(units: Sequence[Unit]) -> Iterable[CoreIdx]:
        able = _able(problem, units[0], along)
        share = -(-len(units) // len(able))
        defaults = in_shares(problem, units, along)
        taken = dict.fromkeys(able, 0)
        for unit, default in zip(units, defaults, strict=True):
            near = _bytes_at(problem, unit, able, touched)
            free = (core for core in able if taken[core] < share)
            best = max(free, key=lambda core: (near[core], core == default, -taken[core]))
            taken[best] += 1
            _touch(unit, best, touched)
            yield best

    return _by_operator(problem, nearest)


def balanced(
    problem: Problem, most: int | None = None, stages: int = 1, *, longest_first: bool = False
) -> Ints:
    """Give each tile to a core with little work in all, the nearest of those.

    For streams of inferences, whose period is at least the work of each core, whichever operators
    it is for. A core has little work if this tile is done there no later than an eighth of its own
    length after it could be done at all. Of these it is the one that reads or writes most of its
    bytes already, then the one with least work. With several ``stages`` the first operators, with
    an equal share of the work, have the first cores along the chip, and so on: less data moves, and
    each core has its work in one piece. The longest tiles first give the most equal work (Graham,
    SIAM Journal on Applied Mathematics 17(2), 1969), but neighbours lie further apart.
    """
    along, kind_of = along_the_chip(problem)[:most], [core.kind for core in problem.machine.cores]
    touched: list[set[CoreIdx]] = [set() for _ in problem.slices]
    work = dict.fromkeys(along, 0)
    least = [min((c for c in task.cycles if c is not None), default=0) for task in problem.tasks]
    done, all_work = 0, max(1, sum(least))

    def least_busy(units: Sequence[Unit]) -> Iterable[CoreIdx]:
        nonlocal done
        for unit in units:
            own = sum(least[task.index] for task in unit.tasks)
            stage = min(stages - 1, (2 * done + own) * stages // (2 * all_work))
            done += own
            first, past = (n * len(along) // stages for n in (stage, stage + 1))
            able = _able(problem, unit, along[first : max(past, first + 1)])
            if unit.cycles[kind_of[able[0]]] is None:
                able = _able(problem, unit, along)
            takes = {core: unit.cycles[kind_of[core]] or 0 for core in able}
            near = _bytes_at(problem, unit, able, touched)
            latest = min(work[core] + takes[core] for core in able) + max(takes.values()) // 8
            free = (core for core in able if work[core] + takes[core] <= latest)
            best = min(free, key=lambda core: (-near[core], work[core] + takes[core]))
            work[best] += takes[best]
            _touch(unit, best, touched)
            yield best

    units = [*chain.from_iterable(units_of_operators(problem))]
    if longest_first:
        units.sort(key=lambda unit: -sum(least[task.index] for task in unit.tasks))
    return _by_operator(problem, least_busy, [units])


def earliest_finish(problem: Problem, most: int | None = None) -> Ints:
    """Leave every core open: the scheduler takes the one on which the task would end first."""
    return np.full(len(problem.tasks), NONE, np.int64)


def _bytes_at(
    problem: Problem, unit: Unit, able: Sequence[CoreIdx], touched: Sequence[set[CoreIdx]]
) -> dict[CoreIdx, int]:
    """Return how many bytes of what a unit reads each core has touched."""
    near = dict.fromkeys(able, 0)
    for read in (read for task in unit.tasks for read in task.reads):
        slice_ = problem.slices[read]
        for core in touched[read] | touched[slice_.buffer]:
            if core in near:
                near[core] += slice_.bytes
    return near


def _touch(unit: Unit, core: CoreIdx, touched: Sequence[set[CoreIdx]]) -> None:
    for task in unit.tasks:
        for one in (*task.reads, *task.writes):
            touched[one].add(core)


def _by_operator(
    problem: Problem,
    choose: Callable[[Sequence[Unit]], Iterable[CoreIdx]],
    operators: Iterable[Sequence[Unit]] | None = None,
) -> Ints:
    """Return the core of each task, as chosen for the units of one operator after another.

    ``operators`` are other units that are chosen for together. The core is chosen among those that
    can run the first of them. Where pins tell them apart, another one takes the only core that can
    run it, or stays open.
    """
    cores = np.full(len(problem.tasks), NONE, np.int64)
    kind_of = [core.kind for core in problem.machine.cores]
    for units in operators or units_of_operators(problem):
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
    cycles = [units[0].cycles[problem.machine.cores[core].kind] for core in able]
    ends = list(accumulate(1.0 if one is None else 1.0 / one for one in cycles))
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


def along_the_chip(problem: Problem) -> list[CoreIdx]:
    """Return the cores row by row, every other row backwards, so that neighbours are near."""

    def place(core: CoreIdx) -> tuple[int, int, int]:
        x, y = problem.machine.cores[core].position or (core, 0)
        return (y, x if y % 2 == 0 else -x, core)

    return sorted(range(len(problem.machine.cores)), key=place)


ASSIGNMENTS: dict[str, Callable[[Problem, int | None], Ints]] = {
    "contiguous": contiguous,
    "locality": locality,
    "rotating_contiguous": rotating_contiguous,
    "round_robin": round_robin,
    "earliest_finish": earliest_finish,
    "balanced": balanced,
    "longest_first": partial(balanced, longest_first=True),
    **{f"in_{n}_stages": partial(balanced, stages=n) for n in (4, 8, 16)},
}
