"""What is still to come at least: cycles, DRAM traffic, energy.

Everything here leaves aside room, and lets transfers and tasks take place as if each were alone,
save that tasks share their cores and transfers their channels by the total.

*Time.* A slice is in a memory no sooner than some stay that holds it is valid, or the task that
writes it has ended, and the fastest chain of transfers has passed. A task starts no sooner than its
operands are where its core can read them, the tasks before it have ended and a core is free; it
ends its cycles later, and after it come its longest followers and the way of its results to where
they must end.

*Traffic.* Of a buffer that lies in DRAMs only, in which no core works, the largest slice that is
still to be read leaves them; a buffer that must end in such a DRAM enters it.

*Energy.* Each task takes its least; of each buffer, the costliest slice that is nowhere where it is
needed takes its cheapest chain of transfers.
"""

from collections.abc import Sequence
from typing import NamedTuple

from spmilp.problem.objective import Quantity
from spmilp.solvers.bruteforce.demand import Demand
from spmilp.solvers.bruteforce.given import Given
from spmilp.solvers.bruteforce.passages import FAR, Passages
from spmilp.solvers.bruteforce.state import WAITING, State
from spmilp.units import BufferIdx, Bytes, Cycles, Femtojoules, MemoryIdx, SliceIdx, TaskIdx


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


