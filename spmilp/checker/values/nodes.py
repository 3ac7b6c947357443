"""The model's nodes one by one, on the values that a plan has computed, with bounds of rounding.

A node reads the plan's own values of a tensor where there are any, so that errors do not add up
from node to node, and its result may differ from the plan's by what the rounding of this node
allows. Between two such tensors each value has a bound beside it. It is what the results change by
when the inputs change by their bounds and by a few units in the last place: a tie that may be
rounded either way, a comparison that may go either way, and digits that cancel show by themselves.

Sums of products have bounds of their own, by the sum of the magnitudes and the number of terms (N.
Higham and T. Mary, A New Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput.
41, 2019).
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from spmilp.checker.values.kernels.call import Array

SUMS = frozenset(
    {
        *("AveragePool", "Conv", "ConvTranspose", "CumSum", "Einsum", "FusedMatMul", "Gemm"),
        *("GlobalAveragePool", "MatMul", "ReduceL1", "ReduceMean", "ReduceSum", "Sum"),
    }
)
"""Operators that are linear in each input, with coefficients of one sign."""

CHOICES = frozenset({"ArgMax", "ArgMin", "TopK"})
"""Operators whose last result says where elements of the input stand."""

EXACT = CHOICES | {
    *("Concat", "Expand", "Flatten", "Gather", "GlobalMaxPool", "Identity", "Max", "MaxPool"),
    *("Min", "Pad", "Relu", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose"),
    *("ReduceMax", "ReduceMin", "Unsqueeze"),
}
"""Operators that round nothing."""

OF_MANY_TERMS = frozenset(
    {
        *("GlobalLpPool", "LpPool", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceProd"),
        "ReduceSumSquare",
    }
)
"""Other operators whose results are sums, or products, of many terms."""

AROUND_ONE = frozenset(
    {
        *("Celu", "Elu", "Erf", "GRU", "Gelu", "LSTM", "Loop", "Mish", "QuickGelu", "RNN", "Scan"),
        *("Selu", "Sigmoid", "Softplus", "Swish", "Tanh"),
    }
)
"""Operators that compute with numbers around 1 however small their results are: exp(x) - 1."""

NORMALISATIONS = frozenset({"GroupNormalization", "InstanceNormalization", "LayerNormalization"})
"""Operators whose mean cancels."""

UNITS = 8
"""By how many units in the last place inputs are changed, and results may differ: onnxruntime and
NumPy compute exp, erf and tanh to about 4."""

PER_TERM = 4
"""How many units of a sum of magnitudes for each square root of its terms: four standard deviations
of errors that are independent. Half a unit for each term comes on top: terms that are all the same
are all rounded the same way."""

PRODUCTS_OF_BYTES = frozenset({"MatMulInteger", "QGemm", "QLinearConv", "QLinearMatMul"})
"""Operators of which onnxruntime may cut off sums of two products at 16 bits, on x86 processors
without an instruction for them (VNNI)."""


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """Values of a tensor, and how far another sound computation of them may be.

    The bound of an element is not negative, perhaps infinite; ``None`` where all are exact.
    ``varies`` says whether they depend on the network's inputs.
    """

    values: Array
    bound: NDArray[np.float64] | None = None
    varies: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Mismatch:
    """The element of a result that differs most from its node's, measured by what is allowed.

    Its position is counted through. Rounding explains what is ``allowed``; the ``share`` is the
    difference divided by that, at most 1 if rounding explains it.
    """

    node: onnx.NodeProto
    tensor: str
    position: int
    found: float
    expected: float
    allowed: float
    share: float


Computed: TypeAlias = Mapping[str, tuple[Array, NDArray[np.bool_]]]
"""What a plan has computed of each tensor, and of which of its elements."""


def compare_nodes(
    model: onnx.ModelProto, inputs: Mapping[str, Array], computed: Computed
) -> Iterator[Mismatch]:
    """Run the model's nodes in their order, and compare each result that the plan has, too.

    Passed over are tensors that are of another size in the model or not there, and nodes that
    neither onnxruntime nor ONNX's reference runs alone.
    """
    known = {name: Bounded(values) for name, values in inputs.items()}
    # Branches may use a name for values of their own.
    written = Counter(_names_written(model.graph))
    computed = {name: one for name, one in computed.items() if written[name] == 1}
    for node in _nodes(model.graph, known):
        names = sorted(_names_read(node, known))
        results = _results(_Node(model, node, {name: known[name] for name in names}))
        known.update(zip(filter(None, node.output), results, strict=False))
        for name in node.output:
            if name not in computed:
                continue
            values, there = computed[name]
            if name in known and known[name].values.size == values.size > 0:
                expected = known[name]
                values = values.reshape(expected.values.shape).astype(expected.values.dtype)
                there = there.reshape(values.shape)
                allowed = _allowed(node, known, values, expected)
                yield worst(node, name, values, expected.values, np.where(there, allowed, np.inf))
                rest = None if expected.bound is None else np.where(there, 0.0, expected.bound)
                known[name] = Bounded(np.where(there, values, expected.values), rest)
            elif there.all():
                known[name] = Bounded(values)


def _names_written(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.output
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _names_written(inner)


def _nodes(graph: onnx.GraphProto, known: dict[str, Bounded]) -> Iterator[onnx.NodeProto]:
    """Yield a graph's nodes in their order; of an If whose condition is known, its branch's."""
    for one in graph.initializer:
        known.setdefault(one.name, Bounded(numpy_helper.to_array(one), varies=False))
    for node in graph.node:
        condition = known.get(node.input[0]) if node.op_type == "If" else None
        if condition is None:
            yield node
            continue
        branch = "then_branch" if condition.values.item() else "else_branch"
        inner = next(one.g for one in node.attribute if one.name == branch)
        yield from _nodes(inner, known)
        for given, name in zip(inner.output, node.output, strict=True):
            yield helper.make_node("Identity", [given.name], [name], name=node.name)


def _names_read(node: onnx.NodeProto, known: Container[str]) -> set[str]:
    """Return the names of known tensors that a node reads, or a graph within it."""
    names = {name for name in node.input if name in known}
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            names.update(*(_names_read(inner, known) for inner in graph.node))
            names.update(one.name for one in graph.output if one.name in known)
    return names


def _allowed(
    node: onnx.NodeProto, known: Mapping[str, Bounded], values: Array, expected: Bounded
) -> NDArray[np.float64]:
    """Return how much each element may differ from the node's result."""
    bound = np.zeros(values.shape) if expected.bound is None else expected.bound
    if node.op_type not in CHOICES or values.dtype != np.int64:
        return bound
    source, given = known[node.input[0]], {one.name: one.i for one in node.attribute}
    if source.bound is None:
        return np.zeros(bound.shape)
    axis = given.get("axis", -1 if node.op_type == "TopK" else 0)
    both = [values.clip(0, source.values.shape[axis] - 1), expected.values]
    if given.get("keepdims", 1) == 0:
        both = [np.expand_dims(each, axis) for each in both]
    one, other = (np.take_along_axis(source.values, each, axis) for each in both)
    reach = sum(np.take_along_axis(source.bound, each, axis) for each in both)
    # Of equal elements that are exact the first counts, or the last where the node says so.
    near = ((distance(one, other) <= reach) & (reach > 0)).reshape(bound.shape) & (values >= 0)
    return np.where(near & (values < source.values.shape[axis]), np.inf, 0.0)


