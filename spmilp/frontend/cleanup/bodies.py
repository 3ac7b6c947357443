"""Bodies of operators that ONNX does not define by others, or not at all, in ONNX's text syntax.

Among them are those that onnxruntime's optimiser writes, of the domain ``com.microsoft`` (operator
specification: onnxruntime, ``docs/ContribOperators.md``); two of them it writes as ONNX's own. In a
text ``#`` stands before a number, or the name of an attribute that is one, of the first operand's
type, and ``<*>`` for those attributes of the node that the operator has. What reads an operand that
is left out is left out, too; a sum, a product or a Concat goes on without it.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import onnx
import onnx_ir as ir
from onnx import parser

from spmilp.frontend.cleanup.nodes import MICROSOFT, RefusedError, name_of

Values = Mapping[str, Any]
"""Attributes of a node by name, defaults included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Body:
    """A function.

    Parameters
    ----------
    inputs, outputs
        Names, with commas between them.
    text
        Statements, or what makes them of a node; ``""`` as long as a shape is not known.
    defaults
        Of attributes.
    """

    inputs: str
    outputs: str = "y"
    text: str | Callable[[ir.Node, Values], str]
    defaults: Values = field(default_factory=dict)


def written_body(node: ir.Node) -> onnx.FunctionProto | None:
    """Return the body of a node's operator; ``None`` if there is none, or a shape is not known.

    Raises a ``RefusedError`` with the reason if the node asks for what the body does not do.
    """
    body = _BODIES.get((node.domain, node.op_type))
    if body is None:
        return None
    names = body.inputs.split(", ")
    if len(node.inputs) > len(names) and any(node.inputs[len(names) :]):
        raise RefusedError(f"its inputs from {len(names)} on are not supported")
    values = {**body.defaults, **{key: one.value for key, one in node.attributes.items()}}
    text = body.text if isinstance(body.text, str) else body.text(node, values)
    if not text:
        return None
    text = re.sub(r"(\w+)<\*>", lambda kind: f"{kind[1]}{_given(values, kind[1])}", text)
    numbers = dict.fromkeys(re.findall(r"#([\w.+-]+)", text))
    for place, number in enumerate(numbers):
        value = float(values.get(number, number) if number.isidentifier() else number)
        constant = f"real{place} = Constant<value_float = {value!r}>()"
        text = f"{constant} number{place} = CastLike(real{place}, {names[0]}) {text}"
        text = re.sub(rf"#{re.escape(number)}(?![\w.+-])", f"number{place}", text)
    function = parser.parse_function(
        f'<domain: "", opset_import: ["" : 1]> f ({body.inputs}) => ({body.outputs}) {{ {text} }}'
    )
    given = zip_longest(names, node.inputs)
    made = {name for name, value in given if value is not None}
    _leave_out(function, made)
    for place, inner in enumerate(function.node):
        inner.name = f"{name_of(node)}/{inner.op_type}_{place}"
    for place, value in enumerate(node.outputs):
        if function.output[place] not in made:
            if value.uses() or value.is_graph_output():
                raise RefusedError(
                    f"its output {place} is used, but does not follow from its inputs"
                )
            function.output[place] = function.output[0]
    return function


def _given(values: Values, kind: str) -> str:
    """Return those attributes that an operator of ONNX has, as text."""
    known = onnx.defs.get_schema(kind).attributes
    texts = [
        f"{name} = {json.dumps(list(value) if isinstance(value, tuple) else value)}"
        for name, value in values.items()
        if name in known
    ]
    return f"<{', '.join(texts)}>" if texts else ""


def _leave_out(function: onnx.FunctionProto, made: set[str]) -> None:
    """Take out of a body what reads operands that are not in ``made``; add what the rest gives."""
    for inner in list(function.node):
        given = [name if name in made else "" for name in inner.input]
        if inner.op_type in ("Add", "Concat", "Mul"):
            given = [*filter(None, given)]
            if len(given) == 1:
                inner.op_type = "Identity"
                del inner.attribute[:]
        if inner.input and not any(given[:1]):
            function.node.remove(inner)
        else:
            inner.input[:] = given
            made.update(inner.output)


