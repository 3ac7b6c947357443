from itertools import pairwise
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.errors import SpmilpError
from spmilp.frontend.operators.boxes import intersect
from spmilp.lowering.limits import DmaLimits
from spmilp.lowering.tiling import Grid
from spmilp.problem.strides import Layout, row_major_strides, strided_copy

AXES = st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True).map(
    lambda cuts: tuple(pairwise(sorted(cuts)))
)


@given(AXES, AXES, st.integers(0, 29), st.integers(1, 30), st.integers(0, 29), st.integers(1, 30))
@settings(derandomize=True)
def test_cells_are_found_by_their_numbers(
    a: tuple[tuple[int, int], ...],
    b: tuple[tuple[int, int], ...],
    x: int,
    width: int,
    y: int,
    height: int,
) -> None:
    grid = Grid((a, b))
    box = ((x, x + width), (y, y + height))
    cells = list(grid.boxes())
    expected = [
        (number, cell, intersect(cell, box))
        for number, cell in enumerate(cells)
        if intersect(cell, box) is not None
    ]
    assert list(grid.overlapping(box)) == expected
    assert grid.count_overlapping(box) == len(expected)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(0, 5), min_size=4, max_size=4),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([None, 4, 16, 100]),
    st.sampled_from([None, 1, 2, 3]),
)
@settings(derandomize=True)
def test_pieces_keep_the_limits(
    extent: list[int], margin: list[int], item: int, longest: int | None, dimensions: int | None
) -> None:
    container = tuple(n + m for n, m in zip(extent, margin, strict=False))
    strides = row_major_strides(container, item)
    counts = DmaLimits(longest=longest, dimensions=dimensions).pieces(tuple(extent), item, strides)
    sizes = tuple(-(-n // count) for n, count in zip(extent, counts, strict=True))
    packed = Layout(0, row_major_strides(sizes, item))
    copy = strided_copy(sizes, item, Layout(0, strides), packed)
    assert dimensions is None or copy.dimensions <= dimensions
    assert longest is None or prod(sizes) * item <= longest


def test_an_element_longer_than_any_transfer_is_refused() -> None:
    with pytest.raises(SpmilpError, match="longest_bytes: transfers of 4 B hold no element of 8 B"):
        DmaLimits(longest=4, dimensions=None).pieces((2,), 8, (8,))
