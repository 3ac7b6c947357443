"""Groups cut alike where results do not fit: bands of operators, and blocks of reductions.

Results that do not fit beside each other leave the scratchpads and come back, unless a *band* of
them is computed and read before the next one: with tiles that are cut alike, along one axis,
operator after operator (Alwani et al., "Fused-layer CNN accelerators", MICRO 2016). How many bands
pay is not estimated but tried: the more there are, the fewer bytes wait, and the shorter and less
efficient the tasks become.

A result that is only reduced along one of its axes need never be there as a whole: a *block* of it
is computed, added to sums that stay where they are, and forgotten (for chains of products: Zheng et
al., "Chimera", HPCA 2023).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from math import ceil, gcd, prod
from operator import itemgetter

from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import volume
from spmilp.lowering.groups import PARTIAL_ITEM, reduction_length
from spmilp.lowering.rates import NO_LIMIT, machine_rates
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import Machine
from spmilp.tile_selection.group_model import (
    SUMS,
    SUMS_BEFORE,
    GroupModel,
    TileShrinker,
    largest_box,
)
from spmilp.tile_selection.residence import expected_residence
from spmilp.tile_selection.settings import BANDS, BLOCKS
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
                yield _together(run.tilings(room) for run in runs)


def _together(tilings: Iterable[Tilings]) -> Tilings:
    return {index: tiling for one in tilings for index, tiling in one.items()}


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


REDUCTION = -1
"""Stands for the reduction where axes are named that drive others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A group of a chain.

    Parameters
    ----------
    block
        The axis of its output that is reduced in the end; the last group's own reduction.
    row
        The axis of its output that the rows of the last group drive, and of that group the axis
        that drives one of its operand; ``None`` for none.
    """

    model: GroupModel
    block: int
    row: int | None

    def counts(self, cuts: Mapping[int | None, int]) -> tuple[int, ...]:
        """Return so many tiles along some axes, as far as these are long."""
        return tuple(min(n, cuts.get(axis, 1)) for axis, n in enumerate(self.model.shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A group that reduces, and groups whose results it can add up block by block.

    Parameters
    ----------
    last
        The group that reduces.
    column
        An axis of its output that drives none of that operand; ``None`` for none.
    members
        The others by the group's index.
    """

    last: Member
    column: int | None
    members: Mapping[int, Member]

    @property
    def groups(self) -> frozenset[int]:
        """The indices of all groups of the chain."""
        return frozenset(self.members) | {self.last.model.group.index}


class FusedReductions:
    """Cuts chains of groups whose results do not fit into blocks of the last one's reduction."""

    def __init__(self, network: Network, machine: Machine) -> None:
        self._network = network
        self._machine = machine
        self._limit = int(BLOCKS.too_large * machine_rates(machine).aggregate)
        self._maker = {group.output: group.index for group in network.groups}
        self._readers: dict[str, set[int]] = {}
        for group in network.groups:
            for name in group.inputs:
                self._readers.setdefault(name, set()).add(group.index)

    def tilings(self) -> Iterator[Tilings]:
        """Yield tilings for the groups of all chains, those with the least to move first."""
        cutters = (_ChainCutter(chain, self._machine, {*self._maker}) for chain in self._chains())
        ways = [found for cutter in cutters if (found := cutter.ways())]
        for number in range(min(BLOCKS.most_tried, max(map(len, ways), default=0))):
            yield _together(way[min(number, len(way) - 1)] for way in ways)

    def _chains(self) -> list[Chain]:
        """Return chains that have no group in common, the last one of the network first."""
        found: list[Chain] = []
        taken: set[int] = set()
        for group in reversed(self._network.groups):
            if group.index not in taken and reduction_length(self._network, group) > 1:
                chain = self._chain(group)
                if chain is not None and not chain.groups & taken:
                    found.append(chain)
                    taken |= chain.groups
        return found

    def _chain(self, group: Group) -> Chain | None:
        """Return a group and all whose results only others of the chain read, block by block.

        ``None`` where they all fit, or the sums take more than what would be added up.
        """
        model = GroupModel(self._network, group, self._machine)
        computed = (model.drivers[name] for name in group.inputs if name in self._maker)
        reduced = [drivers for drivers in computed if REDUCTION in drivers.values()]
        rows = {driver for drivers in reduced for driver in drivers.values()} - {REDUCTION}
        last = Member(model=model, block=REDUCTION, row=_longest(model, rows))
        found = {group.index: last}
        for earlier in reversed(self._network.groups[: group.index] if reduced else ()):
            member = self._member(earlier, found)
            if member is not None:
                found[earlier.index] = member
        del found[group.index]
        members = self._without_a_small_beginning(found)
        results, sums = sum(map(self._bytes, members)), prod(model.shape) * PARTIAL_ITEM
        if results <= max(self._limit, sums):
            return None
        column = _longest(model, set(range(len(model.shape))) - rows)
        return Chain(last=last, column=column, members=members)

    def _member(self, group: Group, chain: Mapping[int, Member]) -> Member | None:
        """Return a group if others of the chain alone read it, and one block of it at a time."""
        readers = self._readers.get(group.output, set())
        if not readers or not readers <= chain.keys() or group.output in self._network.outputs:
            return None
        some = [chain[reader] for reader in readers]
        blocks = {_driven(one.model, group.output, one.block) for one in some}
        rows = {_driven(one.model, group.output, one.row) for one in some}
        block, row = blocks.pop(), rows.pop()
        model = GroupModel(self._network, group, self._machine)
        if blocks or block is None or not model.splittable[block]:
            return None
        is_cut = not rows and row is not None and model.splittable[row]
        return Member(model=model, block=block, row=row if is_cut else None)

    def _without_a_small_beginning(self, found: Mapping[int, Member]) -> dict[int, Member]:
        """Leave out small results, but not those made of others of the chain."""
        kept: dict[int, Member] = {}
        for index in sorted(found):
            inputs = found[index].model.group.inputs
            goes_on = any(self._maker.get(name) in kept for name in inputs)
            if goes_on or self._bytes(index) > BLOCKS.small * self._limit:
                kept[index] = found[index]
        return kept

    def _bytes(self, group: int) -> Bytes:
        return self._network.tensors[self._network.groups[group].output].bytes


