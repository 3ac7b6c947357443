"""What is still needed of the data, and where."""

from collections.abc import Sequence

from spmilp.solvers.bruteforce.given import Given
from spmilp.solvers.bruteforce.room import Room
from spmilp.solvers.bruteforce.state import WAITING, State
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx


class Demand:
    """Asks what tasks that have not started, and the end, still want."""

    def __init__(self, given: Given, rooms: Sequence[Room]) -> None:
        self._given = given
        self._keeps = tuple(room.is_spacious for room in rooms)
        self._able = tuple(
            frozenset(
                memory
                for group in given.groups
                if given.cycles(task.index, group) is not None
                for memory in group.readable
            )
            for task in given.problem.tasks
        )

    def able_to_serve(self, task: TaskIdx) -> frozenset[MemoryIdx]:
        """Return the memories in which a task may read on some core."""
        return self._able[task]

    def is_wanted(self, state: State, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether what lies in a memory can be of use yet.

        A buffer that has reached the memory in which it must end, and stays there for sure, is
        wanted nowhere else for that reason.
        """
        if any(state.tasks[task].left == WAITING for task in self._given.readers[slice_]):
            return True
        if self._given.whole[slice_] != slice_:
            return False
        end = self._given.problem.buffers[slice_].ends_in
        if end is None:
            return False
        return memory == end or not (self._keeps[end] and self.is_in(state, slice_, end))

    def is_in(self, state: State, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether a slice lies in a memory or is on its way there."""
        return any(s.slice == slice_ and not s.leaving for s in state.shelves[memory].stays)

    def targets(self, state: State, slice_: SliceIdx) -> set[MemoryIdx]:
        """Return the memories where a slice could serve a task that waits, or must end."""
        found: set[MemoryIdx] = set()
        for task in self._given.readers[slice_]:
            if state.tasks[task].left == WAITING:
                found |= self._able[task]
        if self._given.whole[slice_] == slice_:
            end = self._given.problem.buffers[slice_].ends_in
            if end is not None and not self.is_in(state, slice_, end):
                found.add(end)
        return found
