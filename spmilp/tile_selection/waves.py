"""Large batches in waves: successive groups compute for a part of the batch after another.

A batch whose tensors exceed the scratchpads would go to DRAM and back between any two groups. In
waves, some groups compute one after another for a first part of the batch, then for the next part,
and so on: their tensors stay, their weights are loaded for each wave. Where tensors are small (and
weights are large, mostly) the groups of a network compute for the whole batch at once again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from spmilp.frontend.graph import Network, Operator, Tensor
from spmilp.frontend.operators.boxes import whole
from spmilp.frontend.operators.registry import family_of
from spmilp.frontend.regions import group_regions
from spmilp.lowering.rates import NO_LIMIT, MachineRates
from spmilp.lowering.tiling import Tiling
from spmilp.tile_selection.residence import USABLE_SHARE, expected_residence

MOST_WIDTHS = 4
"""Different numbers of waves that are compared."""


def parts_of_batch(network: Network, rates: MachineRates) -> Mapping[int, Network]:
    """Return networks on parts of the batch by the number of waves that they stand for.

    There is always the network itself, for 1. Where some of its tensors do not stay in scratchpads,
    there are those whose waves are just short enough for the tensors of some group.
    """
    found = {1: network}
    batch = batch_size(network)
    kept = expected_residence(network, rates.aggregate).kept
    if batch == 1 or len(kept) == len(network.groups):
        return found
    capacity = int(rates.aggregate * USABLE_SHARE)
    live = expected_residence(network, NO_LIMIT).live
    divisors = [number for number in range(1, batch + 1) if batch % number == 0]
    fitting = {next((d for d in divisors if size <= d * capacity), batch) for size in live}
    for number in sorted(fitting - {1}, reverse=True)[: MOST_WIDTHS - 1]:
        part = part_of_batch(network, number)
        if part is None:
            return found
        found[number] = part
    return found


def waves_of_groups(
    network: Network, rates: MachineRates, times: Mapping[int, Sequence[float]]
) -> list[int]:
    """Return in how many waves each group computes.

    By dynamic programming along the groups: a group takes as long as all of its waves together, and
    where the number changes, what lives there for the whole batch is moved: between scratchpads, or
    through DRAM where there is too much of it.

    Parameters
    ----------
    times
        Cycles of each group in one wave, by the number of waves.
    """
    best = {number: (number * of_group[0], [number]) for number, of_group in times.items()}
    live = expected_residence(network, NO_LIMIT).live
    for index, group in list(enumerate(network.groups))[1:]:
        # What lives when it begins.
        size = live[index] - network.tensors[group.output].bytes
        move = size / rates.dram_in + size / rates.dram_out
        if size <= rates.aggregate * USABLE_SHARE and rates.on_chip > 0:
            move = size / rates.on_chip
        paths = best
        best = {}
        for number, of_group in times.items():
            costs = {last: cycles + move * (last != number) for last, (cycles, _) in paths.items()}
            last = min(costs, key=costs.__getitem__)
            best[number] = costs[last] + number * of_group[index], [*paths[last][1], number]
    return min(best.values(), key=itemgetter(0))[1]


def in_waves(tiling: Tiling, number: int) -> Tiling:
    """Return the tiling of the whole batch whose waves are tiled as given."""
    if number == 1:
        return tiling
    return replace(tiling, counts=(number * tiling.counts[0], *tiling.counts[1:]), waves=number)


def batch_size(network: Network) -> int:
    """Return the length of the first axis of all inputs, the batch; 1 if there is no such."""
    sizes = {network.tensors[name].shape[:1] for name in network.inputs}
    return next(iter(sizes))[0] if len(sizes) == 1 and () not in sizes else 1


def part_of_batch(network: Network, parts: int) -> Network | None:
    """Return the network on an equal part of its batch.

    ``None`` unless every computed tensor has the batch as its first axis and each example is
    computed from that example of the inputs alone.
    """
    batch = batch_size(network)
    if batch % parts or not _keeps_examples_apart(network, batch, batch // parts):
        return None
    tensors = dict(network.tensors)
    for name in network.inputs:
        tensors[name] = _part(tensors[name], parts)
    for group in network.groups:
        for operator in group.operators:
            made = _part(tensors[operator.output], parts)
            if not _gives(operator, tensors, made):
                return None
            tensors[operator.output] = made
    return replace(network, tensors=tensors)


def _keeps_examples_apart(network: Network, batch: int, some: int) -> bool:
    computed = {group.output for group in network.groups} | set(network.inputs)
    for group in network.groups:
        made = {operator.output for operator in group.operators}
        if any(network.tensors[name].shape[:1] != (batch,) for name in made):
            return False
        rest = whole(network.tensors[group.output].shape)[1:]
        for first in (0, batch - some):
            regions = group_regions(network, group, ((first, first + some), *rest))
            read = [regions[name] for name in group.inputs if name in computed & regions.keys()]
            if any(box[:1] != ((first, first + some),) for box in read):
                return False
    return True


def _gives(operator: Operator, tensors: dict[str, Tensor], made: Tensor) -> bool:
    """Return whether an operator gives a tensor of that shape, of inputs that are cut already."""
    inputs = [tensors[name] if name else None for name in operator.inputs]
    try:
        return family_of(operator.kind)(operator, inputs).shape == made.shape
    except ValueError:
        return False


def _part(tensor: Tensor, parts: int) -> Tensor:
    return replace(tensor, shape=(tensor.shape[0] // parts, *tensor.shape[1:]))
