"""Find the residencies inside one DRAM tensor whose boxes of elements overlap."""

from collections.abc import Iterator
from operator import add

from spmilp.checker.rules.case import Case
from spmilp.plan.plan import Residency
from spmilp.units import Box, ResidencyIdx, SliceIdx


def overlapping_boxes(case: Case) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield each two residencies at their places that share elements at some cycle.

    Two that are both there at cycle 0 show the same bytes, and nothing writes them: they may.
    """
    per_tensor: dict[int, list[ResidencyIdx]] = {}
    written: set[int] = set()
    for stay, home in zip(case.plan.residencies, case.home, strict=True):
        if home is not None:
            per_tensor.setdefault(home, []).append(stay.index)
            if _is_written(stay):
                written.add(home)
    for tensor in sorted(written):
        yield from _pairs_in(case, per_tensor[tensor])


def _pairs_in(
    case: Case, residencies: list[ResidencyIdx]
) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Sweep along the axis that separates the boxes best."""
    found = []
    for residency in residencies:
        stay = case.plan.residencies[residency]
        if stay.slice is not None:
            found.append((_box_in_tensor(case, stay.slice), stay))
    axes = range(len(found[0][0]))
    axis = max(axes, key=lambda a: (len({box[a] for box, _ in found}), -a), default=None)
    if axis is not None:
        found.sort(key=lambda item: (item[0][axis], item[1].index))
    alive: list[tuple[Box, Residency]] = []
    for box, stay in found:
        if axis is not None:
            alive = [item for item in alive if item[0][axis][1] > box[axis][0]]
        for other, earlier in alive:
            if _conflict(earlier, stay) and _share_elements(other, box):
                yield earlier.index, stay.index
        alive.append((box, stay))


def _box_in_tensor(case: Case, slice_: SliceIdx) -> Box:
    """Return the elements of the tensor at which a slice of a placed buffer lies."""
    part = case.problem.slices[slice_]
    place = case.problem.buffers[part.buffer].place
    start = part.start if place is None else tuple(map(add, place.start, part.start))
    return tuple((first, first + count) for first, count in zip(start, part.extent, strict=True))


def _is_written(stay: Residency) -> bool:
    return stay.filled_by_task is not None or stay.filled_by_transfer is not None


def _conflict(one: Residency, other: Residency) -> bool:
    in_time = one.start < other.end and other.start < one.end
    return in_time and (_is_written(one) or _is_written(other))


def _share_elements(one: Box, other: Box) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))
