"""The tilings that a problem was made with, found again in its tasks."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from math import gcd

from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.tiling import Tiling, split
from spmilp.problem.problem import Problem, Tile
from spmilp.tile_selection.initial import Tilings


def tilings_of(problem: Problem, network: Network) -> Tilings:
    """Return a tiling of each group of a network by which its tasks may have come about.

    Whether the tilings make that very problem, lowering tells.

    Raises
    ------
    SpmilpError
        If the tasks are not tiles of just these groups.
    """
    tiles, turns = _tiles_of(problem)
    for name in tiles.keys() - {group.name for group in network.groups}:
        raise SpmilpError(f"it has tasks of {name or 'no operator'}, which the model has not")
    return {
        group.index: _tiling(group, tiles[group.name], network, turns[group.name])
        for group in network.groups
    }


def tilings_still_there(problem: Problem, network: Network) -> Tilings:
    """Return the tilings of those groups that a network has in common with a problem's.

    That is, by their names and the shapes of what they compute. Where these are not all, none of
    them computes in waves, which go through several groups.
    """
    tiles, turns = _tiles_of(problem)
    found: Tilings = {}
    for group in network.groups:
        shape = network.tensors[group.output].shape
        boxes = [tile.box for tile in tiles[group.name]]
        ends = tuple(max(end for _, end in axis) for axis in zip(*boxes, strict=False))
        with suppress(SpmilpError):
            if ends == tuple(shape):
                tiling = _tiling(group, tiles[group.name], network, turns[group.name])
                found[group.index] = tiling
    is_whole = len(found) == len(network.groups)
    return found if is_whole else {one: replace(each, waves=1) for one, each in found.items()}


def _tiles_of(problem: Problem) -> tuple[dict[str, list[Tile]], dict[str, int]]:
    """Return the tiles of each group by its name, and how often it is a group's turn."""
    tiles: dict[str, list[Tile]] = defaultdict(list)
    turns: dict[str, int] = defaultdict(int)
    for name, tasks in groupby(problem.tasks, lambda task: task.tile.of if task.tile else ""):
        tiles[name] += [task.tile for task in tasks if task.tile is not None]
        turns[name] += 1
    return tiles, turns


def _tiling(group: Group, tiles: Sequence[Tile], network: Network, turns: int) -> Tiling:
    shape, boxes = network.tensors[group.output].shape, [tile.box for tile in tiles]
    if not boxes or any(len(box) != len(shape) for box in boxes):
        raise SpmilpError(f"it has no tiles of {group.name}, whose shape is {shape}")
    axes = [sorted(set(axis)) for axis in zip(*boxes, strict=True)]
    multiples = [
        1 if split(length, len(axis)) == tuple(axis) else gcd(*(start for start, _ in axis)) or 1
        for length, axis in zip(shape, axes, strict=True)
    ]
    counts = tuple(map(len, axes))
    return Tiling(
        counts=counts,
        parts=len({tile.reduction for tile in tiles}),
        multiples=tuple(multiples) if max(multiples, default=1) > 1 else (),
        waves=turns if counts and counts[0] % turns == 0 else 1,
    )
