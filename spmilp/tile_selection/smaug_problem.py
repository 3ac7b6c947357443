"""A network in SMAUG's tiles: operator by operator, the largest that fit, cut along few axes.

What SMAUG leaves open here, and what is done: a core's share of its memory stands for its three
scratchpads. Its rules (:mod:`spmilp.tile_selection.smaug`) are those for convolutions of one group
with two axes; any other group of operators is cut along the first of its sets of axes along which
tiles fit, into the largest that do. A tile of a convolution at the edge has rows of padding there;
here all have as many rows as those without. Where operands beside these three do not fit, tiles are
cut further.
"""

from collections.abc import Iterator, Mapping

from spmilp.errors import DoesNotFitError
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.attributes import integer, integers
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.problem.problem import Problem
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.group_model import GroupModel
from spmilp.tile_selection.shrinker import TileShrinker
from spmilp.tile_selection.smaug import (
    BATCH,
    COLUMNS,
    LAST,
    PREFERENCE,
    ROWS,
    SCRATCHPADS,
    Convolution,
    Shape,
    TileShapes,
    tile_shapes,
)
from spmilp.units import Bytes


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
