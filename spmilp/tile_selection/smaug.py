"""SMAUG's tiles of a convolution: the largest ones that its scratchpads hold.

Xi et al., "SMAUG: End-to-End Full-Stack Simulation Infrastructure for Deep Learning Workloads",
ACM TACO 17(4), 2020, doi 10.1145/3424669; the rules are those of its program at 8fd68e6. It has
three scratchpads of equal size, for inputs, weights and results. Each tensor is cut along the first
set of axes, in a fixed order of preference, of which the smallest tile fits; then, of all triples
of tiles along these axes, the one with the largest sum is taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

SCRATCHPADS = 3
CHANNELS, FEATURES = 32, 8
"""Steps in which input and output channels are cut: multipliers of each unit, and units."""

Shape = tuple[int, int, int, int]

BATCH, ROWS, COLUMNS, LAST = range(4)
"""Axes of tensors with channels last; of weights, output channels, rows, columns, channels."""

PREFERENCE = (
    frozenset[int](),
    frozenset({BATCH}),
    frozenset({BATCH, LAST}),
    frozenset({BATCH, ROWS}),
    frozenset({BATCH, COLUMNS}),
    frozenset({BATCH, ROWS, COLUMNS}),
    frozenset({BATCH, LAST, ROWS}),
    frozenset({BATCH, LAST, COLUMNS}),
)
"""Sets of axes in the order in which they are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution of one group.

    Parameters
    ----------
    inputs
        Batch, rows, columns, channels.
    weights
        Output channels, rows, columns, channels.
    results
        Batch, rows, columns, output channels.
    stride
        Of rows.
    is_padded
        Whether results have as many rows as inputs, but for the stride.
    """

    inputs: Shape
    weights: Shape
    results: Shape
    stride: int = 1
    is_padded: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TileShapes:
    """Shapes of the tiles of a convolution's three tensors; axes as in :class:`Convolution`."""

    inputs: Shape
    weights: Shape
    results: Shape

    @property
    def elements(self) -> int:
        """The elements of the three together."""
        return sum(map(prod, (self.inputs, self.weights, self.results)))


def tile_shapes(convolution: Convolution, most: int) -> TileShapes | None:
    """Return SMAUG's tiles; ``None`` if its smallest ones do not fit.

    Parameters
    ----------
    most
        Elements that each of the three scratchpads holds.
    """
    found = _all_tile_shapes(convolution, most)
    return max(found, key=lambda one: one.elements, default=None)


def _first_axes(shape: Shape, least: Shape, most: int) -> frozenset[int] | None:
    """Return the first set of axes along which a tile can be so small that it fits."""
    for axes in PREFERENCE:
        tile = (min(least[axis], shape[axis]) if axis in axes else shape[axis] for axis in range(4))
        if prod(tile) <= most:
            return axes
    return None


def _all_tile_shapes(one: Convolution, most: int) -> Iterator[TileShapes]:
    """Yield all triples along the axes that suit each tensor and each other."""
    _, rows, columns, _ = one.weights
    width, wide = one.inputs[COLUMNS], one.results[COLUMNS]
    of_inputs = _first_axes(one.inputs, (1, rows, width, CHANNELS), most)
    of_weights = _first_axes(one.weights, (FEATURES, rows, columns, CHANNELS), most)
    of_results = _first_axes(one.results, (1, 1, wide, FEATURES), most)
    if of_inputs is None or of_weights is None or of_results is None:
        return
    if of_weights & {ROWS, COLUMNS} or COLUMNS in of_inputs | of_results:
        return
    are_rows_cut = ROWS in of_inputs or (ROWS in of_results and BATCH not in of_weights)
    for inputs in _tiles(one.inputs, of_inputs, (1, rows, width, CHANNELS), one.stride, most):
        for weights in _weight_tiles(one, inputs, of_inputs, of_weights, most):
            length = _rows_of_results(one, inputs, are_rows_cut)
            features = [weights[BATCH]]
            if of_results and not of_weights and not are_rows_cut:
                features = _steps(one.weights[BATCH], FEATURES)
            for last in features:
                results = (inputs[BATCH], length, wide, last)
                if prod(results) <= most:
                    yield TileShapes(inputs=inputs, weights=weights, results=results)


def _rows_of_results(one: Convolution, inputs: Shape, are_cut: bool) -> int:
    """Return the rows that a tile of inputs gives, those of the padding at one end included."""
    if not are_cut:
        return one.results[ROWS]
    padding = one.weights[ROWS] // 2 if one.is_padded else 0
    return (inputs[ROWS] - one.weights[ROWS] + padding) // one.stride + 1


def _tiles(
    shape: Shape, axes: frozenset[int], least: Shape, stride: int, most: int
) -> Iterator[Shape]:
    """Yield the tiles of inputs that fit: whole along all but some axes."""
    steps = (1, stride, 1, CHANNELS)
    lengths = [
        _steps(shape[axis], steps[axis], least[axis]) if axis in axes else [shape[axis]]
        for axis in range(4)
    ]
    for batch in lengths[BATCH]:
        for rows in lengths[ROWS]:
            for last in lengths[LAST]:
                if batch * rows * shape[COLUMNS] * last <= most:
                    yield batch, rows, shape[COLUMNS], last


def _weight_tiles(
    one: Convolution, inputs: Shape, of_inputs: frozenset[int], axes: frozenset[int], most: int
) -> Iterator[Shape]:
    """Yield the tiles of weights for a tile of inputs, with its channels where these are cut."""
    features, rows, columns, channels = one.weights
    follows = LAST in of_inputs or LAST not in axes
    for own in _steps(features, FEATURES) if BATCH in axes else [features]:
        for last in [min(channels, inputs[LAST])] if follows else _steps(channels, CHANNELS):
            if own * rows * columns * last <= most:
                yield own, rows, columns, last


def _steps(length: int, step: int, least: int | None = None) -> list[int]:
    """Return lengths from the least one on, the whole one too."""
    return sorted({*range(min(least or step, length), length, step), length})
