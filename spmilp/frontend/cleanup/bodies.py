"""Bodies of operators that ONNX does not define by others, or not at all, as text.

Among them are quantised ones of onnxruntime's own domain (operator specification: onnxruntime,
``docs/ContribOperators.md``).

Quantised operators become DequantizeLinear, plain operators, QuantizeLinear; where scales are
computed at run time, these become arithmetic on reals.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from itertools import chain
from math import prod
from string import Template
from typing import TypeAlias

import numpy as np
import onnx
import onnx_ir as ir
from onnx import parser

from spmilp.frontend.cleanup.nodes import RefusedError, is_used, name_of

FLAT = "spmilp.flat"
"""The domain of operators of old sets that make all axes from their own on one."""

BODIES = files(__package__).joinpath("bodies.onnxtxt").read_text("utf-8").strip().split("\n\n")
"""Functions. The syntax is ONNX's, but that ``#`` stands before a number, or an attribute that is
one, of the first operand's type, ``<*>`` for the attributes of the node that the operator has, too,
and ``$`` before what follows from the node. What reads an operand that is left out is left out,
too; a sum or Concat goes on without it, and a result is not quantised without a scale.
"""

ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"})
"""Those of LSTM and GRU that are operators without parameters of their own."""

ROUNDS_WITH_ZERO = "spmilp.rounds_with_zero"
"""Mark of a QuantizeLinear that adds the zero point before it rounds: those of onnxruntime's
QLinearAdd, QLinearMul and QLinearAveragePool."""

FIXED_POINT = "spmilp.fixed_point"
"""Mark of a QuantizeLinear before which all is computed in fixed point, as TensorFlow Lite does."""

WEIGHTED = frozenset({"Conv", "MatMul", "QGemm"})
"""Quantised operators whose second operand may have a scale for each channel."""

_TEXTS = {text.split(maxsplit=1)[0]: text.split(maxsplit=1)[1] for text in BODIES}


def written_body(node: ir.Node) -> onnx.FunctionProto | None:
    """Return the body of a node's operator; ``None`` if there is none, or a shape is not known.

    Raises a ``RefusedError`` with the reason if the node asks for what the body does not do.
    """
    kind = f"{node.domain}.{node.op_type}".removeprefix(".")
    if kind not in _TEXTS:
        return None
    find = _PARTS.get(node.op_type)
    parts: Parts = {} if find is None else find(node)
    if parts is None:
        return None
    text = re.sub(r"(\w+)<\*>", _passed_on, _text(kind, **parts))
    first = re.findall(r"\((\w+)", text)[0]
    for place, number in enumerate(sorted({*re.findall(r"#([\w.-]+)", text)}, reverse=True)):
        value = f": float = @{number}" if number.isidentifier() else f" = {float(number)}"
        real, typed = f"real{place}", f"number{place}"
        own = f"{{ {real} = Constant<value_float{value}>() {typed} = CastLike({real}, {first})"
        text = text.replace(f"#{number}", typed).replace("{", own, 1)
    function = parser.parse_function(f'<domain: "", opset_import: ["" : 1]> body {text}')
    handled = {*re.findall(r"@(\w+)", text), *_READ}
    unknown = sorted(n for n, one in node.attributes.items() if one.value and n not in handled)
    if unknown:
        raise RefusedError(f"attribute {unknown[0]} is not supported")
    given = len(node.inputs)
    if any(node.inputs[len(function.input) :]):
        raise RefusedError(f"its inputs from {len(function.input)} on are not supported")
    made = {n for at, n in enumerate(function.input) if at < given and node.inputs[at] is not None}
    _leave_out(function, made)
    for place, result in enumerate(node.outputs):
        if function.output[place] not in made:
            if is_used(result):
                raise RefusedError(f"its output {place} does not follow from the inputs given")
            function.output[place] = function.output[0]
    _begin_names(function, name_of(node))
    return function


def _begin_names(function: onnx.FunctionProto, name: str) -> None:
    """Let names of nodes and values begin with a node's, which what gives ``p``, or all, has."""
    own = {value: f"{name}/{value}" for inner in function.node for value in inner.output}
    for place, inner in enumerate(function.node):
        is_main = inner.output[0] == "p" or len(function.node) == 1
        inner.name = name if is_main else f"{name}/{inner.op_type}_{place}"
        inner.input[:] = [own.get(value, value) for value in inner.input]
        inner.output[:] = [own[value] for value in inner.output]
    function.output[:] = [own.get(value, value) for value in function.output]


