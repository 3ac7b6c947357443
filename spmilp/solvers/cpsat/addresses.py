"""Addresses for a draft: residencies and tensors with given lifetimes, packed memory by memory.

First by a greedy fit; where that fails, exactly, which also shows when there are none and which few
stand in each other's way. Where engines want the addresses of both ends to be congruent, CP-SAT
packs all memories together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.plan.plan import Residency
from spmilp.problem.strides import layout_at_place, layout_in_slice
from spmilp.solvers.cpsat.extract import Draft
from spmilp.solvers.cpsat.greedy import fit_greedily
from spmilp.solvers.cpsat.groups import Group, groups_in
from spmilp.solvers.cpsat.offsets import Offsets, pack_groups
from spmilp.solvers.cpsat.packing import End, Packing
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.cpsat.variables import Item
from spmilp.units import Bytes, EngineIdx, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The residencies with their offsets, and the address of each tensor."""

    residencies: tuple[Residency, ...]
    tensors: tuple[Bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Items of a memory for which no addresses were found at their times.

    None of them when several memories stand against each other.
    """

    memory: MemoryIdx
    items: frozenset[Item]


class Tie(NamedTuple):
    """A transfer of an engine, with both ends."""

    engine: EngineIdx
    ends: tuple[End, End]


def find_addresses(tables: Tables, draft: Draft, low: bool) -> Addresses | Crowd:
    """Return addresses, or items of one memory that have none.

    Parameters
    ----------
    low
        Whether scratchpads are packed as low as can be shown within the time of one packing.
    """
    return _Packer(tables, draft, low).addresses()


class _Packer:
    def __init__(self, tables: Tables, draft: Draft, low: bool) -> None:
        self._tables = tables
        self._draft = draft
        self._low = low
        self._ties = tuple(self._congruences())

    def addresses(self) -> Addresses | Crowd:
        memories = self._tables.machine.memories
        groups = {memory.index: groups_in(self._tables, self._draft, memory) for memory in memories}
        if self._ties:
            return self._tied(groups)
        found: dict[MemoryIdx, list[Bytes]] = {}
        for memory in memories:
            offsets = self._pack(memory, groups[memory.index])
            if offsets.of_groups is None:
                return self._crowd(memory, groups[memory.index], offsets.conflict)
            found[memory.index] = list(offsets.of_groups)
        return self._finished(groups, found)

    def _pack(self, memory: Memory, groups: list[Group]) -> Offsets:
        low = self._low and memory.kind is MemoryKind.SPM
        greedy = None if low else fit_greedily(memory, groups)
        if greedy is not None or not groups:
            return Offsets(of_groups=tuple(greedy or ()))
        return pack_groups(memory, self._draft, groups, low)

    def _crowd(self, memory: Memory, groups: list[Group], conflict: Sequence[int]) -> Crowd:
        members = (member for group in conflict for member in groups[group].members)
        items = frozenset(self._draft.items[member] for member in members)
        return Crowd(memory=memory.index, items=items)

    def _tied(self, groups: Mapping[MemoryIdx, list[Group]]) -> Addresses | Crowd:
        """Pack all memories together, with what transfers between them ask of addresses."""
        packing = Packing()
        for memory in self._tables.machine.memories:
            packing.add(memory, groups[memory.index])
        for tie in self._ties:
            packing.tie(self._tables.machine.engines[tie.engine].congruence, tie.ends)
        found = packing.solve(low=self._low)
        if not found:
            limited = next(m for m in self._tables.machine.memories if groups[m.index])
            return Crowd(memory=limited.index, items=frozenset())
        return self._finished(groups, found)

    def _finished(
        self, groups: Mapping[MemoryIdx, list[Group]], found: Mapping[MemoryIdx, list[Bytes]]
    ) -> Addresses:
        offsets: dict[ResidencyIdx, Bytes] = {}
        tensors = [0] * len(self._tables.problem.tensors)
        for memory, some in groups.items():
            for group, offset in zip(some, found.get(memory, []), strict=True):
                offsets.update(dict.fromkeys(group.members, offset))
                if group.tensor is not None:
                    tensors[group.tensor] = offset
        residencies = tuple(
            replace(one, offset=offsets.get(one.index, self._at_place(one, tensors)))
            for one in self._draft.residencies
        )
        return Addresses(residencies=residencies, tensors=tuple(tensors))

    def _at_place(self, one: Residency, tensors: Sequence[Bytes]) -> Bytes:
        home = self._home(one)
        if home is None or one.slice is None:
            return 0
        return tensors[home] + layout_at_place(self._tables.problem, one.slice).offset

    def _home(self, one: Residency) -> TensorIdx | None:
        """Return the tensor in which a residency lies at its place."""
        if one.slice is None or not self._tables.ways.at_place(one.slice, one.memory):
            return None
        problem = self._tables.problem
        place = problem.buffers[problem.slices[one.slice].buffer].place
        return None if place is None else place.tensor

    def _congruences(self) -> Iterator[Tie]:
        """Yield what the engines of the transfers ask of both ends' addresses."""
        for move in self._draft.transfers:
            if self._tables.machine.engines[move.engine].congruence == 1:
                continue
            for target in move.destinations:
                ends = (self._end(move.slice, move.source), self._end(move.slice, target))
                yield Tie(move.engine, ends)

    def _end(self, slice_: SliceIdx, residency: ResidencyIdx) -> End:
        """Return what the address of a slice in a residency is counted from, and its distance."""
        problem, one = self._tables.problem, self._draft.residencies[residency]
        home = self._home(one)
        if home is not None:
            return End(one.memory, None, home, layout_at_place(problem, slice_).offset)
        inner = layout_in_slice(problem, slice_, slice_ if one.slice is None else one.slice)
        return End(one.memory, residency, None, inner.offset)
