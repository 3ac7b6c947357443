"""Bounds for any tiling of a network: smallest tiles, chains of groups, least peak and traffic."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, prod
from typing import NamedTuple

import numpy as np

from spmilp.bounds.movement import Distances, gates_of_drams
from spmilp.bounds.resources import lowest_end
from spmilp.bounds.roofline import MARGIN, able_kinds, compulsory_bytes, least_core_cycles
from spmilp.cached import Cache, cached
from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.frontend.operators.geometry import Fusion, Geometry, Reads
from spmilp.frontend.operators.moves import (
    Concat,
    DepthToSpace,
    Gather,
    Pad,
    Reshape,
    Slice,
    Transpose,
)
from spmilp.frontend.operators.products import Contraction, Convolution
from spmilp.frontend.operators.registry import geometries
from spmilp.frontend.operators.windows import GlobalPool, Pool
from spmilp.frontend.regions import (
    box_of_anchor,
    group_regions,
    group_work,
    overwritable_inputs,
    splittable_axes,
    until_anchor,
)
from spmilp.frontend.workspace import PARTIAL_ITEM
from spmilp.lowering.cost import can_run
from spmilp.lowering.groups import class_of, reduction_length
from spmilp.lowering.rates import dram_rate
from spmilp.machine.machine import CoreKind, Machine, Memory
from spmilp.problem.problem import Problem
from spmilp.units import Box, Bytes, Cycles

MOVED = (Reshape, Slice, Transpose)
"""Operators of which each element of the output is another one of the input."""

PARTLY_READ = (Concat, Pad)
"""Operators that read nothing of an operand for some of their output."""

RESHAPED = (DepthToSpace, Reshape)
"""Operators that do not read each axis by itself."""


class Facts(NamedTuple):
    """What holds of a group however it is tiled.

    ``first`` are operands of which the first task of every chain of partial sums reads something,
    ``reads`` those of which every chain as a whole does. ``chain`` is the least cycles of all tasks
    of one tile together, ``last`` those of the task that finishes a tile.
    """

    first: frozenset[str]
    reads: frozenset[str]
    chain: Cycles
    last: Cycles


class SmallestTiles:
    """The smallest tiles of one group, and the boxes that they make up.

    A smallest tile is one position along the axes that tiles may split, and the whole of the
    others. Every tile consists of some of them, takes at least the cycles of one of them, and reads
    at least what it reads.

    Cycles are those of the anchor and what follows it. Where they depend on where a tile lies
    (padding of a transposed convolution, resizing), or on how it cuts through the groups of a
    grouped convolution, they are one launch. A box that an operator reads with gaps (a stride that
    is wider than its window, gathering) counts as what its first element reads. Operands of which
    parts of the output read nothing (Concat, padding) are found by single positions along each
    axis; where a reshape comes with a Concat or Pad, which do not tell, none is named.
    """

    def __init__(self, network: Network, group: Group, kinds: Sequence[CoreKind]) -> None:
        self._network = network
        self._group = group
        self._shape = network.tensors[group.output].shape
        self._splits = splittable_axes(network, group)
        self._length = reduction_length(network, group)
        self._geometries = geometries(network)
        self._worked = replace(group, operators=group.operators[group.anchor :], anchor=0)
        work = group_work(network, self._worked, whole(self._shape))
        self._kinds = able_kinds(group, work, kinds)
        loops = dict(work.loops)
        # A convolution may have groups of several channels each.
        self._has_wide_groups = loops.get("G", 1) > 1 and loops.get("K", 1) > 1
        self._is_alike = _costs_the_same_anywhere(self._geometries[self._worked.operators[0]])

    @property
    def count(self) -> int:
        """The number of smallest tiles."""
        return prod(
            length for length, splits in zip(self._shape, self._splits, strict=True) if splits
        )

    def each(self) -> Iterator[Box]:
        """Yield all of them."""
        axes = [
            [(at, at + 1) for at in range(length)] if splits else [(0, length)]
            for length, splits in zip(self._shape, self._splits, strict=True)
        ]
        return product(*axes)

    def around(self, box: Box) -> Box:
        """Return the least box of whole smallest tiles that contains a box."""
        axes = zip(box, self._shape, self._splits, strict=True)
        return tuple(one if splits else (0, length) for one, length, splits in axes)

    def facts(self) -> Facts:
        """Return what holds of every tile."""
        one = next(self.each())
        last = (self._length - 1, self._length) if self._length > 1 else None
        first = (0, 1) if self._length > 1 else None
        reads = self._always(self._group, None)
        return Facts(
            first=self._always(until_anchor(self._group), first) if first else reads,
            reads=reads,
            chain=self.cycles(one),
            last=self.cycles(one, last),
        )

    def cycles(self, box: Box, part: tuple[int, int] | None = None) -> Cycles:
        """Return the least core cycles, summed, of all tiles that overlap a box."""
        work = group_work(self._network, self._worked, box, part)
        groups = dict(work.loops)
        cut = groups.get("G", 1) > 1 or box != whole(self._shape)
        if not self._is_alike or (cut and self._has_wide_groups):
            return max(1, min(kind.launch for kind in self._kinds))
        return max(1, ceil(least_core_cycles(work, self._kinds) * (1 - MARGIN)))

    def surely_read(self, box: Box) -> Mapping[str, Box]:
        """Return a box of each operand that the tiles of a box of the output read together.

        It is a part of what :func:`group_regions` returns, which may have gaps.
        """
        found: dict[str, Box] = {self._group.output: box}
        for operator in reversed(self._group.operators):
            needed = found.get(operator.output)
            if needed is None:
                continue
            for name, read in zip(operator.inputs, self._read_by(operator, needed), strict=True):
                if name and read is not None:
                    larger = name not in found or volume(read) > volume(found[name])
                    found[name] = read if larger else found[name]
        return {name: found[name] for name in self._group.inputs if name in found}

    def _read_by(self, operator: Operator, box: Box) -> Reads:
        own = self._geometries[operator]
        reads = own.reads(box)
        one = own.reads(tuple((start, start + 1) for start, _ in box))
        return reads if _reads_without_gaps(own, box, reads, one) else one

    def _always(self, group: Group, part: tuple[int, int] | None) -> frozenset[str]:
        """Return the operands of which each smallest tile reads some."""
        owns = [self._geometries[operator] for operator in group.operators]
        if all(any(isinstance(own, some) for own in owns) for some in (PARTLY_READ, RESHAPED)):
            return frozenset()
        box = whole(self._network.tensors[group.output].shape)
        found = set(group.inputs) & set(group_regions(self._network, group, box, part))
        if all(_is_regular(own) or isinstance(own, MOVED) for own in owns):
            return frozenset(found)
        for axis, (start, stop) in enumerate(box):
            for at in range(start, stop):
                slab = (*box[:axis], (at, at + 1), *box[axis + 1 :])
                found &= set(group_regions(self._network, group, slab, part))
        return frozenset(found)


def _is_regular(own: Geometry) -> bool:
    """Return whether what an operator does for a box does not depend on where the box lies.

    Equal boxes take equal work, every element reads something of every operand, and what a box
    reads is read by its elements, without gaps.
    """
    return own.fusion in (Fusion.ELEMENTWISE, Fusion.REDUCTION) or isinstance(
        own, Contraction | GlobalPool
    )


def _costs_the_same_anywhere(own: Geometry) -> bool:
    """Return whether equal boxes take equal work wherever they lie."""
    if isinstance(own, Pool):
        # What is read of integers counts, and that is less at an edge.
        return own.operator.quantisation is None
    return _is_regular(own) or (isinstance(own, Convolution) and not own.transposed)


def _reads_without_gaps(own: Geometry, box: Box, reads: Reads, one: Reads) -> bool:
    """Return whether each element of what a box reads is read by an element of the box.

    ``one`` is what the first element of the box reads.
    """
    if isinstance(own, Pool) or (isinstance(own, Convolution) and not own.transposed):
        return all(each.dilation == 1 and each.stride <= each.kernel for each in own.windows)
    if isinstance(own, (*MOVED, Concat)):
        return sum(volume(read) for read in reads if read is not None) == volume(box)
    if isinstance(own, Gather) and reads[0] is not None and one[0] is not None:
        # Indices that are computed may name any position, so each element reads them all.
        axis = own.operator.integer("axis")
        return reads[0][axis] == one[0][axis]
    return _is_regular(own)


MOST_VISITS = 4096
"""The cones of a group's smallest tiles are looked at if their number, times that of the groups up
to this one, is at most this; it bounds the time."""


class _Needed(NamedTuple):
    """A box of a group's output that a tile needs.

    ``after`` is the least cycles from the end of the last task for the box to the end of that
    tile's last task.
    """

    volume: int
    after: Cycles
    box: Box


class Chains:
    """The first start and end of each group of a network on a machine, and the bound they give.

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

    *Loads.* What the boxes of some groups need of a weight or network input has come from DRAM, at
    the rate of its links at most, before the tasks start that read it. So ``T`` is not below the
    bytes that groups with ``t(q) >= r`` need, of each tensor what one of them needs, divided by
    that rate, with the least set-up before them, and the least latency, a cycle and ``r`` behind.

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
        ways_out = [gates.out.passages[0].apart for gates in gates_of_drams(machine).values()]
        self._beside_loads = min(ways_out, default=0)
        self._able = [
            frozenset(memory.index for memory in _memories(group, machine))
            for group in network.groups
        ]
        self._distances = Distances(Problem(name=network.name, machine=machine, tasks=()))
        self._lag = self._least_lag()
        self.cache = Cache()
        homes = [core.memory for core in machine.cores]
        self._together = max(homes.count(home) for home in set(homes))
        present = {core.kind for core in machine.cores}
        kinds = [kind for kind in machine.kinds if kind.index in present]
        self._tiles = [SmallestTiles(network, group, kinds) for group in network.groups]
        self._facts = self._facts_of_groups()
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

    @cached
    def _all_read(self, group: int, box: Box) -> Mapping[str, Box]:
        return self._tiles[group].surely_read(box)

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
        self, needed: dict[int, _Needed], group: int, after: Cycles, read: Iterable[tuple[str, Box]]
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

    @cached
    def _cycles_of(self, group: int, box: Box) -> Cycles:
        return self._tiles[group].cycles(box)

    def _when_loaded(self, needed: Mapping[int, _Needed]) -> Cycles:
        """Return when all that this needs from DRAM can be there, and used."""
        loads: dict[str, Bytes] = {}
        found, total = 0.0, 0
        for group in sorted(needed, key=lambda group: needed[group].after, reverse=True):
            for name, size in self._loaded(group, needed[group].box).items():
                total += max(0, size - loads.get(name, 0))
                loads[name] = max(size, loads.get(name, 0))
            behind = needed[group].after + 1 + self._beside_loads * (total > 0)
            found = max(found, total / self._dram_rate * (1 - MARGIN) + behind)
        return int(found)

    @cached
    def _loaded(self, group: int, box: Box) -> Mapping[str, Bytes]:
        """Return the bytes from DRAM that a box of a group's output needs."""
        return {
            name: volume(read) * self._network.tensors[name].dtype.itemsize
            for name, read in self._all_read(group, box).items()
            if name not in self._writer
        }


