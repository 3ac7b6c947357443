"""Bytes: pairs in place, how much lies in a memory at one time, and where."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ortools.sat.python import cp_model

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.plan.plan import MOST_INSTANCES
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.extraction import Item
from spmilp.solvers.exact.formulation.tables import first_blocks
from spmilp.solvers.exact.formulation.variables import (
    Interval,
    Literal,
    Number,
    ResidencyVars,
    Variables,
)
from spmilp.units import Bytes, MemoryIdx, TaskIdx

ConflictSets: TypeAlias = Mapping[MemoryIdx, tuple[frozenset[Item], ...]]
"""Sets of items of a memory for which a packing has shown that their addresses matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressed:
    """What has addresses in the model.

    ``everywhere``: all items of scratchpads, as the peak needs them.
    """

    conflict_sets: ConflictSets = field(default_factory=dict)
    everywhere: bool = False


class Occupied(NamedTuple):
    """Blocks that something has in a memory while an interval lasts."""

    interval: Interval
    blocks: int


class CapacityModel:
    """Adds the constraints on bytes.

    If they ``may_grow``, memories have as many more blocks as ``growth`` says.
    """

    def __init__(
        self, variables: Variables, addressed: Addressed, *, may_grow: bool = False
    ) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._vars = variables
        self._addressed = addressed
        self._may_grow = may_grow
        self.growth: dict[MemoryIdx, Number] = {}
        self._intervals: dict[CandidateResidency, Interval] = {}
        self._surplus: dict[MemoryIdx, list[tuple[Occupied, CandidateResidency, int]]] = (
            defaultdict(list)
        )

    def interval(self, residency: ResidencyVars) -> Interval:
        """Return the interval in which a residency's bytes are its own."""
        key = residency.key
        if key not in self._intervals:
            end = self._vars.horizon if residency.end is None else residency.end
            length = self._model.new_int_var(0, self._vars.horizon, f"{key} lasts")
            self._vars.lengths[key] = length
            self._intervals[key] = self._model.new_optional_interval_var(
                residency.start, length, end, residency.present, str(key)
            )
            if residency.end is not None and not residency.lifecycle.initial:
                self._model.add(residency.end >= residency.valid).only_enforce_if(residency.present)
        return self._intervals[key]

    def add_pairs_in_place(self) -> None:
        """A result takes the bytes of an operand over when its task starts.

        From then on nothing else uses the operand, so its own time ends there, though the task
        still reads it. The two have the larger of their sizes while the task runs; what the operand
        has beyond the result is kept apart for that time. An operand gives its bytes to one result,
        and a result takes those of one operand: two of either would share bytes with each other.
        """
        for task in self._tables.problem.tasks:
            by_end: dict[tuple[str, int], list[Literal]] = defaultdict(list)
            for read, written in task.in_place:
                for literal in self._pair(task.index, task.reads.index(read), read, written):
                    by_end["old", read].append(literal)
                    by_end["new", written].append(literal)
            for literals in by_end.values():
                if len(literals) > 1:
                    self._model.add_at_most_one(literals)

    def _pair(self, task: TaskIdx, position: int, read: int, written: int) -> Iterable[Literal]:
        times = self._vars.tasks[task]
        for old, served in self._vars.reads[task, position].on.items():
            new = CandidateResidency(written, old.memory, 0)
            operand, result = self._vars.residencies[old], self._vars.residencies.get(new)
            here = times.memories.get(old.memory)
            if old.slice != read or operand.end is None or here is None:
                continue
            if result is None or result.end is None:
                continue
            literal = self._vars.literal(f"task{task} writes {new} over {old}")
            self._vars.in_place[task, old, new] = literal
            self._model.add_implication(literal, served)
            self._model.add_implication(literal, here)
            self._model.add(operand.end == times.start).only_enforce_if(literal)
            surplus = self._blocks(old) - self._blocks(new)
            if surplus > 0:
                interval = self._model.new_optional_interval_var(
                    times.start, times.size, times.end, literal, f"rest of {old}"
                )
                rest = (Occupied(interval, surplus), new, self._blocks(new))
                self._surplus[old.memory].append(rest)
            yield literal

    def add_capacities(self) -> None:
        """At no cycle do residencies and scratch have more blocks than a memory."""
        for memory, capacity in enumerate(self._tables.capacity):
            if capacity is None:
                continue
            occupied = [
                *self._residencies_in(memory),
                *self._scratch_in(memory),
                *(one for one, _, _ in self._surplus[memory]),
                *self._late_uses_in(memory),
            ]
            turns = 1 if self._vars.structure.scope.period is None else MOST_INSTANCES
            wanted = turns * sum(one.blocks for one in occupied)
            if wanted > capacity:
                limit: Number = capacity
                if self._may_grow:
                    self.growth[memory] = self._model.new_int_var(0, wanted - capacity, "growth")
                    limit = capacity + self.growth[memory]
                self._model.add_cumulative(
                    [one.interval for one in occupied], [one.blocks for one in occupied], limit
                )

    def _residencies_in(self, memory: MemoryIdx) -> Iterable[Occupied]:
        for key, residency in self._vars.residencies.items():
            if key.memory == memory and self._has_own_bytes(residency):
                yield Occupied(self.interval(residency), self._blocks(key))

    def _scratch_in(self, memory: MemoryIdx) -> Iterable[Occupied]:
        for task, times in zip(self._tables.problem.tasks, self._vars.tasks, strict=True):
            for pool, run in times.runs.items():
                if task.scratch and self._tables.pools[pool].memory == memory:
                    yield Occupied(run, self._tables.blocks(task.scratch, memory))

    def _late_uses_in(self, memory: MemoryIdx) -> Iterable[Occupied]:
        """Late uses by tasks occupy bytes while the task runs.

        Only in the memory of a single core, where cores do not read remotely: there no two of them
        are served by one residency at the same time, whose bytes would count twice. What a result
        may take over does not count.
        """
        machine = self._tables.machine
        if machine.remote is not None or sum(core.memory == memory for core in machine.cores) != 1:
            return
        for task, times in zip(self._tables.problem.tasks, self._vars.tasks, strict=True):
            if memory not in times.memories:
                continue
            by_server: dict[CandidateResidency, list[Literal]] = defaultdict(list)
            for position in range(len(task.reads)):
                for key, literal in self._vars.reads[task.index, position].late.items():
                    if key.memory == memory:
                        by_server[key].append(literal)
            for key, literals in by_server.items():
                taken = [
                    self._tables.blocks_of(written, memory)
                    for read, written in task.in_place
                    if read == key.slice
                ]
                left = self._blocks(key) - max(taken, default=0)
                if left > 0:
                    name = f"task{task.index} uses {key} late"
                    late = self._vars.literal(name)
                    self._model.add_bool_or([*literals, ~late])
                    for literal in literals:
                        self._model.add_implication(literal, late)
                    run = self._model.new_optional_interval_var(
                        times.start, times.size, times.end, late, name
                    )
                    yield Occupied(run, left)

    def _has_own_bytes(self, residency: ResidencyVars) -> bool:
        """Say whether a residency has bytes that it may give up, and no tensor's."""
        return residency.end is not None and not self._tables.at_place(*residency.key[:2])

    def _blocks(self, key: CandidateResidency) -> int:
        return self._tables.blocks_of(key.slice, key.memory)

    def add_addresses(self) -> None:
        """Items of a conflict set have addresses, and share no bytes at any time."""
        for memory in self._tables.machine.memories:
            conflict_sets = self._addressed.conflict_sets.get(memory.index, ())
            everywhere = self._addressed.everywhere and memory.kind is MemoryKind.SPM
            if everywhere or memory.index in self._tables.fixed_memories:
                conflict_sets = (frozenset(self._items_in(memory.index)),)
            for items in conflict_sets:
                self._keep_apart(memory, items)

    def _items_in(self, memory: MemoryIdx) -> Iterable[Item]:
        for key, residency in self._vars.residencies.items():
            if key.memory == memory and self._has_own_bytes(residency):
                yield key
        for task, times in zip(self._tables.problem.tasks, self._vars.tasks, strict=True):
            if task.scratch and memory in times.memories:
                yield task.index

    def _keep_apart(self, memory: Memory, items: frozenset[Item]) -> None:
        times: list[Interval] = []
        extents: list[Interval] = []
        for item in sorted(items, key=str):
            for interval, size in self._rectangles(memory, item):
                offset = self._offset(memory, item, size)
                blocks = self._tables.blocks(size, memory.index)
                times.append(interval)
                extents.append(self._model.new_fixed_size_interval_var(offset, blocks, ""))
        for (_, old, new), literal in self._vars.in_place.items():
            if old in items and new in items:
                one, other = (self._vars.offsets[memory.index, key] for key in (old, new))
                self._model.add(one == other).only_enforce_if(literal)
        for rest, new, above in self._surplus[memory.index]:
            if new in items:
                start = self._vars.offsets[memory.index, new] + above
                times.append(rest.interval)
                extents.append(self._model.new_fixed_size_interval_var(start, rest.blocks, ""))
        self._model.add_no_overlap_2d(times, extents)

    def _rectangles(self, memory: Memory, item: Item) -> Iterable[tuple[Interval, Bytes]]:
        if isinstance(item, CandidateResidency):
            residency = self._vars.residencies.get(item)
            if residency is not None and self._has_own_bytes(residency):
                yield self.interval(residency), self._tables.problem.slices[item.slice].bytes
            return
        for pool, run in self._vars.tasks[item].runs.items():
            if self._tables.pools[pool].memory == memory.index:
                yield run, self._tables.problem.tasks[item].scratch

    def _offset(self, memory: Memory, item: Item, size: Bytes) -> Number:
        """Return the block with which an item begins: inside the memory, outside its reserves."""
        key = (memory.index, item)
        if key not in self._vars.offsets:
            ranges = [list(one) for one in first_blocks(memory, size)]
            slice_ = item.slice if isinstance(item, CandidateResidency) else None
            fixed = self._tables.address(slice_, memory.index)
            if fixed is not None:
                ranges = [[fixed // memory.alignment] * 2]
            domain = cp_model.Domain.from_intervals(ranges)
            self._vars.offsets[key] = self._model.new_int_var_from_domain(domain, f"at {item}")
        return self._vars.offsets[key]
