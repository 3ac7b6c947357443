"""A work bound that sees cores begin and end one after another: their data passes one port."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from heapq import nsmallest
from itertools import accumulate, product
from math import inf
from typing import TypeAlias

from spmilp.bounds.critical_path import Paths
from spmilp.bounds.distances import Distances
from spmilp.bounds.movement import Movement
from spmilp.bounds.work import kinds_able, sets_by_threshold, unions
from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import routes_of
from spmilp.problem.loads import Share, least_loads
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, MemoryIdx, TaskIdx

SCALE = 1 << 10
"""Uses of a DRAM's links are counted in parts of a byte as small as this, rounded down."""

LEAST_SETS, TASKS_OF_ALL_SETS = 2, 20_000
"""Of tasks with large heads, and with large tails: as many sets as have so many tasks together."""

MOST_STEPS = 200
"""In which tasks are looked at by their heads, or by what is after them."""

MOST_PAIRS = 96**2
"""Of memories: on larger machines data may always come from others than a DRAM."""


Part: TypeAlias = tuple[int, int]
"""The use of a DRAM's links by one load or store, and the part that each of its tasks has of it."""

_PartsOfDrams: TypeAlias = dict[MemoryIdx, dict[TaskIdx, dict[int, Part]]]
"""For each DRAM and task, by load or buffer."""


