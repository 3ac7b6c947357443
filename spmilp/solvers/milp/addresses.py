"""Addresses of everything in a plan: those of the model, the others wherever there is room."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spmilp.machine.machine import Memory
from spmilp.plan.plan import Residency
from spmilp.problem.strides import layout_at_place
from spmilp.solvers.milp.decisions import Decisions
from spmilp.solvers.milp.extract import Draft
from spmilp.solvers.milp.lookup import Lookup
from spmilp.solvers.milp.memory import Key, Scratch
from spmilp.solvers.milp.stays import Stay
from spmilp.units import Bytes, Cycles, MemoryIdx, TensorIdx


class Taken(NamedTuple):
    """Bytes ``[low, high)`` during ``[start, end)``; an end of ``None`` is never."""

    start: Cycles
    end: Cycles | None
    low: Bytes
    high: Bytes


class Layout(NamedTuple):
    """The residencies of a plan at their offsets, and the address of each tensor."""

    residencies: tuple[Residency, ...]
    tensors: tuple[Bytes, ...]


def find_addresses(
    lookup: Lookup, draft: Draft, decisions: Decisions, roomy: frozenset[MemoryIdx]
) -> Layout | None:
    """Return the addresses; ``None`` if something has none, which a solution rules out.

    What lies in a memory with room for everything gets the lowest bytes that are free: those begin
    where something else ends, so that no more is ever occupied than all sizes together.
    """
    layout = _Layout(lookup, draft, decisions, roomy)
    return layout.result() if layout.fill() else None


class _Layout:
    def __init__(
        self,
        lookup: Lookup,
        draft: Draft,
        decisions: Decisions,
        roomy: frozenset[MemoryIdx],
    ) -> None:
        self._lookup = lookup
        self._draft = draft
        self._decisions = decisions
        self._roomy = roomy
        self._tensors: dict[TensorIdx, Bytes] = {}
        self._offsets: dict[int, Bytes] = {}

    def fill(self) -> bool:
        """Place everything; say whether all of it has found room."""
        return all(self._fill_memory(memory) for memory in self._lookup.machine.memories)

    def result(self) -> Layout:
        offsets = [self._offset_of(one) for one in self._draft.residencies]
        tensors = (self._tensors[t.index] for t in self._lookup.problem.tensors)
        return Layout(self._draft.at(offsets), tuple(tensors))

    def _offset_of(self, one: Residency) -> Bytes:
        home = None if one.slice is None else self._lookup.home(one.slice, one.memory)
        if home is None or one.slice is None:
            return self._offsets[one.index]
        return self._tensors[home] + layout_at_place(self._lookup.problem, one.slice).offset

    def _fill_memory(self, memory: Memory) -> bool:
        taken: list[Taken] = []
        tensors = [t for t in self._lookup.problem.tensors if t.memory == memory.index]
        if memory.index not in self._roomy:
            for tensor in tensors:
                self._tensors[tensor.index] = self._decisions.addresses[tensor.index]
            for one, key in self._packed_in(memory):
                self._offsets[one.index] = self._decisions.addresses[key]
            return True
        for tensor in tensors:
            where = self._lowest(memory, taken, Taken(0, None, 0, tensor.bytes), tensor.index)
            if where is None:
                return False
            self._tensors[tensor.index] = where
            taken.append(Taken(0, None, where, where + tensor.bytes))
        for one, key in self._packed_in(memory):
            where = self._lowest(memory, taken, Taken(one.start, one.end, 0, one.bytes), key)
            if where is None:
                return False
            self._offsets[one.index] = where
            taken.append(Taken(one.start, one.end, where, where + one.bytes))
        return True

    def _packed_in(self, memory: Memory) -> Iterator[tuple[Residency, Stay | Scratch]]:
        for one, key in zip(self._draft.residencies, self._draft.keys, strict=True):
            placed = one.slice is not None and self._lookup.home(one.slice, one.memory) is not None
            if one.memory == memory.index and not placed:
                yield one, key

    def _lowest(
        self,
        memory: Memory,
        taken: Sequence[Taken],
        wanted: Taken,
        key: Key,
    ) -> Bytes | None:
        """Return the lowest address with the residue that the model gives it."""
        others = sorted((one for one in taken if _at_once(one, wanted)), key=lambda one: one.low)
        for start, end in self._lookup.free_ranges(memory):
            low = self._rounded_up(memory, start, key)
            for one in others:
                if one.low < low + wanted.high and low < one.high:
                    low = self._rounded_up(memory, one.high, key)
            if end is None or low + wanted.high <= end:
                return low
        return None

    def _rounded_up(self, memory: Memory, address: Bytes, key: Key) -> Bytes:
        if self._lookup.modulus == 1 or key not in self._decisions.addresses:
            return -(-address // memory.alignment) * memory.alignment
        step, residue = self._lookup.step(memory), self._decisions.addresses[key]
        return address + (residue - address) % step


def _at_once(one: Taken, other: Taken) -> bool:
    return (one.end is None or other.start < one.end) and (
        other.end is None or one.start < other.end
    )
