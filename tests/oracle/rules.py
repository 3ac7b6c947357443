"""What a machine can do with a problem: where tasks run, what moves, where things can lie."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import ceil, lcm

from spmilp.machine.controllers import CONTROLLERS, defects_of
from spmilp.machine.machine import Engine, MemoryKind
from spmilp.machine.routes import routes_of
from spmilp.problem.contradictions import may_lie
from spmilp.problem.problem import Problem
from spmilp.problem.strides import (
    Layout,
    layout_at_place,
    layout_in_slice,
    packed_layout,
    strided_copy,
)
from spmilp.units import Bytes, Cycles, Femtojoules, LinkIdx, MemoryIdx, SliceIdx, TaskIdx, align_up


@dataclass(frozen=True, slots=True)
class CoreGroup:
    """Interchangeable cores: of one kind, in one memory.

    Parameters
    ----------
    readable
        The memories in which they read operands, each with the links from there.
    """

    cores: tuple[int, ...]
    kind: int
    memory: MemoryIdx
    readable: dict[MemoryIdx, int]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer that an engine can make: ``rate`` in bytes per cycle on each of its links.

    Cycles from its start: it holds the links in ``[setup, sent)`` and the channel until ``busy``.
    """

    engine: int
    destinations: tuple[MemoryIdx, ...]
    links: tuple[LinkIdx, ...]
    rate: Fraction
    setup: Cycles
    sent: Cycles
    busy: Cycles
    arrived: Cycles
    traffic: Bytes
    energy: Femtojoules


