"""Tilings chosen without an estimate: the quickest plans, and tiles cut anew until they fit."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod

from spmilp.errors import DoesNotFitError, Shortage, SpmilpError
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import reduction_length, splittable_axes
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.tile_selection.group_model import GroupModel, TileShrinker
from spmilp.tile_selection.pieces import PieceCounts, WorkingSets
from spmilp.units import Bytes

FIRST_WORKING_SET = 0.7
"""Part of a core's memory that a tile may need: larger tiles are fewer, and sooner scheduled."""

MOST_TILES = 200_000
"""Of all groups, where memories can hold no larger ones: of more no plan could be made in hours."""


def fast_initial_tilings(counts: PieceCounts) -> Tilings | None:
    """Return a tiling for each group, by index: a tile for each core, or as many as fit.

    The longest axes of the output are cut. ``None`` where a group does not fit in this way, and
    where tiles become so many that the plan would not come soon.
    """
    machine = counts.machine
    capacity = int(FIRST_WORKING_SET * machine_rates(machine).least_share)
    choice = CoarseChoice(counts, capacity)
    found: Tilings = {}
    for group in counts.network.groups:
        model = counts.model(group)
        start = one_tile_for_each(model, len(machine.cores))
        tiling = next(choice.fitting(model, [start]), None)
        if tiling is None:
            return None
        found[group.index] = tiling
    return None if counts.of_all(found) > MOST_PIECES else found


