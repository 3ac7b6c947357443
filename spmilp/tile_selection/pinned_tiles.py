"""Tiles that people have pinned: names of groups and counts as text, to tilings."""

from collections.abc import Iterable

from spmilp.errors import PinError
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import reduction_length, splittable_axes
from spmilp.lowering.tiling import Tiling
from spmilp.problem.named_pins import Known, TilesRow
from spmilp.tile_selection.initial import Tilings


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
            tiling = _tiling(row.tiles, is_scalar=not network.tensors[group.output].shape)
            if found.setdefault(index, tiling) != tiling:
                raise PinError(
                    f"pins: group {group.name} is pinned to tiles {found[index].describe()} and to "
                    f"{tiling.describe()}"
                )
            _refuse_what_cannot_be_cut(network, group, tiling)
    return found


def _tiling(text: str, *, is_scalar: bool) -> Tiling:
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
