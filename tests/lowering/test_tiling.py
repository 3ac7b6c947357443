from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.lowering.tiling import Tiling, split, tile_grid


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 20))
@settings(derandomize=True)
def test_pieces_partition_the_length_and_differ_by_at_most_one_multiple(
    length: int, count: int, multiple: int
) -> None:
    pieces = split(length, count, multiple)
    assert pieces[0][0] == 0
    assert pieces[-1][1] == length
    assert all(a[1] == b[0] for a, b in pairwise(pieces))
    sizes = [stop - start for start, stop in pieces]
    assert min(sizes) > 0
    assert all(size % multiple == 0 for size in sizes[:-1])
    assert max(sizes) - min(sizes[:-1] or sizes) <= multiple
    assert len(pieces) <= count


def test_cuts_of_different_lengths_lie_at_proportional_places() -> None:
    assert [start for start, _ in split(56, 16)] == [i * 56 // 16 for i in range(16)]
    assert [start * 2 for start, _ in split(28, 14)] == [start for start, _ in split(56, 14)]


def test_a_tiling_of_another_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="2 counts for 3 axes"):
        tile_grid(Tiling(counts=(1, 2)), (1, 2, 3), 1)


def test_counts_are_positive() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Tiling(counts=(1, 0))
