"""Groups cut alike where results do not fit: bands of operators, and blocks of reductions.

A result that is only reduced along one of its axes need never be there as a whole: a block of it is
computed, added to sums that stay where they are, and forgotten (for chains of products: Zheng et
al., "Chimera", HPCA 2023).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain as joined
from itertools import product
from math import prod

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import PARTIAL_ITEM, reduction_length
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.tile_selection.group_model import SUMS, SUMS_BEFORE, GroupModel, TileShrinker
from spmilp.units import Bytes

SMALL = 0.1
"""A chain does not begin with a result of less than this part of what its results are to exceed."""

REDUCTION = -1
"""Stands for the reduction where axes are named that drive others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A group of a chain.

    Parameters
    ----------
    block
        The axis of its output that is reduced in the end.
    row
        The axis of its output that the rows of the last group drive; ``None`` for none.
    """

    model: GroupModel
    block: int
    row: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A group that reduces, and groups whose results it can add up block by block.

    Parameters
    ----------
    last
        The group that reduces; its ``row`` is an axis that drives one of its operand.
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

    @property
    def results(self) -> frozenset[str]:
        """What is computed for others of the chain."""
        return frozenset(one.model.group.output for one in self.members.values())


class ReductionChains:
    """Finds the chains of a network whose results have too many bytes in all.

    Parameters
    ----------
    limit
        Bytes that these results are to exceed.
    """

    def __init__(self, network: Network, machine: Machine, limit: Bytes) -> None:
        self._network = network
        self._machine = machine
        self._limit = limit
        self._maker = {group.output: group.index for group in network.groups}
        self._readers: dict[str, set[int]] = {}
        for group in network.groups:
            for name in group.inputs:
                self._readers.setdefault(name, set()).add(group.index)

    def chains(self) -> list[Chain]:
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
        computed = (name for name in group.inputs if name in self._maker)
        reduced = [some for name in computed if REDUCTION in (some := model.drivers[name]).values()]
        rows = {driver for some in reduced for driver in some.values()} - {REDUCTION}
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
            if goes_on or self._bytes(index) > SMALL * self._limit:
                kept[index] = found[index]
        return kept

    def _bytes(self, group: int) -> Bytes:
        return self._network.tensors[self._network.groups[group].output].bytes


def _driven(model: GroupModel, name: str, driver: int | None) -> int | None:
    """Return the only axis of an input that something drives; ``None`` if there is none or more."""
    axes = [axis for axis, other in model.drivers.get(name, {}).items() if other == driver]
    return axes[0] if len(axes) == 1 else None


def _longest(model: GroupModel, axes: Iterable[int]) -> int | None:
    """Return the longest of some axes that may be cut."""
    able = (axis for axis in sorted(axes) if model.splittable[axis])
    return max(able, key=model.shape.__getitem__, default=None)


TOO_LARGE = 0.5
"""Part of all scratchpads beyond which the results of a chain are not expected to stay."""

USABLE = (0.75, 0.9)
"""Of a core's memory; the rest is for gaps between pieces, and for what comes early. More is used
only where nothing fits otherwise."""

STAYING = 0.7
"""Of what sums leave, that operands of the members may take which stay from block to block."""

MOST_TRIED = 4
"""Ways to cut chains that are tried."""

LEAST_WIDTH = 16
"""Elements of a block that one core computes at least, where there are as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Tilings of the groups of a chain, and about how many bytes come into a core with them."""

    tilings: Mapping[int, Tiling]
    inbound: Bytes


class FusedReductions:
    """Cuts chains of groups whose results do not fit into blocks of the last one's reduction."""

    def __init__(self, network: Network, machine: Machine) -> None:
        limit = int(TOO_LARGE * machine_rates(machine).aggregate)
        computed = frozenset(group.output for group in network.groups)
        chains = ReductionChains(network, machine, limit).chains()
        self._cutters = [ChainCutter(chain, machine, computed) for chain in chains]

    def tilings(self) -> Iterator[dict[int, Tiling]]:
        """Yield tilings for the groups of all chains, those with the least to move first."""
        ways = [found for cutter in self._cutters if (found := cutter.ways())]
        for number in range(min(MOST_TRIED, max(map(len, ways), default=0))):
            some = (way[min(number, len(way) - 1)].tilings.items() for way in ways)
            yield dict(joined.from_iterable(some))