FINISH_PRODUCT = " real = Cast<to = 1>(sum) step = Mul(sa, sb) r = Mul(real, step) y = Add(r, bias)"


def _fused(product: str) -> Callable[[ir.Node, Values], str]:
    """Return what makes the body of a product, a sum with ``z``, and an activation."""

    def body(node: ir.Node, values: Values) -> str:
        kind, given = values["activation"], values.get("activation_params", ())
        names = sorted(onnx.defs.get_schema(kind).attributes) if kind != "Clip" else []
        own = {n: values[f"activation_{n}"] for n in names if f"activation_{n}" in values}
        own |= zip(names, given, strict=False)
        limits = "".join(f", #{float(limit)!r}" for limit in given) if kind == "Clip" else ""
        return f"p = {product} s = Add(p, z) y = {kind}{_given(own, kind)}(s{limits})"

    return body


def _matrix_product(node: ir.Node, values: Values) -> str:
    if values.get("transBatchA", 0) or values.get("transBatchB", 0):
        raise RefusedError("transposed batches are not supported")
    text = ""
    for name, value in zip("ab", node.inputs, strict=True):
        flag, order = values.get(f"trans{name.upper()}", 0), ""
        if flag and (value is None or value.shape is None):
            return ""
        rank = len(value.shape) if value and value.shape else 0
        if flag and rank > 1:
            order = f"<perm = {[*range(rank - 2), rank - 1, rank - 2]}>"
        text += f"{name}0 = {'Transpose' if order else 'Identity'}{order}({name}) "
    return text + "p = MatMul(a0, b0) y = Mul(p, #alpha)"


def _embedding(node: ir.Node, values: Values) -> str:
    rows = "first = Constant<value_ints = [0]>() s = Shape<start = 1, end = 2>(ids) "
    rows += "p = Slice(position, first, s)"
    return f"""
    {"p = Gather(position, at)" if len(node.inputs) > 8 and node.inputs[8] else rows}
    w = Gather(word, ids) wp = Add(w, p) g = Gather(segment, kinds) sum = Add(wp, g)
    y = LayerNormalization<*>(sum, gamma, beta) last = Constant<value_ints = [1]>()
    m = Cast<to = 9>(mask) c = Cast<to = 6>(m) lengths = ReduceSum<keepdims = 0>(c, last)
    """


def _attention(node: ir.Node, values: Values, mask: int) -> str:
    """Return the attention of ``q1``, ``k1`` and ``v1``; ``mask`` is the position of the mask."""
    given = node.inputs[mask] if mask < len(node.inputs) else None
    if given is not None and given.shape is None:
        return ""
    rank = 2 if given is None or given.shape is None else len(given.shape)
    if rank not in (1, 2, 3):
        raise RefusedError(f"a mask of {rank} axes is not supported")
    lengths = """
    zero = Constant<value_int = 0>() one = Constant<value_int = 1>() d = Squeeze(columns)
    all = Range(zero, d, one) length = Cast<to = 7>(mask) last = Constant<value_int = -1>()
    wide = Unsqueeze(length, last) m0 = Less(all, wide)
    """
    causal = """
    both = Concat<axis = 0>(rows, columns) ones = Expand(#1, both) before = Sub(columns, rows)
    diagonal = Squeeze(before) t0 = Trilu<upper = 0>(ones, diagonal) t1 = Cast<to = 9>(t0)
    later = Where(t1, #0, #-3.4e38)
    """
    heads = f"q_num_heads = {values['num_heads']}, kv_num_heads = {values['num_heads']}"
    scale = f", scale = {values['scale']!r}" if values.get("scale") else ""
    return f"""
    rows = Shape<start = 1, end = 2>(q1) past = Shape<start = 2, end = 3>(pk)
    columns = Add(rows, past) {lengths if rank == 1 else "m0 = Cast<to = 9>(mask)"}
    around = Constant<value_ints = {[1] if rank == 3 else [1, 2]}>() m1 = Unsqueeze(m0, around)
    m2 = Where(m1, #0, #mask_filter_value) masks = Add(bias, m2)
    {causal if values.get("unidirectional") else ""} sum = Add(masks, later)
    y, keys, values = Attention<{heads}{scale}>(q1, k1, v1, sum, pk, pv)
    """


