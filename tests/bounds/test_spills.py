"""The spill bound on whole tensors, against an enumeration of all orders and all spills."""

from heapq import heappop, heappush
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.exact.cosma.networks import random_network
from benchmarks.exact.cosma.setting import largest_operator, least_peak, problem_of, readers_of
from spmilp.bounds.spills import spill_bound
from spmilp.policies.cosma import Network, Operator


def fewest_extra_bytes(network: Network, budget: int) -> int:
    """Return the least bytes spilled and loaded again, addresses left out.

    A state is what has run, what is on the chip, and what DRAM holds a copy of. Before each
    operator anything may leave the chip, at the cost of a store if it is needed later and has no
    copy.
    """
    sizes, operators = network.sizes, network.operators
    readers = readers_of(network)
    everything = (1 << len(operators)) - 1
    heap = [(0, 0, frozenset[int](), frozenset({*network.inputs, *network.outputs}))]
    seen = set()
    while heap:
        cost, done, kept, copied = heappop(heap)
        if done == everything:
            return cost
        if (done, kept, copied) in seen:
            continue
        seen.add((done, kept, copied))
        for index, operator in enumerate(operators):
            reads = frozenset(operator.reads)
            made = all(done >> network.writers.get(t, index) & 1 for t in reads - {*network.inputs})
            if done >> index & 1 or not made:
                continue
            used = reads | {operator.writes}
            others = sorted(kept - used)
            for count in range(len(others) + 1):
                for stay in combinations(others, count):
                    if sum(sizes[t] for t in used.union(stay)) > budget:
                        continue
                    then = done | 1 << index
                    gone = [
                        t
                        for t in set(others) - set(stay) - copied
                        if any(not done >> r & 1 for r in readers[t])
                    ]
                    # The first load of an input is compulsory.
                    back = [
                        t
                        for t in reads - kept
                        if t not in network.inputs or any(done >> r & 1 for r in readers[t])
                    ]
                    price = sum(sizes[t] for t in (*gone, *back))
                    heappush(heap, (cost + price, then, used.union(stay), copied.union(gone)))
    raise AssertionError(f"nothing fits {budget} B")


def test_tensors_leave_as_a_whole() -> None:
    # At "big", 100 bytes wait beside 60 + 60 in 200: 20 are too many, but all 100 go.
    network = Network(
        name="one waits",
        sizes=(1, 100, 60, 60, 1),
        operators=(
            Operator(name="first", reads=(0,), writes=1),
            Operator(name="small", reads=(1,), writes=2),
            Operator(name="big", reads=(2,), writes=3),
            Operator(name="last", reads=(1,), writes=4),
        ),
        outputs=frozenset({3, 4}),
    )
    after_big = problem_of(network, 200)

    assert fewest_extra_bytes(network, 200) == 0
    assert spill_bound(after_big) == 0, "the last operator may come before the big one"

    joined = Network(
        name="one waits",
        sizes=network.sizes,
        operators=(*network.operators[:3], Operator(name="last", reads=(1, 3), writes=4)),
        outputs=frozenset({4}),
    )

    assert fewest_extra_bytes(joined, 200) == 2 * 100 == spill_bound(problem_of(joined, 200))


def test_bytes_too_many_are_rounded_up_to_tensors() -> None:
    # Three tensors of 40 wait beside 16 + 16 in 150: 2 bytes are too many, and one of them goes.
    network = Network(
        name="three wait",
        sizes=(16, 40, 40, 40, 16, 16, 1),
        operators=(
            *(Operator(name=f"op{t}", reads=(0,), writes=t) for t in (1, 2, 3)),
            Operator(name="small", reads=(1, 2, 3), writes=4),
            Operator(name="squeeze", reads=(4,), writes=5),
            Operator(name="last", reads=(1, 2, 3, 5), writes=6),
        ),
        outputs=frozenset({6}),
    )

    assert fewest_extra_bytes(network, 150) == 2 * 40 == spill_bound(problem_of(network, 150))


@pytest.mark.full
@settings(max_examples=120, deadline=None, derandomize=True)
@given(tensors=st.integers(3, 8), seed=st.integers(0, 10_000), share=st.integers(0, 4))
def test_never_above_the_fewest_bytes_of_any_order(tensors: int, seed: int, share: int) -> None:
    network = random_network(tensors, seed)
    least, peak = largest_operator(network), least_peak(network)
    budget = least + (peak - least) * share // 4
    fewest = fewest_extra_bytes(network, budget)

    assert spill_bound(problem_of(network, budget)) <= fewest
    assert budget < peak or fewest == 0