MOST_TILES_ASKED = 512
"""In a group with more smallest tiles, each is taken to read one element of an operand, which is
weaker and quick."""


def traffic_for_any_tiles(network: Network) -> Bytes:
    """Return the bytes that every plan of every tiling moves from DRAM and to it.

    What :func:`.compulsory_bytes` counts as loaded and what it counts as stored are different
    tensors, or different transfers of one; so they add up.
    """
    return sum(compulsory_bytes(network))


def peak_for_any_tiles(network: Network, machine: Machine) -> Bytes:
    """Return the bytes below which no plan of any tiling keeps the peak of the scratchpads.

    Each group has a task whose operands and result lie side by side in the memory of its core,
    and a tile holds one of the smallest tiles at least (:class:`.SmallestTiles`), so that it
    reads what that reads, or more. Of a reduction that is split, this is the first task of a
    chain: it reads what the first element of the reduction needs, and writes a partial sum,
    over no operand, since none of them is used element by element. A whole reduction has the
    same task, with a result in place of the partial sum. A group without reduction may write
    its result over an operand; then the result is not counted. Different tensors lie in
    different buffers, and of an operand that comes in pieces each one is padded, all together
    no less than one piece. All parts but the highest one take whole multiples of the memory's
    alignment, and none lies in reserved ranges. Where cores read in other memories, operands
    are not counted, and where a group can run in a memory that is no scratchpad, it has no
    peak.
    """
    known: dict[Hashable, list[Bytes]] = {}
    best = 0
    for group in network.groups:
        kind = class_of(network, group)
        if kind not in known:
            known[kind] = list(_parts(network, group, machine))
        ends = (lowest_end(memory, known[kind]) for memory in _memories(group, machine))
        best = max(best, min(ends, default=0))
    return best


