"""Pooling, normalisations, Softmax and reductions against onnxruntime."""

import numpy as np
from hypothesis import strategies as st

from operators.drawing import Draw, some_shape, values
from operators.onnx_case import Case
from spmilp.frontend.operators.reductions import EACH


@st.composite
def pool(draw: Draw) -> Case:
    """Any strides, pads, ceil mode; dilation where onnxruntime has it."""
    kind = draw(st.sampled_from(["MaxPool", "AveragePool", "AveragePool", "LpPool"]))
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    dilations = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    pads = tuple(draw(st.integers(0, k - 1)) for k in (*kernel, *kernel))
    spatial = [
        (k - 1) * d + draw(st.integers(1, 6)) for k, d in zip(kernel, dilations, strict=True)
    ]
    attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "ceil_mode": draw(st.integers(0, 1)),
    }
    if kind == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    if kind == "LpPool":
        attributes |= {"p": draw(st.integers(1, 3)), "ceil_mode": 0}
    data = values(draw, draw(st.integers(1, 2)), draw(st.integers(1, 3)), *spatial)
    return Case(kind=kind, arrays=[data], attributes=attributes)


@st.composite
def global_pool(draw: Draw) -> Case:
    """Over one to three spatial axes."""
    kind = draw(st.sampled_from(["GlobalAveragePool", "GlobalMaxPool"]))
    return Case(kind=kind, arrays=[values(draw, *some_shape(draw, 3, 5))])


@st.composite
def batch_normalization(draw: Draw) -> Case:
    """Over two to four axes."""
    shape = some_shape(draw, 2, 4)
    arrays = [values(draw, *shape), *(values(draw, shape[1]) for _ in range(3))]
    arrays.append(values(draw, shape[1], low=0.5))
    return Case(kind="BatchNormalization", arrays=arrays, attributes={"epsilon": 1e-3})


@st.composite
def layer_normalization(draw: Draw) -> Case:
    """From any axis on, with and without bias."""
    shape = some_shape(draw, 1, 4)
    axis = draw(st.integers(0, len(shape) - 1))
    attributes = {"axis": axis, "epsilon": 1e-3}
    arrays = [values(draw, *shape), values(draw, *shape[axis:])]
    if draw(st.booleans()):
        return Case(kind="RMSNormalization", arrays=arrays, attributes=attributes, opset=23)
    if draw(st.booleans()):
        arrays.append(values(draw, *shape[axis:]))
    return Case(kind="LayerNormalization", arrays=arrays, attributes=attributes)


@st.composite
def group_normalization(draw: Draw) -> Case:
    """Per channel, and per group of channels."""
    groups, size = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    shape = (draw(st.integers(1, 2)), groups * size, *some_shape(draw, 1, 2))
    arrays = [values(draw, *shape), values(draw, shape[1]), values(draw, shape[1])]
    attributes: dict[str, float] = {"epsilon": 1e-3}
    if draw(st.booleans()):
        return Case(kind="InstanceNormalization", arrays=arrays, attributes=attributes)
    attributes["num_groups"] = groups
    return Case(kind="GroupNormalization", arrays=arrays, attributes=attributes, rtol=1e-4)


@st.composite
def softmax(draw: Draw) -> Case:
    """Along any axis."""
    shape = some_shape(draw)
    kind = draw(st.sampled_from(["Softmax", "LogSoftmax"]))
    axis = draw(st.integers(0, len(shape) - 1))
    return Case(kind=kind, arrays=[values(draw, *shape)], attributes={"axis": axis})


@st.composite
def reduce(draw: Draw) -> Case:
    """Any axes, kept or not."""
    kind = draw(st.sampled_from(sorted(EACH)))
    shape = some_shape(draw)
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    keep = draw(st.integers(0, 1))
    return Case(
        kind=kind,
        arrays=[values(draw, *shape, low=0.5)],
        attributes={"axes": axes, "keepdims": keep},
        onnx_attributes={"keepdims": keep},
        side_inputs=[np.asarray(axes, dtype=np.int64)],
    )


@st.composite
def lrn(draw: Draw) -> Case:
    """Any odd window over channels."""
    attributes = {"size": draw(st.sampled_from([1, 3, 5])), "alpha": 0.1, "beta": 0.75, "bias": 1.5}
    return Case(kind="LRN", arrays=[values(draw, *some_shape(draw, 4, 4))], attributes=attributes)


@st.composite
def cumulative_sum(draw: Draw) -> Case:
    """In both directions, with and without the own element."""
    shape = some_shape(draw, 1, 3)
    axis = draw(st.integers(0, len(shape) - 1))
    how = {"exclusive": draw(st.integers(0, 1)), "reverse": draw(st.integers(0, 1))}
    return Case(
        kind="CumSum",
        arrays=[values(draw, *shape)],
        attributes={"axis": axis, **how},
        onnx_attributes=how,
        side_inputs=[np.asarray(axis, dtype=np.int64)],
        tight=(),
    )


STRATEGIES = [
    *(pool, global_pool, batch_normalization, layer_normalization, group_normalization, softmax),
    *(reduce, lrn, cumulative_sum),
]
