"""Addresses in DRAM: whole tensors first, then what is spilled."""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush

from spmilp.errors import DoesNotFitError, Shortage
from spmilp.machine.machine import Machine, Memory, MemoryKind
from spmilp.plan.plan import Residency
from spmilp.problem.problem import Problem
from spmilp.problem.strides import layout_at_place
from spmilp.solvers.kernels.machine_tables import alignment_of
from spmilp.units import Bytes, Cycles, MemoryIdx, SliceIdx, align_up


class DramAllocator:
    """Gives out addresses of one DRAM from low to high; freed bytes serve what is as large."""

    def __init__(self, memory: Memory, alignment: int) -> None:
        self._memory = memory
        self._alignment = alignment
        self._top: Bytes = 0
        self._returned: dict[Bytes, list[tuple[Cycles, Bytes]]] = {}

    def take(self, size: Bytes, start: Cycles, end: Cycles) -> Bytes:
        """Return an address for ``size`` bytes during ``[start, end)``.

        Calls come in order of ``start``.

        Raises
        ------
        DoesNotFitError
            If the memory has a limit and it is reached.
        """
        size = align_up(size, self._alignment)
        waiting = self._returned.setdefault(size, [])
        if waiting and waiting[0][0] <= start:
            address = heappop(waiting)[1]
        else:
            address = self._above_all(size)
        heappush(waiting, (end, address))
        return address

    def _above_all(self, size: Bytes) -> Bytes:
        address = align_up(self._top, self._alignment)
        for taken in self._memory.reserved:
            if address < taken.end and taken.start < address + size:
                address = align_up(taken.end, self._alignment)
        self._top = address + size
        limit = self._memory.size
        if limit is not None and self._top > limit:
            raise DoesNotFitError(
                f"memory {self._memory.name}: tensors and spilled buffers need {self._top} B > "
                f"{limit} B; use a larger memory or larger scratchpads (fewer spills)",
                Shortage(
                    what="what is spilled",
                    memory=self._memory.name,
                    needed=self._top - limit + (self._memory.usable or 0),
                    usable=self._memory.usable or 0,
                    parts=(),
                ),
                is_proven=False,
            )
        return address


def dram_addresses(
    problem: Problem, residencies: Sequence[Residency]
) -> tuple[tuple[Bytes, ...], list[Residency]]:
    """Return the address of each DRAM tensor, and the residencies with addresses in DRAM too.

    Raises
    ------
    DoesNotFitError
        If a DRAM with a limit is too small.
    """
    end = max((one.end for one in residencies), default=0)
    machine = problem.machine
    allocators = {
        memory.index: DramAllocator(memory, alignment_of(machine, memory.index))
        for memory in machine.drams
    }
    tensors = tuple(allocators[t.memory].take(t.bytes, 0, end + 1) for t in problem.tensors)
    placed = list(residencies)
    for one in sorted(residencies, key=lambda residency: (residency.start, residency.index)):
        if machine.memories[one.memory].kind is not MemoryKind.DRAM or one.slice is None:
            continue
        home = _address_at_place(problem, one.slice, one.memory, tensors)
        if home is None:
            home = allocators[one.memory].take(one.bytes, one.start, one.end)
        placed[one.index] = replace(one, offset=home)
    return tensors, placed


def needs_no_dram_addresses(machine: Machine) -> bool:
    """Say whether addresses in DRAM say nothing of times: no DRAM has a limit, or a core in it."""
    drams = {dram.index for dram in machine.drams}
    is_worked_in = any(core.memory in drams for core in machine.cores)
    return not is_worked_in and all(dram.size is None for dram in machine.drams)


def _address_at_place(
    problem: Problem, slice_: SliceIdx, memory: MemoryIdx, tensors: Sequence[Bytes]
) -> Bytes | None:
    place = problem.buffers[problem.slices[slice_].buffer].place
    if place is None or problem.tensors[place.tensor].memory != memory:
        return None
    return tensors[place.tensor] + layout_at_place(problem, slice_).offset
