"""Intermediate tensors: which are expected to stay in scratchpads, and bands where they do not fit.

Results that do not fit beside each other leave the scratchpads and come back, unless a band of them
is computed and read before the next one: with tiles that are cut alike, along one axis, operator
after operator (Alwani et al., "Fused-layer CNN accelerators", MICRO 2016). How many bands pay is
not estimated but tried: the more there are, the fewer bytes wait, and the shorter and less
efficient the tasks become.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, gcd, prod

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.rates import NO_LIMIT, machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.tile_selection.group_model import GroupModel, TileShrinker
from spmilp.units import Bytes, Cycles

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

ROOM = (0.72, 0.5)
"""Parts of what weights leave of the scratchpads that line buffers may take."""

MORE_BANDS = 1.35
"""Times as many bands may be made so that all are of one height."""

MORE_WORK = 1.05
"""Times the least cycles of all tiles that those along an axis of bands may take."""

LEAST_WIDTH = 8
"""Elements of a tile along the axis on which the cores share a band."""

BANDS_PER_CORE = (8, 4, 2)

BAND_WORKING_SET = 0.45
"""Of a core's memory, so that the next tile's data can come during a task."""


class FusedBands:
    """Cuts groups whose results do not fit into bands."""

    def __init__(self, network: Network, machine: Machine) -> None:
        self._network = network
        self._cores = len(machine.cores)
        self._machine = machine
        self._rates = machine_rates(machine)
        self._waiting = expected_residence(network, NO_LIMIT).live
        self._maker = {group.output: group.index for group in network.groups}
        self._capacity = int(BAND_WORKING_SET * self._rates.least_share)

    def bands(self) -> Iterator[dict[int, Tiling]]:
        """Yield tilings for the groups of all runs.

        A run is as many groups in a row as there are of which the results that wait are too large.
        First the cores share each band along a second axis, in bands as high as line buffers of the
        whole run may be; then each core has bands of its own.
        """
        for each in self._of_runs():
            yield {index: tiling for one in each for index, tiling in one.items()}

    def bands_of_single_runs(self) -> Iterator[dict[int, Tiling]]:
        """Yield such tilings for one run alone, where there are several."""
        for each in self._of_runs():
            yield from each if len(each) > 1 else ()

    def _of_runs(self) -> Iterator[list[dict[int, Tiling]]]:
        for share in SHARES:
            runs = [
                [GroupModel(self._network, group, self._machine) for group in run]
                for run in self._runs(share)
            ]
            yield from ([self._shared(run, room) for run in runs] for room in ROOM)
            yield from (
                [self._cut(run, bands * self._cores, 1) for run in runs] for bands in BANDS_PER_CORE
            )

    def _runs(self, share: float) -> Iterator[Iterator[Group]]:
        limit = share * self._rates.aggregate
        by_size = groupby(
            self._network.groups, key=lambda group: self._waiting[group.index] > limit
        )
        return (run for too_large, run in by_size if too_large)

    def _shared(self, run: Sequence[GroupModel], room: float) -> dict[int, Tiling]:
        """Return tilings of one run in bands that the cores share."""
        weights = {
            name
            for model in run
            for name in model.group.inputs
            if name not in self._maker and name not in self._network.inputs
        }
        taken = self._cores * sum(self._network.tensors[name].bytes for name in weights)
        left = max(self._rates.aggregate - taken, self._rates.aggregate // 8)
        bands = ceil(self._line_bytes(run) / (room * left))
        across = self._parts_across(run)
        axis = self._common_axis(run)
        count = _even(bands * self._cores // across, [_length(model, axis) for model in run])
        return self._cut(run, count, across)

    def _parts_across(self, run: Sequence[GroupModel]) -> int:
        """Return into how many parts the cores cut a band: a divisor of their number."""
        axis = self._common_axis(run)
        width = min(_length(model, _other(model, axis)) for model in run)
        divisors = (n for n in range(1, self._cores + 1) if self._cores % n == 0)
        return max((n for n in divisors if n * LEAST_WIDTH <= width), default=1)

    def _line_bytes(self, run: Sequence[GroupModel]) -> Bytes:
        """Return the bytes that a run's results take, each for as many bands as readers lag."""
        place = {model.group.index: number for number, model in enumerate(run)}
        lags = dict.fromkeys((model.group.output for model in run), 1)
        for number, model in enumerate(run):
            for name in model.group.inputs:
                if name in lags:
                    lags[name] = max(lags[name], 1 + number - place[self._maker[name]])
        return sum(lag * self._network.tensors[name].bytes for name, lag in lags.items())

    def _cut(self, run: Sequence[GroupModel], bands: int, across: int) -> dict[int, Tiling]:
        """Return tilings of one run in so many bands and parts of each, as far as axes are long."""
        axis = self._common_axis(run)
        found = {}
        for model in run:
            wanted = {_other(model, axis): across, axis: bands}
            counts = tuple(min(_length(model, a), wanted.get(a, 1)) for a in _axes(model))
            if max(counts, default=1) > 1:
                fitting = self._until_it_fits(model, Tiling(counts=counts), wanted)
                if fitting is not None:
                    found[model.group.index] = fitting
        return found

    def _until_it_fits(
        self, model: GroupModel, tiling: Tiling, axes: Collection[int]
    ) -> Tiling | None:
        """Return a tiling that is cut further until a tile fits: the one that takes fewer cycles.

        Bands become lower and narrower, or they are cut along any axes. With few channels in each
        tile, arrays may stand idle.
        """
        shrinkers = (
            TileShrinker(model, splits_reduction=False),
            TileShrinker(model, splits_reduction=False, axes=axes),
        )
        found = (one.until_it_fits(tiling, self._capacity) for one in shrinkers)
        fitting = (one for one in found if one is not None)
        return min(fitting, key=lambda one: _work(model, one), default=None)

    def _common_axis(self, models: Sequence[GroupModel]) -> int:
        """Return the axis along which tiles need the least of what other groups compute.

        Of those along which arrays are used well: cut into few channels, they may stand idle.
        """
        most = max(len(model.shape) for model in models)
        # Not the batch: parts of it have nothing in common that could be kept.
        axes = range(min(1, most - 1), most)
        work = {a: sum(_work(one, self._one_for_each_core(one, a)) for one in models) for a in axes}
        least = min(work.values(), default=0)

        def needed(axis: int) -> Bytes:
            return sum(self._computed_bytes(model, axis) for model in models)

        return min((a for a in axes if work[a] <= MORE_WORK * least), key=needed, default=0)

    def _computed_bytes(self, model: GroupModel, axis: int) -> Bytes:
        """Return the bytes that the largest of one tile for each core reads of computed tensors."""
        parts = model.footprint(self._one_for_each_core(model, axis)).parts
        return sum(size for name, size in parts if name in self._maker)

    def _one_for_each_core(self, model: GroupModel, axis: int) -> Tiling:
        count = min(_length(model, axis), self._cores)
        return Tiling(counts=tuple(count if a == axis else 1 for a in _axes(model)))


