"""Chains of groups, of which the last one adds up what the others compute block by block."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import PARTIAL_ITEM, reduction_length
from spmilp.machine.machine import Machine
from spmilp.tile_selection.group_model import GroupModel
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