def _passed_on(kind: re.Match[str]) -> str:
    known = onnx.defs.get_schema(kind[1]).attributes
    types = {name: str(one.type).rpartition(".")[2].lower() for name, one in known.items()}
    return f"{kind[1]}<{', '.join(f'{name}: {of} = @{name}' for name, of in types.items())}>"


def _leave_out(function: onnx.FunctionProto, made: set[str]) -> None:
    """Take out of a body what reads operands that are not in ``made``; add what the rest gives."""
    for inner in list(function.node):
        given = [name if name in made else "" for name in inner.input]
        if inner.op_type in ("Add", "Concat", "QuantizeLinear", "Sub"):
            given = [*filter(None, given)]
            if len(given) == 1:
                inner.op_type = "Identity"
                del inner.attribute[:]
        needs_all = inner.op_type in ("Gather", "Mul")
        if inner.input and (not any(given[:1]) or (needs_all and "" in given)):
            function.node.remove(inner)
        else:
            inner.input[:] = given
            made.update(inner.output)


Parts: TypeAlias = Mapping[str, object] | None
"""What ``$`` stands before; ``None`` as long as a shape is not known."""


def _text(name: str, **given: object) -> str:
    return Template(_TEXTS[name]).substitute(given)


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


def _turned(node: ir.Node) -> Parts:
    """Return what brings the last axis behind the first one, and what brings it back."""
    shape = _shape(node, 0)
    if node.op_type != "NhwcMaxPool" and not node.attributes.get_int("channels_last", 0):
        return {"into": "Identity", "out": "Identity"}
    if shape is None:
        return None
    into, out = [0, len(shape) - 1, *range(1, len(shape) - 1)], [0, *range(2, len(shape)), 1]
    return {"into": f"Transpose<perm = {into}>", "out": f"Transpose<perm = {out}>"}


def _extremes(node: ir.Node) -> Parts:
    """Return how to find the least and greatest element: along the longest axis last, in tiles."""
    shape = _shape(node, 0)
    if shape is None or not shape.is_static():
        return None
    lengths = shape.numpy() or (1,)
    others = [axis for axis in range(len(lengths)) if axis != lengths.index(max(lengths))]
    how = "{}<keepdims = 0>(x, others)" if others else "Identity(x)"
    most = how.format("ReduceMax")
    return {"others": others or [0], "least": how.format("ReduceMin"), "most": most}


def _computed(node: ir.Node) -> Parts:
    """Return the limits of integers whose scale is computed; ``None`` where it is constant."""
    if node.domain:
        return {}
    if all(value is None or value.const_value is not None for value in node.inputs[1:3]):
        return None
    shape = _shape(node, 1)
    if shape is None or not shape.is_static() or prod(shape.numpy()) != 1:
        raise RefusedError("several scales that are computed at run time are not supported")
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    dtype = ir.DataType.UINT8 if zero is None else zero.dtype
    if dtype is None:
        return None
    limits = np.iinfo(dtype.numpy())
    return {"low": limits.min, "high": limits.max, "type": dtype.value}


def _plain(node: ir.Node) -> Parts:
    """Return what is around the plain operator of a quantised one, whose scales are constants."""
    kind, given = node.op_type.removeprefix("QLinear"), len(node.inputs)
    places = (1, 4, 6) if given > 5 else (1, 3)
    if kind in ("Concat", "QGemm"):
        places = (1, 4, 7) if kind == "QGemm" else (*range(3, given, 3), 0)
    for place in places:
        value = node.inputs[place] if place < given else None
        scale = None if value is None else value.const_value
        if scale is None and (value is not None or place != places[-1]):
            raise RefusedError("its scales are not constants; quantise the model statically")
        if scale is not None and scale.size > 1 and not (kind in WEIGHTED and place == 4):
            raise RefusedError("several scales of anything but its weights are not supported")
    if kind == "Softmax" and node.attributes.get_int("opset", 13) < 13:
        raise RefusedError(
            "Softmax of operator sets before 13 is not supported; convert the model to 13"
        )
    if kind == "Softmax" and scale is not None and scale.numpy() > 1:
        raise RefusedError("its result has a scale greater than 1, so that all of it would be zero")
    if kind in ("Add", "AveragePool", "Mul"):
        node.metadata_props[ROUNDS_WITH_ZERO] = "1"
    numbers, turned = range(len(places) - 1), _turned(node)
    return turned and {
        **turned,
        "axis": 1 - node.attributes.get_int("transB", 0),
        "operands": ", ".join(f"x{n}, s{n}, z{n}" for n in numbers),
        "reals": " ".join(f"r{n} = DequantizeLinear(x{n}, s{n}, z{n})" for n in numbers),
        "names": ", ".join(f"r{n}" for n in numbers),
    }