def staggered_work_bound(problem: Problem, movement: Movement, paths: Paths) -> Cycles:
    """Return the bound from work between the beginnings and the ends of cores.

    Let Q be tasks that only the cores of some kinds can run, and k of these cores run them. Let
    ``r[i]`` be a cycle before which no plan has begun tasks of Q on i cores, and ``e[i]`` cycles
    before the makespan within which it has not ended the last ones of i cores. Beginnings and ends
    in order are at least these, one by one, and what lies between them is enough for Q. So

        makespan >= min_k ceil((sum cycles(Q) + r[1] + ... + r[k] + e[1] + ... + e[k]) / k).

    *Beginnings.* The first tasks of i cores are i different ones. Let all have begun by T: none has
    a head above T, and what they read from a DRAM has left it, through its links. A load that
    all tasks of Q read with heads up to T has left as a whole. One that several read counts for
    each of them by the part that is one of so many; so the loads of any i tasks hold at least the
    sum of their parts. In a machine whose cores' memories get data from that DRAM alone, by
    transfers with one destination each, a load serves one memory, and counts for each of its
    readers by one of so many as there are cores at the memory. Hence

        r[i] = min over T of max(T, (loads of all + the i least sums of parts) / rate out).

    *Ends.* The same for what the last tasks of the cores write and that must end in a DRAM. Each
    result has one writer, so that it counts whole.

    Q is all tasks, then those with heads, or with tails behind them, above some thresholds.
    """
    ramps = _Ramps(problem, movement, paths)
    able = [kinds_able(task.cycles) for task in problem.tasks]
    most = max(LEAST_SETS, TASKS_OF_ALL_SETS // max(1, len(able)))
    late = sets_by_threshold(paths.head, most) | sets_by_threshold(ramps.after, most)
    best = 0
    for kinds, some in product(unions(set(able)), late):
        tasks = [task for task in sorted(some) if able[task] <= kinds]
        cores = sum(core.kind in kinds for core in problem.machine.cores)
        work = sum(paths.cycles[task] for task in tasks)
        lost = zip(ramps.begin(tasks, cores), ramps.end(tasks, cores), strict=True)
        so_far = accumulate(begin + end for begin, end in lost)
        least = (-(-(work + some) // count) for count, some in enumerate(so_far, start=1))
        best = max(best, min(least, default=0))
    return best


class _Ramps:
    """When the cores that run some tasks can have begun, and how long before the end they end.

    Attributes
    ----------
    after
        For each task, cycles after its end that no plan can do without.
    """

    def __init__(self, problem: Problem, movement: Movement, paths: Paths) -> None:
        self._problem = problem
        self._movement = movement
        self._head = paths.head
        pairs = zip(paths.tail, paths.cycles, strict=True)
        self.after = tuple(tail - own for tail, own in pairs)
        drams = [dram.index for dram in problem.machine.drams]
        both = {dram: movement.rate_both_ways(dram) for dram in drams}
        self._out = {dram: min(both[dram], movement.rate_out(dram)) for dram in drams}
        self._in = {dram: min(both[dram], movement.rate_in(dram)) for dram in drams}
        distances = Distances(problem)
        self._loads = self._parts_of_loads(distances)
        self._stores = self._parts_of_stores(distances)

    def begin(self, tasks: Sequence[TaskIdx], cores: int) -> list[Cycles]:
        """Return ``r[1]`` to ``r[cores]``; fewer where there are fewer tasks."""
        return self._ramp(tasks, cores, self._head, self._loads, self._out)

    def end(self, tasks: Sequence[TaskIdx], cores: int) -> list[Cycles]:
        """Return ``e[1]`` to ``e[cores]``; fewer where there are fewer tasks."""
        return self._ramp(tasks, cores, self.after, self._stores, self._in)

    def _parts_of_loads(self, distances: Distances) -> _PartsOfDrams:
        per_memory = _cores_of_a_load(self._problem, distances)
        found: _PartsOfDrams = {dram: {} for dram in self._out}
        for number, load in enumerate(least_loads(self._problem)):
            dram = load.buffer.starts_in
            if dram not in found or not distances.starts_in_dram(load.buffer.index):
                continue
            if load.share is Share.REST:
                continue
            use = int(SCALE * self._movement.least_load_use(dram, load))
            sharing = min(per_memory, len(load.readers))
            for reader in load.readers:
                found[dram].setdefault(reader, {})[number] = use, use // sharing
        return found

    def _parts_of_stores(self, distances: Distances) -> _PartsOfDrams:
        found: _PartsOfDrams = {dram: {} for dram in self._in}
        for task in self._problem.tasks:
            for written in task.writes:
                buffer = self._problem.buffers[written]
                if buffer.ends_in in found and distances.ends_in_dram(written):
                    use = int(SCALE * self._movement.least_store_use(buffer.ends_in, buffer.bytes))
                    found[buffer.ends_in].setdefault(task.index, {})[written] = use, use
        return found

    def _ramp(
        self,
        tasks: Sequence[TaskIdx],
        cores: int,
        least: Sequence[Cycles],
        parts: _PartsOfDrams,
        rates: Mapping[MemoryIdx, Fraction],
    ) -> list[Cycles]:
        """Return the cycles at which one, two, three ... cores can have begun, or can still end.

        Parameters
        ----------
        least
            Cycles before which no plan begins each task, or after which it ends none.
        """
        ordered = sorted(tasks, key=lambda task: least[task])
        count = min(cores, len(ordered))
        found = [least[task] for task in ordered[:count]]
        for dram, some in parts.items():
            if rates[dram] > 0:
                ramp = _through_a_port(ordered, count, least, some, rates[dram])
                found = [max(pair) for pair in zip(found, ramp, strict=True)]
        return found


def _cores_of_a_load(problem: Problem, distances: Distances) -> int:
    """Return how many cores' first tasks one load can serve at most.

    All of them, unless cores' memories get data from one DRAM alone, each by transfers of its own.
    """
    machine = problem.machine
    every = len(machine.cores)
    others = [m.index for m in machine.memories if m.kind is not MemoryKind.DRAM]
    if (
        machine.remote is not None
        or len(machine.drams) > 1
        or len(others) * len(distances.worked_in) > MOST_PAIRS
        or any(engine.multicast for engine in machine.engines)
    ):
        return every
    routes = routes_of(machine)
    pairs = ((source, target) for target in distances.worked_in for source in others)
    if any(source != target and routes.engines_for(source, target) for source, target in pairs):
        return every
    return max(Counter(core.memory for core in machine.cores).values())


def _through_a_port(
    ordered: Sequence[TaskIdx],
    count: int,
    least: Sequence[Cycles],
    parts: Mapping[TaskIdx, Mapping[int, Part]],
    rate: Fraction,
) -> list[Cycles]:
    """Return when ``count`` tasks can have what they need through the links of one DRAM.

    Parameters
    ----------
    ordered
        The tasks by their ``least``.
    """
    found: list[float] = [inf] * count
    parts_of_all: Mapping[int, Part] | None = None
    begun: list[Mapping[int, Part]] = []
    heads = [least[task] for task in ordered]
    while len(begun) < len(ordered) and heads[len(begun)] < found[-1]:
        soonest = heads[len(begun)]
        # Some at a time: that the last ones may begin as soon as the first lowers the bound a bit.
        until = max(bisect_right(heads, soonest), len(begun) + len(ordered) // MOST_STEPS)
        for task in ordered[len(begun) : until]:
            own = parts.get(task, {})
            shared = own if parts_of_all is None else _both(parts_of_all, own)
            parts_of_all = shared
            begun.append(own)
        whole = sum(use for use, _ in (parts_of_all or {}).values())
        in_parts = nsmallest(count, (_beside(own, {}) for own in begun))
        beside = nsmallest(count, (_beside(own, parts_of_all or {}) for own in begun))
        sums = zip(accumulate(in_parts), accumulate(beside), strict=True)
        for number, (every, other) in enumerate(sums):
            use = max(every, whole + other)
            wait = -(-use * rate.denominator // (SCALE * rate.numerator))
            found[number] = min(found[number], max(soonest, wait))
    return [int(each) for each in found]


def _both(one: Mapping[int, Part], other: Mapping[int, Part]) -> dict[int, Part]:
    return {load: part for load, part in one.items() if load in other}


def _beside(parts: Mapping[int, Part], of_all: Mapping[int, Part]) -> int:
    """Return the sum of the parts of what is not for all tasks."""
    return sum(part for load, (_, part) in parts.items() if load not in of_all)