class ChainCutter:
    """Cuts one chain, so that each core keeps the sums of one tile of the last group.

    Parameters
    ----------
    computed
        The results of all groups of the network.
    """

    def __init__(self, chain: Chain, machine: Machine, computed: frozenset[str]) -> None:
        self._chain = chain
        self._rates = machine_rates(machine)
        self._cores = len(machine.cores)
        self._given = computed - chain.results

    def ways(self) -> list[Way]:
        """Return tilings by the parts of rows that the groups have, the least to move first."""
        divisors = [n for n in range(1, self._cores + 1) if self._cores % n == 0]
        for usable in USABLE:
            room = int(usable * self._rates.least_share)
            tried = (self._fewest_blocks(room, *rows) for rows in product(divisors, repeat=2))
            found = [way for way in tried if way is not None]
            if found:
                return sorted(found, key=lambda way: way.inbound)
        return []

    def _fewest_blocks(self, usable: Bytes, rows: int, rows_before: int) -> Way | None:
        """Return tilings with so many parts of rows of the last group, and of those before it."""
        last, columns, across = self._chain.last, self._cores // rows, self._cores // rows_before
        if _is_too_short(last.model, last.row, max(rows, rows_before)):
            return None
        if _is_too_short(last.model, self._chain.column, columns):
            return None
        counts = _counts(last.model, {last.row: rows, self._chain.column: columns})
        members = self._chain.members.items()
        length = min(one.model.shape[one.block] for _, one in members)
        blocks = 2
        while blocks * across * min(LEAST_WIDTH, length // across or 1) <= length:
            tilings = {last.model.group.index: Tiling(counts=counts, parts=blocks)}
            for index, one in members:
                cuts = {one.row: rows_before, one.block: blocks * across}
                tilings[index] = Tiling(counts=_counts(one.model, cuts))
            way = self._in_parts_that_fit(usable, tilings)
            if way is not None:
                return way
            blocks *= 2
        return None

    def _in_parts_that_fit(self, usable: Bytes, tilings: Mapping[int, Tiling]) -> Way | None:
        """Return the tilings with the reductions of members cut until all fits beside the sums.

        What members read of other groups is to stay beside them.
        """
        last = self._chain.last.model
        sums_of = last.grid(tilings[last.group.index]).axes
        sums = prod(max(stop - start for start, stop in axis) for axis in sums_of) * PARTIAL_ITEM
        room = usable - sums
        stays = self._staying(tilings)
        if sum(stays.values()) > STAYING * room:
            return None
        room -= sum(stays.values())
        if self._needed(last, tilings[last.group.index], stays) > room:
            return None
        found = {last.group.index: tilings[last.group.index]}
        for index, one in self._chain.members.items():
            fitting = self._in_parts(one, tilings[index], stays, room)
            if fitting is None:
                return None
            found[index] = fitting
        return Way(tilings=found, inbound=self._inbound(tilings, stays))

    def _in_parts(
        self, member: Member, tiling: Tiling, stays: Mapping[str, Bytes], room: Bytes
    ) -> Tiling | None:
        def needed(one: Tiling) -> Bytes:
            return self._needed(member.model, one, stays)

        shrinker = TileShrinker(member.model, True, needed, axes=())
        return shrinker.until_it_fits(tiling, room)

    def _staying(self, tilings: Mapping[int, Tiling]) -> dict[str, Bytes]:
        """Return the bytes that the tiles of members read of each result from elsewhere."""
        found: dict[str, Bytes] = {}
        for index, one in self._chain.members.items():
            for name, size in one.model.footprint(tilings[index]).parts:
                if name in self._given and name != one.model.group.output:
                    found[name] = max(size, found.get(name, 0))
        return found

    def _needed(self, model: GroupModel, tiling: Tiling, stays: Mapping[str, Bytes]) -> Bytes:
        """Return the bytes of a task besides what stays; what comes for the next counts, too."""
        own = {model.group.output, SUMS, SUMS_BEFORE}
        keeps = own | self._given if model is self._chain.last.model else frozenset[str]()
        return sum(
            size * (1 if name in own or name in self._chain.results else 2)
            for name, size in model.footprint(tiling).parts
            if name not in stays and name not in keeps
        )

    def _inbound(self, tilings: Mapping[int, Tiling], stays: Mapping[str, Bytes]) -> Bytes:
        """Return the bytes that come into a core, but for what stays there."""
        last = self._chain.last.model
        blocks = tilings[last.group.index].parts
        members = [one.model for one in self._chain.members.values()]
        return blocks * sum(
            size
            for model in (*members, last)
            for name, size in model.footprint(tilings[model.group.index]).parts
            if name not in {model.group.output, SUMS, SUMS_BEFORE, *stays}
        )


def _is_too_short(model: GroupModel, axis: int | None, count: int) -> bool:
    return count > 1 and (axis is None or model.shape[axis] < count)


def _counts(model: GroupModel, cuts: Mapping[int | None, int]) -> tuple[int, ...]:
    return tuple(min(length, cuts.get(axis, 1)) for axis, length in enumerate(model.shape))
