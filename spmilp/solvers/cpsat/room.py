"""Bytes: pairs in place, how much lies in a memory at one time, and where."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from ortools.sat.python import cp_model

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.solvers.cpsat.variables import (
    Interval,
    Literal,
    Number,
    StayVars,
    Variables,
)
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.extraction import Item
from spmilp.solvers.formulation.tables import ProblemTables, first_blocks
from spmilp.units import Bytes, MemoryIdx, TaskIdx

Crowds: TypeAlias = Mapping[MemoryIdx, tuple[frozenset[Item], ...]]
"""Sets of items of a memory whose addresses the model has to know."""


class Occupied(NamedTuple):
    """Blocks that something has in a memory while an interval lasts."""

    interval: Interval
    blocks: int


class Room:
    """Adds what concerns bytes.

    Parameters
    ----------
    crowds
        Sets of items whose addresses are in the model.
    everywhere
        Whether all items of scratchpads have addresses, as the peak needs them.
    may_grow
        Whether memories may have more blocks than they have: as many as ``growth`` says.
    """

    def __init__(
        self,
        model: cp_model.CpModel,
        tables: ProblemTables,
        variables: Variables,
        crowds: Crowds,
        everywhere: bool,
        may_grow: bool = False,
    ) -> None:
        self._model = model
        self._tables = tables
        self._vars = variables
        self._crowds = crowds
        self._everywhere = everywhere
        self._may_grow = may_grow
        self.growth: dict[MemoryIdx, Number] = {}
        self._intervals: dict[CandidateResidency, Interval] = {}
        self._surplus: dict[MemoryIdx, list[tuple[Occupied, CandidateResidency, int]]] = (
            defaultdict(list)
        )

    def interval(self, stay: StayVars) -> Interval:
        """Return the interval in which a stay's bytes are its own."""
        key = stay.shape.stay
        if key not in self._intervals:
            end = self._vars.horizon if stay.end is None else stay.end
            size = self._model.new_int_var(0, self._vars.horizon, f"{key} lasts")
            self._vars.lasts[key] = size
            self._intervals[key] = self._model.new_optional_interval_var(
                stay.start, size, end, stay.present, str(key)
            )
            if stay.end is not None and not stay.shape.initial:
                self._model.add(stay.end >= stay.valid).only_enforce_if(stay.present)
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
            operand, result = self._vars.stays[old], self._vars.stays.get(new)
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
            self._add_surplus(task, old, new, literal)
            yield literal

    def _add_surplus(
        self, task: TaskIdx, old: CandidateResidency, new: CandidateResidency, literal: Literal
    ) -> None:
        surplus = self._blocks(old) - self._blocks(new)
        if surplus > 0:
            times = self._vars.tasks[task]
            interval = self._model.new_optional_interval_var(
                times.start, times.size, times.end, literal, f"rest of {old}"
            )
            kept = (Occupied(interval, surplus), new, self._blocks(new))
            self._surplus[old.memory].append(kept)

    def add_capacities(self) -> None:
        """At no cycle do residencies and scratch have more blocks than a memory."""
        for memory, capacity in enumerate(self._tables.capacity):
            if capacity is None:
                continue
            occupied = [
                *self._stays_in(memory),
                *self._scratch_in(memory),
                *(one for one, _, _ in self._surplus[memory]),
                *self._late_uses_in(memory),
            ]
            wanted = sum(one.blocks for one in occupied)
            if wanted > capacity:
                limit: Number = capacity
                if self._may_grow:
                    self.growth[memory] = self._model.new_int_var(0, wanted - capacity, "growth")
                    limit = capacity + self.growth[memory]
                self._model.add_cumulative(
                    [one.interval for one in occupied], [one.blocks for one in occupied], limit
                )

    def _stays_in(self, memory: MemoryIdx) -> Iterable[Occupied]:
        for key, stay in self._vars.stays.items():
            if key.memory == memory and self._has_own_bytes(stay):
                yield Occupied(self.interval(stay), self._blocks(key))

    def _scratch_in(self, memory: MemoryIdx) -> Iterable[Occupied]:
        for task, times in zip(self._tables.problem.tasks, self._vars.tasks, strict=True):
            for pool, run in times.runs.items():
                if task.scratch and self._tables.pools[pool].memory == memory:
                    yield Occupied(run, self._tables.blocks(task.scratch, memory))

    def _late_uses_in(self, memory: MemoryIdx) -> Iterable[Occupied]:
        """Late uses by tasks occupy bytes while the task runs.

        Only in the memory of a single core: there no two of them are served by one residency at the
        same time, whose bytes would count twice. What a result may take over does not count.
        """
        if sum(core.memory == memory for core in self._tables.machine.cores) != 1:
            return
        for task in self._tables.problem.tasks:
            by_stay: dict[CandidateResidency, list[Literal]] = defaultdict(list)
            for position in range(len(task.reads)):
                for stay, literal in self._vars.reads[task.index, position].late.items():
                    if stay.memory == memory:
                        by_stay[stay].append(literal)
            for stay, literals in by_stay.items():
                taken = [
                    self._tables.blocks(self._tables.problem.slices[written].bytes, memory)
                    for read, written in task.in_place
                    if read == stay.slice
                ]
                left = self._blocks(stay) - max(taken, default=0)
                if left > 0:
                    yield Occupied(self._late_run(task.index, stay, literals), left)

    def _late_run(
        self, task: TaskIdx, stay: CandidateResidency, literals: list[Literal]
    ) -> Interval:
        times = self._vars.tasks[task]
        here = literals[0]
        if len(literals) > 1:
            here = self._vars.literal(f"task{task} late in {stay}")
            self._model.add_max_equality(here, literals)
        local = times.memories.get(stay.memory)
        if local is None or self._tables.machine.remote is not None:
            both = self._vars.literal(f"task{task} late and local in {stay}")
            if local is None:
                self._model.add(both == 0)
            else:
                self._model.add_bool_and([here, local]).only_enforce_if(both)
                self._model.add_bool_or([~here, ~local, both])
            here = both
        return self._model.new_optional_interval_var(
            times.start, times.size, times.end, here, f"task{task} uses {stay} late"
        )

    def _has_own_bytes(self, stay: StayVars) -> bool:
        """Say whether a stay has bytes that it may give up, and no tensor's."""
        key = stay.shape.stay
        return stay.end is not None and not self._tables.at_place(key.slice, key.memory)

    def _blocks(self, stay: CandidateResidency) -> int:
        return self._tables.blocks(self._tables.problem.slices[stay.slice].bytes, stay.memory)

    def add_addresses(self) -> None:
        """Items of a crowd have addresses, and share no bytes at any time."""
        for memory in self._tables.machine.memories:
            crowds = self._crowds.get(memory.index, ())
            if self._everywhere and memory.kind is MemoryKind.SPM:
                crowds = (frozenset(self._items_in(memory.index)),)
            for crowd in crowds:
                self._keep_apart(memory, crowd)

    def _items_in(self, memory: MemoryIdx) -> Iterable[Item]:
        for key, stay in self._vars.stays.items():
            if key.memory == memory and self._has_own_bytes(stay):
                yield key
        for task, times in zip(self._tables.problem.tasks, self._vars.tasks, strict=True):
            if task.scratch and memory in times.memories:
                yield task.index

    def _keep_apart(self, memory: Memory, crowd: frozenset[Item]) -> None:
        times: list[Interval] = []
        extents: list[Interval] = []
        for item in sorted(crowd, key=str):
            for interval, size in self._rectangles(memory, item):
                offset = self._offset(memory, item, size)
                blocks = self._tables.blocks(size, memory.index)
                times.append(interval)
                extents.append(self._model.new_fixed_size_interval_var(offset, blocks, ""))
        for (_, old, new), literal in self._vars.in_place.items():
            if old in crowd and new in crowd:
                one, other = (self._vars.offsets[memory.index, stay] for stay in (old, new))
                self._model.add(one == other).only_enforce_if(literal)
        for rest, new, above in self._surplus[memory.index]:
            if new in crowd:
                start = self._vars.offsets[memory.index, new] + above
                times.append(rest.interval)
                extents.append(self._model.new_fixed_size_interval_var(start, rest.blocks, ""))
        self._model.add_no_overlap_2d(times, extents)

    def _rectangles(self, memory: Memory, item: Item) -> Iterable[tuple[Interval, Bytes]]:
        if isinstance(item, CandidateResidency):
            stay = self._vars.stays.get(item)
            if stay is not None and self._has_own_bytes(stay):
                yield self.interval(stay), self._tables.problem.slices[item.slice].bytes
            return
        for pool, run in self._vars.tasks[item].runs.items():
            if self._tables.pools[pool].memory == memory.index:
                yield run, self._tables.problem.tasks[item].scratch

    def _offset(self, memory: Memory, item: Item, size: Bytes) -> Number:
        """Return the block with which an item begins: inside the memory, outside its reserves."""
        key = (memory.index, item)
        if key not in self._vars.offsets:
            domain = cp_model.Domain.from_intervals(
                [list(one) for one in first_blocks(memory, size)]
            )
            self._vars.offsets[key] = self._model.new_int_var_from_domain(domain, f"at {item}")
        return self._vars.offsets[key]
