"""The bytes that every tiling of a network must bring from DRAM and store to it."""

from collections.abc import Hashable, Iterable, Mapping
from math import prod

from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.registry import family_of
from spmilp.frontend.regions import group_regions
from spmilp.lowering.groups import class_of
from spmilp.lowering.tiling import Interval
from spmilp.units import Box, Bytes


def compulsory_bytes(
    network: Network, of_groups: Iterable[Mapping[str, Bytes]] | None = None
) -> tuple[Bytes, Bytes]:
    """Return the bytes that every plan loads from DRAM, and those that it stores there.

    They bound every tiling: a tile reads at least what each single element of it reads. An input or
    constant that several groups read counts once, with what one of them needs at least.

    Parameters
    ----------
    of_groups
        What :func:`needed_by_groups` returns, if it is known.
    """
    loads: dict[str, Bytes] = {}
    for needed in needed_by_groups(network) if of_groups is None else of_groups:
        for name, size in needed.items():
            loads[name] = max(loads.get(name, 0), size)
    stores = sum(network.tensors[name].bytes for name in network.outputs)
    return sum(loads.values()), stores


def needed_by_groups(network: Network) -> list[Mapping[str, Bytes]]:
    """Return, for each group, the bytes that it needs of each network input and constant."""
    computed = {group.output for group in network.groups}
    known: dict[Hashable, tuple[int, ...]] = {}
    found: list[Mapping[str, Bytes]] = []
    for group in network.groups:
        kind = class_of(network, group)
        if kind not in known:
            needs = _Needs(network, group)
            known[kind] = tuple(
                0 if name in computed else needs.elements(name) for name in group.inputs
            )
        counted = zip(group.inputs, known[kind], strict=True)
        found.append(
            {
                name: elements * network.tensors[name].dtype.itemsize
                for name, elements in counted
                if name not in computed
            }
        )
    return found


def regions_asked(network: Network) -> int:
    """Return about how often :func:`needed_by_groups` asks what an operator reads."""
    classes = {class_of(network, group): group for group in network.groups}
    return sum(
        sum(network.tensors[group.output].shape) * len(group.operators)
        for group in classes.values()
    )


class _Needs:
    """Counts from below the elements that a group's output depends on.

    What single positions along one axis of the output read of a tensor is an interval along each of
    the tensor's axes. Where each of these follows one axis of the output, and no two the same one,
    the elements read by all single elements of the output are the product of the intervals'
    unions: rows that a stride skips are not among them. Otherwise only what one element reads is
    counted. A view that keeps the number of elements (a Reshape) needs as many of its input as are
    needed of its output.
    """

    def __init__(self, network: Network, group: Group) -> None:
        self._network = network
        self._group = group
        box = whole(network.tensors[group.output].shape)
        self._regions = group_regions(network, group, box)
        self._slices = [
            [
                group_regions(network, group, (*box[:axis], (i, i + 1), *box[axis + 1 :]))
                for i in range(*box[axis])
            ]
            for axis in range(len(box))
        ]

    def elements(self, name: str) -> int:
        """Return a lower bound on the needed elements of a tensor."""
        if name not in self._regions:
            return 0
        seen_as = self._reshaped(name)
        if seen_as is not None:
            return self.elements(seen_as)
        region = self._regions[name]
        drivers = [self._drivers(name, axis, region[axis]) for axis in range(len(region))]
        followed = [axis for axes in drivers for axis in axes]
        if len(followed) > len(set(followed)) or any(len(axes) > 1 for axes in drivers):
            return self._least_of_one_element(name)
        return prod(
            self._union(name, axis, axes[0]) if axes else region[axis][1] - region[axis][0]
            for axis, axes in enumerate(drivers)
        )

    def _reshaped(self, name: str) -> str | None:
        """Return the tensor as which the group sees all of a tensor, moved to another shape."""
        readers = [operator for operator in self._group.operators if name in operator.inputs]
        if len(readers) != 1 or family_of(readers[0].kind).fusion is not Fusion.VIEW:
            return None
        shape = self._network.tensors[readers[0].output].shape
        same = prod(shape) == prod(self._network.tensors[name].shape)
        return readers[0].output if same else None

    def _drivers(self, name: str, axis: int, interval: Interval) -> list[int]:
        """Return the axes of the output that move what is read along one axis of a tensor."""
        return [
            number
            for number, slices in enumerate(self._slices)
            if any(name not in regions or regions[name][axis] != interval for regions in slices)
        ]

    def _union(self, name: str, axis: int, driver: int) -> int:
        """Return how many positions along an axis of a tensor are read by any slice."""
        slices = self._slices[driver]
        intervals = sorted({regions[name][axis] for regions in slices if name in regions})
        positions, end = 0, 0
        for start, stop in intervals:
            positions += max(0, stop - max(start, end))
            end = max(end, stop)
        return positions

    def _least_of_one_element(self, name: str) -> int:
        first: Box = tuple((0, 1) for _ in self._network.tensors[self._group.output].shape)
        region = group_regions(self._network, self._group, first).get(name)
        return 0 if region is None else volume(region)
