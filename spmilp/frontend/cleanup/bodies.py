"""Bodies of operators that ONNX does not define by others, or not at all, as text.

Among them are those that onnxruntime's optimiser writes, of its own domain (operator specification:
onnxruntime, ``docs/ContribOperators.md``), and one that it writes as ONNX's.
"""

import re
from collections.abc import Callable, Mapping
from string import Template
from typing import TypeAlias

import onnx
import onnx_ir as ir
from onnx import parser

from spmilp.frontend.cleanup.nodes import MICROSOFT, RefusedError, name_of

FLAT = "spmilp.flat"
"""The domain of operators of old sets that make all axes from their own on one."""

BODIES = {
    FLAT: """
Hardmax <axis: int = 1> (x) => (y) {
    f = Flatten<*>(x) h = Hardmax<axis = 1>(f) s = Shape(x) y = Reshape(h, s) }
""",
    "": """
Hardmax <axis: int = -1> (x) => (y) {
    s = Shape(x) at = Constant<value_int: int = @axis>() n = Gather(s, at)
    ends = Constant<value_floats = [0.0, 1.0]>() off_on = CastLike(ends, x)
    first = ArgMax<axis: int = @axis, keepdims = 0>(x)
    y = OneHot<axis: int = @axis>(first, n, off_on) }

IsInf (x) => (y) { infinite = Div(#$infinite, #0) y = Equal(x, infinite) }

LpNormalization <axis: int = -1> (x) => (y) {
    axis = Constant<value_int: int = @axis>() flat = Constant<value_ints = [-1]>()
    axes = Reshape(axis, flat) n = ReduceL$p(x, axes) is_zero = Equal(n, #0)
    by = Where(is_zero, #1, n) y = Div(x, by) }

OneHot (indices, depth, values) => (y) {
    zero = Constant<value_int = 0>() one = Constant<value_int = 1>()
    n = Constant<value_int = $count>() lengths = Constant<value_ints = $lengths>()
    all = Range(zero, n, one) along = Reshape(all, lengths)
    i = Cast<to = 7>(indices) behind = Add(i, n) is_behind = Less(i, zero)
    place = Where(is_behind, behind, i) at = Constant<value_ints = [$axis]>()
    wide = Unsqueeze(place, at) hit = Equal(wide, along)
    off = Gather(values, zero) on = Gather(values, one) y = Where(hit, on, off) }

SimplifiedLayerNormalization (x, scale) => (y) { y = RMSNormalization<*>(x, scale) }
""",
    MICROSOFT: """
Attention <mask_filter_value: float = -10000.0> (x, w, b, mask, cache, bias) => (y, present) {
    product = MatMul(x, w) qkv = Add(product, b) first = Constant<value_ints = [0]>()
    q1, k1, v1 = Split<axis = -1, num_outputs = 3>(qkv)
    pk0, pv0 = Split<axis = 0, num_outputs = 2>(cache) pk = Squeeze(pk0, first)
    pv = Squeeze(pv0, first) $attention ku = Unsqueeze(keys, first)
    vu = Unsqueeze(values, first) present = Concat<axis = 0>(ku, vu) }

BiasGelu (a, b) => (y) { x = Add(a, b) y = Gelu(x) }

DynamicQuantizeMatMul (a, b, sb, zb, bias) => (y) {
    q, sa, za = DynamicQuantizeLinear(a) sum = MatMulInteger(q, b, za, zb)
    real = Cast<to = 1>(sum) step = Mul(sa, sb) r = Mul(real, step) y = Add(r, bias) }

EmbedLayerNormalization <epsilon: float = 1e-12>
    (ids, kinds, word, position, segment, gamma, beta, mask, at) => (y, lengths, sum) {
    first = Constant<value_ints = [0]>() s = Shape<start = 1, end = 2>(ids)
    p0 = Slice(position, first, s) p1 = Gather(position, at) p = Identity($place)
    w = Gather(word, ids) wp = Add(w, p) g = Gather(segment, kinds) sum = Add(wp, g)
    y = LayerNormalization<*>(sum, gamma, beta) last = Constant<value_ints = [1]>()
    m = Cast<to = 9>(mask) c = Cast<to = 6>(m) lengths = ReduceSum<keepdims = 0>(c, last) }

FastGelu (a, b) => (y) { x = Add(a, b) y = Gelu<approximate = "tanh">(x) }

FusedConv (x, w, b, z) => (y) { p = Conv<*>(x, w, b) s = Add(p, z) y = $activation }

FusedGemm (x, w, b) => (y) { s = Gemm<*>(x, w, b) y = $activation }

FusedMatMul <alpha: float = 1.0> (a, b) => (y) {
    a0 = $a b0 = $b p = MatMul(a0, b0) y = Mul(p, #alpha) }

Gelu (x) => (y) { y = Gelu(x) }

MatMulIntegerToFloat (a, b, sa, sb, za, zb, bias) => (y) {
    sum = MatMulInteger(a, b, za, zb) real = Cast<to = 1>(sum) step = Mul(sa, sb)
    r = Mul(real, step) y = Add(r, bias) }

MultiHeadAttention <mask_filter_value: float = -10000.0>
    (q, k, v, b, mask, bias, pk, pv) => (y, keys, values) {
    bq, bk, bv = Split<axis = 0, num_outputs = 3>(b)
    q1 = Add(q, bq) k1 = Add(k, bk) v1 = Add(v, bv) $attention }

NhwcMaxPool (x) => (y) {
    t = Transpose<perm = $first>(x) p = MaxPool<*>(t) y = Transpose<perm = $last>(p) }

QuickGelu <alpha: float = 1.702> (x) => (y) { z = Mul(x, #alpha) s = Sigmoid(z) y = Mul(x, s) }

SkipLayerNormalization <epsilon: float = 1e-12>
    (x, skip, gamma, beta, bias) => (y, mean, deviation, sum) {
    xs = Add(x, skip) sum = Add(xs, bias)
    y, mean, deviation = LayerNormalization<*>(sum, gamma, beta) }

SkipSimplifiedLayerNormalization <epsilon: float = 1e-5>
    (x, skip, gamma, bias) => (y, mean, deviation, sum) {
    xs = Add(x, skip) sum = Add(xs, bias) y = RMSNormalization<*>(sum, gamma) }
""",
}
"""By domain. The syntax is ONNX's, but that ``#`` stands before a number, or an attribute that is
one, of the first operand's type, ``<*>`` for the attributes of the node that the operator has, too,
and ``$`` before what follows from the node. What reads an operand that is left out is left out,
too; a sum, product or Concat goes on without it.
"""

