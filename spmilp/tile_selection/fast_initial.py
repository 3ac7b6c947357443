"""Tilings that fit, chosen without comparing any: for a plan in the first seconds."""

from collections.abc import Hashable, Mapping
from math import prod

from spmilp.frontend.graph import Network
from spmilp.lowering.groups import class_of
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.tile_selection.candidates import TileShrinker
from spmilp.tile_selection.group_model import GroupModel
from spmilp.units import Bytes

WORKING_SET = 0.7
"""Part of a core's memory that a tile may need: larger tiles are fewer, and sooner scheduled."""

MOST_PAIRS = 400_000
"""Of tiles of a group and of one that it reads: of more it takes too long to make a problem."""


def fast_initial_tilings(network: Network, machine: Machine) -> dict[int, Tiling] | None:
    """Return a tiling for each group, by index: a tile for each core, or as many as fit.

    The longest axes of the output are cut. ``None`` where a group does not fit in this way, and
    where tiles become so many that the plan would not come soon.
    """
    capacity = int(WORKING_SET * machine_rates(machine).least_share)
    cache: dict[Hashable, Tiling | None] = {}
    found: dict[int, Tiling] = {}
    for group in network.groups:
        kind = class_of(network, group)
        if kind not in cache:
            model = GroupModel(network, group, machine)
            cache[kind] = _fitting(model, _one_for_each(model, len(machine.cores)), capacity)
        tiling = cache[kind]
        if tiling is None:
            return None
        found[group.index] = tiling
    return None if _pairs(network, found) > MOST_PAIRS else found


def _pairs(network: Network, tilings: Mapping[int, Tiling]) -> int:
    """Return how many tiles of one group there may be for those of another that reads it."""
    tiles = {group.output: prod(tilings[group.index].counts) for group in network.groups}
    return sum(
        tiles[group.output] * tilings[group.index].parts * tiles.get(name, 1)
        for group in network.groups
        for name in group.inputs
    )


def _one_for_each(model: GroupModel, cores: int) -> Tiling:
    """Cut the longest axis into a tile for each core, or the next ones, too, if it is short."""
    counts = [1] * len(model.shape)
    # The batch, if it is one, is cut last: what its parts share is loaded again for each.
    batch = 0 if len(model.shape) > 2 else -1
    axes = [axis for axis, can_be_cut in enumerate(model.splittable) if can_be_cut]
    missing = cores
    for axis in sorted(axes, key=lambda axis: (axis == batch, -model.shape[axis], axis)):
        counts[axis] = min(missing, model.shape[axis])
        missing = -(-missing // counts[axis])
    return Tiling(counts=tuple(counts))


def _fitting(model: GroupModel, tiling: Tiling, capacity: Bytes) -> Tiling | None:
    for splits_reduction in (False, True):
        fitting = TileShrinker(model, splits_reduction).until_it_fits(tiling, capacity)
        if fitting is not None:
            return fitting
    return None
