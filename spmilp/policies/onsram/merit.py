"""The figure of merit of a structure, and pinning by it."""

from collections import Counter
from collections.abc import Iterable

from spmilp.policies.onsram.structure import Pins, Structure
from spmilp.policies.onsram.structures import Structures

ALPHA, BETA, GAMMA = 0.4, 0.5, 0.1
"""Weights of the three parts of the figure, as published."""


def figure_of_merit(structures: Structures, one: Structure) -> float:
    """Return how much a structure is worth its place; its size is no part of it.

    ``ALPHA * tasks / unused`` for a short life with many uses, ``BETA`` times the sum over its
    tasks of ``1 / reuse`` for tasks that do little with each element, and ``GAMMA`` times the share
    of its tasks in the work of all. The unused steps are counted with one more, for no figure is
    divided by 0. The reuse of an element in a task is taken to be the cycles of the task for each
    cycle of the structure's transfer, at least 1; the work of a task is its cycles.
    """
    unused = len(one.extra) - len(one.uses)
    steps = [structures.steps[step] for step in one.uses]
    reuses = (
        max(1.0, step.work / max(1, one.moving.get(number, step.work)))
        for number, step in zip(one.uses, steps, strict=True)
    )
    share = sum(step.work for step in steps) / structures.all_work
    return (
        ALPHA * len(one.uses) / (unused + 1)
        + BETA * sum(1.0 / reuse for reuse in reuses)
        + GAMMA * share
    )


def by_merit(structures: Structures) -> tuple[int, ...]:
    """Return the structures, the one with the greatest figure first."""
    figures = {one.index: figure_of_merit(structures, one) for one in structures.all}
    return tuple(sorted(figures, key=lambda index: (-figures[index], index)))


def pinned_in_turn(structures: Structures, order: Iterable[int], first: Pins = frozenset()) -> Pins:
    """Return what is pinned if each structure is that has room for its whole life when it comes.

    Parameters
    ----------
    first
        What is pinned already; it has room.
    """
    pins = first
    taken: Counter[int] = Counter()
    for index in first:
        taken.update(structures.all[index].extra)
    for index in order:
        more, extra = pins | {index}, structures.all[index].extra
        if index in pins:
            continue
        if all(structures.fits(step, more, taken[step] + own) for step, own in extra.items()):
            pins = more
            taken.update(extra)
    return pins


def filled_up(structures: Structures, pins: Pins) -> Pins:
    """Return pins with all that still has room and makes no step's transfers longer, by merit."""
    harmless = (
        index
        for index in by_merit(structures)
        if all(saving.cycles >= 0 for saving in structures.all[index].savings.values())
    )
    return pinned_in_turn(structures, harmless, pins)
