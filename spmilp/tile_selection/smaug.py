"""SMAUG's tiles: operator by operator, the largest that its scratchpads hold, cut along few axes.

Xi et al., "SMAUG: End-to-End Full-Stack Simulation Infrastructure for Deep Learning Workloads",
ACM TACO 17(4), 2020, doi 10.1145/3424669; the rules are those of its program at 8fd68e6. It has
three scratchpads of equal size, for inputs, weights and results. Each tensor of a convolution is
cut along the first set of axes, in a fixed order of preference, of which the smallest tile fits;
then, of all triples of tiles along these axes, the one with the largest sum is taken.

What it leaves open here, and what is done: a core's share of its memory stands for its three
scratchpads. Groups of operators that are no convolution of one group with two axes are cut along
the first of its sets of axes along which tiles fit, into the largest that do. A tile of a
convolution at the edge has rows of padding there; here all have as many rows as those without.
Where operands beside these three do not fit, tiles are cut further.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from spmilp.errors import DoesNotFitError
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.problem.problem import Problem
from spmilp.tile_selection.coarse import tilings_that_fit
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.group_model import GroupModel, TileShrinker
from spmilp.units import Bytes

SCRATCHPADS = 3
"""Of SMAUG's accelerator: inputs, weights and outputs have one each; here each gets a third."""

CHANNELS, FEATURES = 32, 8
"""Steps in which input and output channels are cut: multipliers of each unit, and units."""

Shape = tuple[int, int, int, int]

BATCH, ROWS, COLUMNS, LAST = range(4)
"""Axes of tensors with channels last; of weights, output channels, rows, columns, channels."""

