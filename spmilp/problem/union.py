"""Bytes of each buffer that tasks read: exact, though slices overlap."""

from bisect import bisect_left
from itertools import product

from spmilp.problem.problem import Problem, Slice
from spmilp.units import Bytes


def bytes_read_of_buffers(problem: Problem) -> tuple[Bytes, ...]:
    """For each buffer, the bytes that at least one task reads; each byte counts once."""
    read: dict[int, set[int]] = {}
    for task in problem.tasks:
        for index in task.reads:
            read.setdefault(problem.slices[index].buffer, set()).add(index)
    return tuple(
        _union(problem, buffer.index, sorted(read.get(buffer.index, ())))
        for buffer in problem.buffers
    )


def _union(problem: Problem, buffer: int, slices: list[int]) -> Bytes:
    if buffer in slices:
        return problem.buffers[buffer].bytes
    if len(slices) < 2:
        return sum(problem.slices[index].bytes for index in slices)
    return _elements([problem.slices[index] for index in slices]) * problem.buffers[buffer].item


def _elements(boxes: list[Slice]) -> int:
    """Count the elements of a union of boxes, on the grid of all their edges."""
    axes = range(len(boxes[0].start))
    edges = [
        sorted({e for box in boxes for e in (box.start[a], box.start[a] + box.extent[a])})
        for a in axes
    ]
    covered: set[tuple[int, ...]] = set()
    for box in boxes:
        covered.update(
            product(
                *(
                    range(
                        bisect_left(edges[a], box.start[a]),
                        bisect_left(edges[a], box.start[a] + box.extent[a]),
                    )
                    for a in axes
                )
            )
        )
    total = 0
    for cell in covered:
        volume = 1
        for axis, position in enumerate(cell):
            volume *= edges[axis][position + 1] - edges[axis][position]
        total += volume
    return total