def refuse_too_many_tiles(network: Network, machine: Machine) -> None:
    """Raise an error where results are so large that tiles can only be too many.

    Raises
    ------
    SpmilpError
        If they are; it says what to do.
    """
    largest = max(machine_rates(machine).capacity)
    sizes = {group.name: network.tensors[group.output].bytes for group in network.groups}
    tiles = sum(-(-size // largest) for size in sizes.values())
    if tiles > MOST_TILES:
        name = max(sizes, key=sizes.__getitem__)
        raise SpmilpError(
            f"{network.name}: its results need {tiles:,} tiles at least, expected at most "
            f"{MOST_TILES:,}: the one of group {name} has {sizes[name]:,} B, and the largest "
            f"scratchpad holds {largest:,} B; give smaller dimensions (--dim), or use a machine "
            "with larger scratchpads"
        )


def tasks_of(tilings: Mapping[int, Tiling]) -> int:
    """Return about how many tasks a network has under tilings; never fewer than there are."""
    return sum(prod(tiling.counts) * tiling.parts for tiling in tilings.values())


def one_tile_for_each(model: GroupModel, cores: int) -> Tiling:
    """Cut the longest axis into a tile for each core, or the next ones, too, if it is short."""
    counts = [1] * len(model.shape)
    # The batch, if it is one, is cut last: what its parts share is loaded again for each.
    batch = 0 if len(model.shape) > 2 else -1
    axes = [axis for axis, can_be_cut in enumerate(model.splittable) if can_be_cut]
    missing = cores
    for axis in sorted(axes, key=lambda axis: (axis == batch, -model.shape[axis], axis)):
        counts[axis] = min(missing, model.shape[axis])
        missing = -(-missing // counts[axis])
    return Tiling(counts=tuple(counts))


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
            self._usual[key] = list(self.fitting(model, _usual(model, self._cores)))
        yield from self._usual[key]
        yield from self.fitting(model, dict.fromkeys(self._matching(group, model)))

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

    def fitting(self, model: GroupModel, starts: Iterable[Tiling]) -> Iterator[Tiling]:
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


HALVINGS = 4
"""Tiles are cut to fit a memory, a half of it, and so on, so many times."""

ROUNDS = 8
"""Of choices, each followed by a look at the problem that they make."""

FITTING_SWEEPS = 12

LESS = 0.9
"""What a group may need in the next round, where its tasks have turned out to need more."""


def tilings_that_fit(
    network: Network,
    machine: Machine,
    starts: Iterable[Tilings],
    lower: Callable[[Tilings], Problem],
    *,
    fixed: Collection[int] = (),
    go_on: Callable[[], None] = lambda: None,
) -> tuple[Tilings, Problem]:
    """Return tilings under which every task fits, and their problem.

    A group whose tasks are too large is cut anew, and where that does not suffice, what it reads is
    too: in larger tiles, or in such as match its own, so that its tasks read fewer pieces. All
    others stay as they are.

    Parameters
    ----------
    starts
        Tilings to begin with; the next ones where those before lead to none that fit.
    fixed
        Groups that stay as they are.
    go_on
        Called now and then; what it raises passes on.

    Raises
    ------
    DoesNotFitError
        If none are found; it proves nothing.
    """
    sets = WorkingSets(PieceCounts(network, machine), go_on)
    last: tuple[str, str, Shortage | None] = "", "", None
    for start in starts:
        choice = _FittingChoice(sets, start, fixed)
        for _ in range(ROUNDS):
            choice.descend()
            problem = lower(choice.tilings)
            too_large = groups_that_do_not_fit(problem)
            if not too_large:
                return choice.tilings, problem
            name, reason = next(iter(too_large.items()))
            worst = next(group for group in network.groups if group.name == name)
            last = name, reason, sets.shortage(worst, choice.tilings)
            if not choice.be_stricter(one for one in network.groups if one.name in too_large):
                break
    name, reason, shortage = last
    raise DoesNotFitError(
        f"group {name}: it and what it reads were cut anew, and no tiles were found that fit, "
        f"though its smallest one would; the last ones: {reason}",
        shortage,
        is_proven=False,
    )


def nearby(network: Network, group: Group, own: Tiling) -> Iterator[Tiling]:
    """Yield tilings with twice or half as many parts of the reduction, or tiles along an axis.

    Tiles along one axis may be doubled while those along another are halved. The first axis stays
    as it is where waves cut it.
    """
    shape, length = network.tensors[group.output].shape, reduction_length(network, group)
    for parts in (min(2 * own.parts, length), max(1, own.parts // 2)):
        yield replace(own, parts=parts)
    first = 0 if own.waves == 1 else 1
    cut = splittable_axes(network, group)
    axes = [axis for axis in range(first, len(shape)) if cut[axis]]
    for axis in axes:
        more = own.with_count(axis, min(2 * own.counts[axis], shape[axis]))
        yield more
        yield own.with_count(axis, max(1, own.counts[axis] // 2))
        for other in axes:
            if other != axis and own.counts[other] > 1:
                yield more.with_count(other, own.counts[other] // 2)


class _FittingChoice(CoarseChoice):
    """Chooses tilings for groups that need too many bytes, and for what they read."""

    def __init__(self, sets: WorkingSets, start: Tilings, fixed: Collection[int]) -> None:
        groups = sets.counts.network.groups
        self._sets, self._fixed = sets, fixed
        self._limits = {group.index: sets.capacity(group) for group in groups}
        super().__init__(sets.counts, max(self._limits.values()))
        self.tilings = dict(start)

    def descend(self) -> None:
        """Choose anew for what is too large, until nothing is or no choice helps."""
        for _ in range(FITTING_SWEEPS):
            worst = [group for group in self._network.groups if self._over(group, self.tilings)]
            if not sum([self._improves(group) for group in worst]):
                return

    def be_stricter(self, groups: Iterable[Group]) -> bool:
        """Count less room for groups whose tasks do not fit; ``False`` where that is no news."""
        is_news = False
        for group in groups:
            needed = self._sets.of_group(group, self.tilings)
            if needed <= self._limits[group.index]:
                self._limits[group.index] = int(min(needed, self._limits[group.index]) * LESS)
                is_news = True
        return is_news

    def _improves(self, group: Group) -> bool:
        """Choose for a group, for what it reads, then for two at once; say whether that helps."""
        before = dict(self.tilings)
        producers = [one for one in self._counts.producers[group.index] if one is not None]
        for index in (group.index, *reversed(producers)):
            if self._over(group, self.tilings):
                self._choose(self._network.groups[index])
        readers = [reader for reader, _ in self._readers(group)]
        pairs = [(group.index, one) for one in reversed(producers)]
        for reader, producer in (*pairs, *((reader, group.index) for reader in readers)):
            if self._over(group, self.tilings):
                self._choose_both(self._network.groups[reader], self._network.groups[producer])
        return before != self.tilings

    def _choose_both(self, group: Group, producer: Group) -> None:
        """Choose for a group and one that it reads where neither alone can be changed."""
        readers = {reader for one in (group, producer) for reader, _ in self._readers(one)}
        around = {group.index, producer.index, *readers}

        def over() -> Bytes:
            return sum(self._over(self._network.groups[one], self.tilings) for one in around)

        kept = best = dict(self.tilings)
        least = over()
        for tiling in dict.fromkeys(self._options(producer)):
            self.tilings = {**kept, producer.index: tiling}
            self._choose(group)
            if over() < least:
                least, best = over(), self.tilings
            if not least:
                break
        self.tilings = best

    def _effort(self, group: Group, tiling: Tiling) -> float:
        """Return how many bytes are too many; then how many reads there are."""
        here: Mapping[int, Tiling] = {**self.tilings, group.index: tiling}
        readers = {reader for reader, _ in self._readers(group)}
        over = self._over(group, here)
        over += sum(self._over(self._network.groups[reader], here) for reader in readers)
        return over * 1e9 + super()._effort(group, tiling)

    def _readers(self, group: Group) -> list[tuple[int, int]]:
        return self._counts.readers[group.index]

    def _over(self, group: Group, tilings: Mapping[int, Tiling]) -> Bytes:
        return max(0, self._sets.of_group(group, tilings) - self._limits[group.index])

    def _options(self, group: Group) -> Iterator[Tiling]:
        if group.index in self._fixed:
            yield self.tilings[group.index]
            return
        yield from nearby(self._network, group, self.tilings[group.index])
        for halving in range(HALVINGS):
            self._capacity = self._limits[group.index] >> halving
            self._usual.clear()
            yield from super()._options(group)
            yield from self.fitting(self._counts.model(group), [self.tilings[group.index]])
