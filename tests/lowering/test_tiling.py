from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.lowering.tiling import split


@given(st.integers(1, 300), st.integers(1, 40))
@settings(derandomize=True)
def test_pieces_partition_the_length_and_differ_by_at_most_one(length: int, count: int) -> None:
    pieces = split(length, count)
    assert pieces[0][0] == 0
    assert pieces[-1][1] == length
    assert all(a[1] == b[0] for a, b in pairwise(pieces))
    sizes = [stop - start for start, stop in pieces]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 1
    assert len(pieces) == min(length, count)
