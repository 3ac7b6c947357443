"""Tilings cut anew where tasks do not fit, together with those of the groups that they read."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from spmilp.errors import DoesNotFitError, Shortage
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import reduction_length, splittable_axes
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.tile_selection.coarse import CoarseChoice
from spmilp.tile_selection.initial import Tilings
from spmilp.tile_selection.piece_counts import PieceCounts
from spmilp.tile_selection.working_sets import WorkingSets
from spmilp.units import Bytes

HALVINGS = 4
"""Tiles are cut to fit a memory, a half of it, and so on, so many times."""

ROUNDS = 8
"""Of choices, each followed by a look at the problem that they make."""

SWEEPS = 12

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
        for _ in range(SWEEPS):
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
            yield from self._fitting(self._counts.model(group), [self.tilings[group.index]])
