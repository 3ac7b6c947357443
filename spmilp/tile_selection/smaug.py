"""SMAUG's tiles: operator by operator, the largest that fit, cut along few axes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from spmilp.errors import DoesNotFitError
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.attributes import integer, integers
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.problem.problem import Problem
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.group_model import GroupModel, TileShrinker
from spmilp.units import Bytes

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


def smaug_problem(subject: NetworkOnMachine) -> Problem:
    """Return the problem of SMAUG's tiles; groups of which tasks do not fit have smaller ones.

    Raises
    ------
    DoesNotFitError
        If the smallest tile of a group fits no core's share of a memory.
    """
    network = subject.network
    share = machine_rates(subject.machine).least_share
    models = {group.name: GroupModel(network, group, subject.machine) for group in network.groups}
    limits = dict.fromkeys(models, share)
    while True:
        subject.go_on()
        tilings = {
            group.index: _tiling(network, models[group.name], share, limits[group.name])
            for group in network.groups
        }
        problem = subject.lower(tilings)
        too_large = groups_that_do_not_fit(problem)
        if not too_large:
            return problem
        _tighten(limits, too_large, tilings, models)


def _tighten(
    limits: dict[str, Bytes],
    too_large: Mapping[str, str],
    tilings: Mapping[int, Tiling],
    models: Mapping[str, GroupModel],
) -> None:
    """Make the limits of groups smaller than what their tiles take now."""
    for name, reason in too_large.items():
        model = models[name]
        taken = model.footprint(tilings[model.group.index]).bytes
        limits[name] = min(limits[name], taken) * 3 // 4
        if model.footprint(model.smallest()[1]).bytes > limits[name]:
            raise DoesNotFitError(reason)


def _tiling(network: Network, model: GroupModel, share: Bytes, limit: Bytes) -> Tiling:
    """Return the tiling of a group: SMAUG's own, or smaller tiles where the limit demands it."""
    convolution = _convolution_of(network, model.group)
    found: Tiling | None = None
    if convolution is not None:
        item = model.input_items[0]
        shapes = tile_shapes(convolution, share // SCRATCHPADS // item)
        found = None if shapes is None else _tiling_of(convolution, shapes)
    found = found or _largest(model, limit) or Tiling(counts=(1,) * len(model.shape))
    for splits_reduction in (False, True):
        fitting = TileShrinker(model, splits_reduction).until_it_fits(found, limit)
        if fitting is not None:
            return fitting
    box, smallest = model.smallest()
    needed = model.footprint(smallest).bytes
    raise DoesNotFitError(
        f"group {model.group.name}: its smallest tile {box} needs {needed} B > {limit} B, "
        "a core's share of its memory; use a machine with larger scratchpads"
    )


def _convolution_of(network: Network, group: Group) -> Convolution | None:
    """Return the anchor as a convolution; ``None`` if it is none of one group and two axes."""
    anchor = group.operators[group.anchor]
    if anchor.kind != "Conv" or len(network.tensors[anchor.output].shape) != 4:
        return None
    if integer(anchor, "group") != 1 or network.tensors[group.output].shape != (
        network.tensors[anchor.output].shape
    ):
        return None
    inputs, weights, results = (
        _channels_last(network.tensors[name].shape) for name in (*anchor.inputs[:2], anchor.output)
    )
    return Convolution(
        inputs=inputs,
        weights=weights,
        results=results,
        stride=integers(anchor, "strides")[0],
        is_padded=any(integers(anchor, "pads")),
    )


def _channels_last(shape: tuple[int, ...]) -> Shape:
    first, channels, rows, columns = shape
    return first, rows, columns, channels


def _tiling_of(convolution: Convolution, shapes: TileShapes) -> Tiling:
    """Return the cut of the output, batch and channels first, that makes tiles of these shapes."""
    rows = shapes.results[ROWS]
    if shapes.inputs[ROWS] < convolution.inputs[ROWS]:
        rows = (shapes.inputs[ROWS] - convolution.weights[ROWS]) // convolution.stride + 1
    sizes = (shapes.results[BATCH], shapes.results[LAST], max(1, rows), shapes.results[COLUMNS])
    batch, length, columns, channels = convolution.results
    counts = tuple(
        -(-whole // size)
        for whole, size in zip((batch, channels, length, columns), sizes, strict=True)
    )
    parts = -(-convolution.weights[LAST] // shapes.weights[LAST])
    return Tiling(counts=counts, parts=parts, multiples=sizes)


def _largest(model: GroupModel, limit: Bytes) -> Tiling | None:
    """Return the largest tiles that fit, cut along the first set of axes along which some do."""
    rank = len(model.shape)
    # Batch first; the channels are behind it in pictures, and last in sequences.
    place = {BATCH: 0, LAST: 1 if rank == 4 else rank - 1, ROWS: rank - 2, COLUMNS: rank - 1}
    tried: set[tuple[int, ...]] = set()
    for axes in PREFERENCE:
        if rank < 4 and COLUMNS in axes:
            continue
        chosen = tuple(sorted({place[axis] for axis in axes if 0 <= place[axis] < rank}))
        if chosen in tried or not all(model.splittable[axis] for axis in chosen[1:]):
            continue
        tried.add(chosen)
        cut = tuple(axis for axis in chosen if model.splittable[axis])
        fitting = _fitting(model, Tiling(counts=(1,) * rank), cut, limit)
        best = max(fitting, key=lambda one: model.footprint(one).bytes, default=None)
        if best is not None:
            return best
    return None


def _fitting(
    model: GroupModel, tiling: Tiling, axes: tuple[int, ...], limit: Bytes
) -> Iterator[Tiling]:
    """Yield tilings that fit: any cut of all axes but the last, and the coarsest of that one."""
    if not axes:
        if model.footprint(tiling).bytes <= limit:
            yield tiling
        return
    first, *others = axes
    if not others:
        coarsest = _coarsest(model, tiling, first, limit)
        if coarsest is not None:
            yield coarsest
        return
    length = model.shape[first]
    for count in sorted({-(-length // size) for size in range(1, length + 1)}):
        yield from _fitting(model, tiling.with_count(first, count), tuple(others), limit)


def _coarsest(model: GroupModel, tiling: Tiling, axis: int, limit: Bytes) -> Tiling | None:
    """Return the cut of one axis into the fewest tiles that fit."""
    fewest, most = 1, model.shape[axis]
    if model.footprint(tiling.with_count(axis, most)).bytes > limit:
        return None
    while fewest < most:
        middle = (fewest + most) // 2
        if model.footprint(tiling.with_count(axis, middle)).bytes <= limit:
            most = middle
        else:
            fewest = middle + 1
    return tiling.with_count(axis, most)
