"""Copies at equal distances as turns of one loop."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from spmilp.export.actions.actions import Copy
from spmilp.export.player.kernels import RANK
from spmilp.units import Bytes


def joined(copies: Iterable[Copy]) -> tuple[Copy, ...]:
    """Return the same bytes in fewer copies: those at equal distances are turns of one loop."""
    found = list(copies)
    count = 0
    while count != len(found):
        count = len(found)
        found = list(_with_another_loop(found))
    return tuple(found)


def _with_another_loop(copies: Sequence[Copy]) -> Iterator[Copy]:
    first = 0
    while first < len(copies):
        one, end = copies[first], first + 1
        while end < len(copies) and _is_next(copies[first:end], copies[end]):
            end += 1
        if end == first + 1:
            yield one
        else:
            steps = _steps(one, copies[first + 1])
            yield replace(
                one, shape=replace(one.shape, loops=((end - first, *steps), *one.shape.loops))
            )
        first = end


def _is_next(turns: Sequence[Copy], copy: Copy) -> bool:
    """Say whether a copy can be the next turn of a loop."""
    one = turns[0]
    steps = _steps(turns[-1], copy)
    return (
        copy.shape == one.shape
        and copy.source.space == one.source.space
        and copy.destination.space == one.destination.space
        and len(one.shape.loops) < RANK
        and min(steps) >= 0
        and (len(turns) == 1 or steps == _steps(one, turns[1]))
    )


def _steps(one: Copy, other: Copy) -> tuple[Bytes, Bytes]:
    return (
        other.source.offset - one.source.offset,
        other.destination.offset - one.destination.offset,
    )
