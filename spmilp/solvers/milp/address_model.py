"""Addresses: residencies that lie in a memory at one time share no bytes.

Offsets and sizes count in blocks, which are as long as the memory's alignment.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

from spmilp.machine.machine import Memory
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import first_blocks
from spmilp.solvers.milp.program import Linear, Program, total
from spmilp.solvers.milp.resources import Orders, Span
from spmilp.solvers.milp.structure import Origin
from spmilp.solvers.milp.variables import NONE, ONE, Variables, name_of
from spmilp.units import Bytes, MemoryIdx, SliceIdx, TaskIdx, TensorIdx

Key: TypeAlias = CandidateResidency | TensorIdx | str
"""A candidate, a tensor, or by its name something else that has an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that has bytes in a memory while it is present.

    Parameters
    ----------
    key
        ``None`` for the bytes of an operand beyond the result in its place.
    blocks
        Whole blocks that it has: nothing else begins inside its last one.
    may_share
        The keys of those with which it may share bytes.
    """

    key: Key | None
    span: Span
    present: Linear
    offset: Linear
    blocks: int
    bytes: Bytes
    may_share: frozenset[Key] = frozenset()


class AddressModel:
    """The items of all memories whose addresses count.

    Attributes
    ----------
    offsets
        The block with which a candidate, a task's scratch or a tensor begins.
    items
        Of each memory.
    """

    def __init__(self, variables: Variables, orders: Orders, growing: bool) -> None:
        self._vars = variables
        self._tables = variables.tables
        self._program: Program = variables.program
        self._orders = orders
        self._growing = growing
        self.offsets: dict[Key, Linear] = {}
        self.items: dict[MemoryIdx, list[Item]] = {}
        self.growth: dict[MemoryIdx, Linear] = {}
        self._rests: list[tuple[MemoryIdx, Item]] = []

    def add_items(self) -> None:
        """Give everything that may lie in a constrained memory an offset."""
        for memory in self._tables.machine.memories:
            if memory.index not in self._vars.structure.unconstrained:
                self.items[memory.index] = [
                    *self._candidates_in(memory),
                    *self._scratch_in(memory),
                    *self._late_uses_in(memory),
                    *self._tensors_in(memory),
                ]

    def add_pairs_in_place(self) -> None:
        """A result takes the bytes of an operand over when its task starts.

        From then on nothing else uses the operand, so its own time ends there, though the task
        still reads it. The two have the larger of their sizes while the task runs: the operand's
        bytes beyond the result are kept apart for that time. An operand gives its bytes to one
        result, and a result takes those of one operand: two would share bytes with each other.
        """
        takers: dict[tuple[str, TaskIdx, CandidateResidency], list[Linear]] = {}
        for task in self._tables.problem.tasks:
            for read, written in task.in_place:
                for old, new, found in self._pair(task.index, read, written):
                    takers.setdefault(("old", task.index, old), []).append(found)
                    takers.setdefault(("new", task.index, new), []).append(found)
        for some in takers.values():
            if len(some) > 1:
                self._program.at_most(total(some), 1)

    def add_all(self) -> None:
        """Keep apart the items of a memory, and the slices at one place in a tensor."""
        for memory, rest in self._rests:
            self.items[memory].append(rest)
        for items in self.items.values():
            for one, other in combinations(items, 2):
                self._share_no_bytes(one, other)
        self._places_hold_one_slice_at_a_time()

    def _pair(
        self, task: TaskIdx, read: SliceIdx, written: SliceIdx
    ) -> Iterator[tuple[CandidateResidency, CandidateResidency, Linear]]:
        position = self._tables.problem.tasks[task].reads.index(read)
        times = self._vars.tasks[task]
        for server, served in self._vars.reads[task, position].on.items():
            old = server.source
            new = CandidateResidency(written, old.memory, 0)
            if old.slice != read or server.local != old.memory:
                continue
            if old not in self.offsets or new not in self.offsets:
                continue
            name = f"task{task}_slice{written}_over_slice{read}_{old.memory}_{old.number}"
            found = self._program.binary(name)
            self._program.at_most(found, served)
            end = self._vars.candidates[old].end
            if end is not None:
                self._program.at_most(end, times.start, 1 - found)
            self._program.at_least(self.offsets[new], self.offsets[old], 1 - found)
            self._program.at_most(self.offsets[new], self.offsets[old], 1 - found)
            self._vars.in_place[task, old, new] = found
            self._keep_the_rest((task, old, new), found)
            yield old, new, found

    def _keep_the_rest(
        self, pair: tuple[TaskIdx, CandidateResidency, CandidateResidency], found: Linear
    ) -> None:
        task, old, new = pair
        memory = self._tables.machine.memories[old.memory]
        sizes = [self._tables.problem.slices[candidate.slice].bytes for candidate in (old, new)]
        kept, taken = (-(-size // memory.alignment) for size in sizes)
        if kept > taken:
            span = self._orders.task(task)
            rest = Item(
                key=None,
                span=span,
                present=found,
                offset=self.offsets[new] + taken,
                blocks=kept - taken,
                bytes=0,
                may_share=frozenset((old, new)),
            )
            self._rests.append((memory.index, rest))

    def _candidates_in(self, memory: Memory) -> Iterator[Item]:
        for key, candidate in self._vars.candidates.items():
            packed = not self._tables.at_place(key.slice, key.memory)
            if key.memory == memory.index and candidate.end is not None and packed:
                size = self._tables.problem.slices[key.slice].bytes
                yield self._item(memory, key, self.span(key), candidate.present, size)

    def span(self, key: CandidateResidency) -> Span:
        """Return the time in which the bytes of a candidate are its own."""
        candidate = self._vars.candidates[key]
        writer, after = candidate.shape.writer, frozenset[TaskIdx]()
        if writer is not None:
            after = self._tables.ancestors[writer]
        elif candidate.shape.origin is Origin.TRANSFERRED:
            after = self._orders.after_writer(key)
        end = candidate.start + self._vars.horizon if candidate.end is None else candidate.end
        return Span(name_of(key), candidate.start, end, writer, after)

    def _scratch_in(self, memory: Memory) -> Iterator[Item]:
        for task, times in zip(self._tables.problem.tasks, self._vars.tasks, strict=True):
            if task.scratch and memory.index in times.memories:
                run, here = self._orders.task(task.index), times.memories[memory.index]
                name = f"scratch{task.index}_{memory.index}"
                yield self._item(memory, name, run, here, task.scratch)

    def _late_uses_in(self, memory: Memory) -> Iterator[Item]:
        """While a task reads a candidate late, a later residency of the slice lies there.

        It may be the same for several tasks at one time, and a result may take its place.
        """
        uses: dict[CandidateResidency, dict[TaskIdx, list[Linear]]] = {}
        for (task, _), read in self._vars.reads.items():
            for server, late in read.late.items():
                key = server.source
                packed = not self._tables.at_place(key.slice, memory.index)
                if key.memory == memory.index == server.local and packed:
                    uses.setdefault(key, {}).setdefault(task, []).append(late)
        for key, by_task in uses.items():
            names = {task: f"late{task}_{name_of(key)}" for task in by_task}
            for task, late_uses in by_task.items():
                shared: set[Key] = set(names.values())
                shared |= {
                    CandidateResidency(written, memory.index, 0)
                    for read, written in self._tables.problem.tasks[task].in_place
                    if read == key.slice
                }
                here = late_uses[0]
                if len(late_uses) > 1:
                    here = self._program.binary(f"task{task}_uses_{name_of(key)}_late")
                    for late in late_uses:
                        self._program.at_least(here, late)
                size = self._tables.problem.slices[key.slice].bytes
                item = self._item(memory, names[task], self._orders.task(task), here, size)
                yield replace(item, may_share=frozenset(shared))

    def _tensors_in(self, memory: Memory) -> Iterator[Item]:
        """Tensors lie in their DRAM from beginning to end."""
        end = Linear(constant=self._vars.horizon + 1)
        for tensor in self._tables.problem.tensors:
            if tensor.memory == memory.index:
                span = Span(f"tensor{tensor.index}", NONE, end, None, frozenset())
                yield self._item(memory, tensor.index, span, ONE, tensor.bytes)

    def _item(self, memory: Memory, key: Key, span: Span, present: Linear, size: Bytes) -> Item:
        name = key if isinstance(key, str) else span.name
        slice_ = key.slice if isinstance(key, CandidateResidency) else None
        fixed = self._tables.address(slice_, memory.index)
        self.offsets[key] = (
            self._offset(memory, size, present, name)
            if fixed is None
            else Linear(constant=fixed // memory.alignment)
        )
        return Item(
            key=key,
            span=span,
            present=present,
            offset=self.offsets[key],
            blocks=-(-size // memory.alignment),
            bytes=size,
        )

    def _offset(self, memory: Memory, size: Bytes, present: Linear, name: str) -> Linear:
        """Return the block with which something begins, outside reserved ranges."""
        ranges = first_blocks(memory, size)
        if self._growing:
            return self._growing_offset(memory, size, ranges, name)
        if not ranges:
            self._program.at_most(present, 0)
            return NONE
        whole = self._tables.modulus > 1
        offset = self._program.number(f"{name}_at", ranges[0][0], ranges[-1][1], whole=whole)
        if len(ranges) > 1:
            chosen = [self._program.binary(f"{name}_in{n}") for n in range(len(ranges))]
            self._program.equal(total(chosen), 1)
            low = total(c * a for c, (a, _) in zip(chosen, ranges, strict=True))
            high = total(c * b for c, (_, b) in zip(chosen, ranges, strict=True))
            self._program.at_least(offset, low)
            self._program.at_most(offset, high)
        return offset

    def _growing_offset(
        self, memory: Memory, size: Bytes, ranges: list[tuple[int, int]], name: str
    ) -> Linear:
        """Return an offset in a memory that may be larger than it is, without reserved ranges."""
        blocks = -(-size // memory.alignment)
        capacity = (memory.size or 0) // memory.alignment
        if memory.index not in self.growth:
            sizes = [slice_.bytes for slice_ in self._tables.problem.slices]
            sizes += [task.scratch for task in self._tables.problem.tasks]
            most = sum(-(-size // memory.alignment) for size in sizes)
            self.growth[memory.index] = self._program.number(f"growth{memory.index}", 0, most)
        growth = self.growth[memory.index]
        low = ranges[0][0] if ranges else 0
        highest = self._program.high(growth) + capacity
        offset = self._program.number(f"{name}_at", low, max(low, highest - blocks))
        self._program.at_most(offset + blocks, growth + capacity)
        return offset

    def _share_no_bytes(self, one: Item, other: Item) -> None:
        if one.key in other.may_share or other.key in one.may_share:
            return
        alternatives = self._orders.apart(one.span, other.span)
        if all(not each.terms and each.constant == 0 for each in alternatives):
            alternatives = []
        elif any(not each.terms and each.constant == 1 for each in alternatives):
            return
        alternatives += [self._below(one, other), self._below(other, one)]
        self._program.at_least(total(alternatives), one.present + other.present - 1)

    def _below(self, one: Item, other: Item) -> Linear:
        """Return a variable that implies that one item ends below the other."""
        if self._program.low(one.offset) + one.blocks > self._program.high(other.offset):
            return NONE
        found = self._program.binary(f"{one.span.name}_below_{other.span.name}")
        self._program.at_least(other.offset, one.offset + one.blocks, 1 - found)
        return found

    def _places_hold_one_slice_at_a_time(self) -> None:
        placed = [key for key in self._vars.candidates if key[:2] in self._tables.contested]
        for one, other in combinations(placed, 2):
            if other[:2] in self._tables.contested[one[:2]]:
                apart = total(self._orders.apart(self.span(one), self.span(other)))
                present = [self._vars.candidates[key].present for key in (one, other)]
                self._program.at_least(apart, total(present) - 1)
