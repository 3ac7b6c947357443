"""Tilings of few rows: the quickest plan, where there is no time to compare any by their cost."""

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.tile_selection.group_model import GroupModel
from spmilp.tile_selection.initial import Tilings, one_tile_for_each, tasks_of
from spmilp.tile_selection.piece_counts import PieceCounts
from spmilp.tile_selection.shrinker import TileShrinker
from spmilp.units import Bytes

WORKING_SETS = (0.9, 0.75, 0.5, 0.25)
"""Parts of a whole memory, however many cores share it."""

SWEEPS = 3

MOST_PIECES = 1_000_000
"""That tasks read where a plan is to be made quickly: of more it takes minutes, and gigabytes."""

MOST_PIECES_EVER = 10_000_000
"""Of more a problem alone fills many gigabytes."""

FEW_READS = 20_000
"""Of so few a plan is made as soon as it could be made better."""

MOST_PRODUCERS = 4
"""Whose tiles those of one group are made to match; a concatenation may have a hundred."""

READS_OF_A_TASK = 2
"""A task takes about as long as so many reads, besides its own."""


class CoarseTilings:
    """Tilings whose tasks read few pieces: large enough to fill a memory, then smaller ones.

    What a problem, its schedule and its plan take is in proportion to the pieces. They are few
    where tiles are large, and where those of a group match those of the groups that it reads. Where
    cores share a memory they may have to take turns: such plans are quickly there, but poor.
    """

    def __init__(self, network: Network, machine: Machine) -> None:
        self.counts = PieceCounts(network, machine)
        self._capacity = max(machine_rates(machine).capacity)
        self._parts = iter(WORKING_SETS)
        self._found: list[Tilings] = []

    def __iter__(self) -> Iterator[Tilings]:
        """Yield tilings; each is chosen only once."""
        yield from self._found
        for part in self._parts:
            choice = CoarseChoice(self.counts, int(part * self._capacity))
            if choice.fits():
                if self.counts.of_all(choice.tilings) > FEW_READS:
                    choice.improve()
                self._found.append(choice.tilings)
                yield choice.tilings


def refuse_too_many_pieces(
    counts: PieceCounts, tilings: Tilings, most: int = MOST_PIECES, remedy: str = ""
) -> None:
    """Raise an error where a problem would be too large for a plan to be made of it.

    Parameters
    ----------
    most
        Pieces that its tasks may read.
    remedy
        What to do besides taking smaller dimensions or larger scratchpads.

    Raises
    ------
    SpmilpError
        If it is; it says what to do.
    """
    of_groups = {group: counts.of_group(group, tilings) for group in counts.network.groups}
    total = round(sum(of_groups.values()))
    if total > most:
        capacity = max(machine_rates(counts.machine).capacity)
        worst = max(of_groups, key=of_groups.__getitem__)
        tiling = tilings[worst.index]
        raise SpmilpError(
            f"{counts.network.name} on {counts.machine.name}: its {tasks_of(tilings):,} tiles read "
            f"{total:,} pieces of their operands, expected at most {most:,}: group "
            f"{worst.name} alone, cut into {tiling.describe()} tiles so that one fits "
            f"{capacity:,} B, reads {round(of_groups[worst]):,}; "
            f"give {remedy}smaller dimensions (--dim), or use a machine with larger scratchpads"
        )


