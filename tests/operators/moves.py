"""Operators that move elements, and Resize, against onnxruntime."""

from itertools import pairwise
from math import prod

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from operators.drawing import Draw, some_shape, values
from operators.onnx_case import Case
from spmilp.frontend.operators.resize import COORDINATES, NEAREST


def _int64(numbers: object) -> np.ndarray:
    return np.asarray(numbers, dtype=np.int64)


@st.composite
def concat(draw: Draw) -> Case:
    """One to four inputs along any axis."""
    shape = some_shape(draw)
    axis = draw(st.integers(0, len(shape) - 1))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    arrays = [values(draw, *shape[:axis], length, *shape[axis + 1 :]) for length in lengths]
    return Case(kind="Concat", arrays=arrays, attributes={"axis": axis})


@st.composite
def slice_(draw: Draw) -> Case:
    """Any starts, ends and steps, backwards too, that leave something."""
    shape = some_shape(draw, longest=7)
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    starts, ends, steps = [], [], []
    for axis in axes:
        length = shape[axis]
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        first, last = sorted((draw(st.integers(0, length - 1)), draw(st.integers(0, length - 1))))
        start, end = (first, last + 1) if step > 0 else (last, first - 1)
        if step < 0 and end < 0:
            end = -length - 1
        elif draw(st.booleans()):
            start -= length
        starts.append(start)
        ends.append(end)
        steps.append(step)
    attributes = {
        "starts": tuple(starts),
        "ends": tuple(ends),
        "axes": axes,
        "steps": tuple(steps),
    }
    return Case(
        kind="Slice",
        arrays=[values(draw, *shape)],
        attributes=attributes,
        onnx_attributes={},
        side_inputs=[_int64(attributes[name]) for name in ("starts", "ends", "axes", "steps")],
    )


@st.composite
def transpose(draw: Draw) -> Case:
    """Any permutation."""
    shape = some_shape(draw)
    perm = tuple(draw(st.permutations(range(len(shape)))))
    return Case(kind="Transpose", arrays=[values(draw, *shape)], attributes={"perm": perm})


@st.composite
def reshape(draw: Draw) -> Case:
    """Any two factorisations of the same number of elements."""
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 4]), min_size=1, max_size=5))

    def grouped() -> tuple[int, ...]:
        cuts = sorted(draw(st.sets(st.integers(0, len(factors)), max_size=4)))
        edges = [0, *cuts, len(factors)]
        return tuple(prod(factors[a:b]) for a, b in pairwise(edges))

    source, target = grouped(), grouped()
    if draw(st.booleans()):
        target = target[::-1]
    return Case(
        kind="Reshape",
        arrays=[values(draw, *source)],
        attributes={"shape": target},
        onnx_attributes={},
        side_inputs=[_int64(target)],
    )


@st.composite
def gather(draw: Draw) -> Case:
    """With indices of any rank, constant or given at run time."""
    shape = some_shape(draw, 1, 3)
    axis = draw(st.integers(0, len(shape) - 1))
    taken = some_shape(draw, 0, 2, 3)
    constant = draw(st.booleans())
    lowest = 0 if constant else -shape[axis]
    flat = [draw(st.integers(lowest, shape[axis] - 1)) for _ in range(prod(taken))]
    indices = _int64(flat).reshape(taken)
    data = values(draw, *shape)
    if not constant:
        attributes = {"axis": axis}
        return Case(kind="Gather", arrays=[data, indices], attributes=attributes, tight=())
    return Case(
        kind="Gather",
        arrays=[data],
        attributes={"axis": axis, "indices": tuple(flat), "indices_shape": taken},
        onnx_attributes={"axis": axis},
        side_inputs=[indices],
    )


@st.composite
def pad(draw: Draw) -> Case:
    """All modes, with pieces cut off too."""
    shape = tuple(length + 1 for length in some_shape(draw, 1, 4, 4))
    mode = draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    lowest = -1 if mode == "constant" else 0
    begins = tuple(draw(st.integers(lowest, length - 1)) for length in shape)
    ends = tuple(draw(st.integers(lowest if length > 2 else 0, length - 1)) for length in shape)
    value = np.asarray(0.25, dtype=np.float32)
    return Case(
        kind="Pad",
        arrays=[values(draw, *shape)],
        attributes={"pads": begins + ends, "mode": mode, "value": 0.25},
        onnx_attributes={"mode": mode},
        side_inputs=[_int64(begins + ends), value],
    )


@st.composite
def depth_space(draw: Draw) -> Case:
    """Both directions, both orders."""
    block, depth = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    batch = draw(st.integers(1, 2))
    if draw(st.booleans()):
        data = values(draw, batch, depth, rows * block, columns * block)
        attributes: dict[str, int | str] = {"blocksize": block}
        return Case(kind="SpaceToDepth", arrays=[data], attributes=attributes, tight=())
    attributes = {"blocksize": block, "mode": draw(st.sampled_from(["DCR", "CRD"]))}
    data = values(draw, batch, depth * block * block, rows, columns)
    return Case(kind="DepthToSpace", arrays=[data], attributes=attributes, tight=())


@st.composite
def resize(draw: Draw) -> Case:
    """Every mode and rule of coordinates, by sizes or by scales."""
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    shape = (1, 2, draw(st.integers(2, 6)), draw(st.integers(2, 6)))
    coordinates = draw(st.sampled_from(COORDINATES))
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": draw(st.sampled_from(NEAREST)),
        "cubic_coeff_a": draw(st.sampled_from([-0.75, -0.5])),
        "exclude_outside": draw(st.integers(0, 1)) if mode == "cubic" else 0,
        "antialias": 0,
        "extrapolation_value": 0.5,
    }
    sizes: tuple[int, ...]
    side: list[np.ndarray | None]
    roi = None
    if coordinates == "tf_crop_and_resize":
        roi = (0.0, 0.0, 0.1, 0.25, 1.0, 1.0, 0.9, 1.25)
    if draw(st.booleans()):
        scales = (1.0, 1.0, *(draw(st.sampled_from([0.5, 0.75, 1.5, 2.0, 3.0])) for _ in range(2)))
        sizes = tuple(int(np.floor(n * s)) for n, s in zip(shape, scales, strict=True))
        side = [None, np.asarray(scales, dtype=np.float32)]
    else:
        sizes = (1, 2, draw(st.integers(1, 9)), draw(st.integers(1, 9)))
        scales = tuple(size / length for size, length in zip(sizes, shape, strict=True))
        side = [None, None, _int64(sizes)]
    if roi is not None:
        # onnxruntime does not crop an axis that keeps its length.
        assume(all(size != length for size, length in zip(sizes[2:], shape[2:], strict=True)))
        side[0] = np.asarray(roi, dtype=np.float32)
        attributes["roi"] = roi
    return Case(
        kind="Resize",
        arrays=[values(draw, *shape)],
        attributes=attributes | {"sizes": sizes, "scales": scales},
        onnx_attributes={name: value for name, value in attributes.items() if name != "roi"},
        side_inputs=side,
        opset=19,
        rtol=1e-4,
    )


STRATEGIES = [concat, slice_, transpose, reshape, gather, pad, depth_space, resize]
