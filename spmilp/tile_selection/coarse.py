"""Tilings chosen without an estimate: the quickest plans, and tiles cut anew until they fit."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, product
from math import prod

from spmilp.errors import DoesNotFitError, Shortage, SpmilpError
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.rates import NO_LIMIT, machine_rates
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.tile_selection.group_model import GroupModel, TileShrinker
from spmilp.tile_selection.pieces import PieceCounts, WorkingSets
from spmilp.units import Bytes

MOST_TILES = 200_000
"""Most tiles of a network, if memories can hold no larger ones: more would take hours."""

MOST_PIECES = 1_000_000
"""Most pieces that tasks read if a plan is to be made quickly: more take minutes, and gigabytes."""

MOST_PIECES_EVER = 10_000_000
"""Most pieces in any case: with more the problem alone fills many gigabytes."""


def tasks_of(tilings: Mapping[int, Tiling]) -> int:
    """Return about how many tasks a network has under tilings; never fewer than there are."""
    return sum(prod(tiling.counts) * tiling.parts for tiling in tilings.values())


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
            f"scratchpad holds {largest:,} B; {_smaller(network)}use a machine with larger "
            "scratchpads"
        )


def refuse_too_many_pieces(
    counts: PieceCounts, tilings: Tilings, most: int = MOST_PIECES, remedy: str = ""
) -> None:
    """Raise an error where a problem would be too large for a plan to be made of it.

    Parameters
    ----------
    most
        Pieces that its tasks may read.
    remedy
        What to do besides taking smaller dimensions or larger scratchpads; it ends in "or ".

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
            f"{remedy}{_smaller(counts.network)}use a machine with larger scratchpads"
        )


def _smaller(network: Network) -> str:
    return "give smaller dimensions (--dim), or " if network.dim else ""


MOST_PRODUCERS = 4
"""Whose tiles those of one group are made to match; a concatenation may have a hundred."""

HALVINGS = 4
"""Tiles are cut to fit a limit, a half of it, and so on, so many times."""

READS_OF_A_TASK = 2
"""A task takes about as long as so many reads, besides its own."""


