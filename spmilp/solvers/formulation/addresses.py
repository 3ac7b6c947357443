"""Addresses for a plan whose times are known, packed memory by memory.

First by a greedy fit; where that fails, exactly, which also shows when there are none and which few
residencies stand in each other's way. Where engines want the addresses of both ends to be
congruent, CP-SAT packs all memories together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from spmilp.bounds.best import Bound
from spmilp.machine.machine import Memory
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.strides import layout_at_place, layout_in_slice
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.formulation.extraction import Item, TimedPlan
from spmilp.solvers.formulation.offsets import Address, find_offsets, groups_in
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Bytes, EngineIdx, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The residencies with their offsets, and the address of each tensor."""

    residencies: tuple[Residency, ...]
    tensors: tuple[Bytes, ...]

    def plan(self, tables: ProblemTables, timed: TimedPlan, bound: Bound, solver: str) -> Plan:
        """Return the plan that has these times and addresses."""
        placements, transfers = timed.placements, timed.transfers
        measures = measure(tables.problem, placements, self.residencies, transfers)
        return Plan(
            placements=placements,
            residencies=self.residencies,
            transfers=transfers,
            tensors=self.tensors,
            claim=claim_of(measures, bound.value, bound.name),
            solver=solver,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictSet:
    """Items of a memory for which no addresses were found at their times.

    None of them when several memories stand against each other.
    """

    memory: MemoryIdx
    items: frozenset[Item]


class _Congruence(NamedTuple):
    """What an engine asks of the addresses of both ends of a transfer."""

    engine: EngineIdx
    ends: tuple[Address, Address]


def find_addresses(
    tables: ProblemTables, plan: TimedPlan, *, low: bool, clock: Clock | None = None
) -> Addresses | ConflictSet:
    """Return addresses, or items of one memory for which none were found.

    Parameters
    ----------
    low
        Whether scratchpads are packed as low as can be shown within the time of one packing.
    clock
        When it is over, no more addresses are looked for.
    """
    return _Packer(tables, plan, low, clock or Clock(None)).addresses()


class _Packer:
    def __init__(self, tables: ProblemTables, plan: TimedPlan, low: bool, clock: Clock) -> None:
        self._tables = tables
        self._plan = plan
        self._low = low
        self._clock = clock
        memories = tables.machine.memories
        self._groups = {memory.index: groups_in(tables, plan, memory) for memory in memories}

    def addresses(self) -> Addresses | ConflictSet:
        congruences = tuple(self._congruences())
        if congruences:
            return self._pack_jointly(congruences)
        found: dict[MemoryIdx, Sequence[Bytes]] = {}
        for memory in self._tables.machine.memories:
            groups = self._groups[memory.index]
            offsets = find_offsets(memory, self._plan, groups, low=self._low, clock=self._clock)
            if offsets.of_groups is None:
                return self._conflict(memory, offsets.conflict)
            found[memory.index] = offsets.of_groups
        return self._finished(found)

    def _conflict(self, memory: Memory, groups: Sequence[int]) -> ConflictSet:
        found = (self._groups[memory.index][position] for position in groups)
        members = (member for group in found for member in group.members)
        items = frozenset(self._plan.items[member] for member in members)
        return ConflictSet(memory=memory.index, items=items)

    def _pack_jointly(self, congruences: Sequence[_Congruence]) -> Addresses | ConflictSet:
        from spmilp.solvers.formulation.joint_packing import JointPacking

        packing, machine = JointPacking(), self._tables.machine
        for memory in machine.memories:
            packing.add(memory, self._groups[memory.index])
        for engine, ends in congruences:
            packing.tie(machine.engines[engine].congruence, ends)
        found = packing.solve(low=self._low, clock=self._clock)
        if not found:
            limited = next(m for m in machine.memories if self._groups[m.index])
            return ConflictSet(memory=limited.index, items=frozenset())
        return self._finished(found)

    def _finished(self, found: Mapping[MemoryIdx, Sequence[Bytes]]) -> Addresses:
        offsets: dict[ResidencyIdx, Bytes] = {}
        tensors = [0] * len(self._tables.problem.tensors)
        for memory, groups in self._groups.items():
            for group, offset in zip(groups, found.get(memory, ()), strict=True):
                offsets.update(dict.fromkeys(group.members, offset))
                if group.tensor is not None:
                    tensors[group.tensor] = offset
        residencies = tuple(
            replace(one, offset=offsets.get(one.index, self._at_place(one, tensors)))
            for one in self._plan.residencies
        )
        return Addresses(residencies=residencies, tensors=tuple(tensors))

    def _at_place(self, one: Residency, tensors: Sequence[Bytes]) -> Bytes:
        home = self._home(one)
        if home is None or one.slice is None:
            return 0
        return tensors[home] + layout_at_place(self._tables.problem, one.slice).offset

    def _home(self, one: Residency) -> TensorIdx | None:
        return None if one.slice is None else self._tables.home(one.slice, one.memory)

    def _congruences(self) -> Iterator[_Congruence]:
        for move in self._plan.transfers:
            if self._tables.machine.engines[move.engine].congruence == 1:
                continue
            for target in move.destinations:
                ends = (self._end(move.slice, move.source), self._end(move.slice, target))
                yield _Congruence(move.engine, ends)

    def _end(self, slice_: SliceIdx, residency: ResidencyIdx) -> Address:
        """Return the address of a slice in a residency."""
        problem, one = self._tables.problem, self._plan.residencies[residency]
        home = self._home(one)
        if home is not None:
            return Address(one.memory, None, home, layout_at_place(problem, slice_).offset)
        inner = layout_in_slice(problem, slice_, slice_ if one.slice is None else one.slice)
        return Address(one.memory, residency, None, inner.offset)
