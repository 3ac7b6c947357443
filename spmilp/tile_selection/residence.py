"""Intermediate tensors: which are expected to stay in scratchpads, and bands where they do not fit.

Results that do not fit beside each other leave the scratchpads and come back, unless a band of them
is computed and read before the next one: with tiles that are cut alike, along one axis, operator
after operator (Alwani et al., "Fused-layer CNN accelerators", MICRO 2016). How many bands pay is
not estimated but tried: the more there are, the fewer bytes wait, and the shorter and less
efficient the tasks become.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.rates import NO_LIMIT, machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.tile_selection.group_model import GroupModel
from spmilp.tile_selection.shrinker import TileShrinker
from spmilp.units import Bytes

USABLE_SHARE = 0.5
"""Of all scratchpads; the rest is for the working sets of tasks, weights among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Residence:
    """Tensors expected to lie in scratchpads.

    Parameters
    ----------
    kept
        Tensors that stay from the group that computes them to the last one that reads them; others
        are stored in DRAM and loaded again.
    live
        For each group, the bytes of kept tensors that are live while it runs, its own output
        included.
    """

    kept: frozenset[str]
    live: tuple[Bytes, ...]


def expected_residence(network: Network, aggregate: Bytes) -> Residence:
    """Decide which tensors stay in scratchpads of ``aggregate`` bytes in all.

    Where the live tensors of a group exceed their share of the scratchpads, those whose next use is
    furthest go to DRAM (Belady, IBM Systems Journal 5(2), 1966), the group's own operands last.
    """
    uses: dict[str, list[int]] = {group.output: [] for group in network.groups}
    for group in network.groups:
        for name in group.inputs:
            if name in uses:
                uses[name].append(group.index)
    capacity = int(aggregate * USABLE_SHARE)
    kept: set[str] = set()
    live: set[str] = set()
    for group in network.groups:
        kept.add(group.output)
        live.add(group.output)
        live = {name for name in live if _last_use(uses[name], group.index) >= group.index}
        while sum(network.tensors[name].bytes for name in live) > capacity:
            furthest = max(live, key=lambda name: (_next_use(uses[name], group.index), name))
            live.remove(furthest)
            kept.remove(furthest)
    return Residence(kept=frozenset(kept), live=_live_bytes(network, uses, kept))


def _live_bytes(network: Network, uses: dict[str, list[int]], kept: set[str]) -> tuple[Bytes, ...]:
    changes = [0] * (len(network.groups) + 1)
    for group in network.groups:
        if group.output in kept:
            size = network.tensors[group.output].bytes
            changes[group.index] += size
            changes[_last_use(uses[group.output], group.index) + 1] -= size
    live, total = [], 0
    for change in changes[:-1]:
        total += change
        live.append(total)
    return tuple(live)


def _last_use(uses: list[int], computed: int) -> int:
    return uses[-1] if uses else computed


def _next_use(uses: list[int], now: int) -> int:
    return next((use for use in uses if use >= now), now)


SHARES = (0.5, 1.0)
"""Parts of all scratchpads beyond which waiting results are fused."""

BANDS_PER_CORE = (8, 4, 2)

BAND_WORKING_SET = 0.45
"""Of a core's memory, so that the next tile's data can come during a task."""


class FusedBands:
    """Cuts groups whose results do not fit into bands."""

    def __init__(self, network: Network, machine: Machine) -> None:
        self._network = network
        self._machine = machine
        self._rates = machine_rates(machine)
        self._waiting = expected_residence(network, NO_LIMIT).live
        self._computed = {group.output for group in network.groups}
        self._capacity = int(BAND_WORKING_SET * self._rates.least_share)

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
        models = [GroupModel(self._network, group, self._machine) for group in run]
        axis = self._common_axis(models)
        found = {}
        for model in models:
            count = min(_length(model, axis), bands * len(self._machine.cores))
            if count > 1:
                banded = Tiling(counts=tuple(count if a == axis else 1 for a in _axes(model)))
                fitting = TileShrinker(model, splits_reduction=False).until_it_fits(
                    banded, self._capacity
                )
                if fitting is not None:
                    found[model.group.index] = fitting
        return found

    def _common_axis(self, models: Sequence[GroupModel]) -> int:
        """Return the axis along which tiles need the least of what other groups compute."""
        most = max(len(model.shape) for model in models)

        def needed(axis: int) -> Bytes:
            return sum(self._computed_bytes(model, axis) for model in models)

        # Not the batch: parts of it have nothing in common that could be kept.
        return min(range(min(1, most - 1), most), key=needed) if most else 0

    def _computed_bytes(self, model: GroupModel, axis: int) -> Bytes:
        """Return the bytes that the largest of one tile for each core reads of computed tensors."""
        count = min(_length(model, axis), len(self._machine.cores))
        cut = Tiling(counts=tuple(count if a == axis else 1 for a in _axes(model)))
        parts = model.footprint(cut).parts
        return sum(size for name, size in parts if name in self._computed)


def _axes(model: GroupModel) -> range:
    return range(len(model.shape))


def _length(model: GroupModel, axis: int) -> int:
    """Return into how many tiles an axis can be cut."""
    can_be_cut = axis < len(model.shape) and model.splittable[axis]
    return model.shape[axis] if can_be_cut else 1
