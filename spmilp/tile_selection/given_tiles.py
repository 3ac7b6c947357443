"""Tilings that are given: pinned by people, or those of an earlier problem."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress

from spmilp.errors import PinError, SpmilpError
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.regions import splittable_axes
from spmilp.lowering.groups import reduction_length
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.problem.named_pins import Known, TilesRow
from spmilp.problem.problem import Problem, Tile


def pinned_tilings(network: Network, rows: Iterable[TilesRow]) -> Tilings:
    """Return the tilings of the groups that are pinned, by index.

    Raises
    ------
    PinError
        If a name is no group's, a group is pinned twice, or it cannot be cut like that.
    """
    found: Tilings = {}
    groups = Known("group", [(group.name, "") for group in network.groups])
    for row in rows:
        for index in groups.all(row.group):
            group = network.groups[index]
            tiling = _tiling_from(row.tiles, is_scalar=not network.tensors[group.output].shape)
            if found.setdefault(index, tiling) != tiling:
                raise PinError(
                    f"pins: group {group.name} is pinned to tiles {found[index].describe()} and to "
                    f"{tiling.describe()}"
                )
            _refuse_what_cannot_be_cut(network, group, tiling)
    return found


def _tiling_from(text: str, *, is_scalar: bool) -> Tiling:
    counts, _, parts = text.partition("/")
    numbers = () if is_scalar and counts == "1" else tuple(map(int, counts.split("x")))
    try:
        return Tiling(counts=numbers, parts=int(parts or 1))
    except ValueError as error:
        raise PinError(f"pins: {error}") from error


def _refuse_what_cannot_be_cut(network: Network, group: Group, tiling: Tiling) -> None:
    shape = network.tensors[group.output].shape
    who = f"pins: tiles {tiling.describe()} of group {group.name}"
    size = "x".join(map(str, shape)) or "of one element"
    if len(tiling.counts) != len(shape):
        raise PinError(f"{who}: {len(tiling.counts)} counts, but its output is {size}")
    able = splittable_axes(network, group)
    for axis, (count, length, can) in enumerate(zip(tiling.counts, shape, able, strict=False)):
        if count > length:
            raise PinError(f"{who}: {count} tiles along axis {axis}, which has {length} elements")
        if count > 1 and not can:
            raise PinError(f"{who}: its output {size} cannot be cut along axis {axis}")
    reduction = reduction_length(network, group)
    if tiling.parts > reduction:
        raise PinError(f"{who}: {tiling.parts} parts of a reduction of {reduction} elements")


def tilings_of(problem: Problem, network: Network) -> Tilings:
    """Return for each group of a network a tiling that may have made a problem's tasks.

    Only lowering the network with these tilings shows whether they make exactly this problem.

    Raises
    ------
    SpmilpError
        If the tasks are not tiles of just these groups.
    """
    tiles = _tiles_of(problem)
    for name in tiles.keys() - {group.name for group in network.groups}:
        raise SpmilpError(f"it has tasks of {name or 'no operator'}, which the model has not")
    return {group.index: _tiling(group, tiles[group.name], network) for group in network.groups}


def tilings_still_there(problem: Problem, network: Network) -> Tilings:
    """Return the tilings of the groups that a network has in common with a problem's network.

    Groups are the same if they have the same name and the same shape of output.
    """
    tiles = _tiles_of(problem)
    found: Tilings = {}
    for group in network.groups:
        boxes = (tile.box for tile in tiles[group.name])
        ends = tuple(max(end for _, end in axis) for axis in zip(*boxes, strict=False))
        if ends == network.tensors[group.output].shape:
            with suppress(SpmilpError):
                found[group.index] = _tiling(group, tiles[group.name], network)
    return found


def _tiles_of(problem: Problem) -> dict[str, list[Tile]]:
    """Return the tiles of each group by its name; tasks without one are those of no group, ""."""
    tiles: dict[str, list[Tile]] = defaultdict(list)
    for task in problem.tasks:
        tiles[task.tile.of if task.tile else ""] += [task.tile] if task.tile else []
    return tiles


def _tiling(group: Group, tiles: Sequence[Tile], network: Network) -> Tiling:
    shape, boxes = network.tensors[group.output].shape, [tile.box for tile in tiles]
    if not boxes or any(len(box) != len(shape) for box in boxes):
        raise SpmilpError(f"it has no tiles of {group.name}, whose shape is {shape}")
    counts = tuple(len(set(axis)) for axis in zip(*boxes, strict=True))
    return Tiling(counts=counts, parts=len({tile.reduction for tile in tiles}))
