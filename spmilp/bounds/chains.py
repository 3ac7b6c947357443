"""Chains of groups, for any tiling: what must be computed and moved one after the other."""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from spmilp.bounds.distances import Distances
from spmilp.bounds.roofline import MARGIN
from spmilp.bounds.smallest_tiles import Facts, SmallestTiles
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.lowering.cost import can_run
from spmilp.lowering.groups import class_of
from spmilp.lowering.rates import dram_rate
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.units import Box, Bytes, Cycles, MemoryIdx

MOST_VISITS = 4096
"""Groups with more smallest tiles, times the groups before them, are not asked what each of their
smallest tiles depends on."""


class _Needed(NamedTuple):
    """A box of a group's output that a tile needs.

    Parameters
    ----------
    after
        Least cycles from the end of the last task for the box to the end of that tile's last task.
    """

    volume: int
    after: Cycles
    box: Box


class Chains:
    """Heads of the groups of a network on a machine, and the bound that they give.

    A tile is one task, or a chain of tasks for the parts of its reduction, each of which needs the
    partial sum of the one before it. A group computes each tile once, a task starts when all that
    it reads is there, and a result is there when the last task of its tile has ended. Let ``S(g)``
    be the first start of any task of a group ``g``, and ``E(g)`` the first end of a last task.

    *Chains.* If the first task of every chain of ``g`` reads something that ``f`` has computed,
    then ``S(g) >= E(f)``, and a transfer later if the cores for ``f`` and those for ``g`` have no
    memory in common. All tasks of a chain take at least ``D(g)``, the cycles of a smallest tile
    (:class:`.SmallestTiles`) that is not split: the steps of the parts add up to those of the
    whole, or more, and each part has a launch. So ``E(g) >= S(g) + D(g)``. If some task of every
    chain reads something of ``f``, then ``E(g) >= E(f) + e(g)`` with ``e(g)`` the least cycles of a
    last task. What reads from DRAM at first starts after a transfer. (A reduction that is split
    lets a chain begin before all is there that it needs; never before some of it, and then it takes
    as long as ever.)

    *Cones.* Let ``y`` be a smallest tile of ``g``, and let its tile be finished at ``T`` in a
    memory ``m``. What it reads is needed, and what that reads, and so on: of a group ``q`` before
    ``g`` some box, whose tiles take ``w(q)`` core cycles or more. They are computed between
    ``S(q)`` and ``T - t(q)``, with ``t(q)`` the sum of ``e`` along the path of groups on which the
    box is needed; and those that are not computed in ``m`` a transfer of at least ``L`` cycles
    earlier, since something moves on that path. With K cores, at most c of them in one memory, any
    set Q of groups with ``S(q) >= h`` and ``t(q) >= r`` has

        c (T - r - h) + (K - c) max(0, T - r - h - L) >= sum w(Q).

    The least such ``T`` over all smallest tiles of ``g`` is an ``E(g)``. Splits of reductions
    change nothing: all tasks of a tile lie between the two times. ``L`` is 0 where cores read in
    other memories, and where not all groups can run in the same ones, since a path may then have
    its transfer in ``t``.

    *Loads.* What the boxes of some groups need of a weight or network input has left DRAM, at the
    rate of its links at most, before the tasks start that read it. So ``T`` is not below the bytes
    that groups with ``t(q) >= r`` need, of each tensor what one of them needs, divided by that
    rate, and ``r`` and a cycle behind them.

    *End.* All tiles of the network outputs are needed, and each moves to DRAM after its last task:
    the makespan is a ``T`` for them together, with ``L`` of 0.

    What is in place, staged, multicast, or stays where it was computed is covered: nothing but the
    least time of a transfer into a core's memory, out of it, or between two is counted of moves.
    """

    def __init__(self, network: Network, machine: Machine) -> None:
        self._network = network
        self._machine = machine
        self._writer = {group.output: group.index for group in network.groups}
        self._dram_rate = dram_rate(machine, outgoing=True)
        self._able = [self._memories(group) for group in network.groups]
        self._distances = Distances(Problem(name=network.name, machine=machine, tasks=()))
        self._lag = self._least_lag()
        homes = [core.memory for core in machine.cores]
        self._together = max(homes.count(home) for home in set(homes))
        self._tiles = [self._tiles_of(group) for group in network.groups]
        self._facts = self._facts_of_groups()
        self._boxes: dict[tuple[int, Box], Mapping[str, Box]] = {}
        self._bytes: dict[tuple[int, Box], Mapping[str, Bytes]] = {}
        self._cycles: dict[tuple[int, Box], Cycles] = {}
        self.starts: list[Cycles] = []
        self.ends: list[Cycles] = []
        for group in network.groups:
            self._add_heads(group)

    def cycles(self) -> Cycles:
        """Return a lower bound on the makespan of every plan of every tiling."""
        drams = frozenset(memory.index for memory in self._machine.drams)
        leave = self._distances.cycles(self._distances.used, drams, 1)
        needed: dict[int, _Needed] = {}
        found = max(self.ends, default=0)
        for name in self._network.outputs:
            found = max(found, self.ends[self._writer[name]] + leave)
            box = whole(self._network.tensors[name].shape)
            needed[self._writer[name]] = _Needed(volume(box), leave, box)
        return max(found, self._finished(needed, 0))

    def _memories(self, group: Group) -> frozenset[MemoryIdx]:
        kinds = self._machine.kinds
        return frozenset(
            core.memory for core in self._machine.cores if can_run(kinds[core.kind], group)
        )

    def _least_lag(self) -> Cycles:
        """Return the least cycles from one memory to another."""
        if self._machine.remote is not None or len(set(self._able)) > 1:
            return 0
        memories = self._distances.worked_in
        return self._distances.cycles_away(memories, memories, 1) if len(memories) > 1 else 0

    def _lag_between(self, before: int, after: int) -> Cycles:
        """Return the least cycles from one group to another."""
        if self._machine.remote is not None:
            return 0
        return self._distances.cycles(self._able[before], self._able[after], 1)

    def _tiles_of(self, group: Group) -> SmallestTiles:
        present = {core.kind for core in self._machine.cores}
        kinds = [kind for kind in self._machine.kinds if kind.index in present]
        return SmallestTiles(self._network, group, kinds)

    def _facts_of_groups(self) -> list[Facts]:
        """Return what holds of each group; groups of one class are looked at once."""
        known: dict[Hashable, tuple[Facts, Group]] = {}
        found = []
        for group, tiles in zip(self._network.groups, self._tiles, strict=True):
            key = class_of(self._network, group)
            if key not in known:
                known[key] = tiles.facts(), group
            facts, other = known[key]
            names = dict(zip(other.inputs, group.inputs, strict=True))
            found.append(
                facts._replace(
                    first=frozenset(names[name] for name in facts.first),
                    reads=frozenset(names[name] for name in facts.reads),
                )
            )
        return found

    def _add_heads(self, group: Group) -> None:
        """Find the first start and end of a group; those before it are known."""
        facts, index = self._facts[group.index], group.index
        first = [self._writer.get(name) for name in sorted(facts.first)]
        drams = frozenset(memory.index for memory in self._machine.drams)
        start = self._distances.cycles(drams, self._distances.used, 1) if None in first else 0
        for one in first:
            if one is not None:
                start = max(start, self.ends[one] + self._lag_between(one, index))
        end = start + facts.chain
        for one in (self._writer.get(name) for name in sorted(facts.reads)):
            if one is not None:
                end = max(end, self.ends[one] + self._lag_between(one, index) + facts.last)
        self.starts.append(start)
        tiles = self._tiles[index]
        if tiles.count * (index + 1) <= MOST_VISITS:
            seen = {self._read(index, tile) for tile in tiles.each()}
            end = max(end, min(self._end_of(index, read) for read in seen))
        self.ends.append(end)

    def _read(self, group: int, box: Box) -> frozenset[tuple[str, Box]]:
        """Return the boxes of other groups' results that a box of a group's output needs."""
        found = self._all_read(group, box)
        return frozenset((name, one) for name, one in found.items() if name in self._writer)

    def _all_read(self, group: int, box: Box) -> Mapping[str, Box]:
        key = group, box
        if key not in self._boxes:
            self._boxes[key] = self._tiles[group].surely_read(box)
        return self._boxes[key]

    def _end_of(self, group: int, read: Iterable[tuple[str, Box]]) -> Cycles:
        """Return when a tile can be finished that needs some boxes of others' results."""
        needed: dict[int, _Needed] = {}
        self._need(needed, group, 0, read)
        return self._finished(needed, self._lag)

    def _finished(self, needed: dict[int, _Needed], lag: Cycles) -> Cycles:
        """Return when that can be finished which needs some boxes, and what they need."""
        for group in range(len(self._tiles) - 1, -1, -1):
            if group in needed:
                after, box = needed[group].after, self._tiles[group].around(needed[group].box)
                needed[group] = _Needed(volume(box), after, box)
                self._need(needed, group, after, self._read(group, box))
        if not needed:
            return 0
        return max(self._when_computed(needed, lag), self._when_loaded(needed))

    def _need(
        self,
        needed: dict[int, _Needed],
        group: int,
        after: Cycles,
        read: Iterable[tuple[str, Box]],
    ) -> None:
        """Add what a group needs; of several boxes of one group's result the largest counts."""
        for name, box in read:
            other = self._writer[name]
            rest = after + self._facts[group].last + self._lag_between(other, group)
            one = _Needed(volume(box), rest, box)
            needed[other] = max(needed.get(other, one), one)

    def _when_computed(self, needed: Mapping[int, _Needed], lag: Cycles) -> Cycles:
        """Return when all that is needed can be computed and used."""
        start = np.array([self.starts[group] for group in needed])
        rest = np.array([one.after for one in needed.values()])
        work = np.array([self._cycles_of(group, one.box) for group, one in needed.items()])
        begins, ends = np.unique(start), np.unique(rest)
        late = (start >= begins[:, None]).astype(np.int64)
        early = (rest >= ends[:, None]).astype(np.int64)
        total = (late * work) @ early.T
        cores, together = len(self._machine.cores), self._together
        spread = -(-(total + (cores - together) * lag) // cores)
        least = np.minimum(-(-total // together), spread)
        times = begins[:, None] + ends + least
        return int(times[total > 0].max())

    def _cycles_of(self, group: int, box: Box) -> Cycles:
        key = group, box
        if key not in self._cycles:
            self._cycles[key] = self._tiles[group].cycles(box)
        return self._cycles[key]

    def _when_loaded(self, needed: Mapping[int, _Needed]) -> Cycles:
        """Return when all that this needs from DRAM can be there, and used."""
        loads: dict[str, Bytes] = {}
        found, total = 0.0, 0
        for group in sorted(needed, key=lambda group: needed[group].after, reverse=True):
            for name, size in self._loaded(group, needed[group].box).items():
                total += max(0, size - loads.get(name, 0))
                loads[name] = max(size, loads.get(name, 0))
            found = max(found, total / self._dram_rate * (1 - MARGIN) + needed[group].after + 1)
        return int(found)

    def _loaded(self, group: int, box: Box) -> Mapping[str, Bytes]:
        """Return the bytes from DRAM that a box of a group's output needs."""
        key = group, box
        if key not in self._bytes:
            tensors = self._network.tensors
            self._bytes[key] = {
                name: volume(read) * tensors[name].dtype.itemsize
                for name, read in self._all_read(group, box).items()
                if name not in self._writer
            }
        return self._bytes[key]
