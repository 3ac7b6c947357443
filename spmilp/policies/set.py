"""SET: layers side by side on parts of the chip, by a tree of cuts and simulated annealing.

Cai et al., "Inter-layer Scheduling Space Definition and Exploration for Tiled Accelerators", ISCA
2023, doi 10.1145/3579371.3589048. Its paper could not be read; its tree and its schemes (layers one
after another; layers in a pipeline) are known here from descriptions and from measurements with its
public code, of which nothing is used.

What is taken: the tree whose leaves are layers, whose cuts in time let their children have all of
their cores one after another, and whose cuts in space give each child cores of its own, as many
as its work asks for; sub-batches, by which the children of a cut take turns; simulated annealing
over trees, from layers one after another and from pipelines of groups of them.

What it leaves open, or has otherwise, and what is done here:

- A layer is an operator, its sub-batches are runs of its tiles, whatever these are cut along.
- The tree gives cores and an order; transfers, addresses and what is evicted are found by
  serial schedule generation. Its value is that of this schedule, not of a formula.
- The objective is the problem's; there it is energy times delay.
- Its moves could not be read; the ones here are our own.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, Union

import numpy as np

from spmilp.policies.one_after_another import Policy
from spmilp.policies.scheduled import Layers, OnCore, Schedules
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.schedule.assignments import along_the_chip
from spmilp.units import CoreIdx, Cycles

Tree: TypeAlias = Union["Cut", int]
"""A cut, or a layer by its number."""

Path = tuple[int, ...]
"""The children on the way from the root to a part of a tree."""


class Cut(NamedTuple):
    """Parts of a tree that share cores.

    Each child has cores of its own if it is ``spatial``, else all of them in its turn; rounds are
    sub-batches, in each of which all children have a turn.
    """

    spatial: bool
    rounds: int
    children: tuple[Tree, ...]


def work_in(tree: Tree, layers: Layers) -> Cycles:
    """Return the cycles of the layers of a tree."""
    if isinstance(tree, Cut):
        return sum(work_in(child, layers) for child in tree.children)
    return layers.work[tree]


def cuts_in(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Cut]]:
    """Yield the cuts of a tree and where they are, the root first."""
    if isinstance(tree, Cut):
        yield path, tree
        for place, child in enumerate(tree.children):
            yield from cuts_in(child, (*path, place))


def with_part(tree: Tree, path: Path, new: Sequence[Tree]) -> Tree:
    """Return a tree with other children in the place of one of its parts.

    A cut that has a single child is replaced by it; at the root there can be only one new part.
    """
    if not path or not isinstance(tree, Cut):
        return new[0]
    place, *further = path
    if further:
        new = [with_part(tree.children[place], tuple(further), new)]
    children = (*tree.children[:place], *new, *tree.children[place + 1 :])
    return children[0] if len(children) == 1 else tree._replace(children=children)


def tasks_of(
    tree: Tree, layers: Layers, cores: Sequence[CoreIdx], begin: float = 0.0, end: float = 1.0
) -> list[OnCore]:
    """Return the tasks of a part of a tree's tiles on its cores, in their order."""
    if not isinstance(tree, Cut):
        return layers.spread(tree, cores, begin, end)
    own = [cores] * len(tree.children)
    if tree.spatial:
        own = shared_out(cores, [work_in(child, layers) for child in tree.children])
    ends = [begin + (end - begin) * done / tree.rounds for done in range(tree.rounds)] + [end]
    return [
        task
        for turn in pairwise(ends)
        for child, some in zip(tree.children, own, strict=True)
        for task in tasks_of(child, layers, some, *turn)
    ]


