"""The bytes that a task needs at least while it runs."""

from collections import Counter
from collections.abc import Collection

from spmilp.problem.problem import Problem, Task
from spmilp.units import Bytes


class Needs:
    """Bytes that lie in the memory of a task's core while the task runs.

    What it reads lies there (unless cores read in other memories): of each buffer its largest slice
    at least, for slices of one buffer may lie in one residency of the buffer. What it writes lies
    beside that, save for as many bytes as a pair in place may share, and so does its scratch.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._reads_are_local = problem.machine.remote is None
        readers = Counter(
            buffer
            for task in problem.tasks
            for buffer in {problem.slices[read].buffer for read in task.reads}
        )
        self._private = {buffer for buffer, count in readers.items() if count == 1}

    def pieces(self, task: Task) -> list[Bytes]:
        """Return the sizes of what lies side by side while a task runs alone in its memory."""
        largest: dict[int, Bytes] = {}
        if self._reads_are_local:
            for read in task.reads:
                slice_ = self._problem.slices[read]
                largest[slice_.buffer] = max(largest.get(slice_.buffer, 0), slice_.bytes)
        return [*largest.values(), *self._written(task)]

    def own_bytes(self, task: Task, shared: Collection[int] = ()) -> Bytes:
        """Return the bytes that no other task running elsewhere at the same time can count too.

        Those of what it writes, its scratch, and what only it reads. Where each core has a memory
        of its own and reads nothing in others, of all that it reads.
        """
        problem = self._problem
        local = self._reads_are_local and not shared
        largest: dict[int, Bytes] = {}
        for read in task.reads:
            slice_ = problem.slices[read]
            if local or slice_.buffer in self._private:
                largest[slice_.buffer] = max(largest.get(slice_.buffer, 0), slice_.bytes)
        return sum(largest.values()) + sum(self._written(task))

    def _written(self, task: Task) -> list[Bytes]:
        over: dict[int, Bytes] = {}
        for read, written in task.in_place:
            over[written] = max(over.get(written, 0), self._problem.slices[read].bytes)
        sizes = [self._problem.buffers[b].bytes - over.get(b, 0) for b in task.writes]
        return [size for size in (*sizes, task.scratch) if size > 0]