def _memories(group: Group, machine: Machine) -> list[Memory]:
    able = (core for core in machine.cores if can_run(machine.kinds[core.kind], group))
    return [machine.memories[index] for index in sorted({core.memory for core in able})]


def _parts(network: Network, group: Group, machine: Machine) -> Iterator[Bytes]:
    """Yield the least bytes of what one task of a group has in its memory."""
    tiles = SmallestTiles(network, group, machine.kinds)
    tensors, is_split = network.tensors, reduction_length(network, group) > 1
    facts = tiles.facts()
    operands = facts.first if is_split else facts.reads
    if machine.remote is None:
        for name in sorted(operands):
            yield _least_read(network, group, tiles, name, is_split) * tensors[name].dtype.itemsize
    made = tensors[group.output].dtype
    overwrites = any(tensors[name].dtype == made for name in overwritable_inputs(network, group))
    if is_split or machine.remote is not None or not overwrites:
        item = min(made.itemsize, PARTIAL_ITEM) if is_split else made.itemsize
        yield volume(next(tiles.each())) * item


def _least_read(
    network: Network, group: Group, tiles: SmallestTiles, name: str, is_split: bool
) -> int:
    """Return the fewest elements that a smallest tile reads of an operand that each reads."""
    if tiles.count > MOST_TILES_ASKED:
        return 1
    boxes, computed, first = tiles.each(), group, None
    if is_split:
        boxes = (box_of_anchor(network, group, tile) for tile in boxes)
        computed, first = until_anchor(group), (0, 1)
    read = (group_regions(network, computed, box, first).get(name) for box in boxes)
    return max(1, min((volume(box) for box in read if box is not None), default=1))
