"""Trees of cuts: which cores each layer gets, and in which order its parts run."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, Union

from spmilp.policies.scheduled import Layers, OnCore
from spmilp.units import CoreIdx

Tree: TypeAlias = Union["Cut", int]
"""A cut, or a layer by its number."""

Path = tuple[int, ...]
"""The children on the way from the root to a part of a tree."""


class Cut(NamedTuple):
    """Parts of a tree that share cores.

    Parameters
    ----------
    spatial
        Whether each child has cores of its own; if not, each has all of them in its turn.
    rounds
        Sub-batches, in each of which all children have a turn.
    """

    spatial: bool
    rounds: int
    children: tuple[Tree, ...]


def layers_in(tree: Tree) -> Iterator[int]:
    """Yield the layers of a tree."""
    if not isinstance(tree, Cut):
        yield tree
        return
    for child in tree.children:
        yield from layers_in(child)


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


def tasks_of(tree: Tree, layers: Layers, cores: Sequence[CoreIdx]) -> list[OnCore]:
    """Return all tasks of a tree on its cores, in their order."""
    return list(_tasks(tree, layers, cores, (0.0, 1.0)))


def _tasks(
    tree: Tree, layers: Layers, cores: Sequence[CoreIdx], part: tuple[float, float]
) -> Iterator[OnCore]:
    if not isinstance(tree, Cut):
        yield from layers.spread(tree, cores, *part)
        return
    begin, end = part
    own = [cores] * len(tree.children)
    if tree.spatial:
        own = shared_out(
            cores, [sum(map(layers.work.__getitem__, layers_in(c))) for c in tree.children]
        )
    ends = [begin + (end - begin) * done / tree.rounds for done in range(tree.rounds)] + [end]
    for turn in pairwise(ends):
        for child, some in zip(tree.children, own, strict=True):
            yield from _tasks(child, layers, some, turn)


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