def shared_out(cores: Sequence[CoreIdx], work: Sequence[int]) -> list[Sequence[CoreIdx]]:
    """Return a run of neighbouring cores for each amount of work, as many as in proportion.

    Each has one at least; where there are too few, several have the same one.
    """
    count, free = len(work), len(cores) - len(work)
    if free <= 0:
        return [cores[i * len(cores) // count :][:1] for i in range(count)]
    done, most, runs = 0, max(1, sum(work)), list[Sequence[CoreIdx]]()
    for place, amount in enumerate(work):
        first = place + done * free // most
        done += amount
        last = len(cores) if place == count - 1 else place + 1 + done * free // most
        runs.append(cores[first:last])
    return runs


MOST_ROUNDS = 64
"""Sub-batches of a cut, at most."""

Move = Callable[[Cut, np.random.Generator], Sequence[Tree] | None]
"""What a cut becomes: one part, or several children of the cut above it; ``None`` if none fits."""


def turn(cut: Cut, random: np.random.Generator) -> Sequence[Tree] | None:
    """Make a cut in time one in space, or the other way round."""
    return [cut._replace(spatial=not cut.spatial)]


def change_rounds(cut: Cut, random: np.random.Generator) -> Sequence[Tree] | None:
    """Double the sub-batches of a cut, or halve them."""
    rounds = cut.rounds * 2 if cut.rounds == 1 or random.random() < 0.5 else cut.rounds // 2
    return [cut._replace(rounds=rounds)] if rounds <= MOST_ROUNDS else None


def group(cut: Cut, random: np.random.Generator) -> Sequence[Tree] | None:
    """Make a cut of the other kind out of neighbouring children."""
    if len(cut.children) < 3:
        return None
    size = int(random.integers(2, min(len(cut.children), 9)))
    first = int(random.integers(0, len(cut.children) - size + 1))
    own = Cut(not cut.spatial, 1, cut.children[first : first + size])
    children = (*cut.children[:first], own, *cut.children[first + size :])
    return [cut._replace(children=children)]


def dissolve(cut: Cut, random: np.random.Generator) -> Sequence[Tree] | None:
    """Give the children of a cut to the cut above it."""
    return cut.children


def swap(cut: Cut, random: np.random.Generator) -> Sequence[Tree] | None:
    """Exchange two neighbouring children."""
    first = int(random.integers(0, len(cut.children) - 1))
    children = list(cut.children)
    children[first], children[first + 1] = children[first + 1], children[first]
    return [cut._replace(children=tuple(children))]


MOVES: tuple[Move, ...] = (turn, change_rounds, group, dissolve, swap)


def neighbour_of(tree: Tree, random: np.random.Generator) -> Tree:
    """Return a tree one random move away; the same one if it is a single layer."""
    cuts = list(cuts_in(tree))
    while cuts:
        path, cut = cuts[int(random.integers(len(cuts)))]
        found = MOVES[int(random.integers(len(MOVES)))](cut, random)
        if found is not None and (path or len(found) == 1):
            return with_part(tree, path, found)
    return tree


WARMTH = 0.05
"""Part of its value by which a tree may become worse at the first step, on average."""


class Set(Policy):
    """Cuts the network and the chip into parts by a tree, improved by simulated annealing.

    Steps are trees that are tried after the first ones; a time limit may end the search before.
    """

    name = "set"

    def __init__(self, steps: int = 400) -> None:
        self._steps = steps

    def find(self, context: SearchContext) -> SolverResult:
        """Return the plan of the best tree; a problem without any plan says why."""
        layers, cores = Layers(context.problem), along_the_chip(context.problem)
        schedules = Schedules[Tree](
            context, self.name, lambda tree: layers.in_order(tasks_of(tree, layers, cores))
        )
        with context.until_interrupted(lambda: schedules.best is not None):
            random = np.random.default_rng(context.options.seed)
            self._anneal(schedules, first_trees(len(layers.work)), random)
        cuts = [cut for _, cut in cuts_in(schedules.choice or 0)]
        options = (
            ("trees", str(schedules.tried)),
            ("cuts_in_space", str(sum(cut.spatial for cut in cuts))),
            ("cuts_in_time", str(sum(not cut.spatial for cut in cuts))),
            ("most_rounds", str(max((cut.rounds for cut in cuts), default=1))),
        )
        return schedules.result(options)

    def _anneal(
        self, schedules: Schedules[Tree], first: Iterable[Tree], random: np.random.Generator
    ) -> None:
        """Take the best of the first trees, then go from tree to tree."""
        for tree in first:
            if schedules.is_over:
                return
            schedules.make(tree)
        if schedules.best is None or schedules.choice is None:
            return
        current, tree = schedules.best[0], schedules.choice
        for step in range(self._steps):
            if schedules.is_over:
                return
            warmth = WARMTH * (1.0 - step / self._steps) ** 2
            other = neighbour_of(tree, random)
            most = current * (1.0 + warmth * random.exponential())
            made = schedules.make(other, most)
            if made is not None and made[0] <= most:
                current, tree = made[0], other


def first_trees(layers: int) -> Iterator[Tree]:
    """Yield layers one after another, and pipelines of so many neighbours after each other."""
    every = tuple(range(layers))
    if layers == 1:
        yield 0
        return
    yield Cut(False, 1, every)
    for size in (2, 4, 8):
        for rounds in (1, 4):
            groups = [every[first : first + size] for first in range(0, layers, size)]
            cuts = [Cut(True, rounds, some) if len(some) > 1 else some[0] for some in groups]
            yield cuts[0] if len(cuts) == 1 else Cut(False, 1, tuple(cuts))
