"""Boxes compared with each other, and with those tiles of a grid that share something with them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.lowering.tiling import Interval
from spmilp.tile_selection import operand_traffic as module
from spmilp.tile_selection.operand_traffic import GridOverlaps, distinct_rows, overlaps

ROWS = st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=20)

Box = tuple[Interval, ...]
Axes = list[list[Interval]]


@st.composite
def axes_and_boxes(draw: st.DrawFn) -> tuple[Axes, list[Box], list[int]]:
    """A grid of up to four axes, boxes in it, some of them empty or equal, and a taker of each."""
    lengths = draw(st.lists(st.integers(1, 12), max_size=4))
    axes: Axes = []
    for length in lengths:
        cuts = draw(st.sets(st.integers(1, length))) | {length}
        axes.append(list(pairwise([0, *sorted(cuts)])))
    points = [st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted) for n in lengths]
    box = st.tuples(*(point.map(lambda ends: (ends[0], ends[1])) for point in points))
    boxes = draw(st.lists(box, min_size=1, max_size=12))
    takers = draw(st.lists(st.integers(0, 2), min_size=len(boxes), max_size=len(boxes)))
    return axes, boxes, takers


def as_array(boxes: list[Box], rank: int) -> module.Boxes:
    return np.array(boxes, dtype=np.int64).reshape(len(boxes), rank, 2)


def tiles_of(axes: Axes) -> module.Boxes:
    tiles: list[Box] = [()]
    for axis in axes:
        tiles = [(*tile, interval) for tile in tiles for interval in axis]
    return as_array(tiles, len(axes))


@pytest.mark.parametrize("at_once", [1, 7, module.PAIRS_AT_ONCE])
@settings(max_examples=100, derandomize=True, deadline=None)
@given(axes_and_boxes())
def test_tiles_of_a_grid_share_with_boxes_what_the_matrix_says(
    at_once: int, case: tuple[Axes, list[Box], list[int]]
) -> None:
    axes, rows, takers = case
    boxes = as_array(rows, len(axes))
    matrix = overlaps(boxes, tiles_of(axes))
    sums = np.zeros((3, matrix.shape[1]))
    np.add.at(sums, takers, matrix)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAIRS_AT_ONCE", at_once)
        shared = GridOverlaps(boxes, axes)
        assert (shared.shared_by(np.array(takers), 3) == sums).all()
        assert (shared.tiles_of_each == (matrix > 0).sum(axis=1)).all()


def test_memory_follows_what_is_shared_and_not_the_product_of_boxes_and_tiles() -> None:
    # A matrix of 10**5 boxes and as many tiles would take 80 GB.
    cells = [(at, at + 1) for at in range(100_000)]
    shared = GridOverlaps(as_array([(cell,) for cell in cells], 1), [cells])
    assert (shared.shared_by(np.zeros(len(cells), dtype=np.int64), 1) == 1).all()


def test_many_boxes_that_are_all_of_the_tensor_are_compared_once() -> None:
    cells = [(at, at + 1) for at in range(100_000)]
    boxes = as_array([((0, len(cells)),)] * len(cells), 1)
    shared = GridOverlaps(boxes, [cells])
    assert (shared.shared_by(np.zeros(len(cells), dtype=np.int64), 1) == len(cells)).all()


@pytest.mark.parametrize("scale", [1, 10**6])
@settings(max_examples=60, derandomize=True, deadline=None)
@given(ROWS)
def test_each_row_is_kept_once_however_long_its_numbers_are(
    scale: int, some: list[tuple[int, ...]]
) -> None:
    table = np.array(some, dtype=np.int64) * scale
    first, times = distinct_rows(table)
    kept = dict(zip(map(tuple, table[first].tolist()), times.tolist(), strict=True))
    all_rows = list(map(tuple, table.tolist()))
    assert kept == {row: all_rows.count(row) for row in all_rows}


def test_boxes_of_a_scalar_are_all_equal() -> None:
    first, times = distinct_rows(np.empty((3, 0), dtype=np.int64))
    assert (first.tolist(), times.tolist()) == ([0], [3])
