"""Tilings cut further until a tile fits."""

from collections.abc import Callable, Collection, Iterator

from spmilp.lowering.tiling import Tiling
from spmilp.tile_selection.group_model import GroupModel
from spmilp.units import Bytes


class TileShrinker:
    """Cuts tilings further and further, each into the one with the smallest working set.

    The way is the same for every limit, so steps are remembered.

    Parameters
    ----------
    splits_reduction
        Whether the reduction may be cut.
    axes
        Those of the output that may be cut; all of them by default.
    bytes_of
        The working set of a tiling; that of its footprint by default.
    """

    def __init__(
        self,
        model: GroupModel,
        splits_reduction: bool,
        bytes_of: Callable[[Tiling], Bytes] | None = None,
        *,
        axes: Collection[int] | None = None,
    ) -> None:
        self._model = model
        self._bytes_of = bytes_of or (lambda tiling: model.footprint(tiling).bytes)
        self._splits_reduction = splits_reduction
        self._axes = range(len(model.shape)) if axes is None else axes
        self._next: dict[Tiling, Tiling | None] = {}

    def until_it_fits(self, tiling: Tiling, limit: Bytes) -> Tiling | None:
        """Return the first tiling whose largest tile fits; ``None`` if there is none."""
        found: Tiling | None = tiling
        while found is not None and self._bytes_of(found) > limit:
            if found not in self._next:
                self._next[found] = min(self._one_step(found), key=self._bytes_of, default=None)
            found = self._next[found]
        return found

    def _one_step(self, tiling: Tiling) -> Iterator[Tiling]:
        """Yield the tilings with twice the tiles along one axis, or twice the parts."""
        model = self._model
        for axis, splits in enumerate(model.splittable):
            length, count = model.shape[axis], tiling.counts[axis]
            if axis in self._axes and splits and count < length:
                more = tiling.with_count(axis, min(2 * count, length))
                multiples = tiling.multiples
                if multiples and 2 * count * multiples[axis] > length:
                    multiples = (*multiples[:axis], 1, *multiples[axis + 1 :])
                yield Tiling(counts=more.counts, parts=tiling.parts, multiples=multiples)
        if self._splits_reduction and tiling.parts < model.reduction:
            parts = min(2 * tiling.parts, model.reduction)
            yield Tiling(counts=tiling.counts, parts=parts, multiples=tiling.multiples)