class CoarseChoice:
    """Chooses for one group after another what reads least, together with what reads it."""

    def __init__(self, counts: PieceCounts, capacity: Bytes) -> None:
        self._counts = counts
        self._network = counts.network
        self._capacity = capacity
        self._cores = len(counts.machine.cores)
        self._shrinkers: dict[tuple[int, bool], TileShrinker] = {}
        self._usual: dict[int, list[Tiling]] = {}
        self._with_new_neighbours: set[int] = set()
        self.tilings: Tilings = {}

    def fits(self) -> bool:
        """Choose for each group in turn; ``False`` where one fits in no way."""
        return all(map(self._choose, self._network.groups))

    def improve(self) -> None:
        """Choose again where a neighbour has changed."""
        for _ in range(SWEEPS):
            for group in self._network.groups:
                if group.index in self._with_new_neighbours:
                    self._choose(group)

    def _choose(self, group: Group) -> bool:
        """Choose for a group, its neighbours as they are; ``False`` where it fits in no way."""
        options = dict.fromkeys(self._options(group))
        if not options:
            return False
        best = min(options, key=lambda tiling: self._effort(group, tiling))
        self._with_new_neighbours.discard(group.index)
        if best != self.tilings.get(group.index):
            self.tilings[group.index] = best
            readers = (reader for reader, _ in self._counts.readers[group.index])
            producers = (one for one in self._counts.producers[group.index] if one is not None)
            self._with_new_neighbours.update(readers, producers)
        return True

    def _options(self, group: Group) -> Iterator[Tiling]:
        """Yield tilings that fit: as now, the usual ones, and those that match its neighbours'."""
        model = self._counts.model(group)
        now = self.tilings.get(group.index)
        if now is not None:
            yield now
        key = id(model)
        if key not in self._usual:
            self._usual[key] = list(self._fitting(model, _usual(model, self._cores)))
        yield from self._usual[key]
        yield from self._fitting(model, dict.fromkeys(self._matching(group, model)))

    def _matching(self, group: Group, model: GroupModel) -> Iterator[Tiling]:
        """Yield tilings as large as those of the groups that it reads, or that read it."""
        producers = self._counts.producers[group.index]
        some = list(zip(model.group.inputs, producers, strict=True))[:MOST_PRODUCERS]
        for name, producer in some:
            tiling = None if producer is None else self.tilings.get(producer)
            if tiling is not None:
                drivers = model.drivers.get(name, {})
                yield _along(model, {drivers[a]: tiling.counts[a] for a in drivers})
        for index, position in self._counts.readers[group.index]:
            tiling = self.tilings.get(index)
            if tiling is not None:
                other = self._counts.model(self._network.groups[index])
                of_axes = (*tiling.counts, tiling.parts)  # -1 is the reduction
                drivers = other.drivers.get(other.group.inputs[position], {})
                yield _along(model, {axis: of_axes[drivers[axis]] for axis in drivers})

    def _fitting(self, model: GroupModel, starts: Iterable[Tiling]) -> Iterator[Tiling]:
        """Yield what becomes of tilings when they are cut further until their tiles fit."""
        for start in starts:
            for splits_reduction in (False, True):
                shrinker = self._shrinkers.setdefault(
                    (id(model), splits_reduction), TileShrinker(model, splits_reduction)
                )
                found = shrinker.until_it_fits(start, self._capacity)
                if found is not None:
                    yield found

    def _effort(self, group: Group, tiling: Tiling) -> float:
        """Return about how many reads the group and its readers have, if it is tiled so."""
        here: Mapping[int, Tiling] = {**self.tilings, group.index: tiling}
        effort = float(READS_OF_A_TASK * prod(tiling.counts) * tiling.parts)
        effort += self._counts.of_group(group, here)
        for reader, position in self._counts.readers[group.index]:
            if reader in self.tilings:
                effort += self._counts.of_operand(self._network.groups[reader], position, here)
        return effort


def _usual(model: GroupModel, cores: int) -> Iterator[Tiling]:
    """Yield a tile for each core, the whole as one tile, and slices along each axis."""
    yield one_tile_for_each(model, cores)
    whole = Tiling(counts=(1,) * len(model.shape))
    yield whole
    for axis, can_be_cut in enumerate(model.splittable):
        if can_be_cut and model.shape[axis] > 1:
            yield whole.with_count(axis, model.shape[axis])


def _along(model: GroupModel, cuts: Mapping[int, int]) -> Tiling:
    """Return the tiling with so many tiles along each axis, as far as that can be cut."""
    counts = [1] * len(model.shape)
    for axis, count in cuts.items():
        if axis >= 0 and model.splittable[axis]:
            counts[axis] = min(count, model.shape[axis])
    return Tiling(counts=tuple(counts), parts=min(cuts.get(-1, 1), model.reduction))