class Rules:
    """The rules of one problem.

    Parameters
    ----------
    peak
        Bytes from address 0 that may be used in each scratchpad; ``None`` for all of them.

    Attributes
    ----------
    modulus, residues
        The common multiple of the engines' congruences, and what the addresses in each memory can
        be modulo it.
    free
        The ranges of each memory that are not reserved; the end is ``None`` without a limit.
    is_ample
        Whether all that could ever lie in a memory fits side by side, so that nothing has to leave.
    """

    def __init__(self, problem: Problem, peak: Bytes | None = None) -> None:
        machine = problem.machine
        self.problem, self.machine = problem, machine
        self.routes = routes_of(machine)
        self.whole = tuple(part.buffer for part in problem.slices)
        self.writer = problem.writers()
        self.predecessors = problem.predecessors()
        self.groups = tuple(self._core_groups())
        self.not_after = {
            pin.task: pin.not_after for pin in problem.pins.tasks if pin.not_after is not None
        }
        self._pins = {pin.buffer: pin for pin in problem.pins.buffers}
        self.modulus = lcm(*(engine.congruence for engine in machine.engines))
        self._steps = [lcm(memory.alignment, self.modulus) for memory in machine.memories]
        self.residues = [
            sorted({address % self.modulus for address in range(0, step, memory.alignment)})
            for memory, step in zip(machine.memories, self._steps, strict=True)
        ]
        self.free = [list(self._free_ranges(memory.index, peak)) for memory in machine.memories]
        self._sizes = [dict(self._things_in(memory.index)) for memory in machine.memories]
        self._own = [self._addresses_of_their_own(memory.index) for memory in machine.memories]
        self.is_ample = [own is not None for own in self._own]
        self._normal = [
            [] if ample else self._normal_addresses(memory)
            for memory, ample in enumerate(self.is_ample)
        ]
        self.transfers = cache(self._transfers)
        self.clashes = cache(self._clashes)
        self.addresses = cache(self._addresses)

    def cycles(self, task: TaskIdx, group: CoreGroup) -> Cycles | None:
        """Return the cycles of a task without remote reads; ``None`` where it cannot run."""
        return self.problem.tasks[task].cycles[group.kind]

    def energy(self, task: TaskIdx, group: CoreGroup) -> Femtojoules:
        """Return the energy of a task on a core of the group; 0 where unknown."""
        known = self.problem.tasks[task].energy
        return (known[group.kind] or 0) if known else 0

    def remote_cycles(self, slice_: SliceIdx, links: int) -> Cycles:
        """Return the cycles that a task takes longer for reading a slice over so many links."""
        remote = self.machine.remote
        if remote is None or links == 0:
            return 0
        return ceil(self.problem.slices[slice_].bytes * links * remote.cycles_per_byte_hop)

    def home(self, thing: int, memory: MemoryIdx) -> int | None:
        """Return the tensor at whose place a slice lies in a memory; ``None`` if it is packed."""
        place = None if thing < 0 else self.problem.buffers[self.whole[thing]].place
        if place is None or self.problem.tensors[place.tensor].memory != memory:
            return None
        return place.tensor

    def may_lie(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether pins let a slice lie in a memory."""
        pin = self._pins.get(self.whole[slice_])
        if pin is not None and pin.whole and memory in pin.memories:
            return slice_ == self.whole[slice_]
        return may_lie(self.machine, pin, memory)

    def _pinned(self, thing: Hashable, memory: MemoryIdx) -> Bytes | None:
        """Return the address to which a slice is pinned in a memory, if it is."""
        pin = self._pins.get(thing)
        return None if pin is None or memory not in pin.memories else pin.address

    def size(self, thing: int) -> Bytes:
        """Return the bytes of a slice, or of the scratch of task ``t`` for ``-1 - t``."""
        problem = self.problem
        return problem.slices[thing].bytes if thing >= 0 else problem.tasks[-1 - thing].scratch

    def _addresses(self, memory: MemoryIdx, thing: Hashable, residue: int) -> tuple[Bytes, ...]:
        """Return the addresses with a residue at which something may lie in a memory.

        That is a slice, scratch as ``-1 - task``, or a tensor as ``("tensor", index)``; a residue
        of -1 is any. The address is -1 for what lies at its place.
        """
        if isinstance(thing, int) and self.home(thing, memory) is not None:
            return (-1,)
        size, own = self._sizes[memory][thing], self._own[memory]
        alignment, able = self.machine.memories[memory].alignment, self._normal[memory]
        if own is not None:
            last = own[thing] + (1 if residue < 0 else self._steps[memory])
            able = list(range(own[thing], last, alignment))
        pinned = self._pinned(thing, memory)
        return tuple(
            address
            for address in able
            if (residue < 0 or address % self.modulus == residue)
            and (pinned is None or address == pinned)
            and any(
                start <= address and (stop is None or address + size <= stop)
                for start, stop in self.free[memory]
            )
        )

    def layout_in_source(self, slice_: SliceIdx, source: MemoryIdx, held: SliceIdx) -> Layout:
        """Return how a slice lies in a residency, or at its place from the tensor's address."""
        if self.home(slice_, source) is not None:
            return layout_at_place(self.problem, slice_)
        return layout_in_slice(self.problem, slice_, held)

    def _core_groups(self) -> Iterator[CoreGroup]:
        alike: dict[tuple[int, int], list[int]] = {}
        for core in self.machine.cores:
            alike.setdefault((core.kind, core.memory), []).append(core.index)
        remote = self.machine.remote
        for (kind, local), cores in alike.items():
            readable = {local: 0}
            for memory in self.machine.memories if remote is not None else ():
                route = self.routes.between(memory.index, local)
                if memory.index == local or memory.kind is not MemoryKind.SPM or route is None:
                    continue
                if remote.longest_route is None or len(route.links) <= remote.longest_route:
                    readable[memory.index] = len(route.links)
            yield CoreGroup(tuple(cores), kind, local, readable)

    def _transfers(self, slice_: SliceIdx, source: MemoryIdx, held: SliceIdx) -> list[Transfer]:
        """Return the transfers of a slice out of a residency of ``held`` in a memory."""
        found = []
        for engine in self.machine.engines:
            able = [
                memory.index
                for memory in self.machine.memories
                if engine.serves(source, memory.index)
                and self.routes.between(source, memory.index) is not None
                and self._can_copy(engine, slice_, source, held, memory.index)
            ]
            for count in range(1, 1 + (len(able) if engine.multicast else min(1, len(able)))):
                found += [
                    self._transfer(engine, slice_, source, ends)
                    for ends in combinations(able, count)
                ]
        return found

    def _can_copy(
        self, engine: Engine, slice_: SliceIdx, source: MemoryIdx, held: SliceIdx, to: MemoryIdx
    ) -> bool:
        part = self.problem.slices[slice_]
        if engine.longest is not None and part.bytes > engine.longest:
            return False
        start, end = (
            self.layout_in_source(slice_, source, held),
            packed_layout(self.problem, slice_),
        )
        if self.home(slice_, to) is not None:
            end = layout_at_place(self.problem, slice_)
        copy = strided_copy(part.extent, self.problem.buffers[part.buffer].item, start, end)
        if engine.controller and any(defects_of(copy, CONTROLLERS[engine.controller])):
            return False
        return engine.dimensions is None or copy.dimensions <= engine.dimensions

    def _transfer(
        self, engine: Engine, slice_: SliceIdx, source: MemoryIdx, ends: tuple[MemoryIdx, ...]
    ) -> Transfer:
        """A multicast is as slow as its slowest route, and holds every link once."""
        machine, size = self.machine, self.problem.slices[slice_].bytes
        routes = [r for end in ends if (r := self.routes.between(source, end)) is not None]
        links = tuple(dict.fromkeys(link for route in routes for link in route.links))
        rate = min([engine.rate, *(machine.links[link].rate for link in links)])
        sent = engine.setup + ceil(size / rate)
        arrived = sent + max(route.latency for route in routes)
        memories = [machine.memories[memory] for memory in (source, *ends)]
        parts = (*memories, *(machine.links[link] for link in links))
        return Transfer(
            engine=engine.index,
            destinations=ends,
            links=links,
            rate=rate,
            setup=engine.setup,
            sent=sent,
            busy=sent if engine.pipelined else arrived,
            arrived=arrived,
            traffic=size * sum(memory.kind is MemoryKind.DRAM for memory in memories),
            energy=size * sum(part.energy_per_byte or 0 for part in parts),
        )

    def _free_ranges(
        self, memory: MemoryIdx, peak: Bytes | None
    ) -> Iterator[tuple[Bytes, Bytes | None]]:
        one = self.machine.memories[memory]
        limit = one.size
        if peak is not None and one.kind is MemoryKind.SPM and limit is not None:
            limit = min(limit, peak)
        starts = [0, *(taken.end for taken in one.reserved)]
        for start, end in zip(starts, [*(r.start for r in one.reserved), limit], strict=True):
            stop = min((value for value in (end, limit) if value is not None), default=None)
            if stop is None or start < stop:
                yield start, stop

    def _things_in(self, memory: MemoryIdx) -> Iterator[tuple[Hashable, Bytes]]:
        """Yield all that may ever lie in a memory by itself, with its bytes."""
        for tensor in self.problem.tensors:
            if tensor.memory == memory:
                yield ("tensor", tensor.index), tensor.bytes
        for part in self.problem.slices:
            if self.home(part.index, memory) is None:
                yield part.index, part.bytes
        if any(group.memory == memory for group in self.groups):
            yield from ((-1 - t.index, t.scratch) for t in self.problem.tasks if t.scratch)

    def _addresses_of_their_own(self, memory: MemoryIdx) -> dict[Hashable, Bytes] | None:
        """Return an address for each thing so that all lie side by side; ``None`` without room."""
        alignment, step = self.machine.memories[memory].alignment, self._steps[memory]
        if self._pinned_in(memory):
            return None
        for start, stop in self.free[memory]:
            found, low = {}, align_up(start, step)
            for thing, size in self._sizes[memory].items():
                found[thing] = low
                low = align_up(low + size, alignment) + (step if self.modulus > 1 else 0)
            if stop is None or low <= stop:
                return found
        return None

    def _pinned_in(self, memory: MemoryIdx) -> list[Bytes]:
        found = (self._pinned(buffer, memory) for buffer in self._pins)
        return [address for address in found if address is not None]

    def _normal_addresses(self, memory: MemoryIdx) -> list[Bytes]:
        alignment, step = self.machine.memories[memory].alignment, self._steps[memory]
        limit = max((stop for _, stop in self.free[memory] if stop is not None), default=0)
        reached: set[Bytes] = set()
        ends = [start for start, _ in self.free[memory]] + self._pinned_in(memory)
        while ends:
            lowest = align_up(ends.pop(), alignment)
            for address in range(lowest, min(lowest + step, limit), alignment):
                if address not in reached:
                    reached.add(address)
                    ends += [address + size for size in set(self._sizes[memory].values())]
        return sorted(reached)

    def _clashes(self, slice_: SliceIdx) -> frozenset[SliceIdx]:
        """Return the slices that share elements of a tensor with one, itself included."""
        own = self._box_in_tensor(slice_)
        return frozenset(
            part.index
            for part in self.problem.slices
            if own is not None
            and (box := self._box_in_tensor(part.index)) is not None
            and box[0] == own[0]
            and all(p < s and r < q for (p, q), (r, s) in zip(own[1], box[1], strict=True))
        )

    def _box_in_tensor(self, slice_: SliceIdx) -> tuple[int, list[tuple[int, int]]] | None:
        part = self.problem.slices[slice_]
        place = self.problem.buffers[part.buffer].place
        if place is None:
            return None
        starts = [a + b for a, b in zip(place.start, part.start, strict=True)]
        return place.tensor, [(a, a + n) for a, n in zip(starts, part.extent, strict=True)]