def _self_attention(node: ir.Node, values: Values) -> str:
    sizes, attention = values.get("qkv_hidden_sizes"), _attention(node, values, 3)
    split = "q1, k1, v1 = Split<axis = -1, num_outputs = 3>(qkv)"
    if sizes:
        split = f"sizes = Constant<value_ints = {list(sizes)}>() "
        split += "q1, k1, v1 = Split<axis = -1>(qkv, sizes)"
    return (
        attention
        and f"""
    product = MatMul(x, w) qkv = Add(product, b) first = Constant<value_ints = [0]>()
    {split} pk0, pv0 = Split<axis = 0, num_outputs = 2>(cache) pk = Squeeze(pk0, first)
    pv = Squeeze(pv0, first) {attention} ku = Unsqueeze(keys, first)
    vu = Unsqueeze(values, first) present = Concat<axis = 0>(ku, vu)
    """
    )


def _cross_attention(node: ir.Node, values: Values) -> str:
    shapes = [None if one is None else one.shape for one in node.inputs[:3]]
    if len(shapes) < 3 or any(shape is not None and len(shape) != 3 for shape in shapes):
        raise RefusedError("it takes queries, keys and values of three axes each")
    attention = _attention(node, values, 4)
    # Their ranks decide what the node means.
    return (
        ""
        if None in shapes or not attention
        else f"""
    bq, bk, bv = Split<axis = 0, num_outputs = 3>(b)
    q1 = Add(q, bq) k1 = Add(k, bk) v1 = Add(v, bv) {attention}
    """
    )


def _one_hot(node: ir.Node, values: Values) -> str:
    indices, depth = node.inputs[:2]
    if indices is None or indices.shape is None or depth is None or depth.const_value is None:
        return ""
    count, rank = int(depth.const_value.numpy().item()), len(indices.shape) + 1
    return f"""
    d = Constant<value_int = {count}>() i = Cast<to = 7>(indices) zero = Constant<value_int = 0>()
    one = Constant<value_int = 1>() behind = Add(i, d) is_behind = Less(i, zero)
    place = Where(is_behind, behind, i) {_along(values["axis"], rank)}
    at = Constant<value_ints = [{values["axis"] % rank}]>() wide = Unsqueeze(place, at)
    hit = Equal(wide, along) off = Gather(values, zero) on = Gather(values, one)
    y = Where(hit, on, off)
    """


def _along(axis: int, rank: int) -> str:
    """Return ``along``, the positions below ``d`` along an axis; it takes ``zero`` and ``one``."""
    lengths = [1] * rank
    lengths[axis] = -1
    return (
        f"all = Range(zero, d, one) lengths = Constant<value_ints = {lengths}>() "
        "along = Reshape(all, lengths)"
    )


def _hard_maximum(node: ir.Node, values: Values) -> str:
    data = node.inputs[0]
    if data is None or data.shape is None or not data.shape.is_static():
        return ""
    axis = values["axis"]
    return f"""
    d = Constant<value_int = {data.shape[axis]}>() zero = Constant<value_int = 0>()
    one = Constant<value_int = 1>() {_along(axis, len(data.shape))}
    first = ArgMax<*>(x) hit = Equal(first, along) y = CastLike(hit, x)
    """


def _length_one(node: ir.Node, values: Values) -> str:
    return f"""
    axes = Constant<value_ints = [{values["axis"]}]>() n = ReduceL{values["p"]}(x, axes)
    is_zero = Equal(n, #0) by = Where(is_zero, #1, n) y = Div(x, by)
    """


FLAT = "spmilp.flat"
"""The domain of operators of old sets that make all axes from their own on one."""

