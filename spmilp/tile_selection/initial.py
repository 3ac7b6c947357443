"""Tilings that fit, chosen without comparing any: for a plan in the first seconds."""

from collections.abc import Callable, Hashable, Mapping
from math import prod

from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Network
from spmilp.lowering.groups import class_of
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.tile_selection.group_model import GroupModel
from spmilp.tile_selection.shrinker import TileShrinker

Tilings = dict[int, Tiling]
"""A tiling for each group, by its index."""

FIRST_WORKING_SET = 0.7
"""Part of a core's memory that a tile may need: larger tiles are fewer, and sooner scheduled."""

MOST_TILES = 200_000
"""Of all groups, where memories can hold no larger ones: of more no plan could be made in hours."""

MOST_PAIRS = 400_000
"""Of tiles of a group and of one that it reads: of more it takes too long to make a problem."""


def fast_initial_tilings(network: Network, machine: Machine) -> Tilings | None:
    """Return a tiling for each group, by index: a tile for each core, or as many as fit.

    The longest axes of the output are cut. ``None`` where a group does not fit in this way, and
    where tiles become so many that the plan would not come soon.
    """
    capacity, cores = int(FIRST_WORKING_SET * machine_rates(machine).least_share), machine.cores

    def first_fitting(model: GroupModel) -> Tiling | None:
        start = one_tile_for_each(model, len(cores))
        found = (
            TileShrinker(model, splits).until_it_fits(start, capacity) for splits in (False, True)
        )
        return next(filter(None, found), None)

    found = _tilings(network, machine, first_fitting)
    return None if found is None or pairs_of_tiles(network, found) > MOST_PAIRS else found


def refuse_too_many_tiles(network: Network, machine: Machine) -> None:
    """Raise an error where results are so large that tiles can only be too many.

    Raises
    ------
    SpmilpError
        If they are; it says what to do.
    """
    largest = max(machine_rates(machine).capacity)
    sizes = {group.name: network.tensors[group.output].bytes for group in network.groups}
    tiles = sum(-(-size // largest) for size in sizes.values())
    if tiles > MOST_TILES:
        name = max(sizes, key=sizes.__getitem__)
        raise SpmilpError(
            f"{network.name}: its results need {tiles:,} tiles at least, expected at most "
            f"{MOST_TILES:,}: the one of group {name} has {sizes[name]:,} B, and the largest "
            f"scratchpad holds {largest:,} B; give smaller dimensions (--dim), or use a machine "
            "with larger scratchpads"
        )


def tasks_of(tilings: Mapping[int, Tiling]) -> int:
    """Return about how many tasks a network has under tilings; never fewer than there are."""
    return sum(prod(tiling.counts) * tiling.parts for tiling in tilings.values())


def pairs_of_tiles(network: Network, tilings: Mapping[int, Tiling]) -> int:
    """Return how many tiles of one group there may be for those of another that reads it."""
    tiles = {group.output: prod(tilings[group.index].counts) for group in network.groups}
    return sum(
        tiles[group.output] * tilings[group.index].parts * tiles.get(name, 1)
        for group in network.groups
        for name in group.inputs
    )


def _tilings(
    network: Network, machine: Machine, choose: Callable[[GroupModel], Tiling | None]
) -> Tilings | None:
    """Return what is chosen for each group; ``None`` where nothing is for one of them."""
    cache: dict[Hashable, Tiling | None] = {}
    found: Tilings = {}
    for group in network.groups:
        kind = class_of(network, group)
        if kind not in cache:
            cache[kind] = choose(GroupModel(network, group, machine))
        tiling = cache[kind]
        if tiling is None:
            return None
        found[group.index] = tiling
    return found


def one_tile_for_each(model: GroupModel, cores: int) -> Tiling:
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
