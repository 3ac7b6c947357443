"""Lower bounds on the cost to go: cycles, DRAM traffic, energy.

They ignore capacities, and let transfers and tasks run as if each were alone, except that tasks
share their cores and transfers their channels in total.

*Time.* A slice is in a memory no sooner than some residency that holds it is valid, or the task
that writes it has ended, and the fastest chain of transfers has passed. A task starts no sooner
than its operands are where its core can read them, the tasks before it have ended and a core is
free. After its end come its longest chain of followers, and the transfers of its results to where
they must end.

*Traffic.* Of a buffer that lies only in DRAMs in which no core works, the largest slice that is
still to be read leaves them; a buffer that must end in such a DRAM enters it.

*Energy.* Each task takes its least; of each buffer, the costliest slice that is nowhere where it is
needed takes its cheapest chain of transfers.
"""

from collections.abc import Sequence
from typing import NamedTuple

from spmilp.problem.objective import Quantity
from spmilp.units import BufferIdx, Bytes, Cycles, Femtojoules, MemoryIdx, SliceIdx, TaskIdx
from tests.oracle.contents import Demand
from tests.oracle.state import WAITING, State
from tests.oracle.tables import ProblemTables
from tests.oracle.transfer_options import UNREACHABLE, TransferOptions


class Cost(NamedTuple):
    """Quantities that add up along a plan."""

    makespan: Cycles
    dram_traffic: Bytes
    energy: Femtojoules

    def of(self, quantity: Quantity) -> int:
        """Return one of the quantities."""
        return {
            Quantity.MAKESPAN: self.makespan,
            Quantity.DRAM_TRAFFIC: self.dram_traffic,
            Quantity.ENERGY: self.energy,
        }[quantity]

    def plus(self, other: "Cost") -> "Cost":
        """Return the sum."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Cost(0, 0, 0)


class LowerBounds:
    """Lower bounds on the cost of all that follows a state."""

    def __init__(self, tables: ProblemTables, options: TransferOptions, demand: Demand) -> None:
        self._tables = tables
        self._options = options
        self._demand = demand
        self._able = tuple(
            tuple((index, group.memory, cycles) for index, group, cycles in able)
            for able in tables.able
        )
        self._least_energy = tuple(
            min((tables.energy(task, tables.groups[g]) for g, _, _ in able), default=0)
            for task, able in enumerate(self._able)
        )
        self._channels = sum(engine.channels for engine in tables.machine.engines)
        self._tails = self._longest_tails()
        self._no_drams = [
            memory
            for memory, is_dram in enumerate(tables.is_dram)
            if not is_dram or memory in tables.worked_in
        ]

    def of(self, state: State) -> Cost | None:
        """Return the bounds; ``None`` if no plan can follow, because a value is lost."""
        view = _StateView(self._tables, self._options, state)
        time = self._time(state, view)
        if time >= UNREACHABLE:
            return None
        least = sum(
            self._least_energy[task]
            for task, each in enumerate(state.tasks)
            if each.left == WAITING
        )
        traffic, energy, busy = self._movement(state, view)
        if busy >= UNREACHABLE:
            return None
        if self._channels:
            running = sum(transfer.left for transfer in state.transfers)
            time = max(time, -(-(busy + running) // self._channels))
        return Cost(time, traffic, least + energy)

    def _time(self, state: State, view: "_StateView") -> int:
        free = self._first_free_cores(state)
        latest = [transfer.left for transfer in state.transfers]
        work = [0] * len(self._tables.groups)
        least_work = 0
        for task in self._tables.order:
            each = state.tasks[task]
            if each.left >= 0:
                view.ended[task] = each.left
                latest.append(each.left + (self._tails[task] if each.left else 0))
                if each.left:
                    work[each.group] += each.left
                continue
            ready = self._ready(task, view)
            ends = [
                (memory, max(free[group], ready[group]) + cycles)
                for group, memory, cycles in self._able[task]
            ]
            view.ends[task] = ends
            view.ended[task] = min((end for _, end in ends), default=UNREACHABLE)
            latest.append(view.ended[task] + self._tails[task])
            least_work += min((cycles for _, _, cycles in self._able[task]), default=0)
        cores = len(self._tables.machine.cores)
        latest.append(-(-(sum(work) + least_work) // cores))
        latest += [
            view.arrival(buffer.index, buffer.ends_in)
            for buffer in self._tables.problem.buffers
            if buffer.ends_in is not None
        ]
        return max(latest, default=0)

    def _ready(self, task: TaskIdx, view: "_StateView") -> dict[int, int]:
        """For each group of cores, when the operands of a task can be readable there."""
        after = max((view.ended[t] for t in self._tables.predecessors[task]), default=0)
        reads = self._tables.problem.tasks[task].reads
        return {
            group: max(
                [
                    after,
                    *(
                        min(view.arrival(read, m) for m in self._tables.groups[group].readable)
                        for read in reads
                    ),
                ]
            )
            for group, _, _ in self._able[task]
        }

    def _first_free_cores(self, state: State) -> list[Cycles]:
        """For each group of cores, in how many cycles the first one is free."""
        running: list[list[Cycles]] = [[] for _ in self._tables.groups]
        for task in state.tasks:
            if task.left > 0:
                running[task.group].append(task.left)
        return [
            min(left) if len(left) == len(group.cores) else 0
            for left, group in zip(running, self._tables.groups, strict=True)
        ]

    def _movement(self, state: State, view: "_StateView") -> tuple[Bytes, int, int]:
        """Return the traffic, the energy and the cycles of channels that must still be."""
        leaving: dict[BufferIdx, Bytes] = {}
        energy: dict[BufferIdx, int] = {}
        busy: dict[BufferIdx, int] = {}

        def brings(slice_: SliceIdx, targets: Sequence[MemoryIdx]) -> None:
            buffer = self._tables.whole[slice_]
            if view.is_waited_for(buffer):
                return
            size = self._tables.problem.slices[slice_].bytes
            if not view.lies_in(slice_, self._no_drams):
                leaving[buffer] = max(leaving.get(buffer, 0), size)
            fast, cheap = self._options.fastest[slice_], self._options.cheapest[slice_]
            for costs, kept in ((fast, busy), (cheap, energy)):
                least = view.least(slice_, targets, costs)
                kept[buffer] = max(kept.get(buffer, 0), least)

        for task, each in enumerate(state.tasks):
            if each.left == WAITING:
                for read in self._tables.problem.tasks[task].reads:
                    brings(read, tuple(self._demand.able_to_serve(task)))
        entering = 0
        for buffer in self._tables.problem.buffers:
            end = buffer.ends_in
            if end is None or self._demand.is_in(state, buffer.index, end):
                continue
            if self._tables.is_dram[end] and end not in self._tables.worked_in:
                entering += buffer.bytes
            if view.is_waited_for(buffer.index):
                for costs, kept in (
                    (self._options.fastest[buffer.index], busy),
                    (self._options.cheapest[buffer.index], energy),
                ):
                    kept[buffer.index] = self._from_writers(buffer.index, end, costs)
            elif end in self._no_drams or view.lies_in(buffer.index, self._no_drams):
                brings(buffer.index, (end,))
        traffic = sum(leaving.values()) + entering
        return traffic, sum(energy.values()), sum(busy.values())

    def _from_writers(
        self, buffer: BufferIdx, end: MemoryIdx, costs: Sequence[Sequence[int]]
    ) -> int:
        writer = self._tables.writer[buffer]
        if writer is None:
            return 0
        return min((costs[memory][end] for _, memory, _ in self._able[writer]), default=UNREACHABLE)

    def _longest_tails(self) -> tuple[int, ...]:
        """For each task, the cycles at least after its end."""
        tails = [0] * len(self._tables.problem.tasks)
        for task in reversed(self._tables.order):
            for buffer in self._tables.problem.tasks[task].writes:
                end = self._tables.problem.buffers[buffer].ends_in
                if end is not None:
                    least = self._from_writers(buffer, end, self._options.fastest[buffer])
                    tails[task] = max(tails[task], least)
            least = min((cycles for _, _, cycles in self._able[task]), default=0)
            for earlier in self._tables.predecessors[task]:
                tails[earlier] = max(tails[earlier], least + tails[task])
        return tuple(tails)


class _StateView:
    """The residencies of one state by buffer, and the earliest ends of tasks."""

    def __init__(self, tables: ProblemTables, options: TransferOptions, state: State) -> None:
        self._tables = tables
        self._options = options
        self._state = state
        self.ended: dict[TaskIdx, int] = {}
        self.ends: dict[TaskIdx, list[tuple[MemoryIdx, int]]] = {}
        self._arrivals: dict[tuple[SliceIdx, MemoryIdx], int] = {}
        self._residencies: dict[BufferIdx, list[tuple[MemoryIdx, SliceIdx, Cycles]]] = {}
        for memory, memory_state in enumerate(state.memories):
            for residency in memory_state.residencies:
                if residency.slice >= 0 and not residency.leaving:
                    buffer = tables.whole[residency.slice]
                    self._residencies.setdefault(buffer, []).append(
                        (memory, residency.slice, residency.valid_in)
                    )

    def is_waited_for(self, buffer: BufferIdx) -> bool:
        """Say whether the task that writes a buffer has not started."""
        writer = self._tables.writer[buffer]
        return writer is not None and self._state.tasks[writer].left == WAITING

    def arrival(self, slice_: SliceIdx, memory: MemoryIdx) -> int:
        """Return in how many cycles at the soonest a slice can be valid in a memory."""
        key = slice_, memory
        if key not in self._arrivals:
            buffer = self._tables.whole[slice_]
            cycles = self._options.fastest[slice_]
            soonest = [
                valid_in + cycles[at][memory]
                for at, held, valid_in in self._residencies.get(buffer, ())
                if held in (slice_, buffer)
            ]
            if self.is_waited_for(buffer):
                writer = self._tables.writer[buffer]
                ends = () if writer is None else self.ends.get(writer, ())
                soonest += [end + cycles[at][memory] for at, end in ends]
            self._arrivals[key] = min(soonest, default=UNREACHABLE)
        return self._arrivals[key]

    def lies_in(self, slice_: SliceIdx, memories: Sequence[MemoryIdx]) -> bool:
        """Say whether a residency in one of the memories holds a slice or will hold it."""
        buffer = self._tables.whole[slice_]
        return any(
            at in memories and held in (slice_, buffer)
            for at, held, _ in self._residencies.get(buffer, ())
        )

    def least(
        self, slice_: SliceIdx, targets: Sequence[MemoryIdx], costs: Sequence[Sequence[int]]
    ) -> int:
        """Return the least cost of bringing a slice from where it is to one of the targets."""
        buffer = self._tables.whole[slice_]
        return min(
            (
                costs[at][target]
                for at, held, _ in self._residencies.get(buffer, ())
                if held in (slice_, buffer)
                for target in targets
            ),
            default=UNREACHABLE,
        )
