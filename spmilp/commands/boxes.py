"""Who touched which elements of one DRAM tensor last."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from spmilp.units import Box

NOBODY = -1


class Boxes:
    """The boxes of a tensor that anybody touches, each with its last writer and later readers.

    Unlike bytes of a scratchpad, the boxes of a tensor are few and the same again and again: which
    of them overlap is found once. What an activity has to come after is then looked up in them;
    some of it may be long past, and is left to the reduction.
    """

    def __init__(self, boxes: AbstractSet[Box]) -> None:
        distinct = sorted(boxes)
        self._overlapping: dict[Box, list[Box]] = {box: [box] for box in distinct}
        for one, other in _overlapping_pairs(distinct):
            self._overlapping[one].append(other)
            self._overlapping[other].append(one)
        self._writer = dict.fromkeys(distinct, NOBODY)
        self._readers: dict[Box, dict[int, int]] = {box: {} for box in distinct}

    def read(self, activity: int, of_list: int, box: Box) -> Iterator[int]:
        """Note a read; yield the writers that it must come after."""
        for other in self._overlapping[box]:
            if self._writer[other] != NOBODY:
                yield self._writer[other]
        self._readers[box][of_list] = activity

    def write(self, activity: int, box: Box) -> Iterator[int]:
        """Note a write; yield the readers and writers that it must come after."""
        for other in self._overlapping[box]:
            yield from self._readers[other].values()
            if self._writer[other] != NOBODY:
                yield self._writer[other]
        self._writer[box] = activity
        self._readers[box] = {}


def _overlapping_pairs(boxes: list[Box]) -> Iterator[tuple[Box, Box]]:
    """Sweep along the axis that has the most different beginnings."""
    axes = range(len(boxes[0])) if boxes else range(0)
    axis = max(axes, key=lambda a: (len({box[a] for box in boxes}), -a), default=None)
    if axis is None:
        return
    alive: list[Box] = []
    for box in sorted(boxes, key=lambda each: (each[axis], each)):
        alive = [other for other in alive if other[axis][1] > box[axis][0]]
        for other in alive:
            if all(a < d and c < b for (a, b), (c, d) in zip(other, box, strict=True)):
                yield other, box
        alive.append(box)
