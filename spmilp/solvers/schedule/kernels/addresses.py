"""Addresses of a schedule in which all bytes fit at all times: in scratchpads, and then in DRAMs.

Scratchpads and shared memories are packed one by one. Of DRAM whole tensors come first, then what
is spilled.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from spmilp.cached import cached
from spmilp.errors import DoesNotFitError, Shortage
from spmilp.machine.machine import ByteRange, Machine, Memory, MemoryKind
from spmilp.packing import Item, Packing, PackingOptions, PackingProblem, minimise, pack
from spmilp.plan.plan import Residency
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.problem.strides import layout_at_place
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns, buffer_columns
from spmilp.solvers.schedule.kernels.records import NEVER, Ints
from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState
from spmilp.solvers.schedule.kernels.tables import alignment_of
from spmilp.units import Bytes, Cycles, MemoryIdx, align_up

NODES, NODES_AND_ITEMS = 5_000, 5_000_000
"""Nodes, and nodes times items, of the search for one memory's offsets: a fraction of a second."""

MOST_ITEMS = 10_000
"""Items for whose offsets there is a search; it takes seconds, and seldom finds more for others."""


def packed(problem: Problem, columns: PlanColumns) -> PlanColumns | None:
    """Return decisions with offsets outside DRAM; ``None`` where none are found for a memory.

    Offsets in ``columns`` only say that what is written over an operand has bytes in common with
    it.
    """
    offset = columns.offset.copy()
    find = minimise if problem.objective.first is Quantity.PEAK_SPM else pack
    for memory in problem.machine.memories:
        there = np.flatnonzero(columns.memory == memory.index)
        if memory.kind is MemoryKind.DRAM or there.size == 0:
            continue
        if there.size > MOST_ITEMS:
            return None
        rows = (columns.bytes, columns.first, columns.last, columns.offset)
        found = _offsets(problem, memory, [row[there] for row in rows], find)
        if found is None:
            return None
        offset[there] = found
    return columns._replace(offset=offset)


def _offsets(
    problem: Problem,
    memory: Memory,
    columns: Sequence[Ints],
    find: Callable[[PackingProblem, PackingOptions], Packing] = pack,
) -> tuple[Bytes, ...] | None:
    """Return offsets of what lies in a memory; ``None`` where none are found.

    ``columns`` are bytes, start and end of each, and a number that those with bytes in common
    share.
    """
    *rows, common = (column.tolist() for column in columns)
    first_at: dict[int, int] = {}
    together = []
    for item, number in enumerate(common):
        other = first_at.setdefault(number, item)
        if other != item:
            together.append((other, item))
    alignment = alignment_of(problem.machine, memory.index)
    items = PackingProblem(
        items=tuple(
            Item(size=size, lifetimes=((start, end),), alignment=alignment)
            for size, start, end in zip(*rows, strict=True)
        ),
        capacity=memory.size,
        reserved=tuple((taken.start, taken.end) for taken in memory.reserved),
        together=tuple(together),
    )
    nodes = min(NODES, NODES_AND_ITEMS // len(common))
    return find(items, PackingOptions(node_limit=nodes, conflict=False)).offsets


class DramAllocator:
    """Gives out addresses of one DRAM from low to high; reuses freed ones for the same size.

    ``top`` is the address behind all that were given out.
    """

    def __init__(self, memory: Memory, alignment: int) -> None:
        self._memory = memory
        self._alignment = alignment
        self.top: Bytes = 0
        self._returned: dict[Bytes, list[tuple[Cycles, Bytes]]] = {}

    def take(self, size: Bytes, start: Cycles, end: Cycles) -> Bytes:
        """Return an address for ``size`` bytes during ``[start, end)``.

        Calls come in order of ``start``. Raises a ``DoesNotFitError`` if the memory has a limit and
        it is reached.
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
        address = align_up(self.top, self._alignment)
        for taken in self._memory.reserved:
            if address < taken.end and taken.start < address + size:
                address = align_up(taken.end, self._alignment)
        self.top = address + size
        limit = self._memory.size
        if limit is not None and self.top > limit:
            raise DoesNotFitError(
                f"memory {self._memory.name}: tensors need {self.top} B > {limit} B; use a larger "
                "memory",
                Shortage(
                    what="what is spilled",
                    memory=self._memory.name,
                    needed=self.top - limit + (self._memory.usable or 0),
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

    What is spilled to a DRAM with a limit keeps its address. Raises a ``DoesNotFitError`` if a DRAM
    with a limit is too small for its tensors.
    """
    allocators, tensors = _with_tensors(problem)
    placed = list(residencies)
    for one in sorted(residencies, key=lambda residency: (residency.start, residency.index)):
        memory = problem.machine.memories[one.memory]
        if memory.kind is not MemoryKind.DRAM or one.slice is None:
            continue
        place = problem.buffers[problem.slices[one.slice].buffer].place
        if place is not None and problem.tensors[place.tensor].memory == one.memory:
            offset = tensors[place.tensor] + layout_at_place(problem, one.slice).offset
        elif memory.size is None:
            offset = allocators[one.memory].take(one.bytes, one.start, one.end)
        else:
            continue
        placed[one.index] = replace(one, offset=offset)
    return tensors, placed


@cached
def machines_for_spills(problem: Problem) -> tuple[Machine, Machine]:
    """Return the machine with DRAMs without limit, and with those bytes that tensors leave.

    Where tensors do not fit, there is no plan, and the second one is the machine as it is.
    """
    machine = problem.machine
    try:
        allocators, _ = _with_tensors(problem)
    except DoesNotFitError:
        return machine, machine
    if all(dram.size is None for dram in machine.drams):
        return machine, machine
    endless, beside = list(machine.memories), list(machine.memories)
    for dram in machine.drams:
        top = allocators[dram.index].top
        above = tuple(taken for taken in dram.reserved if taken.start >= top)
        endless[dram.index] = replace(dram, size=None, reserved=())
        if dram.size is not None and top > 0:
            beside[dram.index] = replace(dram, reserved=(ByteRange(0, top), *above))
    return replace(machine, memories=tuple(endless)), replace(machine, memories=tuple(beside))


def are_packed(problem: Problem, state: ScheduleState) -> bool:
    """Pack what a schedule spills to DRAMs with a limit; say whether there are addresses for it."""
    rows, buffers = state.made_residencies(), buffer_columns(problem)
    buffer = buffers.of_slices[rows["slice"]]
    at_place = (buffers.starts_in[buffer] == rows["memory"]) | (
        buffers.ends_in[buffer] == rows["memory"]
    )
    for memory in machines_for_spills(problem)[1].drams:
        there = np.flatnonzero((rows["memory"] == memory.index) & ~at_place)
        if memory.size is None or there.size == 0:
            continue
        columns = rows["bytes"][there], rows["start"][there], rows["end"][there], there
        found = _offsets(problem, memory, columns)
        if found is None:
            return False
        rows["offset"][there] = found
    return True


def _with_tensors(problem: Problem) -> tuple[dict[MemoryIdx, DramAllocator], tuple[Bytes, ...]]:
    """Return what gives out addresses of each DRAM, and those that tensors have for all time."""
    machine = problem.machine
    allocators = {
        memory.index: DramAllocator(memory, alignment_of(machine, memory.index))
        for memory in machine.drams
    }
    return allocators, tuple(allocators[t.memory].take(t.bytes, 0, NEVER) for t in problem.tensors)
