"""Demand: the data that is still needed, and where."""

from collections.abc import Sequence

from spmilp.solvers.bruteforce.capacity import CapacityModel
from spmilp.solvers.bruteforce.state import WAITING, State
from spmilp.solvers.bruteforce.tables import ProblemTables
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx


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
