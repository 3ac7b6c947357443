"""Moves from tree to tree, each with as many layers as before."""

from collections.abc import Callable

import numpy as np

from spmilp.policies.set.tree import Cut, Path, Tree, cuts_in, with_part

MOST_ROUNDS = 64
"""Sub-batches of a cut, at most."""

Move = Callable[[Tree, Path, Cut, np.random.Generator], Tree | None]


def turn(tree: Tree, path: Path, cut: Cut, random: np.random.Generator) -> Tree | None:
    """Make a cut in time one in space, or the other way round."""
    return with_part(tree, path, [cut._replace(spatial=not cut.spatial)])


def change_rounds(tree: Tree, path: Path, cut: Cut, random: np.random.Generator) -> Tree | None:
    """Double the sub-batches of a cut, or halve them."""
    rounds = cut.rounds * 2 if cut.rounds == 1 or random.random() < 0.5 else cut.rounds // 2
    if rounds > MOST_ROUNDS:
        return None
    return with_part(tree, path, [cut._replace(rounds=rounds)])


def group(tree: Tree, path: Path, cut: Cut, random: np.random.Generator) -> Tree | None:
    """Make a cut of the other kind out of neighbouring children."""
    if len(cut.children) < 3:
        return None
    size = int(random.integers(2, min(len(cut.children), 9)))
    first = int(random.integers(0, len(cut.children) - size + 1))
    own = Cut(not cut.spatial, 1, cut.children[first : first + size])
    children = (*cut.children[:first], own, *cut.children[first + size :])
    return with_part(tree, path, [cut._replace(children=children)])


def dissolve(tree: Tree, path: Path, cut: Cut, random: np.random.Generator) -> Tree | None:
    """Give the children of a cut to the cut above it."""
    return with_part(tree, path, cut.children) if path else None


def swap(tree: Tree, path: Path, cut: Cut, random: np.random.Generator) -> Tree | None:
    """Exchange two neighbouring children."""
    first = int(random.integers(0, len(cut.children) - 1))
    children = list(cut.children)
    children[first], children[first + 1] = children[first + 1], children[first]
    return with_part(tree, path, [cut._replace(children=tuple(children))])


def hand_over(tree: Tree, path: Path, cut: Cut, random: np.random.Generator) -> Tree | None:
    """Move the first or last child of a cut out of it, or a neighbour of a cut into it."""
    inner = [place for place, child in enumerate(cut.children) if isinstance(child, Cut)]
    if not inner:
        return None
    place = int(random.choice(inner))
    children = list(cut.children)
    own = children[place]
    if not isinstance(own, Cut):
        return None
    after, inwards = bool(random.random() < 0.5), bool(random.random() < 0.5)
    if inwards:
        neighbour = place + 1 if after else place - 1
        if not 0 <= neighbour < len(children):
            return None
        taken = children[neighbour]
        more = (*own.children, taken) if after else (taken, *own.children)
        children[place] = own._replace(children=more)
        del children[neighbour]
    else:
        given, *_ = own.children[-1:] if after else own.children[:1]
        rest = own.children[:-1] if after else own.children[1:]
        kept = own._replace(children=rest) if len(rest) > 1 else rest[0]
        children[place : place + 1] = [kept, given] if after else [given, kept]
    new = children[0] if len(children) == 1 else cut._replace(children=tuple(children))
    return with_part(tree, path, [new])


MOVES: tuple[Move, ...] = (turn, change_rounds, group, dissolve, swap, hand_over)


def neighbour_of(tree: Tree, random: np.random.Generator) -> Tree:
    """Return a tree one random move away; the same one if it is a single layer."""
    cuts = list(cuts_in(tree))
    while cuts:
        path, cut = cuts[int(random.integers(len(cuts)))]
        move = MOVES[int(random.integers(len(MOVES)))]
        found = move(tree, path, cut, random)
        if found is not None:
            return found
    return tree
