"""One of each set of equal rows is found, however long the numbers in them are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.tile_selection.operand_traffic import _first_of_equals

rows = st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=20)


@pytest.mark.parametrize("scale", [1, 10**6])
@settings(max_examples=60, derandomize=True, deadline=None)
@given(rows)
def test_each_row_is_kept_once(scale: int, some: list[tuple[int, ...]]) -> None:
    table = np.array(some, dtype=np.int64) * scale
    kept = table[_first_of_equals(table)]
    assert sorted(map(tuple, kept.tolist())) == sorted(set(map(tuple, table.tolist())))


def test_boxes_of_a_scalar_are_all_equal() -> None:
    assert _first_of_equals(np.empty((3, 0), dtype=np.int64)).tolist() == [0]