def _recurrence(node: ir.Node) -> Parts:
    """Return the steps of an LSTM or GRU, one direction after the other.

    The products with the input do not depend on the state: there is one for all steps. Initial
    states that are zero are left out.
    """
    x, r, kind = _shape(node, 0), _shape(node, 2), node.op_type
    if x is None or r is None or not (x.is_static() and r.is_static()):
        return None
    axis = node.attributes.get_int("layout", 0)
    steps, hidden = x.numpy()[axis], r.numpy()[2]
    for place, value in enumerate(node.inputs):
        known = None if value is None else value.const_value
        if place == 4 and value and (known is None or np.any(known.numpy() != steps)):
            raise RefusedError(f"sequence_lens must be constant, {steps} for every sequence")
        if place in (5, 6) and known is not None and not known.numpy().any():
            node.replace_input_with(place, None)
    if any(node.inputs[7:]):
        raise RefusedError("peephole weights (input P) are not supported")
    way = node.attributes.get_string("direction", "forward")
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[way]
    default = ("Sigmoid", "Tanh", "Tanh") if kind == "LSTM" else ("Sigmoid", "Tanh")
    chosen = node.attributes.get_strings("activations", len(ways) * default)
    if len(chosen) < len(ways) * len(default) or not {*chosen} <= ACTIVATIONS:
        raise RefusedError(f"activations {', '.join(chosen)} are not supported")
    linear = "_linear" * node.attributes.get_int("linear_before_reset", 0)
    gates = 4 if kind == "LSTM" else 3
    numbers = {**{f"n{k}": k for k in range(3)}, "at": axis, "last": -1}
    numbers |= {f"p{k}": k * hidden for k in range(2 * gates + 1)}
    made = [f"{name} = Constant<value_ints = [{n}]>()" for name, n in numbers.items()]
    ends, times = [], range(steps)
    for d, is_backwards in enumerate(ways):
        given = {"d": d, "next": d + 1, "gates": gates, "both": 2 * gates, "axis": axis}
        total = f"Add(with{d}, rb{d})" if kind == "LSTM" else f"Identity(with{d})"
        parts = ", ".join(f"part{d}_{t}" for t in times)
        made.append(_text("recurrence", **given, steps=steps, sum=total, parts=parts))
        used = dict(zip(("outer", "inner", "of_cell"), chosen[d * len(default) :], strict=False))
        before = str(d)
        for t in reversed(times) if is_backwards else times:
            states = {"h": f"state{before}", "c": f"cell{before}"}
            before = f"{d}_{t}"
            made.append(_text(f"{kind}{linear}_step", d=d, t=before, **states, **used))
        ends.append(before)

    def side_by_side(names: Iterable[str]) -> str:
        return f"Concat<axis = {axis}>({', '.join(f'wide_{name}' for name in names)})"

    rows = [[f"state{d}_{t}" for d in range(len(ways))] for t in times]
    wide = [*chain(*rows), *(f"cell{end}" for end in ends)]
    made += [f"wide_{name} = Unsqueeze({name}, at)" for name in wide]
    for t, row in enumerate(rows):
        made += [f"row{t} = {side_by_side(row)}", f"wide_row{t} = Unsqueeze(row{t}, at)"]
    made += [f"y = {side_by_side(f'row{t}' for t in times)}"]
    made += [f"yh = {side_by_side(f'state{end}' for end in ends)}"]
    made += [f"yc = {side_by_side(f'cell{end}' for end in ends)}"]
    return {"steps": " ".join(made)}


_PARTS: Mapping[str, Callable[[ir.Node], Parts]] = {
    "IsInf": _infinite,
    "LpNormalization": lambda node: {"p": node.attributes.get_int("p", 2)},
    "NhwcMaxPool": _turned,
    "OneHot": _positions,
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), _computed),
    **{name.rpartition(".")[2]: _plain for name in _TEXTS if "QLinear" in name},
    **dict.fromkeys(("GRU", "LSTM"), _recurrence),
    "DynamicQuantizeLinear": _extremes,
    "QGemm": _plain,
}

_READ = frozenset(
    {
        *("activations", "axis", "channels_last", "detect_negative", "detect_positive"),
        *("direction", "hidden_size", "layout", "linear_before_reset", "opset", "p"),
        *("transA", "transB"),
    }
)
"""Attributes that these functions read."""