_SKIPPED = "xs = Add(x, skip) sum = Add(xs, bias) "

_BODIES: Mapping[tuple[str, str], _Body] = {
    (FLAT, "Hardmax"): _Body(
        inputs="x",
        text="f = Flatten<*>(x) h = Hardmax<axis = 1>(f) s = Shape(x) y = Reshape(h, s)",
        defaults={"axis": 1},
    ),
    ("", "Hardmax"): _Body(inputs="x", text=_hard_maximum, defaults={"axis": -1}),
    ("", "LpNormalization"): _Body(inputs="x", text=_length_one, defaults={"axis": -1, "p": 2}),
    ("", "OneHot"): _Body(inputs="indices, depth, values", text=_one_hot, defaults={"axis": -1}),
    ("", "SimplifiedLayerNormalization"): _Body(
        inputs="x, scale", text="y = RMSNormalization<*>(x, scale)"
    ),
    (MICROSOFT, "Attention"): _Body(
        inputs="x, w, b, mask, cache, bias",
        outputs="y, present",
        text=_self_attention,
        defaults={"mask_filter_value": -10000.0},
    ),
    (MICROSOFT, "BiasGelu"): _Body(inputs="a, b", text="x = Add(a, b) y = Gelu(x)"),
    (MICROSOFT, "DynamicQuantizeMatMul"): _Body(
        inputs="a, b, sb, zb, bias",
        text="q, sa, za = DynamicQuantizeLinear(a) sum = MatMulInteger(q, b, za, zb)"
        + FINISH_PRODUCT,
    ),
    (MICROSOFT, "EmbedLayerNormalization"): _Body(
        inputs="ids, kinds, word, position, segment, gamma, beta, mask, at",
        outputs="y, lengths, sum",
        text=_embedding,
        defaults={"epsilon": 1e-12},
    ),
    (MICROSOFT, "FastGelu"): _Body(
        inputs="a, b", text='x = Add(a, b) y = Gelu<approximate = "tanh">(x)'
    ),
    (MICROSOFT, "FusedConv"): _Body(inputs="x, w, b, z", text=_fused("Conv<*>(x, w, b)")),
    (MICROSOFT, "FusedGemm"): _Body(inputs="x, w, b, z", text=_fused("Gemm<*>(x, w, b)")),
    (MICROSOFT, "FusedMatMul"): _Body(inputs="a, b", text=_matrix_product, defaults={"alpha": 1.0}),
    (MICROSOFT, "Gelu"): _Body(inputs="x", text="y = Gelu(x)"),
    (MICROSOFT, "MatMulIntegerToFloat"): _Body(
        inputs="a, b, sa, sb, za, zb, bias",
        text="sum = MatMulInteger(a, b, za, zb)" + FINISH_PRODUCT,
    ),
    (MICROSOFT, "MultiHeadAttention"): _Body(
        inputs="q, k, v, b, mask, bias, pk, pv",
        outputs="y, keys, values",
        text=_cross_attention,
        defaults={"mask_filter_value": -10000.0},
    ),
    (MICROSOFT, "QuickGelu"): _Body(
        inputs="x",
        text="z = Mul(x, #alpha) s = Sigmoid(z) y = Mul(x, s)",
        defaults={"alpha": 1.702},
    ),
    (MICROSOFT, "SkipLayerNormalization"): _Body(
        inputs="x, skip, gamma, beta, bias",
        outputs="y, mean, deviation, sum",
        text=_SKIPPED + "y, mean, deviation = LayerNormalization<*>(sum, gamma, beta)",
        defaults={"epsilon": 1e-12},
    ),
    (MICROSOFT, "SkipSimplifiedLayerNormalization"): _Body(
        inputs="x, skip, gamma, bias",
        outputs="y, mean, deviation, sum",
        text=_SKIPPED + "y = RMSNormalization<*>(sum, gamma)",
        defaults={"epsilon": 1e-5},
    ),
}
"""By domain and operator type."""
