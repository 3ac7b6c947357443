"""Large batches in waves: successive groups compute for a part of the batch after another.

A batch whose tensors exceed the scratchpads would go to DRAM and back between any two groups. In
waves, some groups compute one after another for a first part of the batch, then for the next part,
and so on: their tensors stay, their weights are loaded for each wave. Where tensors are small (and
weights are large, mostly) the groups of a network compute for the whole batch at once again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spmilp.frontend.graph import Network, Operator, Tensor
from spmilp.frontend.operators.boxes import whole
from spmilp.frontend.operators.registry import family_of
from spmilp.frontend.regions import group_regions
from spmilp.lowering.rates import MachineRates
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
    everything = len(expected_residence(network, rates.aggregate).kept) == len(network.groups)
    if batch == 1 or everything:
        return found
    capacity = int(rates.aggregate * USABLE_SHARE)
    live = expected_residence(network, 2 * sum(t.bytes for t in network.tensors.values())).live
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
    moves = _moves(network, rates)
    best = {number: _Path(number * of_group[0], (number,)) for number, of_group in times.items()}
    for group in range(1, len(network.groups)):
        best = {
            number: min(
                (
                    path.then(number, (0.0 if last == number else moves[group]))
                    for last, path in best.items()
                ),
                key=lambda path: path.cycles,
            ).plus(number * of_group[group])
            for number, of_group in times.items()
        }
    return list(min(best.values(), key=lambda path: path.cycles).numbers)


def in_waves(tiling: Tiling, number: int) -> Tiling:
    """Return the tiling of the whole batch whose waves are tiled as given."""
    if number == 1:
        return tiling
    return replace(tiling, counts=(number * tiling.counts[0], *tiling.counts[1:]), waves=number)


@dataclass(frozen=True, slots=True)
class _Path:
    """Waves of the groups so far, and their cycles."""

    cycles: float
    numbers: tuple[int, ...]

    def then(self, number: int, move: float) -> "_Path":
        return _Path(self.cycles + move, (*self.numbers, number))

    def plus(self, cycles: float) -> "_Path":
        return replace(self, cycles=self.cycles + cycles)


def _moves(network: Network, rates: MachineRates) -> list[float]:
    """Return, for each group, the cycles of moving what lives when it begins, for the batch."""
    last_use = {group.output: group.index for group in network.groups}
    for group in network.groups:
        last_use |= {name: group.index for name in group.inputs if name in last_use}
    changes = [0] * (len(network.groups) + 2)
    for group in network.groups:
        size = network.tensors[group.output].bytes
        changes[group.index + 1] += size
        changes[last_use[group.output] + 1] -= size
    live, found = 0, []
    for change in changes[: len(network.groups)]:
        live += change
        found.append(_move(live, rates))
    return found


def _move(size: int, rates: MachineRates) -> float:
    if size <= rates.aggregate * USABLE_SHARE and rates.on_chip > 0:
        return size / rates.on_chip
    return size / rates.dram_in + size / rates.dram_out


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
    if parts == 1:
        return network
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
