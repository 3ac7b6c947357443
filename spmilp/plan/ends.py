"""Addresses that the transfers of a plan read and write, where they are valid."""

from typing import NamedTuple, TypeAlias

from spmilp.plan.plan import Plan, Transfer
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout, layout_at_place, layout_in_slice
from spmilp.units import Bytes, MemoryIdx, ResidencyIdx, SliceIdx

Strides: TypeAlias = tuple[Bytes, ...]


class End(NamedTuple):
    """One end of a transfer.

    Parameters
    ----------
    address
        Of the first byte.
    strides
        Bytes from one element to the next along each axis.
    """

    memory: MemoryIdx
    address: Bytes
    strides: Strides


class _Holder(NamedTuple):
    """Layout of a slice; ``base`` is the address of its tensor, ``None`` in a residency."""

    layout: Layout
    base: Bytes | None


class Ends:
    """Finds the ends of the transfers of one plan; what they share is looked up once."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self._problem = problem
        self._plan = plan
        self._homes: dict[SliceIdx, MemoryIdx | None] = {}
        self._holders: dict[tuple[SliceIdx, SliceIdx | None, bool], _Holder | None] = {}

    def of(self, move: Transfer) -> tuple[End, ...]:
        """Return source and destinations; nothing when a reference of theirs leads nowhere."""
        if not move.destinations or not 0 <= move.slice < len(self._problem.slices):
            return ()
        found = []
        for residency in (move.source, *move.destinations):
            end = self._end(move.slice, residency)
            if end is None:
                return ()
            found.append(end)
        return tuple(found)

    def _end(self, slice_: SliceIdx, index: ResidencyIdx) -> End | None:
        if not 0 <= index < len(self._plan.residencies):
            return None
        residency = self._plan.residencies[index]
        if slice_ not in self._homes:
            self._homes[slice_] = self._home(slice_)
        at_home = residency.memory == self._homes[slice_]
        key = slice_, residency.slice, at_home
        if key not in self._holders:
            self._holders[key] = self._holder(*key)
        holder = self._holders[key]
        if holder is None or not 0 <= residency.memory < len(self._problem.machine.memories):
            return None
        base = residency.offset if holder.base is None else holder.base
        return End(residency.memory, base + holder.layout.offset, holder.layout.strides)

    def _home(self, slice_: SliceIdx) -> MemoryIdx | None:
        """Return the memory of the DRAM tensor in which a slice has a place, if it has one."""
        place = self._problem.buffers[self._problem.slices[slice_].buffer].place
        return None if place is None else self._problem.tensors[place.tensor].memory

    def _holder(self, slice_: SliceIdx, held: SliceIdx | None, at_home: bool) -> _Holder | None:
        buffer = self._problem.slices[slice_].buffer
        place = self._problem.buffers[buffer].place
        tensors = self._plan.tensors
        if held not in (slice_, buffer) or (place is not None and place.tensor >= len(tensors)):
            return None
        if at_home and place is not None:
            return _Holder(layout_at_place(self._problem, slice_), tensors[place.tensor])
        return _Holder(layout_in_slice(self._problem, slice_, held), None)