def worst(
    node: onnx.NodeProto, name: str, found: Array, expected: Array, allowed: Array
) -> Mismatch:
    """Return the element that differs most, measured by what is allowed."""
    apart = distance(found, expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where((apart == 0) | (allowed == np.inf), 0.0, apart / allowed)
    at = int(share.argmax())
    numbers = (float(each.flat[at]) for each in (found, expected, allowed, share))
    return Mismatch(node, name, at, *numbers)


def distance(one: Array, other: Array) -> NDArray[np.float64]:
    """Return how far elements are apart; infinitely where only one of the two is finite.

    The largest number of a float type and infinity are the same: both say that it is too small.
    """
    real, wanted = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.abs(real - wanted)
    if not np.isfinite(apart).all():
        far = np.finfo(np.float16 if other.dtype == np.float16 else np.float32).max
        same = np.clip(real, -far, far) == np.clip(wanted, -far, far)
        same |= np.isnan(real) & np.isnan(wanted)
        apart = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))
    return apart


class _Node:
    """A node that onnxruntime runs alone, or ONNX's reference where it cannot."""

    def __init__(
        self, model: onnx.ModelProto, node: onnx.NodeProto, inputs: Mapping[str, Bounded]
    ) -> None:
        self.kind = node.op_type
        self.inputs = inputs
        self.operands = [inputs[name] for name in node.input if name in inputs]
        self.attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        self.coordinates = node.input[1:] if node.op_type in ("Resize", "Upsample") else ()
        # Kernels want some integers as constants: weights, zero points, axes.
        self._free = [name for name, one in inputs.items() if one.varies or _is_float(one.values)]
        constants = [
            numpy_helper.from_array(one.values, name)
            for name, one in inputs.items()
            if name not in self._free
        ]
        given = []
        for name in self._free:
            values = inputs[name].values
            kind = helper.np_dtype_to_tensor_dtype(values.dtype)
            given.append(helper.make_tensor_value_info(name, kind, values.shape))
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        alone = onnx.ModelProto(
            graph=helper.make_graph([_in_order(node)], "alone", given, results, constants),
            functions=model.functions,
            opset_import=model.opset_import,
            ir_version=model.ir_version,
        )
        self._session = _session(alone)

    def run(self, changed: Mapping[str, Array]) -> list[Array]:
        """Return the results on the inputs, some of them changed.

        Raises any exception of either library if it cannot.
        """
        feeds = {name: changed.get(name, self.inputs[name].values) for name in self._free}
        found = self._session.run(None, {name: np.asarray(each) for name, each in feeds.items()})
        return [np.asarray(one) for one in found]


