"""What a failed packing hands to a solver that chose the lifetimes: few items, and a proof."""

from itertools import product
from random import Random

import pytest

from spmilp.packing import Item, PackingProblem, PackingStatus, check_packing, minimise, pack


def fragmented(random: Random) -> PackingProblem:
    """Return three items of which each two meet, but never all, among others that fit."""
    size, far = random.randint(2, 6), random.randint(8, 20)
    items = [
        Item(size=size, lifetimes=((0, 1), (2, 3))),
        Item(size=size, lifetimes=((0, 2),)),
        Item(size=size, lifetimes=((1, 3),)),
        *(
            Item(size=random.randint(1, size), lifetimes=((far + k, far + k + 2),))
            for k in range(random.randint(0, 6))
        ),
    ]
    random.shuffle(items)
    return PackingProblem(items=tuple(items), capacity=3 * size - 1)


def part(problem: PackingProblem, items: tuple[int, ...]) -> PackingProblem:
    return PackingProblem(items=tuple(problem.items[i] for i in items), capacity=problem.capacity)


def fits(problem: PackingProblem) -> bool:
    """Try all offsets."""
    capacity = problem.capacity or 0
    ranges = [range(capacity - item.size + 1) for item in problem.items]
    return any(not check_packing(problem, offsets) for offsets in product(*ranges))


@pytest.mark.parametrize("seed", range(12))
def test_a_cut_names_all_that_conflict_and_nothing_else(seed: int) -> None:
    problem = fragmented(Random(seed))
    answer = pack(problem)

    assert answer.status is PackingStatus.INFEASIBLE
    assert answer.conflict is not None
    assert len(answer.conflict) == 3
    assert not fits(part(problem, answer.conflict))
    for left_out in answer.conflict:
        rest = tuple(i for i in answer.conflict if i != left_out)
        assert pack(part(problem, rest)).status is not PackingStatus.INFEASIBLE


def test_heights_far_apart_are_halved_and_not_counted_one_by_one() -> None:
    wide = tuple(Item(size=3, lifetimes=((0, 9),), alignment=2**20) for _ in range(2))
    others = tuple(Item(size=5, lifetimes=((i, i + 3),)) for i in range(6))
    answer = minimise(PackingProblem(items=wide + others, capacity=None))

    assert answer.status is PackingStatus.OPTIMAL
    assert answer.height == 2**20 + 3
    assert answer.statistics.nodes < 10_000


def test_cuts_one_after_another_lead_to_lifetimes_that_fit() -> None:
    """Each cut puts off one of its items until there are offsets: a solver in miniature."""
    items = [Item(size=3, lifetimes=((0, 2),)) for _ in range(8)]
    rounds = 0
    while (answer := pack(PackingProblem(items=tuple(items), capacity=7))).conflict is not None:
        assert len(answer.conflict) == 3
        last = max(answer.conflict)
        ((start, end),) = items[last].lifetimes
        items[last] = Item(size=3, lifetimes=((start + 1, end + 1),))
        rounds += 1
    assert rounds >= 24  # two of them can begin at each of 0, 2, 4 and 6
    assert answer.offsets is not None
    assert check_packing(PackingProblem(items=tuple(items), capacity=7), answer.offsets) == []
