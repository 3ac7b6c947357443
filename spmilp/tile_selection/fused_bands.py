"""Tiles for fused bands, where the results of operators in a row do not fit beside each other.

Such results leave the scratchpads and come back, unless a band of them is computed and read before
the next one: with tiles that are cut alike, along one axis, operator after operator (Alwani et al.,
"Fused-layer CNN accelerators", MICRO 2016). How many bands pay is not estimated but tried: the more
there are, the fewer bytes wait, and the shorter and less efficient the tasks become.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.cost import NO_MEASUREMENTS, CostModel
from spmilp.lowering.cycle_table import CycleTable
from spmilp.lowering.initial import whole_below
from spmilp.lowering.rates import NO_LIMIT, MachineRates, machine_rates, usable_bytes
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.tile_selection.candidates import Finer
from spmilp.tile_selection.residence import expected_residence
from spmilp.tile_selection.tile_costs import Probe
from spmilp.units import Bytes

SHARES = (0.5, 1.0)
"""Parts of all scratchpads beyond which waiting results are fused."""

BANDS_PER_CORE = (8, 4, 2)

WORKING_SET = 0.45
"""Of a core's memory, so that the next tile's data can come during a task."""


class Fusion:
    """Cuts groups whose results do not fit into bands.

    Parameters
    ----------
    measured
        Cycles of tiles, where they are known.
    """

    def __init__(
        self, network: Network, machine: Machine, measured: CycleTable = NO_MEASUREMENTS
    ) -> None:
        self._network = network
        self._machine = machine
        self._rates = machine_rates(machine)
        self._costs = CostModel(machine.kinds, measured)
        self._waiting = expected_residence(network, NO_LIMIT).live
        self._computed = {group.output for group in network.groups}
        self._room = _room_of_a_core(machine, self._rates)

    def bands(self) -> Iterator[dict[int, Tiling]]:
        """Yield tilings for the groups of some runs: of all runs first, then of each alone.

        A run is as many groups in a row as there are of which the results that wait are too large.
        """
        alone: list[dict[int, Tiling]] = []
        for share in SHARES:
            runs = [[*run] for run in self._runs(share)]
            for bands in BANDS_PER_CORE:
                each = [self._cut(run, bands) for run in runs]
                yield {index: tiling for one in each for index, tiling in one.items()}
                alone += each if len(each) > 1 else []
        yield from alone

    def _runs(self, share: float) -> Iterator[Iterator[Group]]:
        limit = share * self._rates.aggregate
        by_size = groupby(
            self._network.groups, key=lambda group: self._waiting[group.index] > limit
        )
        return (run for too_large, run in by_size if too_large)

    def _cut(self, run: Sequence[Group], bands: int) -> dict[int, Tiling]:
        """Return tilings of one run with so many bands for each core, as far as axes are long."""
        probes = [self._probe(group) for group in run]
        axis = self._common_axis(probes)
        found = {}
        for probe in probes:
            count = min(_length(probe, axis), bands * len(self._machine.cores))
            if count > 1:
                banded = Tiling(counts=tuple(count if a == axis else 1 for a in _axes(probe)))
                fitting = Finer(probe, splits_reduction=False).until_it_fits(banded, self._room)
                if fitting is not None:
                    found[probe.group.index] = fitting
        return found

    def _common_axis(self, probes: Sequence[Probe]) -> int:
        """Return the axis along which tiles need the least of what other groups compute."""
        most = max(len(probe.shape) for probe in probes)

        def needed(axis: int) -> Bytes:
            return sum(self._computed_bytes(probe, axis) for probe in probes)

        # Not the batch: parts of it have nothing in common that could be kept.
        return min(range(min(1, most - 1), most), key=needed) if most else 0

    def _computed_bytes(self, probe: Probe, axis: int) -> Bytes:
        """Return the bytes that the largest of one tile for each core reads of computed tensors."""
        count = min(_length(probe, axis), len(self._machine.cores))
        cut = Tiling(counts=tuple(count if a == axis else 1 for a in _axes(probe)))
        parts = probe.footprint(cut).parts
        return sum(size for name, size in parts if name in self._computed)

    def _probe(self, group: Group) -> Probe:
        return Probe(
            self._network,
            group,
            self._costs,
            alignment=self._rates.alignment,
            whole_below=whole_below(self._machine),
        )


def _axes(probe: Probe) -> range:
    return range(len(probe.shape))


def _length(probe: Probe, axis: int) -> int:
    """Return into how many tiles an axis can be cut."""
    can_be_cut = axis < len(probe.shape) and probe.splittable[axis]
    return probe.shape[axis] if can_be_cut else 1


def _room_of_a_core(machine: Machine, rates: MachineRates) -> Bytes:
    shares = (usable_bytes(machine, core) // rates.sharers[core.index] for core in machine.cores)
    return int(WORKING_SET * min(shares))
