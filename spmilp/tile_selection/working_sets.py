"""What tasks need at one time under tilings of a group and of those that it reads."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import product
from math import prod

from spmilp.errors import Shortage
from spmilp.frontend.graph import Group
from spmilp.lowering.groups import PARTIAL_ITEM
from spmilp.lowering.rates import machine_rates, usable_bytes
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Core
from spmilp.tile_selection.group_model import SUMS, SUMS_BEFORE
from spmilp.tile_selection.piece_counts import PieceCounts
from spmilp.units import Bytes, align_up

Tilings = Mapping[int, Tiling]


class WorkingSets:
    """Estimates what the largest task of a group needs, every piece of its operands padded.

    An operand comes in pieces, one for each tile of the group that computes it; each of them lies
    at an aligned address. Where scratchpads are small, this padding may be most of a working set,
    and no smaller tiles of the group help, but larger ones of that which it reads.

    Along each axis the interval counts that touches most tiles; so it is rarely too little.

    Parameters
    ----------
    go_on
        Called now and then; what it raises passes on.
    """

    def __init__(self, counts: PieceCounts, go_on: Callable[[], None] = lambda: None) -> None:
        self.counts = counts
        self._go_on = go_on
        self._machine = counts.machine
        self._alignment = machine_rates(counts.machine).alignment
        self._known: dict[Hashable, Bytes] = {}

    def capacity(self, group: Group) -> Bytes:
        """Return the usable bytes of the largest memory of a core that can run a group."""
        return usable_bytes(self._machine, self._roomiest(group))

    def shortage(self, group: Group, tilings: Tilings) -> Shortage | None:
        """Return what a group needs and has; ``None`` where its largest task fits."""
        parts = self.parts(group, tilings)
        needed, usable = sum(size for _, size in parts), self.capacity(group)
        if needed <= usable:
            return None
        memory = self._machine.memories[self._roomiest(group).memory].name
        what = f"group {group.name}"
        return Shortage(what=what, memory=memory, needed=needed, usable=usable, parts=parts)

    def _roomiest(self, group: Group) -> Core:
        model = self.counts.model(group)
        untiled = model.cycles(model.grid(Tiling(counts=(1,) * len(model.shape))))
        able = (core for core in self._machine.cores if untiled[core.kind] is not None)
        return max(able, key=lambda core: usable_bytes(self._machine, core))

    def of_group(self, group: Group, tilings: Tilings) -> Bytes:
        """Return the bytes that the largest task of a group needs at one time."""
        producers = self.counts.producers[group.index]
        before = tuple(None if one is None else tilings.get(one) for one in producers)
        key = group.index, tilings[group.index], before
        if key not in self._known:
            self._go_on()
            self._known[key] = sum(size for _, size in self.parts(group, tilings))
        return self._known[key]

    def parts(self, group: Group, tilings: Tilings) -> tuple[tuple[str, Bytes], ...]:
        """Return ``(name, bytes)`` of what the largest task of a group needs."""
        tiling, model = tilings[group.index], self.counts.model(group)
        grid = model.grid(tiling)
        tile = prod(max(stop - start for start, stop in axis) for axis in grid.axes)
        item = self.counts.network.tensors[group.output].dtype.itemsize
        sums, result = self._aligned(tile * PARTIAL_ITEM), self._aligned(tile * item)
        last = [(group.output, result)]
        if tiling.parts > 1 and item != PARTIAL_ITEM:
            last.append((SUMS_BEFORE, sums))
        found = []
        for is_last in {tiling.parts == 1, True}:
            # A partial sum is written over the one before.
            written = last if is_last else [(SUMS, sums)]
            found.append((*self._operands(group, tilings, is_last=is_last), *written))
        return max(found, key=lambda parts: sum(size for _, size in parts))

    def _operands(
        self, group: Group, tilings: Tilings, *, is_last: bool
    ) -> Iterator[tuple[str, Bytes]]:
        tensors, model = self.counts.network.tensors, self.counts.model(group)
        grid = model.grid(tilings[group.index])
        boxes = model.middle_reads(grid, is_last=is_last)
        for position, name in enumerate(group.inputs):
            # The operands of groups that are alike go by the names of the model's.
            box = boxes.get(model.group.inputs[position])
            if box is None:
                continue
            tensor = tensors[name]
            producer = self.counts.producers[group.index][position]
            if producer is None and tensor.bytes <= self.counts.small:
                yield name, self._aligned(tensor.bytes)
                continue
            pieces = self.counts.largest_pieces(group, position, tilings, box)
            lengths = (prod(piece) * tensor.dtype.itemsize for piece in product(*pieces))
            yield name, sum(map(self._aligned, lengths))

    def _aligned(self, size: Bytes) -> Bytes:
        return align_up(size, self._alignment)
