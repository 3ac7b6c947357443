"""What holds for every operator; a test calls these on its cases."""

from math import prod

import numpy as np
from hypothesis import strategies as st

from operators.onnx_case import Array, Case, geometry_of
from spmilp.checker.values.kernels.call import Call
from spmilp.checker.values.kernels.registry import complete, compute, partial
from spmilp.frontend.operators.boxes import slices, volume, whole
from spmilp.units import Box, Extents


def boxes_of(shape: Extents) -> st.SearchStrategy[Box]:
    """Draw a box that is not empty."""
    return st.tuples(
        *(
            st.tuples(st.integers(0, length - 1), st.integers(1, length)).map(
                lambda pair: (min(pair[0], pair[1] - 1), max(pair[0] + 1, pair[1]))
            )
            for length in shape
        )
    )


def close(found: Array, expected: Array, case: Case, whole_result: Array | None = None) -> None:
    """Both arrays are equal, within the rounding of float32 sums.

    What is rounded is as large as the whole result, though a part of it may be near 0.
    """
    assert found.shape == expected.shape
    if not np.issubdtype(expected.dtype, np.floating):
        np.testing.assert_array_equal(found, expected)
        return
    result = expected if whole_result is None else whole_result
    finite = np.abs(result[np.isfinite(result)])
    scale = float(finite.max()) if finite.size else 1.0
    np.testing.assert_allclose(found, expected, rtol=case.rtol, atol=case.rtol * max(scale, 1e-3))


def boxes_equal_the_whole(case: Case, draw: st.DataObject) -> None:
    """A box computed from what it reads equals that box of what ONNX says of the whole."""
    expected = case.expected()
    tensors = case.tensors(expected.dtype)
    assert tensors["out"].shape == expected.shape
    close(case.compute(tensors, whole(expected.shape)), expected, case)
    box = draw.draw(boxes_of(expected.shape))
    part = expected[slices(box, (0,) * expected.ndim)]
    found = case.compute(tensors, box)
    assert found.dtype == expected.dtype
    close(found, part, case, expected)


def every_face_of_what_is_read_matters(case: Case, draw: st.DataObject) -> None:
    """No smaller box than what is read would do: NaN in any of its faces shows in the result."""
    tensors = case.tensors()
    operator = case.operator()
    own = geometry_of(operator, tensors)
    box = draw.draw(boxes_of(tensors["out"].shape))
    boxes = own.reads(box)
    pieces = case.pieces(boxes)
    for position, piece in enumerate(pieces):
        if piece is None or piece.dtype != np.float32 or position not in case.tight:
            continue
        for axis in range(piece.ndim):
            for end in (0, -1):
                poisoned = piece.copy()
                np.moveaxis(poisoned, axis, 0)[end] = np.nan
                given = [*pieces[:position], poisoned, *pieces[position + 1 :]]
                found = compute(Call(operator, tensors, given, boxes, box))
                assert np.isnan(found).any(), f"input {position}, axis {axis}, end {end}"


def work_adds_up(case: Case, draw: st.DataObject) -> None:
    """The MACs of the parts of an output, and of the reduction, are those of the whole."""
    tensors = case.tensors()
    operator = case.operator()
    own = geometry_of(operator, tensors)
    box = whole(tensors["out"].shape)
    total = prod(count for _, count in own.work(box).loops)
    axes = [axis for axis, length in enumerate(tensors["out"].shape) if length > 1]
    if axes:
        axis = draw.draw(st.sampled_from(axes))
        cut = draw.draw(st.integers(1, box[axis][1] - 1))
        halves = [
            (*box[:axis], interval, *box[axis + 1 :])
            for interval in ((0, cut), (cut, box[axis][1]))
        ]
        works = [own.work(half) for half in halves]
        assert all(work.vector >= 0 for work in works)
        if works[0].loops:
            assert sum(prod(count for _, count in work.loops) for work in works) == total
    length = own.reduction
    if length > 1:
        cut = draw.draw(st.integers(1, length - 1))
        works = [own.work(box, part) for part in ((0, cut), (cut, length))]
        assert sum(prod(count for _, count in work.loops) for work in works) == total
        whole_work = own.work(box)
        assert sum(work.vector for work in works) == whole_work.vector


def split_reductions_give_the_same(case: Case, draw: st.DataObject) -> None:
    """Summing the parts of a reduction one after the other gives the result of the whole."""
    expected = case.expected()
    tensors = case.tensors(expected.dtype)
    operator = case.operator()
    own = geometry_of(operator, tensors)
    length = own.reduction
    box = draw.draw(boxes_of(expected.shape))
    cuts = sorted(draw.draw(st.sets(st.integers(1, length - 1), max_size=2)) if length > 1 else [])
    total = None
    for start, stop in zip([0, *cuts], [*cuts, length], strict=True):
        boxes = own.reads(box, (start, stop))
        total = partial(Call(operator, tensors, case.pieces(boxes), boxes, box), total)
    assert total is not None
    result = complete(Call(operator, tensors, case.pieces(boxes), boxes, box), total)
    close(result, expected[slices(box, (0,) * expected.ndim)], case)
    assert volume(box) == result.size
