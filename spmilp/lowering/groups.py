"""Fused groups: sums that tasks may split, what a part computes, and which groups are alike."""

from collections.abc import Hashable
from dataclasses import replace
from functools import lru_cache

from spmilp.cached import cached
from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.boxes import extents, volume
from spmilp.frontend.operators.geometry import Fusion, Work
from spmilp.frontend.operators.moves import keeps_boxes, without_ones
from spmilp.frontend.operators.registry import family_of, geometries
from spmilp.frontend.regions import (
    box_of_anchor,
    group_regions,
    is_elementwise,
    until_anchor,
    work_of_regions,
)
from spmilp.frontend.workspace import Workspace, workspace_of
from spmilp.units import Box, Interval

MOST_REGIONS_KEPT = 1 << 12
"""Regions of a group that a cache keeps."""


def reduction_length(network: Network, group: Group) -> int:
    """Length of the reduction that tasks may split into partial sums; 1 if none.

    The sums lie element by element where the group's output will, so the operators between the
    anchor and that must be element-wise and keep its shape, but for axes of length 1.
    """
    anchor = group.operators[group.anchor]
    made = {anchor.output}
    for operator in group.operators[group.anchor + 1 :]:
        if made.isdisjoint(operator.inputs):
            continue
        if not is_elementwise(operator) and not keeps_boxes(operator, network.tensors):
            return 1
        made.add(operator.output)
    shapes = (network.tensors[name].shape for name in (anchor.output, group.output))
    if len(set(map(without_ones, shapes))) > 1:
        return 1
    return geometries(network)[anchor].reduction


class Computation:
    """The reads and the work of tasks of one group.

    Only the task of a tile's last part applies what follows the anchor, and reads what that needs;
    the others compute the group up to its anchor. ``length`` is that of the reduction of which they
    compute parts.
    """

    def __init__(self, network: Network, group: Group, length: int) -> None:
        self._network = network
        self.group = group
        self.length = length
        self._unfinished = until_anchor(group)
        # Tilings share tiles, and what a task reads is asked along with its work.
        self.regions = lru_cache(maxsize=MOST_REGIONS_KEPT)(self._find_regions)
        read = [name for operator in group.operators for name in operator.inputs if name]
        self._shares = len(set(read)) < len(read)
        self._workspaces: dict[Hashable, Workspace] = {}

    def workspace(self, box: Box, part: Interval, notes: frozenset[str]) -> Workspace:
        """Return the workspace of a task; the same one for tiles that are alike.

        Where two operators read one tensor it matters what each reads of it, else how much.
        """
        computed, regions = self.computed(part), self.regions(box, part)
        boxes = regions.values() if self._shares else map(extents, regions.values())
        is_partial = computed is self._unfinished
        key = notes, is_partial, part[0] > 0, *regions, *boxes
        if key not in self._workspaces:
            self._workspaces[key] = workspace_of(
                self._network, computed, regions, self.reduction(part), notes, gives_sums=is_partial
            )
        return self._workspaces[key]

    def reads(self, box: Box, part: Interval) -> dict[str, Box]:
        """Return the box of each of the group's inputs that a task reads, in their order."""
        regions = self.regions(box, part)
        return {name: regions[name] for name in self.group.inputs if name in regions}

    def work(self, box: Box, part: Interval) -> Work:
        """Return the work of a task; adding to an earlier partial sum counts 1 per element."""
        work = work_of_regions(
            self._network, self.computed(part), self.regions(box, part), self.reduction(part)
        )
        return replace(work, vector=work.vector + volume(box)) if part[0] > 0 else work

    def _find_regions(self, box: Box, part: Interval) -> dict[str, Box]:
        computed = self.computed(part)
        if computed is self._unfinished:
            box = box_of_anchor(self._network, self.group, box)
        return group_regions(self._network, computed, box, self.reduction(part))

    def computed(self, part: Interval) -> Group:
        """Return what a task computes: the group, or all up to its anchor."""
        return self.group if part[1] == self.length else self._unfinished

    def reduction(self, part: Interval) -> Interval | None:
        """Return the part of the anchor's reduction; ``None`` for all of it."""
        return None if part == (0, self.length) else part


@cached
def computation_of(network: Network, group: Group) -> Computation:
    """Return what tasks of a group compute; one object, for all of its tilings."""
    return Computation(network, group, reduction_length(network, group))


def class_of(network: Network, group: Group) -> Hashable:
    """Return a value that is equal for groups whose tiles read, hold and cost the same.

    Such groups have the same operators on tensors of the same shapes and types, wired alike.
    Constants that may say what is read (indices of a Gather) count by name.
    """
    numbers: dict[str, int] = {"": -1}
    for name in group.inputs:
        numbers[name] = len(numbers)
    computed = {other.output for other in network.groups}
    tensors = [
        (network.tensors[name].shape, network.tensors[name].dtype.str, name in computed)
        for name in group.inputs
    ]
    operators = []
    for operator in group.operators:
        read = tuple(numbers.setdefault(name, len(numbers)) for name in operator.inputs)
        written = numbers.setdefault(operator.output, len(numbers))
        operators.append(
            (
                operator.kind,
                tuple(sorted(operator.attributes.items())),
                _quantised(operator),
                read,
                written,
                network.tensors[operator.output].shape,
                network.tensors[operator.output].dtype.str,
                _constants_that_steer(network, operator),
            )
        )
    return tuple(tensors), tuple(operators), group.anchor


def _quantised(operator: Operator) -> Hashable:
    if operator.quantisation is None:
        return None
    inputs = tuple(scale is not None for scale in operator.quantisation.inputs)
    return inputs, operator.quantisation.output is not None


def _constants_that_steer(network: Network, operator: Operator) -> tuple[str, ...]:
    if family_of(operator.kind).fusion not in (Fusion.VIEW, Fusion.INJECTIVE):
        return ()
    return tuple(
        name for name in operator.inputs if name and network.tensors[name].data is not None
    )
