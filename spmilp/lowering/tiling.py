"""The cut of a group's output into tiles and of its reduction into parts; names of boxes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod

from spmilp.units import Box, Extents

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """A grid of output tiles of one group.

    Parameters
    ----------
    counts
        Tiles along each axis of the group's output; at least 1 each, none for a scalar.
    parts
        Parts of the anchor's reduction; each tile is then a chain of that many partial sums.
    multiples
        Tile sizes along each axis are multiples of this, but for the last tile; empty for 1.
        There may then be fewer tiles than ``counts`` says.
    waves
        Successive groups of equally many waves compute one after another for the first part of
        their first axis (the batch), then for the next part, and so on, as many times.
    """

    counts: tuple[int, ...]
    parts: int = 1
    multiples: tuple[int, ...] = ()
    waves: int = 1

    def __post_init__(self) -> None:
        if any(count < 1 for count in (*self.counts, self.parts, *self.multiples, self.waves)):
            raise ValueError(f"tiling {self.describe()}: counts and multiples must be positive")
        if self.waves > 1 and (not self.counts or self.counts[0] % self.waves):
            raise ValueError(
                f"tiling {self.describe()}: {self.counts[:1]} tiles along the first axis in "
                f"{self.waves} waves, expected a multiple"
            )
        if self.multiples and len(self.multiples) != len(self.counts):
            raise ValueError(
                f"tiling {self.describe()}: {len(self.multiples)} multiples for "
                f"{len(self.counts)} axes"
            )

    def with_count(self, axis: int, count: int) -> "Tiling":
        """Return it with another number of tiles along one axis."""
        return replace(self, counts=(*self.counts[:axis], count, *self.counts[axis + 1 :]))

    def describe(self) -> str:
        """Return the counts for people: ``1x2x8x1``, ``/4`` for four parts, ``~2`` for waves."""
        counts = "x".join(map(str, self.counts)) or "1"
        parts = "" if self.parts == 1 else f"/{self.parts}"
        return counts + parts + ("" if self.waves == 1 else f"~{self.waves}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TileGrid:
    """The tiles of one group.

    Parameters
    ----------
    axes
        Half-open intervals of elements along each axis of the output, in order.
    parts
        Half-open intervals of the reduction, in order.
    """

    axes: tuple[tuple[Interval, ...], ...]
    parts: tuple[Interval, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Tiles along each axis."""
        return tuple(map(len, self.axes))

    @property
    def tiles(self) -> int:
        """Number of output tiles."""
        return prod(self.counts)

    def boxes(self) -> Iterator[Box]:
        """Yield the output boxes in row-major order."""
        return product(*self.axes)


def tile_grid(tiling: Tiling, shape: Extents, reduction: int) -> TileGrid:
    """Return the tiles of an output of ``shape`` whose anchor reduces ``reduction`` elements.

    Raises
    ------
    ValueError
        If the tiling has another number of axes than the output.
    """
    if len(tiling.counts) != len(shape):
        raise ValueError(
            f"tiling {tiling.describe()}: {len(tiling.counts)} counts for {len(shape)} axes"
        )
    multiples = tiling.multiples or (1,) * len(shape)
    return TileGrid(
        axes=tuple(map(split, shape, tiling.counts, multiples)),
        parts=split(reduction, tiling.parts),
    )


@lru_cache(maxsize=1 << 14)
def split(length: int, count: int, multiple: int = 1) -> tuple[Interval, ...]:
    """Cut ``length`` elements into at most ``count`` pieces, as equal as possible.

    Sizes are multiples of ``multiple``, but for the last one. Piece ``i`` begins at the floor of
    ``i * length / count`` (in units of ``multiple``): cuts of two tensors of different lengths into
    equally many pieces then lie at proportional places, so that strips of successive layers match.
    """
    units = -(-length // multiple)
    count = min(count, units)
    starts = [index * units // count * multiple for index in range(count)]
    return tuple(zip(starts, [*starts[1:], length], strict=True))


def box_name(of: str, box: Box, shape: Extents) -> str:
    """Return a readable name, as ``conv1[0,0:16,0:14,:]``; the plain one for the whole shape.

    An axis that is whole is ``:``, a single position its number.
    """
    if all((start, stop) == (0, length) for (start, stop), length in zip(box, shape, strict=True)):
        return of
    axes = (_interval(*interval, length) for interval, length in zip(box, shape, strict=True))
    return f"{of}[{','.join(axes)}]"


def _interval(start: int, stop: int, length: int) -> str:
    if stop - start == 1:
        return str(start)
    return ":" if (start, stop) == (0, length) else f"{start}:{stop}"
