from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.lowering.tiling import split


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
