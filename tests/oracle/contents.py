"""The contents of memories while a step changes them, and the demand for what is in them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from spmilp.units import Cycles, MemoryIdx, SliceIdx, TaskIdx
from tests.oracle.capacity import CapacityModel, Item
from tests.oracle.state import (
    WAITING,
    Layout,
    LiveResidency,
    MemoryState,
    Node,
    State,
)
from tests.oracle.tables import ProblemTables


@dataclass(slots=True)
class Contents:
    """One memory: its residencies, their names, and their possible layouts."""

    residencies: list[LiveResidency]
    names: list[int]
    layouts: frozenset[Layout] | None

    @classmethod
    def of(cls, node: Node, memory: MemoryIdx) -> "Contents":
        """Return a copy of a memory's contents."""
        memory_state = node.state.memories[memory]
        return cls(list(memory_state.residencies), list(node.names[memory]), memory_state.layouts)

    def use(self, position: int, cycles: Cycles, leaving: bool = False) -> None:
        """Let something read a residency for so many cycles; a leaving one serves nothing else."""
        residency = self.residencies[position]
        self.residencies[position] = residency._replace(
            busy_for=max(residency.busy_for, cycles),
            used=True,
            leaving=residency.leaving or leaving,
        )

    def with_items(
        self, model: CapacityModel, items: Sequence[Item], names: Sequence[int]
    ) -> Iterator["Contents"]:
        """Yield the contents with items added, for each set of residencies that can be evicted."""
        for insertion in model.insertions(self.residencies, self.layouts, items):
            filled = Contents(
                [*self.residencies, *(item.residency for item in items)],
                [*self.names, *names],
                insertion.layouts,
            )
            yield filled.without(insertion.evicted, model)

    def without(self, positions: Collection[int], model: CapacityModel) -> "Contents":
        """Return the contents without the residencies at some positions."""
        return self._picked([i for i in range(len(self.names)) if i not in positions], model)

    def in_order(self, model: CapacityModel) -> tuple[MemoryState, tuple[int, ...]]:
        """Return the contents as a state holds them, in an order independent of how they came."""
        order = sorted(range(len(self.names)), key=lambda i: self.residencies[i])
        ordered = self._picked(order, model)
        return MemoryState(tuple(ordered.residencies), ordered.layouts), tuple(ordered.names)

    def _picked(self, order: list[int], model: CapacityModel) -> "Contents":
        layouts = self.layouts
        if layouts is not None and order != list(range(len(self.names))):
            columns = [*range(model.tensors), *(model.tensors + i for i in order)]
            layouts = frozenset(tuple(layout[c] for c in columns) for layout in layouts)
        return Contents(
            [self.residencies[i] for i in order], [self.names[i] for i in order], layouts
        )


def combined(
    node: Node, changed: Mapping[MemoryIdx, Sequence[Contents]], models: Sequence[CapacityModel]
) -> Iterator[tuple[tuple[MemoryState, ...], tuple[tuple[int, ...], ...]]]:
    """Yield all memories and names, for each combination of contents of the changed ones."""
    touched = list(changed)
    ordered = [[each.in_order(models[m]) for each in changed[m]] for m in touched]
    for choice in product(*ordered):
        memories, names = list(node.state.memories), list(node.names)
        for memory, (memory_state, names_here) in zip(touched, choice, strict=True):
            memories[memory], names[memory] = memory_state, names_here
        yield tuple(memories), tuple(names)


class Demand:
    """The slices that waiting tasks, and the end of the plan, still want."""

    def __init__(self, tables: ProblemTables, models: Sequence[CapacityModel]) -> None:
        self._tables = tables
        self._keeps = tuple(model.is_unconstrained for model in models)
        self._able = tuple(
            frozenset(memory for _, group, _ in able for memory in group.readable)
            for able in tables.able
        )

    def able_to_serve(self, task: TaskIdx) -> frozenset[MemoryIdx]:
        """Return the memories in which a task may read on some core."""
        return self._able[task]

    def is_wanted(self, state: State, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether a slice in a memory can still be of use.

        A buffer that has reached the memory in which it must end, and stays there for sure, is
        wanted nowhere else for that reason.
        """
        if any(state.tasks[task].left == WAITING for task in self._tables.readers[slice_]):
            return True
        if self._tables.whole[slice_] != slice_:
            return False
        end = self._tables.problem.buffers[slice_].ends_in
        if end is None:
            return False
        return memory == end or not (self._keeps[end] and self.is_in(state, slice_, end))

    def is_in(self, state: State, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether a slice lies in a memory or is on its way there."""
        return any(s.slice == slice_ and not s.leaving for s in state.memories[memory].residencies)

    def targets(self, state: State, slice_: SliceIdx) -> set[MemoryIdx]:
        """Return the memories where a slice could serve a task that waits, or must end."""
        found: set[MemoryIdx] = set()
        for task in self._tables.readers[slice_]:
            if state.tasks[task].left == WAITING:
                found |= self._able[task]
        if self._tables.whole[slice_] == slice_:
            end = self._tables.problem.buffers[slice_].ends_in
            if end is not None and not self.is_in(state, slice_, end):
                found.add(end)
        return found
