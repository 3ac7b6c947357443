"""Tilings that fit, chosen without comparing any: for a plan in the first seconds."""

from collections.abc import Hashable

from spmilp.frontend.graph import Network
from spmilp.lowering.candidates import Finer
from spmilp.lowering.classes import class_of
from spmilp.lowering.cost import NO_MEASUREMENTS, CostModel
from spmilp.lowering.cycle_table import CycleTable
from spmilp.lowering.initial import whole_below
from spmilp.lowering.probe import Probe
from spmilp.lowering.rates import machine_rates, usable_bytes
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine

WORKING_SETS = (0.45, 0.9)
"""Parts of a core's memory that a tile may need: room for the next one's data, or else none."""


def quick_tilings(
    network: Network, machine: Machine, *, measured: CycleTable = NO_MEASUREMENTS
) -> dict[int, Tiling] | None:
    """Return a tiling for each group, by index: a tile for each core, or as many as fit.

    The longest axes of the output are cut. ``None`` where a group does not fit in this way.
    """
    rates, costs = machine_rates(machine), CostModel(machine.kinds, measured)
    room = min(usable_bytes(machine, core) // rates.sharers[core.index] for core in machine.cores)
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
    return found


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


def _fitting(probe: Probe, tiling: Tiling, room: int) -> Tiling | None:
    for share in WORKING_SETS:
        for splits_reduction in (False, True):
            fitting = Finer(probe, splits_reduction).until_it_fits(tiling, int(share * room))
            if fitting is not None:
                return fitting
    return None
