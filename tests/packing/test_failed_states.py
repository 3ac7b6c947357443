"""The table of failed states, which grows with them."""

import numpy as np

from spmilp.packing.search import FailedStates


def test_a_table_that_grows_forgets_nothing() -> None:
    failed = FailedStates()
    states = set[tuple[int, int, int]]()
    random = np.random.default_rng(0)
    first_size = failed.memo.size
    for _ in range(6):
        memo = failed.with_room(100)
        found = zip(memo.key.tolist(), memo.check.tolist(), memo.bound.tolist(), strict=True)
        assert {state for state in found if state[0]} == states
        for _ in range(100):
            # Where its first slot is free, a state lies there.
            key, check = random.integers(2**63, 2**64, 2, dtype=np.uint64).tolist()
            slot, bound = key % memo.size, int(random.integers(1000))
            if memo.key[slot] == 0:
                memo.key[slot], memo.check[slot], memo.bound[slot] = key, check, bound
                states.add((key, check, bound))
    assert len(states) > 400
    assert failed.memo.size >= 1000 * first_size