ATTENTION = Template("""
    rows = Shape<start = 1, end = 2>(q1) past = Shape<start = 2, end = 3>(pk)
    columns = Add(rows, past) zero = Constant<value_int = 0>() one = Constant<value_int = 1>()
    d = Squeeze(columns) all = Range(zero, d, one) last = Constant<value_ints = [-1]>()
    long = Cast<to = 7>(mask) wide = Unsqueeze(long, last) below = Less(all, wide)
    other = Cast<to = 9>(mask) around = Constant<value_ints = $around>()
    m1 = Unsqueeze($mask, around) m2 = Where(m1, #0, #mask_filter_value) both = Add(bias, m2)
    y, keys, values = Attention<$how>(q1, k1, v1, both, pk, pv)
""")

_TEXTS = {
    (domain, text.split()[0]): text
    for domain, texts in BODIES.items()
    for text in texts.strip().split("\n\n")
}


def written_body(node: ir.Node) -> onnx.FunctionProto | None:
    """Return the body of a node's operator; ``None`` if there is none, or a shape is not known.

    Raises a ``RefusedError`` with the reason if the node asks for what the body does not do.
    """
    text = _TEXTS.get((node.domain, node.op_type))
    find = _PARTS.get(node.op_type) if text is not None else None
    parts: Parts = {} if find is None else find(node)
    if text is None or parts is None:
        return None
    text = re.sub(r"(\w+)<\*>", _passed_on, Template(text).substitute(parts))
    first = re.findall(r"\((\w+)", text)[0]
    for place, number in enumerate(sorted({*re.findall(r"#([\w.-]+)", text)}, reverse=True)):
        value = f": float = @{number}" if number.isidentifier() else f" = {float(number)}"
        real, typed = f"real{place}", f"number{place}"
        own = f"{{ {real} = Constant<value_float{value}>() {typed} = CastLike({real}, {first})"
        text = text.replace(f"#{number}", typed).replace("{", own, 1)
    function = parser.parse_function(f'<domain: "", opset_import: ["" : 1]> {text}')
    handled = {*re.findall(r"@(\w+)", text), *_READ}
    unknown = sorted(n for n, one in node.attributes.items() if one.value and n not in handled)
    if unknown:
        raise RefusedError(f"attribute {unknown[0]} is not supported")
    given = len(node.inputs)
    if any(node.inputs[len(function.input) :]):
        raise RefusedError(f"its inputs from {len(function.input)} on are not supported")
    made = {n for at, n in enumerate(function.input) if at < given and node.inputs[at] is not None}
    _leave_out(function, made)
    for place, inner in enumerate(function.node):
        inner.name = f"{name_of(node)}/{inner.op_type}_{place}"
    for place, result in enumerate(node.outputs):
        if function.output[place] not in made:
            if result.uses() or result.is_graph_output():
                raise RefusedError(f"its output {place} does not follow from the inputs given")
            function.output[place] = function.output[0]
    return function


def _passed_on(kind: re.Match[str]) -> str:
    known = onnx.defs.get_schema(kind[1]).attributes
    types = {name: str(one.type).rpartition(".")[2].lower() for name, one in known.items()}
    return f"{kind[1]}<{', '.join(f'{name}: {of} = @{name}' for name, of in types.items())}>"


def _leave_out(function: onnx.FunctionProto, made: set[str]) -> None:
    """Take out of a body what reads operands that are not in ``made``; add what the rest gives."""
    for inner in list(function.node):
        given = [name if name in made else "" for name in inner.input]
        if inner.op_type in ("Add", "Concat", "Mul"):
            given = [*filter(None, given)]
            if len(given) == 1:
                inner.op_type = "Identity"
                del inner.attribute[:]
        if inner.input and (not any(given[:1]) or (inner.op_type == "Gather" and "" in given)):
            function.node.remove(inner)
        else:
            inner.input[:] = given
            made.update(inner.output)


