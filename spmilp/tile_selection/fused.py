"""Groups cut alike where results do not fit: bands of operators.

Results that do not fit beside each other leave the scratchpads and come back, unless a *band* of
them is computed and read before the next one: with tiles that are cut alike, along one axis,
operator after operator (Alwani et al., "Fused-layer CNN accelerators", MICRO 2016). How many bands
pay is not estimated but tried: the more there are, the fewer bytes wait, and the shorter and less
efficient the tasks become.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil, gcd, prod
from operator import itemgetter

from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import volume
from spmilp.lowering.rates import NO_LIMIT, machine_rates
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import Machine
from spmilp.tile_selection.group_model import GroupModel, TileShrinker, largest_box
from spmilp.tile_selection.residence import expected_residence
from spmilp.tile_selection.settings import BANDS
from spmilp.units import Bytes, Cycles


class FusedBands:
    """Cuts runs of groups whose results do not fit into bands."""

    def __init__(self, network: Network, machine: Machine) -> None:
        self._network = network
        self._machine = machine

    def tilings(self) -> Iterator[Tilings]:
        """Yield tilings for the groups of all runs.

        A run is as many groups in a row as there are of which the results that wait are too large.
        The cores share each band along a second axis, and bands are as high as line buffers of the
        whole run may be.
        """
        aggregate = machine_rates(self._machine).aggregate
        waiting = expected_residence(self._network, NO_LIMIT).live
        for share in BANDS.shares:
            too_large = [size > share * aggregate for size in waiting]
            groups = groupby(self._network.groups, key=lambda group: too_large[group.index])
            runs = [_Run(self._network, self._machine, [*run]) for waits, run in groups if waits]
            for room in BANDS.room:
                tilings = [run.tilings(room) for run in runs]
                yield {index: tiling for one in tilings for index, tiling in one.items()}


class _Run:
    """Groups that are cut into the same bands.

    The bands lie along the axis along which tiles need the least of what other groups compute, of
    those along which arrays are used well: cut into few channels, they may stand idle.
    """

    def __init__(self, network: Network, machine: Machine, groups: Sequence[Group]) -> None:
        self._network = network
        self._models = [GroupModel(network, group, machine) for group in groups]
        self._computed = {group.output for group in network.groups}
        self._rates = machine_rates(machine)
        self._cores = len(machine.cores)
        most = max(len(model.shape) for model in self._models)
        # Not the batch: parts of it have nothing in common that could be kept.
        axes = range(min(1, most - 1), most)
        work = {axis: sum(_work(*one) for one in self._one_for_each_core(axis)) for axis in axes}
        least = BANDS.more_work * min(work.values(), default=0)
        used_well = (axis for axis in axes if work[axis] <= least)
        self._axis = min(used_well, key=self._computed_bytes, default=0)

    def tilings(self, room: float) -> Tilings:
        """Return tilings in bands that all cores share.

        Parameters
        ----------
        room
            The part of what weights leave of the scratchpads that line buffers may take.
        """
        tensors, axis = self._network.tensors, self._axis
        read = {name for model in self._models for name in model.group.inputs}
        weights = read - self._computed - set(self._network.inputs)
        taken = self._cores * sum(tensors[name].bytes for name in weights)
        left = max(self._rates.aggregate - taken, self._rates.aggregate // 8)
        bands = ceil(self._line_bytes() / (room * left))
        width = min(_length(model, _other(model, axis)) for model in self._models)
        divisors = (n for n in range(1, self._cores + 1) if self._cores % n == 0)
        across = max((n for n in divisors if n * BANDS.least_width <= width), default=1)
        count = bands * self._cores // across
        # Tiles of the same bytes take each other's places; others leave gaps.
        lengths = [_length(model, axis) for model in self._models]
        most = min(gcd(*lengths), int(BANDS.more * count))
        even = (n for n in range(count, most + 1) if all(long % n == 0 for long in lengths))
        return self._cut(next(even, count), across)

    def _cut(self, bands: int, across: int) -> Tilings:
        """Return tilings in so many bands and parts of each, as far as axes are long.

        Where tiles do not fit, bands become lower and narrower, or they are cut along any axes: of
        both, what takes fewer cycles. With few channels in each tile, arrays may stand idle.
        """
        capacity = int(BANDS.working_set * self._rates.least_share)
        found = {}
        for model in self._models:
            wanted = {_other(model, self._axis): across, self._axis: bands}
            axes = range(len(model.shape))
            counts = tuple(min(_length(model, a), wanted.get(a, 1)) for a in axes)
            if max(counts, default=1) > 1:
                shrinkers = (TileShrinker(model, False, axes=some) for some in (None, wanted))
                cut = (one.until_it_fits(Tiling(counts=counts), capacity) for one in shrinkers)
                fitting = [(_work(model, one), one) for one in cut if one is not None]
                if fitting:
                    found[model.group.index] = min(fitting, key=itemgetter(0))[1]
        return found

    def _line_bytes(self) -> Bytes:
        """Return the bytes that the results take, each for as many bands as readers lag."""
        place = {model.group.output: number for number, model in enumerate(self._models)}
        lags = dict.fromkeys(place, 1)
        for number, model in enumerate(self._models):
            for name in model.group.inputs:
                if name in lags:
                    lags[name] = max(lags[name], 1 + number - place[name])
        return sum(lag * self._network.tensors[name].bytes for name, lag in lags.items())

    def _computed_bytes(self, axis: int) -> Bytes:
        """Return what the largest of one tile for each core reads of computed tensors."""
        return sum(
            size
            for model, tiling in self._one_for_each_core(axis)
            for name, size in model.footprint(tiling).parts
            if name in self._computed
        )

    def _one_for_each_core(self, axis: int) -> Iterator[tuple[GroupModel, Tiling]]:
        for model in self._models:
            count = min(_length(model, axis), self._cores)
            counts = tuple(count if a == axis else 1 for a in range(len(model.shape)))
            yield model, Tiling(counts=counts)


def _other(model: GroupModel, axis: int) -> int:
    """Return the axis along which cores share a band: the last one, or the one before."""
    last = max(0, len(model.shape) - 1)
    return last if axis != last else max(0, last - 1)


def _work(model: GroupModel, tiling: Tiling) -> Cycles:
    """Return the cycles of a whole group on the best kind of core, by those of the largest tile."""
    grid = model.grid(tiling)
    largest = volume(largest_box(grid))
    cycles = (each for each in model.cycles(grid) if each is not None)
    return prod(model.shape) * min(cycles, default=0) // largest


def _length(model: GroupModel, axis: int) -> int:
    """Return into how many tiles an axis can be cut."""
    can_be_cut = axis < len(model.shape) and model.splittable[axis]
    return model.shape[axis] if can_be_cut else 1