def _in_order(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return a TopK that sorts its results; one that leaves their order free may give that, too."""
    if node.op_type != "TopK":
        return node
    ordered = helper.make_node("TopK", node.input, node.output)
    ordered.attribute.extend(one for one in node.attribute if one.name != "sorted")
    return ordered


def _session(model: onnx.ModelProto) -> Any:
    import onnxruntime
    from onnx.reference import ReferenceEvaluator

    options = session_options(model.graph)
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    # Every exception of onnxruntime's is a class of its own below Exception.
    except Exception:
        return ReferenceEvaluator(model)


def _results(node: _Node) -> list[Bounded]:
    """Return a node's results with their bounds; none if it cannot run alone."""
    try:
        plain = node.run({})
    except Exception:
        return []
    if not any(one.varies for one in node.inputs.values()):
        return [Bounded(values, varies=False) for values in plain]
    if node.kind in SUMS and _is_float(plain[0]):
        return [Bounded(plain[0], _bound_of_sum(node, plain[0]))]
    bounds = _bounds_of_changes(node, plain)
    return [
        Bounded(values, bound if bound.any() else None)
        for values, bound in zip(plain, bounds, strict=True)
    ]


def _bound_of_sum(node: _Node, plain: Array) -> NDArray[np.float64]:
    """Return the bounds of sums of products from those of the factors."""
    factors = {name: one for name, one in node.inputs.items() if _is_float(one.values)}
    ones = {name: np.ones_like(one.values) for name, one in factors.items()}
    sizes = {name: np.abs(one.values) for name, one in factors.items()}
    reached = {
        name: sizes[name] if one.bound is None else _cast(sizes[name] + one.bound, one.values.dtype)
        for name, one in factors.items()
    }
    size, most = (np.abs(node.run(each)[0].astype(np.float64)) for each in (sizes, reached))
    per_result = node.operands[0].values.size / max(plain.size, 1)
    terms = max(float(np.abs(node.run(ones)[0]).max(initial=1)), per_result)
    narrow = _unit(plain.dtype)
    units = _units_of_terms(terms) + 2 * narrow
    bound = distance(most, size) + units * most + UNITS * narrow * np.abs(plain)
    return np.where(np.isnan(bound), np.inf, bound)


def _units_of_terms(terms: float) -> float:
    """Return the share of a sum that rounding takes; halves are added in float32."""
    return (PER_TERM * sqrt(terms) + terms / 2) * _unit(np.dtype(np.float32))


def _bounds_of_changes(node: _Node, plain: Sequence[Array]) -> list[NDArray[np.float64]]:
    """Return how much the results change when each input does by its bound and a few units."""
    bounds = [np.zeros(one.shape) for one in plain]
    signs, exact = np.random.default_rng(0), node.kind in EXACT
    for name, one in node.inputs.items():
        reach = np.zeros(one.values.shape) if one.bound is None else one.bound
        if _is_float(one.values) and not exact and name not in node.coordinates:
            sizes = np.abs(one.values.astype(np.float64))
            sizes = np.where(np.isfinite(sizes), sizes, 0.0)
            reach = reach + UNITS * _unit(one.values.dtype) * sizes
        if not reach.any():
            continue
        random = signs.choice([-1.0, 1.0], size=reach.shape)
        furthest = [np.zeros(each.shape) for each in plain]
        for pattern in (1.0, -1.0, random, -random):
            changed = _cast(one.values + pattern * reach, one.values.dtype)
            try:
                results = node.run({name: changed})
            except Exception:  # of either library: an index that has no element
                results = [np.full(each.shape, np.nan) for each in plain]
            for most, before, after in zip(furthest, plain, results, strict=True):
                same = after.shape == before.shape
                np.maximum(most, distance(after, before) if same else np.inf, out=most)
        for bound, most, values in zip(bounds, furthest, plain, strict=True):
            # Two reasons to round another way are one step all the same.
            (np.add if _is_float(values) else np.maximum)(bound, most, out=bound)
    for bound, values in zip(bounds, plain, strict=True):
        if _is_float(values) and not exact:
            units = UNITS + PER_TERM * max(values.shape, default=1) ** 0.5
            sizes = np.abs(values.astype(np.float64))
            sizes = np.maximum(sizes, 1) if node.kind in AROUND_ONE else sizes
            if node.kind in NORMALISATIONS and values is plain[0]:
                sizes = _before_normalising(node, sizes)
            share = units * _unit(values.dtype)
            if node.kind in OF_MANY_TERMS:
                window = prod(node.attributes.get("kernel_shape", ()))
                share += _units_of_terms(max(window, node.operands[0].values.size / values.size))
            bound += share * np.where(np.isfinite(sizes), sizes, 0)
            bound += float(np.finfo(np.float32).tiny)  # what is less may be taken for 0
    return bounds


def _before_normalising(node: _Node, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how large numbers become if the variance is taken as E[x^2] - E[x]^2."""
    first, *others = (one.values.astype(np.float64) for one in node.operands)
    known = {"axis": -1, "epsilon": 1e-5, "num_groups": first.shape[:2][-1]} | node.attributes
    axis = known["axis"] % first.ndim
    groups = first.shape[:axis] if "Layer" in node.kind else (len(first), known["num_groups"])
    rows = first.reshape(prod(groups), -1)
    squares = np.mean(rows * rows, axis=1, keepdims=True)
    times = 1 + squares / (rows.var(axis=1, keepdims=True) + known["epsilon"])
    largest_bias = np.abs(others[1]).max() if len(others) > 1 else 0.0
    # Elements near the mean round as the others do.
    largest = float(sizes.max() + largest_bias)
    return largest * np.broadcast_to(times, rows.shape).reshape(first.shape)


def _is_float(values: Array) -> bool:
    return values.dtype.name in ("bfloat16", "float16", "float32", "float64")


def _unit(dtype: np.dtype[Any]) -> float:
    """Return the largest share that rounding takes; of doubles, too, that of float32."""
    return {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(dtype.name, 2.0**-24)


def _cast(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return values in a type, cut off at its limits if it is of integers."""
    if dtype != np.bool_ and np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype.name)
        values = np.clip(values, limits.min, limits.max)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype)


def session_options(graph: onnx.GraphProto) -> Any:
    """Return options for onnxruntime's sessions: no optimisations, exact products of bytes.

    For these onnxruntime makes signed weights unsigned, by an optimisation of the second level. It
    cannot do so where the values are signed, as their zero points (the third inputs) tell.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    signed = {one.name for one in graph.initializer if one.data_type == onnx.TensorProto.INT8}
    products = [node for node in graph.node if node.op_type in PRODUCTS_OF_BYTES]
    if products and signed.isdisjoint(name for node in products for name in node.input[2:3]):
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.add_session_config_entry("session.x64quantprecision", "1")
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    return options