Parts: TypeAlias = Mapping[str, object] | None
"""What ``$`` stands before; ``None`` as long as a shape is not known."""


def _shape(node: ir.Node, position: int) -> ir.Shape | None:
    value = node.inputs[position] if position < len(node.inputs) else None
    return None if value is None else value.shape


def _positions(node: ir.Node) -> Parts:
    """Return how many positions there are along which axis of the result."""
    shape, depth = _shape(node, 0), node.inputs[1].const_value if node.inputs[1] else None
    if shape is None or depth is None:
        return None
    axis = node.attributes.get_int("axis", -1) % (len(shape) + 1)
    lengths = [-1 if place == axis else 1 for place in range(len(shape) + 1)]
    return {"count": int(depth.numpy().item()), "lengths": lengths, "axis": axis}


def _infinite(node: ir.Node) -> Parts:
    # What finds both is left alone. Where none is asked for, nothing is equal to 0 / 0.
    low, high = (node.attributes.get_int(f"detect_{one}", 1) for one in ("negative", "positive"))
    return None if low and high else {"infinite": 1 if high else -1 if low else 0}


def _orders(node: ir.Node) -> Parts:
    rank = 2 + len(node.attributes["kernel_shape"].as_ints())
    return {"first": [0, rank - 1, *range(1, rank - 1)], "last": [0, *range(2, rank), 1]}


def _activation(node: ir.Node) -> Parts:
    kind, given = node.attributes["activation"].as_string(), tuple[float, ...]()
    if "activation_params" in node.attributes:
        given = tuple(node.attributes["activation_params"].as_floats())
    if kind == "Clip":
        low, high = map(float, given)
        return {"activation": f"Clip(s, #{low}, #{high})"}
    names = sorted(onnx.defs.get_schema(kind).attributes)
    own = dict(zip(names, given, strict=False))
    for name in names:
        if f"activation_{name}" in node.attributes:
            own[name] = node.attributes[f"activation_{name}"].as_float()
    how = ", ".join(f"{name} = {value}" for name, value in own.items())
    return {"activation": f"{kind}<{how}>(s)" if how else f"{kind}(s)"}


def _swapped(node: ir.Node) -> Parts:
    parts = {}
    for position, name in enumerate("ab"):
        shape, parts[name] = _shape(node, position), f"Identity({name})"
        if node.attributes.get_int(f"trans{name.upper()}", 0):
            if shape is None:
                return None
            axes = [*range(len(shape))]
            axes[-2:] = axes[:-3:-1]
            parts[name] = f"Transpose<perm = {axes}>({name})"
    return parts


def _attention(node: ir.Node) -> Parts:
    own = node.op_type == "Attention"
    mask, shape = (3, _shape(node, 3)) if own else (4, _shape(node, 4))
    shapes = [shape] if len(node.inputs) > mask and node.inputs[mask] is not None else []
    shapes += [] if own else [_shape(node, position) for position in range(3)]
    if None in shapes:
        return None
    ranks = [len(one) for one in shapes if one is not None]
    rank = 2 if shape is None else ranks[0]
    if rank > 3 or (not own and ranks[-3:] != [3, 3, 3]):
        raise RefusedError(f"operands of {ranks} axes are not supported")
    if len({*node.attributes.get_ints("qkv_hidden_sizes", ())}) > 1:
        raise RefusedError("queries, keys and values of different sizes are not supported")
    heads = node.attributes.get_int("num_heads", 1)
    causal, scale = (node.attributes.get(name) for name in ("unidirectional", "scale"))
    how = f"q_num_heads = {heads}, kv_num_heads = {heads}"
    how += f", is_causal = {causal.as_int()}" if causal else ""
    how += f", scale = {scale.as_float()}" if scale and scale.as_float() else ""
    around = [1] if rank == 3 else [1, 2]
    given = {"around": around, "mask": "below" if rank == 1 else "other", "how": how}
    return {"attention": ATTENTION.substitute(given)}


_PARTS: Mapping[str, Callable[[ir.Node], Parts]] = {
    "Attention": _attention,
    "EmbedLayerNormalization": lambda node: {"place": f"p{int(any(node.inputs[8:]))}"},
    "FusedConv": _activation,
    "FusedGemm": _activation,
    "FusedMatMul": _swapped,
    "IsInf": _infinite,
    "LpNormalization": lambda node: {"p": node.attributes.get_int("p", 2)},
    "MultiHeadAttention": _attention,
    "NhwcMaxPool": _orders,
    "OneHot": _positions,
}

_READ = frozenset(
    {
        *("activation", "activation_alpha", "activation_beta", "activation_gamma"),
        *("activation_params", "axis", "detect_negative", "detect_positive", "num_heads", "p"),
        *("qkv_hidden_sizes", "scale", "transA", "transB", "unidirectional"),
    }
)
"""Attributes that these functions read."""