PREFERENCE: tuple[frozenset[int], ...] = (
    frozenset(),
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
class TileShapes:
    """Shapes of the three tensors of a convolution of one group, or of tiles of them.

    Parameters
    ----------
    inputs
        Batch, rows, columns, channels.
    weights
        Output channels, rows, columns, channels.
    results
        Batch, rows, columns, output channels.
    """

    inputs: Shape
    weights: Shape
    results: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution(TileShapes):
    """A convolution of one group.

    Parameters
    ----------
    stride
        Of rows.
    is_padded
        Whether results have as many rows as inputs, but for the stride.
    """

    stride: int = 1
    is_padded: bool = True


def smaug_problem(subject: NetworkOnMachine) -> Problem:
    """Return the problem of SMAUG's tiles; groups of which tasks do not fit have smaller ones.

    Raises
    ------
    DoesNotFitError
        If the smallest tile of a group fits no core's share of a memory, or no tiles are found
        that do.
    """
    network, machine = subject.network, subject.machine
    share = machine_rates(machine).least_share
    models = [GroupModel(network, group, machine) for group in network.groups]
    tilings = {model.group.index: _tiling(network, model, share) for model in models}
    return tilings_that_fit(network, machine, [tilings], subject.lower, go_on=subject.go_on)[1]


def tile_shapes(convolution: Convolution, most: int) -> TileShapes | None:
    """Return SMAUG's tiles; ``None`` if its smallest ones do not fit.

    Parameters
    ----------
    most
        Elements that each of the three scratchpads holds.
    """

    def elements(one: TileShapes) -> int:
        return sum(map(prod, (one.inputs, one.weights, one.results)))

    return max(_all_tile_shapes(convolution, most), key=elements, default=None)


def _all_tile_shapes(one: Convolution, most: int) -> Iterator[TileShapes]:
    """Yield all triples along the axes that suit each tensor and each other."""
    features, rows, columns, channels = one.weights
    width, wide = one.inputs[COLUMNS], one.results[COLUMNS]
    of_inputs = _first_axes(one.inputs, (1, rows, width, CHANNELS), most)
    of_weights = _first_axes(one.weights, (FEATURES, rows, columns, CHANNELS), most)
    of_results = _first_axes(one.results, (1, 1, wide, FEATURES), most)
    if of_inputs is None or of_weights is None or of_results is None:
        return
    if of_weights & {ROWS, COLUMNS} or COLUMNS in of_inputs | of_results:
        return
    are_rows_cut = ROWS in of_inputs or (ROWS in of_results and BATCH not in of_weights)
    # Channels of weights are cut as those of inputs are, where these are.
    follows = LAST in of_inputs or LAST not in of_weights
    for inputs in _input_tiles(one, of_inputs, most):
        length = one.results[ROWS]
        if are_rows_cut:
            padding = rows // 2 if one.is_padded else 0
            length = (inputs[ROWS] - rows + padding) // one.stride + 1
        for own in _steps(features, FEATURES) if BATCH in of_weights else [features]:
            lasts = [min(channels, inputs[LAST])] if follows else _steps(channels, CHANNELS)
            for weights in ((own, rows, columns, last) for last in lasts):
                if prod(weights) > most:
                    continue
                is_free = of_results and not of_weights and not are_rows_cut
                for last in _steps(features, FEATURES) if is_free else [own]:
                    results = (inputs[BATCH], length, wide, last)
                    if prod(results) <= most:
                        yield TileShapes(inputs=inputs, weights=weights, results=results)


def _first_axes(shape: Shape, least: Shape, most: int) -> frozenset[int] | None:
    """Return the first set of axes along which a tile can be so small that it fits."""
    for axes in PREFERENCE:
        tile = (min(least[axis], shape[axis]) if axis in axes else shape[axis] for axis in range(4))
        if prod(tile) <= most:
            return axes
    return None


def _input_tiles(one: Convolution, axes: frozenset[int], most: int) -> Iterator[Shape]:
    """Yield the tiles of inputs that fit: whole along all but some axes."""
    batch, rows, columns, last = one.inputs
    batches = _steps(batch, 1) if BATCH in axes else [batch]
    heights = _steps(rows, one.stride, one.weights[ROWS]) if ROWS in axes else [rows]
    depths = _steps(last, CHANNELS) if LAST in axes else [last]
    for tile in ((b, r, columns, d) for b in batches for r in heights for d in depths):
        if prod(tile) <= most:
            yield tile


def _steps(length: int, step: int, least: int | None = None) -> list[int]:
    """Return lengths from the least one on, the whole one too."""
    return sorted({*range(min(least or step, length), length, step), length})


def _tiling(network: Network, model: GroupModel, share: Bytes) -> Tiling:
    """Return the tiling of a group: SMAUG's own, cut further where the share demands it."""
    convolution = _convolution_of(network, model.group)
    found: Tiling | None = None
    if convolution is not None:
        most = share // SCRATCHPADS // model.input_items[0]
        shapes = tile_shapes(convolution, most)
        found = None if shapes is None else _tiling_of(convolution, shapes)
    found = found or _along_preferred_axes(model, share) or model.uncut
    for splits_reduction in (False, True):
        fitting = TileShrinker(model, splits_reduction).until_it_fits(found, share)
        if fitting is not None:
            return fitting
    box, smallest = model.smallest()
    needed = model.footprint(smallest).bytes
    raise DoesNotFitError(
        f"group {model.group.name}: its smallest tile {box} needs {needed} B > {share} B, "
        "a core's share of its memory; use a machine with larger scratchpads"
    )


def _convolution_of(network: Network, group: Group) -> Convolution | None:
    """Return the anchor as a convolution; ``None`` if it is none of one group and two axes."""
    anchor = group.operators[group.anchor]
    shape = network.tensors[anchor.output].shape
    if anchor.kind != "Conv" or len(shape) != 4 or anchor.integer("group") != 1:
        return None
    if network.tensors[group.output].shape != shape:
        return None

    def channels_last(name: str) -> Shape:
        first, channels, rows, columns = network.tensors[name].shape
        return first, rows, columns, channels

    return Convolution(
        inputs=channels_last(anchor.inputs[0]),
        weights=channels_last(anchor.inputs[1]),
        results=channels_last(anchor.output),
        stride=anchor.integers("strides")[0],
        is_padded=any(anchor.integers("pads")),
    )


def _tiling_of(convolution: Convolution, shapes: TileShapes) -> Tiling:
    """Return the cut of the output, batch and channels first, that makes tiles of these shapes."""
    rows = shapes.results[ROWS]
    if shapes.inputs[ROWS] < convolution.inputs[ROWS]:
        rows = (shapes.inputs[ROWS] - convolution.weights[ROWS]) // convolution.stride + 1
    sizes = (shapes.results[BATCH], shapes.results[LAST], max(1, rows), shapes.results[COLUMNS])
    batch, length, columns, channels = convolution.results
    counts = (
        -(-n // size) for n, size in zip((batch, channels, length, columns), sizes, strict=True)
    )
    parts = -(-convolution.weights[LAST] // shapes.weights[LAST])
    return Tiling(counts=tuple(counts), parts=parts, multiples=sizes)


def _along_preferred_axes(model: GroupModel, share: Bytes) -> Tiling | None:
    """Return tiles that fit, cut along the first set of axes along which some do."""
    rank = len(model.shape)
    # Batch first; the channels are behind it in pictures, and last in sequences.
    place = {BATCH: 0, LAST: 1 if rank == 4 else rank - 1, ROWS: rank - 2, COLUMNS: rank - 1}
    for axes in PREFERENCE:
        if rank == 4 or COLUMNS not in axes:
            chosen = [place[axis] for axis in axes if 0 <= place[axis] < rank]
            shrinker = TileShrinker(model, splits_reduction=False, axes=chosen)
            found = shrinker.until_it_fits(model.uncut, share)
            if found is not None:
                return found
    return None
