"""Pack variants of MiniMalloc's challenging instances that fit by construction.

Usage: python -m benchmarks.packing.variants [FOLDER] [--seed N] [--count N]

A variant of an instance that fits into 1 MiB fits too when it is mirrored in time, loses buffers,
has smaller or split ones, or stands beside another in time. Reported is every variant that took
longer than a second, and how many were packed within which time.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.packing.measure import CAPACITY, DATA, challenging, measured
from spmilp.packing import PackingOptions, PackingProblem, pack
from spmilp.packing.items import Item

Items = tuple[Item, ...]
KIB = 1024


def make(size: int, start: int, end: int) -> Item:
    """Return an item with one lifetime."""
    return Item(size=size, lifetimes=((start, end),))


def life(item: Item) -> tuple[int, int]:
    """Return the one lifetime of an item."""
    return item.lifetimes[0]


def end_of(items: Items) -> int:
    """Return when the last item ends."""
    return max(life(item)[1] for item in items)


def mirrored(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """Time runs backwards."""
    end = end_of(items)
    return tuple(make(item.size, end - life(item)[1], end - life(item)[0]) for item in items)


def thinned(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """Some buffers are removed: a twentieth to a fifth."""
    share = dice.uniform(0.05, 0.2)
    return tuple(item for item in items if dice.random() > share)


def mirrored_and_thinned(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """Both."""
    return mirrored(thinned(items, dice, others), dice, others)


def shrunk(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """Each size loses up to a fiftieth or a tenth, to the byte."""
    share = dice.choice((0.02, 0.1))
    return tuple(
        make(max(1, int(item.size * (1 - share * dice.random()))), *life(item)) for item in items
    )


def shrunk_by_kib(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """Half of the sizes lose 1 KiB."""
    return tuple(
        make(max(KIB, item.size - KIB * dice.randint(0, 1)), *life(item)) for item in items
    )


def beside_another(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """Another instance follows in time."""
    end = end_of(items)
    other = dice.choice(others)
    return items + tuple(
        make(item.size, life(item)[0] + end, life(item)[1] + end) for item in other
    )


def split_in_time(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """A fifth of the buffers become two, one after the other."""
    return tuple(half for item in items for half in _halves_in_time(item, dice))


def split_in_size(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """A fifth of the buffers become two that lie anywhere."""
    return tuple(half for item in items for half in _halves_in_size(item, dice))


def trimmed_in_time(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """A tenth of the buffers end earlier."""
    return tuple(
        make(item.size, life(item)[0], dice.randint(life(item)[0] + 1, life(item)[1]))
        if dice.random() < 0.1
        else item
        for item in items
    )


def shuffled(items: Items, dice: random.Random, others: list[Items]) -> Items:
    """The same buffers in another order."""
    return tuple(dice.sample(items, len(items)))


def _halves_in_time(item: Item, dice: random.Random) -> Items:
    start, end = life(item)
    if end - start < 2 or dice.random() >= 0.2:
        return (item,)
    cut = dice.randint(start + 1, end - 1)
    return make(item.size, start, cut), make(item.size, cut, end)


def _halves_in_size(item: Item, dice: random.Random) -> Items:
    if item.size < 2 * KIB or dice.random() >= 0.2:
        return (item,)
    first = KIB * dice.randint(1, item.size // KIB - 1)
    return make(first, *life(item)), make(item.size - first, *life(item))


KINDS: tuple[Callable[[Items, random.Random, list[Items]], Items], ...] = (
    mirrored,
    thinned,
    mirrored_and_thinned,
    shrunk,
    shrunk_by_kib,
    beside_another,
    split_in_time,
    split_in_size,
    trimmed_in_time,
    shuffled,
)


def variants(
    instances: dict[str, Items], seed: int, per_instance: int
) -> Iterator[tuple[str, Items]]:
    """Yield names and items, the kinds of variant in turn."""
    others = list(instances.values())
    for name, items in instances.items():
        for number in range(per_instance):
            kind = KINDS[number % len(KINDS)]
            dice = random.Random(f"{seed} {name} {number}")
            yield f"{name} {kind.__name__} {number}", kind(items, dice, others)


def main() -> int:
    """Print what took long, and the count; return 1 below the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    parser.add_argument("--seed", type=int, default=1, help="of the variants")
    parser.add_argument("--count", type=int, default=10, help="variants per instance")
    parser.add_argument("--only", default="", help="variants whose name begins so")
    parser.add_argument("--seconds", type=float, default=30.0, help="limit of one call")
    arguments = parser.parse_args()
    options = PackingOptions(time_limit=arguments.seconds)
    walls, cpus = [], []
    sources: Counter[str] = Counter()
    for name, items in variants(challenging(arguments.folder), arguments.seed, arguments.count):
        if not name.startswith(arguments.only):
            continue
        run = measured(pack, PackingProblem(items=items, capacity=CAPACITY), options)
        packed = run.packing.offsets is not None
        walls.append(run.wall if packed else float("inf"))
        cpus.append(run.cpu if packed else float("inf"))
        sources[run.packing.source or "nothing"] += 1
        if run.wall > 1 or not packed:
            status, nodes = run.packing.status, run.packing.nodes
            print(f"{name}: {status}, {run.wall:.1f} s, CPU {run.cpu:.1f} s, {nodes:,} nodes")
    for title, times in (("wall", walls), ("CPU", cpus)):
        counts = ", ".join(f"{sum(t <= s for t in times)} in {s} s" for s in (1, 10, 30))
        print(f"{title}: of {len(times)} packed {counts}; median {median(times):.3f} s")
    print("found by:", ", ".join(f"{source} {number}" for source, number in sources.items()))
    soon = sum(wall <= 10 for wall in walls) >= 0.95 * len(walls)
    return 0 if soon and max(walls) <= 30 else 1


if __name__ == "__main__":
    sys.exit(main())