def _even(count: int, lengths: Sequence[int]) -> int:
    """Return a count of at least so many bands, of equal height if few more are enough for that.

    Tiles of the same bytes take each other's places; others leave gaps.
    """
    most = min(gcd(*lengths), int(MORE_BANDS * count))
    return next(
        (n for n in range(count, most + 1) if all(long % n == 0 for long in lengths)), count
    )


def _axes(model: GroupModel) -> range:
    return range(len(model.shape))


def _other(model: GroupModel, axis: int) -> int:
    """Return the axis along which cores share a band: the last one, or the one before."""
    last = max(0, len(model.shape) - 1)
    return last if axis != last else max(0, last - 1)


def _work(model: GroupModel, tiling: Tiling) -> Cycles:
    """Return the cycles of a whole group on the best kind of core, by those of the largest tile."""
    grid = model.grid(tiling)
    largest = prod(max(end - start for start, end in axis) for axis in grid.axes)
    cycles = (each for each in model.cycles(grid) if each is not None)
    return prod(model.shape) * min(cycles, default=0) // largest


def _length(model: GroupModel, axis: int) -> int:
    """Return into how many tiles an axis can be cut."""
    can_be_cut = axis < len(model.shape) and model.splittable[axis]
    return model.shape[axis] if can_be_cut else 1
