"""Failed states, remembered by a 128-bit hash."""

import numpy as np

from spmilp.compiled import part
from spmilp.packing.search.arrays import Memo

# Multipliers and shifts of splitmix64 (Steele, Lea, Flood: OOPSLA 2014, doi
# 10.1145/2660193.2660195).
MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
STRIDE_1 = np.uint64(0x9E3779B97F4A7C15)
STRIDE_2 = np.uint64(0xD1342543DE82EF95)
SHIFT_1 = np.uint64(30)
SHIFT_2 = np.uint64(27)
SHIFT_3 = np.uint64(31)
PROBES = 4


@part
def scramble(value: np.uint64) -> np.uint64:
    """Return a 64-bit permutation of ``value`` in which every bit depends on every bit."""
    value = (value ^ (value >> SHIFT_1)) * MULTIPLIER_1
    value = (value ^ (value >> SHIFT_2)) * MULTIPLIER_2
    return value ^ (value >> SHIFT_3)


@part
def is_known_to_fail(memo: Memo, key: np.uint64, check: np.uint64, bound: int) -> bool:
    """Return whether the state failed under a bound that allowed at least as much."""
    size = memo.key.size
    start = np.int64(key & np.uint64(size - 1))
    for probe in range(PROBES):
        slot = (start + probe) & (size - 1)
        if memo.key[slot] == key and memo.check[slot] == check:
            return bool(memo.bound[slot] <= bound)
    return False


@part
def remember_failure(memo: Memo, key: np.uint64, check: np.uint64, bound: int) -> None:
    """Store a failed state; forget another one where there is no room."""
    size = memo.key.size
    start = np.int64(key & np.uint64(size - 1))
    chosen = (start + np.int64(check & np.uint64(PROBES - 1))) & (size - 1)
    for probe in range(PROBES):
        slot = (start + probe) & (size - 1)
        same = memo.key[slot] == key and memo.check[slot] == check
        empty = memo.key[slot] == 0 and memo.check[slot] == 0
        if same or empty:
            chosen = slot
            break
    memo.key[chosen] = key
    memo.check[chosen] = check
    memo.bound[chosen] = bound