class Remaining:
    """Lower bounds on what follows a state."""

    def __init__(self, given: Given, passages: Passages, demand: Demand) -> None:
        self._given = given
        self._passages = passages
        self._demand = demand
        self._able = tuple(
            tuple(
                (index, group.memory, cycles)
                for index, group in enumerate(given.groups)
                if (cycles := given.cycles(task.index, group)) is not None
            )
            for task in given.problem.tasks
        )
        self._least_energy = tuple(
            min((given.energy(task, given.groups[g]) for g, _, _ in able), default=0)
            for task, able in enumerate(self._able)
        )
        self._channels = sum(engine.channels for engine in given.machine.engines)
        self._tails = self._longest_ways_on()
        self._no_drams = [
            memory
            for memory, is_dram in enumerate(given.is_dram)
            if not is_dram or memory in given.worked_in
        ]

    def of(self, state: State) -> Cost | None:
        """Return the bounds; ``None`` if no plan can follow, because a value is lost."""
        view = _View(self._given, self._passages, state)
        time = self._time(state, view)
        if time >= FAR:
            return None
        least = sum(
            self._least_energy[task]
            for task, each in enumerate(state.tasks)
            if each.left == WAITING
        )
        traffic, energy, busy = self._movement(state, view)
        if busy >= FAR:
            return None
        if self._channels:
            running = sum(move.left for move in state.moves)
            time = max(time, -(-(busy + running) // self._channels))
        return Cost(time, traffic, least + energy)

    def _time(self, state: State, view: "_View") -> int:
        free = self._first_free_cores(state)
        latest = [move.left for move in state.moves]
        work = [0] * len(self._given.groups)
        least_work = 0
        for task in self._given.order:
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
            view.ended[task] = min((end for _, end in ends), default=FAR)
            latest.append(view.ended[task] + self._tails[task])
            least_work += min((cycles for _, _, cycles in self._able[task]), default=0)
        cores = len(self._given.machine.cores)
        latest.append(-(-(sum(work) + least_work) // cores))
        latest += [
            view.arrival(buffer.index, buffer.ends_in)
            for buffer in self._given.problem.buffers
            if buffer.ends_in is not None
        ]
        return max(latest, default=0)

    def _ready(self, task: TaskIdx, view: "_View") -> dict[int, int]:
        """For each group of cores, when the operands of a task can be readable there."""
        after = max((view.ended[t] for t in self._given.predecessors[task]), default=0)
        reads = self._given.problem.tasks[task].reads
        return {
            group: max(
                [
                    after,
                    *(
                        min(view.arrival(read, m) for m in self._given.groups[group].readable)
                        for read in reads
                    ),
                ]
            )
            for group, _, _ in self._able[task]
        }

    def _first_free_cores(self, state: State) -> list[Cycles]:
        """For each group of cores, in how many cycles the first one is free."""
        running: list[list[Cycles]] = [[] for _ in self._given.groups]
        for task in state.tasks:
            if task.left > 0:
                running[task.group].append(task.left)
        return [
            min(left) if len(left) == len(group.cores) else 0
            for left, group in zip(running, self._given.groups, strict=True)
        ]

    def _movement(self, state: State, view: "_View") -> tuple[Bytes, int, int]:
        """Return the traffic, the energy and the cycles of channels that must still be."""
        leaving: dict[BufferIdx, Bytes] = {}
        energy: dict[BufferIdx, int] = {}
        busy: dict[BufferIdx, int] = {}

        def brings(slice_: SliceIdx, targets: Sequence[MemoryIdx]) -> None:
            buffer = self._given.whole[slice_]
            if view.is_waited_for(buffer):
                return
            size = self._given.problem.slices[slice_].bytes
            if not view.lies_in(slice_, self._no_drams):
                leaving[buffer] = max(leaving.get(buffer, 0), size)
            fast, cheap = self._passages.fastest[slice_], self._passages.cheapest[slice_]
            for costs, kept in ((fast, busy), (cheap, energy)):
                least = view.least(slice_, targets, costs)
                kept[buffer] = max(kept.get(buffer, 0), least)

        for task, each in enumerate(state.tasks):
            if each.left == WAITING:
                for read in self._given.problem.tasks[task].reads:
                    brings(read, tuple(self._demand.able_to_serve(task)))
        entering = 0
        for buffer in self._given.problem.buffers:
            end = buffer.ends_in
            if end is None or self._demand.is_in(state, buffer.index, end):
                continue
            if self._given.is_dram[end] and end not in self._given.worked_in:
                entering += buffer.bytes
            if view.is_waited_for(buffer.index):
                for costs, kept in (
                    (self._passages.fastest[buffer.index], busy),
                    (self._passages.cheapest[buffer.index], energy),
                ):
                    kept[buffer.index] = self._from_writers(buffer.index, end, costs)
            elif end in self._no_drams or view.lies_in(buffer.index, self._no_drams):
                brings(buffer.index, (end,))
        traffic = sum(leaving.values()) + entering
        return traffic, sum(energy.values()), sum(busy.values())

    def _from_writers(
        self, buffer: BufferIdx, end: MemoryIdx, costs: Sequence[Sequence[int]]
    ) -> int:
        writer = self._given.writer[buffer]
        if writer is None:
            return 0
        return min((costs[memory][end] for _, memory, _ in self._able[writer]), default=FAR)

    def _longest_ways_on(self) -> tuple[int, ...]:
        """For each task, the cycles at least after its end."""
        tails = [0] * len(self._given.problem.tasks)
        for task in reversed(self._given.order):
            for buffer in self._given.problem.tasks[task].writes:
                end = self._given.problem.buffers[buffer].ends_in
                if end is not None:
                    way = self._from_writers(buffer, end, self._passages.fastest[buffer])
                    tails[task] = max(tails[task], way)
            least = min((cycles for _, _, cycles in self._able[task]), default=0)
            for earlier in self._given.predecessors[task]:
                tails[earlier] = max(tails[earlier], least + tails[task])
        return tuple(tails)


class _View:
    """Where the data of one state is, and when tasks end at the soonest."""

    def __init__(self, given: Given, passages: Passages, state: State) -> None:
        self._given = given
        self._passages = passages
        self._state = state
        self.ended: dict[TaskIdx, int] = {}
        self.ends: dict[TaskIdx, list[tuple[MemoryIdx, int]]] = {}
        self._arrivals: dict[tuple[SliceIdx, MemoryIdx], int] = {}
        self._stays: dict[BufferIdx, list[tuple[MemoryIdx, SliceIdx, Cycles]]] = {}
        for memory, shelf in enumerate(state.shelves):
            for stay in shelf.stays:
                if stay.slice >= 0 and not stay.leaving:
                    buffer = given.whole[stay.slice]
                    self._stays.setdefault(buffer, []).append((memory, stay.slice, stay.valid_in))

    def is_waited_for(self, buffer: BufferIdx) -> bool:
        """Say whether the task that writes a buffer has not started."""
        writer = self._given.writer[buffer]
        return writer is not None and self._state.tasks[writer].left == WAITING

    def arrival(self, slice_: SliceIdx, memory: MemoryIdx) -> int:
        """Return in how many cycles at the soonest a slice can be valid in a memory."""
        key = slice_, memory
        if key not in self._arrivals:
            buffer = self._given.whole[slice_]
            ways = self._passages.fastest[slice_]
            soonest = [
                valid_in + ways[at][memory]
                for at, held, valid_in in self._stays.get(buffer, ())
                if held in (slice_, buffer)
            ]
            if self.is_waited_for(buffer):
                writer = self._given.writer[buffer]
                ends = () if writer is None else self.ends.get(writer, ())
                soonest += [end + ways[at][memory] for at, end in ends]
            self._arrivals[key] = min(soonest, default=FAR)
        return self._arrivals[key]

    def lies_in(self, slice_: SliceIdx, memories: Sequence[MemoryIdx]) -> bool:
        """Say whether some stay in one of the memories holds a slice or is being filled with it."""
        buffer = self._given.whole[slice_]
        return any(
            at in memories and held in (slice_, buffer)
            for at, held, _ in self._stays.get(buffer, ())
        )

    def least(
        self, slice_: SliceIdx, targets: Sequence[MemoryIdx], costs: Sequence[Sequence[int]]
    ) -> int:
        """Return the least cost of bringing a slice from where it is to one of the targets."""
        buffer = self._given.whole[slice_]
        return min(
            (
                costs[at][target]
                for at, held, _ in self._stays.get(buffer, ())
                if held in (slice_, buffer)
                for target in targets
            ),
            default=FAR,
        )
