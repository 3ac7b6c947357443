"""Convolutions and matrix products against onnxruntime."""

from hypothesis import strategies as st

from operators.drawing import Draw, broadcast_partner, values
from operators.onnx_case import Case


@st.composite
def conv(draw: Draw) -> Case:
    """Any groups, strides, dilations and pads, in one to three dimensions."""
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    group = draw(st.sampled_from([1, 1, 2, 3]))
    depth, width = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    dilations = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    pads = tuple(draw(st.integers(0, 2)) for _ in range(2 * rank))
    spatial = [
        (k - 1) * d + draw(st.integers(1, 6)) for k, d in zip(kernel, dilations, strict=True)
    ]
    attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "group": group,
    }
    data = values(draw, draw(st.integers(1, 2)), group * depth, *spatial)
    arrays = [data, values(draw, group * width, depth, *kernel)]
    if draw(st.booleans()):
        arrays.append(values(draw, group * width))
    return Case(kind="Conv", arrays=arrays, attributes=attributes, tight=(0, 2))


@st.composite
def conv_transpose(draw: Draw) -> Case:
    """Any groups, strides, dilations, pads and output padding."""
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    group = draw(st.sampled_from([1, 1, 2]))
    depth, width = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    dilations = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    extra = tuple(draw(st.integers(0, s - 1)) for s in strides)
    spatial, pads = [], []
    for k, s, d, e in zip(kernel, strides, dilations, extra, strict=True):
        length = draw(st.integers(1, 5))
        room = (length - 1) * s + (k - 1) * d + e
        pads.append(draw(st.integers(0, min(2, room))))
        spatial.append(length)
    attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": (*pads, *(0 for _ in pads)),
        "output_padding": extra,
        "group": group,
    }
    arrays = [
        values(draw, 1, group * depth, *spatial),
        values(draw, group * depth, width, *kernel),
    ]
    if draw(st.booleans()):
        arrays.append(values(draw, group * width))
    return Case(kind="ConvTranspose", arrays=arrays, attributes=attributes, tight=(0, 2))


@st.composite
def gemm(draw: Draw) -> Case:
    """Any transposition, scale and broadcast C."""
    rows, inner, columns = (draw(st.integers(1, 6)) for _ in range(3))
    flip, flop = draw(st.integers(0, 1)), draw(st.integers(0, 1))
    attributes = {
        "transA": flip,
        "transB": flop,
        "alpha": draw(st.sampled_from([1.0, 0.5])),
        "beta": draw(st.sampled_from([1.0, 2.0])),
    }
    left, right = values(draw, rows, inner), values(draw, inner, columns)
    arrays = [left.T.copy() if flip else left, right.T.copy() if flop else right]
    if draw(st.booleans()):
        arrays.append(values(draw, *broadcast_partner(draw, (rows, columns))))
    return Case(kind="Gemm", arrays=arrays, attributes=attributes)


@st.composite
def matmul(draw: Draw) -> Case:
    """Batched, broadcast, and one-dimensional operands."""
    rows, inner, columns = (draw(st.integers(1, 5)) for _ in range(3))
    form = draw(st.sampled_from(["batched", "batched", "vector left", "vector right", "dot"]))
    batch = tuple(draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2))))
    left = (*broadcast_partner(draw, batch), rows, inner)
    right = (*batch, inner, columns)
    if form == "dot":
        left, right = (inner,), (inner,)
    elif form == "vector left":
        left = (inner,)
    elif form == "vector right":
        left, right = (*batch, rows, inner), (inner,)
    return Case(kind="MatMul", arrays=[values(draw, *left), values(draw, *right)])


@st.composite
def einsum(draw: Draw) -> Case:
    """Products over named axes."""
    equation = draw(st.sampled_from(["bhid,bhjd->bhij", "ij,jk->ki", "abc->ca", "i,j,k->kij"]))
    lengths = {letter: draw(st.integers(1, 4)) for letter in "abcdhijk"}
    arrays = [
        values(draw, *(lengths[letter] for letter in term))
        for term in equation.split("->")[0].split(",")
    ]
    return Case(kind="Einsum", arrays=arrays, attributes={"equation": equation})


STRATEGIES = [conv, conv_transpose, gemm, matmul, einsum]
SPLIT = [conv, gemm, matmul]
