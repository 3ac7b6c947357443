"""Places in a period, against tables of what each cycle holds."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from spmilp.solvers.modulo.reservations import Busy, Reservations, delay, place, reservations_for
from spmilp.solvers.schedule.kernels.records import NONE, numbers, rows_of

CAPACITY = [1, 1, 3]
Activity = tuple[int, list[list[Busy]], list[int]]


def activities_of(random: Random, count: int) -> list[Activity]:
    """Return for each its cycles, its ways to be busy, and those before it."""
    found = []
    for one in range(count):
        start, cycles = random.randrange(3), random.randrange(1, 7)
        link = Busy(2, start, start + cycles, random.randrange(1, 4))
        ways = [[Busy(core, 0, cycles, 1), link] for core in range(random.randrange(1, 3))]
        before = random.sample(range(one), min(one, random.randrange(3)))
        found.append((start + cycles, ways, sorted(before)))
    return found


def table_of(activities: list[Activity], period: int) -> Reservations:
    cycles, ways, before = zip(*activities, strict=True)
    asked = reservations_for(ways, CAPACITY, cycles, rows_of(before))
    return asked.emptied(period, numbers([0] * len(CAPACITY)))


def add(held: np.ndarray, at: int, way: Sequence[Busy], sign: int = 1) -> None:
    for one in way:
        for cycle in range(at + one.start, at + one.end):
            held[one.resource, cycle % held.shape[1]] += sign * one.amount


def is_free(held: np.ndarray, at: int, way: Sequence[Busy]) -> bool:
    also = held.copy()
    add(also, at, way)
    return bool((also <= np.array(CAPACITY)[:, None]).all())


@pytest.mark.parametrize("seed", range(12))
def test_each_starts_as_early_and_then_as_late_as_it_can(seed: int) -> None:
    random = Random(seed)
    period, activities = random.randrange(6, 40), activities_of(random, 12)
    table, held = table_of(activities, period), np.zeros((3, period), int)
    failed = place(table)
    ends = list[int]()
    for one, (cycles, ways, before) in enumerate(activities):
        ready = max((ends[each] for each in before), default=0)
        found = [
            (at, way)
            for at in range(ready, ready + period)
            for way in range(len(ways))
            if is_free(held, at, ways[way])
        ]
        assert bool(found) == (one != failed)
        if one == failed:
            return
        assert (table.start[one], table.way[one] - table.ways[one]) == found[0]
        add(held, found[0][0], ways[found[0][1]])
        ends.append(found[0][0] + cycles)
    assert failed == NONE
    starts = table.start.tolist()
    latest = [random.randrange(period) for _ in activities]
    delay(table, np.arange(len(activities)), numbers(latest))
    for one, (cycles, ways, _) in reversed([*enumerate(activities)]):
        way = ways[table.way[one] - table.ways[one]]
        after = (starts[each] - cycles for each in table.after.values(one))
        due = min([latest[one], *after])
        add(held, starts[one], way, -1)
        late = (at for at in range(due, starts[one], -1) if is_free(held, at, way))
        starts[one] = next(late, starts[one])
        add(held, starts[one], way)
    assert table.start.tolist() == starts
