"""Random packing problems, most of them tight."""

from itertools import combinations, pairwise
from random import Random

from spmilp.packing import Item, PackingProblem


def plain_problem(random: Random, most_items: int = 8) -> PackingProblem:
    """Return items of one lifetime each, without a capacity."""
    ends = random.randint(3, 12)
    largest = random.randint(2, 8)
    items = []
    for _ in range(random.randint(3, most_items)):
        start = random.randrange(ends)
        end = random.randint(start + 1, ends)
        items.append(Item(size=random.randint(1, largest), lifetimes=((start, end),)))
    return PackingProblem(items=tuple(items), capacity=None)


FULL = ((30, 5, 2, 5), (60, 7, 3, 6))
"""Live bytes, items alive, items that end at a time, smallest size."""


def full_problem(random: Random, most_items: int = 24) -> PackingProblem:
    """Return items without slack at any time: where some end, others of the same sum begin.

    What becomes free may lie apart and the new ones are cut otherwise, so that the live bytes are
    not always enough.
    """
    total, most_alive, ending, least = random.choice(FULL)
    alive = [(0, size) for size in _cut(random, total, most_alive, least)]
    items = []
    time = 0
    while len(items) + len(alive) < most_items:
        time += 1
        leaving = random.sample(alive, min(len(alive), ending))
        items += [Item(size=size, lifetimes=((start, time),)) for start, size in leaving]
        for old in leaving:
            alive.remove(old)
        pieces = most_alive - len(alive) + random.randint(-1, 1)
        free = sum(size for _, size in leaving)
        alive += [(time, size) for size in _cut(random, free, pieces, least)]
    items += [Item(size=size, lifetimes=((start, time + 1),)) for start, size in alive]
    return PackingProblem(items=tuple(items), capacity=None)


def _cut(random: Random, total: int, pieces: int, least: int) -> list[int]:
    """Cut a length at random into pieces that are long enough, as many as asked for if possible."""
    pieces = max(1, min(pieces, total // least))
    spare = total - pieces * least
    cuts = sorted(random.randint(0, spare) for _ in range(pieces - 1))
    return [least + b - a for a, b in pairwise((0, *cuts, spare))]


def rich_problem(random: Random, most_items: int = 7) -> PackingProblem:
    """Return items with all that can be asked for, without a capacity.

    It may be contradictory in itself: a fixed item in a reserved range, two at one place.
    """
    alignments = random.choice([(1,), (2,), (1, 2), (1, 2, 4), (4,), (3,), (2, 3)])
    items = []
    for _ in range(random.randint(2, most_items)):
        times = sorted(random.sample(range(9), 2 * random.randint(1, 3)))
        alignment = random.choice(alignments)
        fixed = alignment * random.randint(0, 2) if random.random() < 0.1 else None
        lifetimes = tuple(zip(times[::2], times[1::2], strict=True))
        size = random.randint(1, 6)
        items.append(Item(size=size, lifetimes=lifetimes, alignment=alignment, offset=fixed))
    pairs = list(combinations(range(len(items)), 2))
    random.shuffle(pairs)
    together = tuple(pairs[: random.choice((0, 0, 0, 1, 2))])
    start = random.randint(0, 8)
    reserved = ((start, start + random.randint(1, 3)),) if random.random() < 0.3 else ()
    return PackingProblem(items=tuple(items), capacity=None, reserved=reserved, together=together)
