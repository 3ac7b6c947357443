"""Tilings that fit, chosen without comparing any: for a plan in the first seconds."""

from collections.abc import Hashable, Mapping
from math import prod

from spmilp.frontend.graph import Network
from spmilp.lowering.groups import class_of
from spmilp.lowering.cost import NO_MEASUREMENTS, CostModel
from spmilp.lowering.cycle_table import CycleTable
from spmilp.lowering.initial import whole_below
from spmilp.lowering.rates import machine_rates, usable_bytes
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.tile_selection.candidates import Finer
from spmilp.tile_selection.tile_costs import Probe
from spmilp.units import Bytes

WORKING_SET = 0.7
"""Part of a core's memory that a tile may need: larger tiles are fewer, and sooner scheduled."""

MOST_PAIRS = 400_000
"""Of tiles of a group and of one that it reads: of more it takes too long to make a problem."""


def quick_tilings(
    network: Network, machine: Machine, *, measured: CycleTable = NO_MEASUREMENTS
) -> dict[int, Tiling] | None:
    """Return a tiling for each group, by index: a tile for each core, or as many as fit.

    The longest axes of the output are cut. ``None`` where a group does not fit in this way, and
    where tiles become so many that the plan would not come soon.
    """
    rates, costs = machine_rates(machine), CostModel(machine.kinds, measured)
    shares = (usable_bytes(machine, core) // rates.sharers[core.index] for core in machine.cores)
    room = int(WORKING_SET * min(shares))
    known: dict[Hashable, Tiling | None] = {}
    found: dict[int, Tiling] = {}
    for group in network.groups:
        kind = class_of(network, group)
        if kind not in known:
            probe = Probe(
                network,
                group,
                costs,
                alignment=rates.alignment,
                whole_below=whole_below(machine),
            )
            known[kind] = _fitting(probe, _one_for_each(probe, len(machine.cores)), room)
        tiling = known[kind]
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


def _one_for_each(probe: Probe, cores: int) -> Tiling:
    """Cut the longest axis into a tile for each core, or the next ones, too, if it is short."""
    counts = [1] * len(probe.shape)
    # The batch, if it is one, is cut last: what its parts share is loaded again for each.
    batch = 0 if len(probe.shape) > 2 else -1
    axes = [axis for axis, can_be_cut in enumerate(probe.splittable) if can_be_cut]
    missing = cores
    for axis in sorted(axes, key=lambda axis: (axis == batch, -probe.shape[axis], axis)):
        counts[axis] = min(missing, probe.shape[axis])
        missing = -(-missing // counts[axis])
    return Tiling(counts=tuple(counts))


def _fitting(probe: Probe, tiling: Tiling, room: Bytes) -> Tiling | None:
    for splits_reduction in (False, True):
        fitting = Finer(probe, splits_reduction).until_it_fits(tiling, room)
        if fitting is not None:
            return fitting
    return None
