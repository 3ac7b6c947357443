"""The variables of the program of an order: lengths, states at instants, and transfers."""

from collections.abc import Sequence
from dataclasses import dataclass

from spmilp.solvers.milp.positions.tables import PositionTables, Way
from spmilp.solvers.milp.program import Linear, Program, total
from spmilp.units import BufferIdx, Cycles, SliceIdx, TaskIdx

NONE, ONE = Linear(), Linear(constant=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The transfers of a slice in one direction, one after another.

    Parameters
    ----------
    name
        ``load``, ``copy`` or ``store``.
    ends
        For each interval, whether one ends in it.
    flies
        For each instant, whether one is under way.
    cycles
        For each interval, how long one is under way.
    """

    name: str
    slice: SliceIdx
    way: Way
    ends: dict[int, Linear]
    flies: dict[int, Linear]
    cycles: dict[int, Linear]

    def ended_by(self, instant: int) -> Linear:
        """Return how many have ended by an instant."""
        return total(ends for interval, ends in self.ends.items() if interval <= instant)


class PositionVariables:
    """All variables of the program of an order.

    Parameters
    ----------
    order
        Tasks in their order: all of them, or the first ones.
    ceiling
        Cycles by which the plans that are looked for have ended.

    Attributes
    ----------
    last
        The last interval: run ``k`` is interval ``2 k + 1``.
    rest
        Tasks without a position.
    inside
        For each slice and instant, whether it is in the core's memory, valid.
    in_place
        For position, operand and result, whether they share bytes.
    beside
        For position and operand of such pairs, whether another copy of the operand is inside when
        the task ends.
    """

    def __init__(
        self, tables: PositionTables, program: Program, order: Sequence[TaskIdx], ceiling: Cycles
    ) -> None:
        self.tables = tables
        self.program = program
        self.order = tuple(order)
        self.last = 2 * len(order)
        self._position = {task: k for k, task in enumerate(order)}
        tasks = range(len(tables.cycles))
        self.rest = tuple(task for task in tasks if task not in self._position)
        self._read_until = self._last_reads()
        slack = ceiling - sum(tables.cycles)
        self.lengths = [self._length(interval, slack) for interval in range(self.last + 1)]
        self.inside = {
            s: {j: program.binary(f"inside{s}_{j}") for j in self._instants(s)} for s in tables.fits
        }
        self.loads = self._flows("load")
        self.copies = self._flows("copy")
        self.stores = self._flows("store")
        self.in_place = {
            (k, read, written): program.binary(f"place{k}_{read}_{written}")
            for k, task in enumerate(order)
            for read, written in tables.problem.tasks[task].in_place
            if read in self.inside
        }
        self.beside = {
            (k, read): program.binary(f"beside{k}_{read}")
            for k, read in sorted({key[:2] for key in self.in_place})
            if 2 * k + 2 in self.inside[read]
        }

    def is_inside(self, slice_: SliceIdx, instant: int) -> Linear:
        """Return whether a slice is inside at an instant."""
        return self.inside.get(slice_, {}).get(instant, NONE)

    def comes(self, slice_: SliceIdx, interval: int) -> Linear:
        """Return whether a load or a copy of a slice ends in an interval."""
        flows = [some[slice_] for some in (self.loads, self.copies) if slice_ in some]
        return total(flow.ends.get(interval, NONE) for flow in flows)

    def known_from(self, buffer: BufferIdx) -> int | None:
        """Return the first interval in which a buffer's value exists; ``None`` if unknown."""
        writer = self.tables.writer[buffer]
        if writer is None:
            return 0
        return 2 * self._position[writer] + 2 if writer in self._position else None

    def appears(self, slice_: SliceIdx, interval: int) -> Linear:
        """Return 1 if a buffer comes to be inside at the beginning of an interval by itself."""
        if slice_ != self.tables.buffer(slice_) or self.tables.is_outside_at_first(slice_):
            return NONE
        return ONE if self.known_from(slice_) == interval else NONE

    def _length(self, interval: int, slack: Cycles) -> Linear:
        if interval % 2:
            return Linear(constant=self.tables.cycles[self.order[interval // 2]])
        least = work = 0
        if interval == self.last:
            work = sum(self.tables.cycles[task] for task in self.rest)
            least = work + self._last_store()
        return self.program.number(f"length{interval}", least, work + slack)

    def _last_store(self) -> Cycles:
        """Return the cycles at least in which the last of the tasks without position stores."""
        tables, found = self.tables, [0] if not self.rest else []
        for task in self.rest:
            if not any(task in tables.before[other] for other in self.rest):
                stores = [tables.out[b].least for b in tables.stored_by(task) if b in tables.out]
                found.append(max(stores, default=0))
        return min(found)

    def _last_reads(self) -> dict[SliceIdx, int]:
        """Return for each slice the last interval in which some task reads it, or a part of it."""
        found = dict.fromkeys(self.tables.fits, -1)
        for task in self.tables.problem.tasks:
            known = self._position.get(task.index)
            interval = self.last if known is None else 2 * known + 1
            for read in task.reads:
                for held in {read, self.tables.buffer(read)}.intersection(found):
                    found[held] = max(found[held], interval)
        return found

    def _instants(self, slice_: SliceIdx) -> range:
        """Return the instants at which a slice may be inside, and of use."""
        first = self.known_from(self.tables.buffer(slice_))
        until = self.last if slice_ in self.tables.stored else self._read_until[slice_]
        return range(0) if first is None else range(first, min(until, self.last - 1) + 1)

    def _intervals(self, name: str, slice_: SliceIdx) -> range:
        """Return the intervals in which a transfer may be under way, and of use."""
        first = self.known_from(self.tables.buffer(slice_))
        until = self._read_until[slice_]
        if name == "store" and slice_ in self.tables.stored:
            until = self.last
        if first is None or until < 0:
            return range(0)
        # What arrives while its last reader runs is of no use.
        return range(first, until + 1 - until % 2)

    def _way(self, name: str, slice_: SliceIdx) -> Way | None:
        tables = self.tables
        buffer = tables.buffer(slice_)
        if name == "load":
            return tables.into.get(slice_)
        if name == "copy":
            is_part = slice_ != buffer and buffer in self.inside
            return tables.within.get(slice_) if is_part else None
        return None if tables.is_outside_at_first(buffer) else tables.out.get(slice_)

    def _flows(self, name: str) -> dict[SliceIdx, Flow]:
        found = {}
        for slice_ in self.tables.fits:
            way, intervals = self._way(name, slice_), self._intervals(name, slice_)
            if way is not None and intervals:
                found[slice_] = self._flow(name, slice_, way, intervals)
        return found

    def _flow(self, name: str, slice_: SliceIdx, way: Way, intervals: range) -> Flow:
        program, stem = self.program, f"{name}{slice_}"
        flow = Flow(
            name=name,
            slice=slice_,
            way=way,
            ends={i: program.binary(f"{stem}_ends{i}") for i in intervals},
            flies={j: program.binary(f"{stem}_flies{j}") for j in intervals[:-1]},
            cycles={i: program.number(f"{stem}_cycles{i}", 0, way.most) for i in intervals},
        )
        done = {j: program.number(f"{stem}_done{j}", 0, way.least) for j in intervals[:-1]}
        for i, cycles in flow.cycles.items():
            ends, flies = flow.ends[i], flow.flies.get(i, NONE)
            before = flow.flies.get(i - 1, NONE)
            program.at_most(before, flies + ends)
            program.at_most(done.get(i, NONE) + way.least * ends, done.get(i - 1, NONE) + cycles)
            program.at_most(done.get(i, NONE), way.least * flies)
            program.at_most(cycles, way.most * (ends + flies))
            program.at_most(cycles, self.lengths[i])
            program.at_least(cycles, self.lengths[i], 2 - before - flies)
        return flow