class CoarseChoice:
    """Chooses for one group after another the tiling that costs least, its neighbours as they are.

    Bytes that the group and its readers need beyond their limits cost most, with the pieces as they
    lie; then about how many reads the group has and its readers.

    Parameters
    ----------
    limits
        Bytes that the largest task of each group may need.
    wanted
        Bytes that it is to need at most while its operands lie as usual; its limit by default.
    cores
        Cores among which the tiles of a group are to be shared; without them few reads are all.
    """

    def __init__(
        self,
        sets: WorkingSets,
        limits: Mapping[int, Bytes],
        wanted: Bytes = NO_LIMIT,
        cores: int = 1,
    ) -> None:
        self._sets, self._counts = sets, sets.counts
        self._network = sets.counts.network
        self._limits, self._wanted, self._cores = dict(limits), wanted, cores
        self._shrinkers: dict[int, list[TileShrinker]] = {}
        self._usual: dict[tuple[int, Bytes], list[Tiling]] = {}
        self._with_new_neighbours: set[int] = set()
        self.tilings: Tilings = {}

    def fits(self) -> bool:
        """Choose for each group in turn; ``False`` where one fits in no way."""
        return all(map(self.choose, self._network.groups))

    def improve(self, sweeps: int) -> None:
        """Choose again where a neighbour has changed."""
        for _ in range(sweeps):
            for group in self._network.groups:
                if group.index in self._with_new_neighbours:
                    self.choose(group)

    def choose(self, group: Group) -> bool:
        """Choose for a group, its neighbours as they are; ``False`` where it fits in no way."""
        costs: dict[Tiling, tuple[float, ...]] = {}
        for limit in self.halved(group):
            for tiling in self.options(group, limit):
                if tiling not in costs:
                    costs[tiling] = self.cost(group, tiling)
            if not min(costs.values(), default=(1.0,))[0]:
                break
        if not costs:
            return False
        best = min(costs, key=costs.__getitem__)
        self._with_new_neighbours.discard(group.index)
        if best != self.tilings.get(group.index):
            self.tilings[group.index] = best
            readers = (reader for reader, _ in self._counts.readers[group.index])
            producers = (one for one in self._counts.producers[group.index] if one is not None)
            self._with_new_neighbours.update(readers, producers)
        return True

    def cost(self, group: Group, tiling: Tiling) -> tuple[float, ...]:
        """Return bytes beyond limits, work of one core and reads, if a group is tiled so."""
        here = dict(self.tilings) | {group.index: tiling}
        reads = float(READS_OF_A_TASK * prod(tiling.counts) * tiling.parts)
        reads += self._counts.of_group(group, here)
        over = self.over(group, here)
        for reader, position in self._counts.readers[group.index]:
            if reader in self.tilings:
                reads += self._counts.of_operand(self._network.groups[reader], position, here)
        over += sum(self.over(one, here) for one in self.readers(group))
        return over, self._work_of_a_core(group, tiling), reads

    def _work_of_a_core(self, group: Group, tiling: Tiling) -> float:
        """Return the largest share that a core has of a group's work."""
        if self._cores == 1:
            return 1.0
        shape = self._counts.model(group).shape
        shares = (-(-n // count) / n for n, count in zip(shape, tiling.counts, strict=True))
        return prod(shares) * -(-prod(tiling.counts) // self._cores)

    def halved(self, group: Group) -> list[Bytes]:
        """Return the bytes that a group's largest task is to need, half of them, and so on."""
        most = min(self._wanted, self._limits[group.index])
        return [most >> halving for halving in range(HALVINGS)]

    def over(self, group: Group, tilings: Mapping[int, Tiling]) -> Bytes:
        """Return the bytes that the largest task of a group needs beyond its limit."""
        return max(0, self._sets.of_group(group, tilings) - self._limits[group.index])

    def readers(self, group: Group) -> list[Group]:
        """Return the groups that read a group's result, of those that have tilings."""
        numbers = dict.fromkeys(reader for reader, _ in self._counts.readers[group.index])
        return [self._network.groups[one] for one in numbers if one in self.tilings]

    def options(self, group: Group, limit: Bytes) -> Iterator[Tiling]:
        """Yield tilings that fit: as now, the usual ones, and those that match its neighbours'."""
        own = self.tilings.get(group.index)
        if own is not None:
            yield own
        yield from self.fitting(group, limit)

    def fitting(self, group: Group, limit: Bytes) -> Iterator[Tiling]:
        """Yield the usual and matching tilings, cut further until their tiles fit a limit."""
        model, key = self._counts.model(group), (self._counts.classes[group.index], limit)
        if key not in self._usual:
            usual = _usual(model, len(self._counts.machine.cores), is_shared=self._cores > 1)
            self._usual[key] = list(self.cut_further(group, usual, limit))
        yield from self._usual[key]
        matching = dict.fromkeys(self._matching(group, model))
        yield from self.cut_further(group, matching, limit)

    def cut_further(self, group: Group, starts: Iterable[Tiling], limit: Bytes) -> Iterator[Tiling]:
        """Yield what becomes of tilings when they are cut further until their tiles fit."""
        kind, model = self._counts.classes[group.index], self._counts.model(group)
        if kind not in self._shrinkers:
            needs = product((False, True), (None, model.packed_bytes))
            self._shrinkers[kind] = [TileShrinker(model, *one) for one in needs]
        for start in starts:
            for shrinker in self._shrinkers[kind]:
                found = shrinker.until_it_fits(start, limit)
                if found is not None:
                    yield found

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


def _usual(model: GroupModel, cores: int, *, is_shared: bool) -> Iterator[Tiling]:
    """Yield a tile for each core, the whole as one tile, and slices along each axis.

    Where work is to be shared, each axis is cut into as many slices as there are cores, too.
    """
    counts = [1] * len(model.shape)
    # The batch, if it is one, is cut last: what its parts share is loaded again for each.
    batch = 0 if len(model.shape) > 2 else -1
    missing = cores
    for axis in sorted(model.axes_to_cut, key=lambda one: (one == batch, -model.shape[one], one)):
        counts[axis] = min(missing, model.shape[axis])
        missing = -(-missing // counts[axis])
    yield Tiling(counts=tuple(counts))
    yield model.uncut
    for axis in model.axes_to_cut:
        yield model.uncut.with_count(axis, model.shape[axis])
        if is_shared and cores < model.shape[axis]:
            yield model.uncut.with_count(axis, cores)


def _along(model: GroupModel, cuts: Mapping[int, int]) -> Tiling:
    """Return the tiling with so many tiles along each axis, as far as that can be cut."""
    counts = [1] * len(model.shape)
    for axis, count in cuts.items():
        if axis >= 0 and model.splittable[axis]:
            counts[axis] = min(count, model.shape[axis])
    return Tiling(counts=tuple(counts), parts=min(cuts.get(-1, 1), model.reduction))


WORKING_SETS, WITHIN_SHARES = (0.9, 0.75, 0.5, 0.25), (1.5, 0.9)
"""Parts of a whole memory, however many cores share it, then of a core's share where several do: of
larger sets fewer cores have one at a time."""

SWEEPS = 3
"""Rounds of improvement over all groups."""

FEW_READS = 20_000
"""Tilings with at most so many reads are not improved: a plan is made in the same time."""


class CoarseTilings:
    """Tilings whose tasks read few pieces: large enough to fill a memory, then smaller ones.

    What a problem, its schedule and its plan take is in proportion to the pieces. They are few
    where tiles are large, and where those of a group match those of the groups that it reads. Where
    cores share a memory they may have to take turns: such plans are quickly there, but poor.
    """

    def __init__(self, network: Network, machine: Machine) -> None:
        self.counts = PieceCounts(network, machine)
        self._sets = WorkingSets(self.counts)
        rates = machine_rates(machine)
        capacity, sharers = max(zip(rates.capacity, rates.sharers, strict=True))
        shares = [part / sharers for part in WITHIN_SHARES if sharers > 1]
        self._wanted = iter([int(part * capacity) for part in (*WORKING_SETS, *shares)])
        self._share = int(WITHIN_SHARES[-1] * capacity / sharers)
        # In a memory of its own a core has room for more than is wanted.
        self._least = capacity if sharers == 1 else 0
        self._found: list[Tilings] = []

    def for_all_cores(self) -> Tilings | None:
        """Return tilings by which each group has work for every core, where such fit."""
        cores = len(self.counts.machine.cores)
        limits = dict.fromkeys(range(len(self.counts.network.groups)), self._share)
        choice = CoarseChoice(self._sets, limits, cores=cores)
        return choice.tilings if cores > 1 and choice.fits() else None

    def __iter__(self) -> Iterator[Tilings]:
        """Yield tilings; each is chosen only once."""
        yield from self._found
        groups = range(len(self.counts.network.groups))
        for wanted in self._wanted:
            limits = dict.fromkeys(groups, max(wanted, self._least))
            choice = CoarseChoice(self._sets, limits, wanted)
            if choice.fits():
                if self.counts.of_all(choice.tilings) > FEW_READS:
                    choice.improve(SWEEPS)
                self._found.append(choice.tilings)
                yield choice.tilings


ROUNDS = 8
"""Rounds at most; each chooses tilings and looks at the problem that they make."""

FITTING_SWEEPS = 12
"""The same, where tilings are sought that fit."""

LESS = 0.9
"""Factor on the bytes that a group may need in the next round, if its tasks did not fit."""


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


def nearby(model: GroupModel, own: Tiling) -> Iterator[Tiling]:
    """Yield tilings with twice or half as many parts of the reduction, or tiles along an axis.

    Tiles along one axis may be doubled while those along another are halved.
    """
    for parts in (min(2 * own.parts, model.reduction), max(1, own.parts // 2)):
        yield replace(own, parts=parts)
    for axis in model.axes_to_cut:
        more = own.with_count(axis, min(2 * own.counts[axis], model.shape[axis]))
        yield more
        yield own.with_count(axis, max(1, own.counts[axis] // 2))
        for other in model.axes_to_cut:
            if other != axis and own.counts[other] > 1:
                yield more.with_count(other, own.counts[other] // 2)


class _FittingChoice(CoarseChoice):
    """Chooses tilings for groups that need too many bytes, and for what they read."""

    def __init__(self, sets: WorkingSets, start: Tilings, fixed: Collection[int]) -> None:
        groups = sets.counts.network.groups
        super().__init__(sets, {group.index: sets.capacity(group) for group in groups})
        self._fixed = fixed
        self.tilings = dict(start)

    def descend(self) -> None:
        """Choose anew for what is too large, until nothing is or no choice helps."""
        for _ in range(FITTING_SWEEPS):
            worst = [group for group in self._network.groups if self.over(group, self.tilings)]
            if not sum([self._improves(group) for group in worst]):
                return

    def be_stricter(self, groups: Iterable[Group]) -> bool:
        """Count less room for groups whose tasks do not fit; ``False`` where that is no news."""
        is_news = False
        for group in groups:
            needed = self._sets.of_group(group, self.tilings)
            if needed <= self._limits[group.index]:
                self._limits[group.index] = int(LESS * needed)
                is_news = True
        return is_news

    def _improves(self, group: Group) -> bool:
        """Choose for a group, for what it reads, then for two at once; say whether that helps."""
        before, groups = dict(self.tilings), self._network.groups
        producers = [one for one in self._counts.producers[group.index] if one is not None]
        producers.reverse()
        for index in (group.index, *producers):
            if self.over(group, self.tilings):
                self.choose(groups[index])
        pairs = [(group.index, one) for one in producers]
        pairs += [(reader, group.index) for reader, _ in self._counts.readers[group.index]]
        for reader, producer in pairs:
            if self.over(group, self.tilings):
                self._choose_both(groups[reader], groups[producer])
        return before != self.tilings

    def _choose_both(self, group: Group, producer: Group) -> None:
        """Choose for a group and one that it reads where neither alone can be changed."""

        def over() -> Bytes:
            readers = [*self.readers(group), *self.readers(producer)]
            around = {one.index: one for one in (group, producer, *readers)}
            return sum(self.over(one, self.tilings) for one in around.values())

        kept = best = dict(self.tilings)
        least = over()
        options = (self.options(producer, limit) for limit in self.halved(producer))
        for tiling in dict.fromkeys(chain.from_iterable(options)):
            self.tilings = {**kept, producer.index: tiling}
            self.choose(group)
            if over() < least:
                least, best = over(), self.tilings
            if not least:
                break
        self.tilings = best

    def options(self, group: Group, limit: Bytes) -> Iterator[Tiling]:
        """Yield a group's own tiling, steps from it, and tilings that fit."""
        own = self.tilings[group.index]
        yield own
        if group.index not in self._fixed:
            yield from nearby(self._counts.model(group), own)
            yield from self.fitting(group, limit)
            yield from self.cut_further(group, [own], limit)