def _driven(model: GroupModel, name: str, driver: int | None) -> int | None:
    """Return the only axis of an input that something drives; ``None`` if there is none or more."""
    axes = [axis for axis, other in model.drivers.get(name, {}).items() if other == driver]
    return axes[0] if len(axes) == 1 else None


def _longest(model: GroupModel, axes: set[int]) -> int | None:
    """Return the longest of some axes that may be cut."""
    able = (axis for axis in model.axes_to_cut if axis in axes)
    return max(able, key=model.shape.__getitem__, default=None)


class _ChainCutter:
    """Cuts one chain, so that each core keeps the sums of one tile of the last group.

    Parameters
    ----------
    computed
        The results of all groups of the network.
    """

    def __init__(self, chain: Chain, machine: Machine, computed: set[str]) -> None:
        self._chain = chain
        self._share = machine_rates(machine).least_share
        self._cores = len(machine.cores)
        self._results = {one.model.group.output for one in chain.members.values()}
        self._given = computed - self._results

    def ways(self) -> list[Tilings]:
        """Return tilings by the parts of rows that the groups have, the least to move first."""
        divisors = [n for n in range(1, self._cores + 1) if self._cores % n == 0]
        for usable in BLOCKS.usable:
            room = int(usable * self._share)
            tried = (self._fewest_blocks(room, *rows) for rows in product(divisors, repeat=2))
            found = [way for way in tried if way is not None]
            if found:
                return [tilings for _, tilings in sorted(found, key=lambda way: way[0])]
        return []

    def _fewest_blocks(
        self, usable: Bytes, rows: int, rows_before: int
    ) -> tuple[Bytes, Tilings] | None:
        """Return tilings with so many parts of rows of the last group, and of those before it.

        About how many bytes come into a core with them goes before.
        """
        last, columns, across = self._chain.last, self._cores // rows, self._cores // rows_before
        cuts = ((last.row, max(rows, rows_before)), (self._chain.column, columns))
        if any(n > 1 and (axis is None or last.model.shape[axis] < n) for axis, n in cuts):
            return None
        counts = last.counts({last.row: rows, self._chain.column: columns})
        members = self._chain.members
        length = min(one.model.shape[one.block] for one in members.values())
        blocks = 2
        while blocks * across * min(BLOCKS.least_width, length // across or 1) <= length:
            tilings = {last.model.group.index: Tiling(counts=counts, parts=blocks)}
            for index, one in members.items():
                own = {one.row: rows_before, one.block: blocks * across}
                tilings[index] = Tiling(counts=one.counts(own))
            way = self._in_parts_that_fit(usable, tilings)
            if way is not None:
                return way
            blocks *= 2
        return None

    def _in_parts_that_fit(self, usable: Bytes, tilings: Tilings) -> tuple[Bytes, Tilings] | None:
        """Return the tilings with the reductions of members cut until all fits beside the sums.

        What members read of other groups is to stay beside them.
        """
        last = self._chain.last.model
        own = tilings[last.group.index]
        room = usable - volume(largest_box(last.grid(own))) * PARTIAL_ITEM
        stays = self._staying(tilings)
        if sum(stays.values()) > BLOCKS.staying * room:
            return None
        room -= sum(stays.values())
        if self._needed(last, own, stays) > room:
            return None
        found = {last.group.index: own}
        for index, one in self._chain.members.items():

            def needed(tiling: Tiling, model: GroupModel = one.model) -> Bytes:
                return self._needed(model, tiling, stays)

            shrinker = TileShrinker(one.model, True, needed, axes=())
            fitting = shrinker.until_it_fits(tilings[index], room)
            if fitting is None:
                return None
            found[index] = fitting
        inbound = sum(
            size
            for one in (*self._chain.members.values(), self._chain.last)
            for name, size in self._operands(one.model, tilings[one.model.group.index])
            if name not in stays
        )
        return own.parts * inbound, found

    def _staying(self, tilings: Tilings) -> dict[str, Bytes]:
        """Return the bytes that the tiles of members read of each result from elsewhere."""
        found: dict[str, Bytes] = {}
        for index, one in self._chain.members.items():
            for name, size in self._operands(one.model, tilings[index]):
                if name in self._given:
                    found[name] = max(size, found.get(name, 0))
        return found

    def _operands(self, model: GroupModel, tiling: Tiling) -> Iterator[tuple[str, Bytes]]:
        """Yield what the largest task reads besides partial sums."""
        for name, size in model.footprint(tiling).parts:
            if name not in (model.group.output, SUMS, SUMS_BEFORE):
                yield name, size

    def _needed(self, model: GroupModel, tiling: Tiling, stays: Mapping[str, Bytes]) -> Bytes:
        """Return the bytes of a task besides what stays; what comes for the next counts, too."""
        is_last = model is self._chain.last.model
        operands = dict(self._operands(model, tiling))
        needed = sum(
            size * (1 if name in self._results else 2)
            for name, size in operands.items()
            if name not in stays and not (is_last and name in self._given)
        )
        if not is_last:
            # Of the last group the sums have their room already.
            parts = model.footprint(tiling).parts
            needed += sum(size for name, size in parts if name not in operands)
        return needed
