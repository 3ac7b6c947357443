"""Limits: which memories of cores hold a task, and which shapes DMA engines transfer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from spmilp.errors import SpmilpError
from spmilp.machine.controllers import PARTIAL, Controller, StridedCopy, is_too_long, odd_numbers
from spmilp.machine.machine import Machine, Memory
from spmilp.problem.problem import Buffer, Problem, Slice, Task
from spmilp.problem.strides import Layout, row_major_strides, strided_copy
from spmilp.units import Box, Bytes, Extents, align_up


def only_where_they_fit(
    tasks: Iterable[Task], machine: Machine, slices: Sequence[Slice], buffers: Sequence[Buffer]
) -> Iterator[Task]:
    """Yield tasks without the kinds of core that cannot hold them; as they are if none can.

    A machine may have large cores and small ones that run the same operators; a solver need not
    consider the small ones for what only the large ones can hold.
    """
    memories = _memories(machine)
    for task in tasks:
        cycles = tuple(
            count if any(_bytes_over(task, each, slices, buffers) <= 0 for each in some) else None
            for count, some in zip(task.cycles, memories, strict=True)
        )
        none_fits = all(count is None for count in cycles)
        yield task if none_fits or cycles == task.cycles else replace(task, cycles=cycles)


def groups_that_do_not_fit(problem: Problem) -> Mapping[str, str]:
    """Return the groups with a task that no core's memory holds, and the reason for the worst one.

    What a task reads, writes and needs besides must lie in the memory at one time, each aligned.
    Bytes that a read and a written buffer may share in place are counted once.
    """
    worst: dict[str, tuple[Bytes, str]] = {}
    memories = _memories(problem.machine)
    for task in problem.tasks:
        over, index = min(
            (_bytes_over(task, memory, problem.slices, problem.buffers), memory.index)
            for count, some in zip(task.cycles, memories, strict=True)
            for memory in some
            if count is not None
        )
        group = task.tile.of if task.tile is not None else task.name
        if over > 0 and over > worst.get(group, (0, ""))[0]:
            memory = problem.machine.memories[index]
            capacity = memory.usable or 0
            own = f" ({task.scratch} B of it are workspace of its kernels)" if task.scratch else ""
            worst[group] = (
                over,
                f"task {task.name}: needs {capacity + over} B at one time, but {memory.name}, the "
                f"largest memory of a core that can run it, holds {capacity} B: {over} B over"
                f"{own}; use a machine with larger scratchpads (spmilp explain "
                "tells how much larger)",
            )
    return {group: reason for group, (_, reason) in worst.items()}


def _memories(machine: Machine) -> list[list[Memory]]:
    """Return the memories of the cores of each kind, one of each size and alignment."""
    found: list[dict[tuple[Bytes | None, Bytes], Memory]] = [{} for _ in machine.kinds]
    for core in machine.cores:
        memory = machine.memories[core.memory]
        found[core.kind].setdefault((memory.usable, memory.alignment), memory)
    return [list(some.values()) for some in found]


def _bytes_over(
    task: Task, memory: Memory, slices: Sequence[Slice], buffers: Sequence[Buffer]
) -> Bytes:
    """Return by how many bytes a task exceeds a memory; zero or less where it fits."""
    if memory.usable is None:
        return 0
    return working_set(task, slices, buffers, memory.alignment) - memory.usable


def working_set(
    task: Task, slices: Sequence[Slice], buffers: Sequence[Buffer], alignment: Bytes
) -> Bytes:
    """Return the bytes that a task needs in its core's memory at one time."""
    reads = [slices[read].bytes for read in task.reads]
    writes = [buffers[written].bytes for written in task.writes]
    total = sum(align_up(size, alignment) for size in (*reads, *writes, task.scratch))
    shared: set[int] = set()
    for read, written in task.in_place:
        if read not in shared and written not in shared:
            shared |= {read, written}
            total -= align_up(slices[read].bytes, alignment)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class DmaLimits:
    """Limits that every engine of a machine meets, so that any of them may be chosen.

    They are those of :class:`~spmilp.machine.machine.Engine`, and the controllers that cannot
    express every copy.
    """

    longest: Bytes | None
    dimensions: int | None
    controllers: tuple[Controller, ...] = ()

    def pieces(self, extent: Extents, item: Bytes, strides: Extents) -> tuple[int, ...]:
        """Return into how many pieces along each axis a box must be cut.

        Each piece can then be copied by one transfer from its place in a container of the given
        strides to a packed layout, or back. For too many nested strides, or too many descriptors of
        a controller, the axis that gives the fewest pieces is cut into single positions. For too
        many bytes the outermost one is cut into as few pieces as possible.

        ``extent`` are the elements along each axis, in memory order, ``strides`` the bytes between
        neighbours. Raises a ``SpmilpError`` if not even one element can be moved.
        """
        counts = [1] * len(extent)
        while self._too_much_for_one(_sizes(extent, counts), item, strides):
            axis = self._axis_to_single_out(extent, counts, item, strides)
            counts[axis] = extent[axis]
        while self.longest is not None and prod(_sizes(extent, counts)) * item > self.longest:
            sizes = _sizes(extent, counts)
            long_axes = [axis for axis, size in enumerate(sizes) if size > 1]
            if not long_axes:
                raise SpmilpError(
                    f"longest_bytes: transfers of {self.longest} B hold no element of {item} B"
                )
            outermost = long_axes[0]
            one = prod(sizes[outermost + 1 :]) * item
            fitting = max(1, self.longest // one)
            counts[outermost] = -(-extent[outermost] // fitting)
        return tuple(counts)

    def is_in_units(self, box: Box, shape: Extents, item: Bytes) -> bool:
        """Say whether each controller's unit divides what a box of a tensor says of its copy."""
        if not box or not self.controllers:
            return True
        strides = row_major_strides(shape, item)
        copy = _copy(tuple(end - start for start, end in box), item, strides)
        first = sum(start * stride for (start, _), stride in zip(box, strides, strict=True))
        return not any(
            first % each.granule or any(odd_numbers(copy, each)) for each in self.controllers
        )

    def _too_much_for_one(self, sizes: Extents, item: Bytes, strides: Extents) -> bool:
        """Say whether one transfer has too many dimensions, or takes too many descriptors."""
        if self.dimensions is None and not self.controllers:
            return False
        copy = _copy(sizes, item, strides)
        if self.dimensions is not None and copy.dimensions > self.dimensions:
            return True
        return any(is_too_long(copy, each) for each in self.controllers)

    def _axis_to_single_out(
        self, extent: Extents, counts: list[int], item: Bytes, strides: Extents
    ) -> int:
        """Return the axis to cut: one that suffices and is shortest, else the outermost one."""
        sizes = _sizes(extent, counts)
        axes = sorted((extent[axis], axis) for axis, size in enumerate(sizes) if size > 1)
        for _, axis in axes:
            trial = (*sizes[:axis], 1, *sizes[axis + 1 :])
            if not self._too_much_for_one(trial, item, strides):
                return axis
        return min(axis for _, axis in axes)


def dma_limits(machine: Machine) -> DmaLimits:
    """Return the least limits over a machine's engines."""
    longest = [engine.longest for engine in machine.engines if engine.longest is not None]
    dimensions = [e.dimensions for e in machine.engines if e.dimensions is not None]
    named = {engine.controller for engine in machine.engines}
    return DmaLimits(
        longest=min(longest, default=None),
        dimensions=min(dimensions, default=None),
        controllers=tuple(each for each in PARTIAL if each.name in named),
    )


def _copy(sizes: Extents, item: Bytes, strides: Extents) -> StridedCopy:
    packed = Layout(0, row_major_strides(sizes, item))
    return strided_copy(sizes, item, Layout(0, strides), packed)


def _sizes(extent: Extents, counts: list[int]) -> Extents:
    """Return the extents of the largest piece."""
    return tuple(-(-length // count) for length, count in zip(extent, counts, strict=True))
