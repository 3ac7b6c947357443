"""The passes of the clean-up in their order, the smallest ones among them.

Models of old operator sets are brought to one in which today's operators mean what they say,
dynamic dimensions of the inputs become numbers, operators that ONNX itself defines by others are
replaced by those, and transpositions around chains of element-wise operators cancel.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnx_ir.tape import Tape
from onnxscript import version_converter

from spmilp.errors import SpmilpError
from spmilp.frontend.cleanup.bind import bind_dimensions
from spmilp.frontend.cleanup.bodies import FLAT, written_body
from spmilp.frontend.cleanup.constants import (
    fold_batch_norms,
    fold_constants,
    fold_shapes,
    is_shape_only,
    mark_filled_weights,
    mark_missing_values,
    mark_shape_only,
)
from spmilp.frontend.cleanup.control import refuse_unknown_control_flow, unroll_loops
from spmilp.frontend.cleanup.nodes import (
    MALFORMED,
    first_line,
    is_used,
    mark_origins,
    name_of,
    noting_what_is_malformed,
    quiet_libraries,
    set_reason,
)
from spmilp.frontend.operators.elementwise import Elementwise, Quantise
from spmilp.frontend.operators.resize import SIMPLE
from spmilp.frontend.passes import DEFAULT_PASSES, Passes

PER_GROUP = "spmilp.per_group"
"""Mark of a GroupNormalization before set 21: with one scale per group, not one per channel."""

BODIES = "spmilp.bodies"
"""The domain of ONNX's own function bodies until they are in their nodes' places."""


def expand_functions(model: ir.Model, known: Collection[str]) -> bool:
    """Put bodies in place of operators that have one; say whether there were any.

    These are the bodies of :mod:`~spmilp.frontend.cleanup.bodies`, and ONNX's own of operators that
    are not ``known``. Shapes must have been inferred and constants folded: some bodies depend on
    them. What a body consists of may have one itself, but often can be folded first.
    """
    foreign = [
        node
        for node in model.graph
        if node.domain == ""
        and node.op_type != "Range"
        and (
            node.op_type not in known
            or PER_GROUP in node.metadata_props
            or any(map(is_used, node.outputs[1:]))
        )
    ]
    if foreign:
        # A body refers to attributes by name; who puts it in place does not know their defaults.
        passes.AddDefaultAttributesPass()(model)
    for node in list(model.graph):
        with noting_what_is_malformed(node):
            body = written_body(node)
            if body is None and node in foreign:
                body = _own_body(node, model.graph.opset_imports[""])
            if body is not None:
                _call(model, node, body)
    return bool(passes.InlinePass()(model).modified)


def _own_body(node: ir.Node, version: int) -> onnx.FunctionProto | None:
    """Return ONNX's definition of a node's operator by simpler ones, if there is one."""
    if not onnx.defs.has(node.op_type, version):
        return None
    schema: Any = onnx.defs.get_schema(node.op_type, version)
    written = (*schema.context_dependent_function_opset_versions, *schema.function_opset_versions)
    if node.metadata_props.pop(PER_GROUP, None):
        schema, written = onnx.defs.get_schema(node.op_type, OLDEST), (OLDEST,)
    # What a body of set 18 consists of means the same in all later ones.
    since = max((one for one in written if one <= version), default=None)
    if since is None:
        return None
    if schema.has_context_dependent_function:
        nothing = onnx.TypeProto()
        types = [ir.to_proto(value).type if value else nothing for value in node.inputs]
        found = schema.get_context_dependent_function_with_opset_version(
            since, ir.to_proto(node).SerializeToString(), [t.SerializeToString() for t in types]
        )
    else:
        found = schema.get_function_with_opset_version(since)
    body: onnx.FunctionProto = onnx.FunctionProto.FromString(found)
    return body


def _call(model: ir.Model, node: ir.Node, body: onnx.FunctionProto) -> None:
    """Let a node call a function with such a body."""
    body.domain, body.name = BODIES, f"{node.op_type}_{len(model.functions)}"
    body.opset_import[0].version = model.graph.opset_imports[""]
    del body.output[len(node.outputs) :]
    function: ir.Function = ir.from_proto(body)  # type: ignore[assignment]
    model.functions[function.identifier()] = function
    node.domain, node.op_type, node.name = BODIES, body.name, None
    model.graph.opset_imports[BODIES] = 1


ELEMENTWISE = Elementwise.kinds | Quantise.kinds


def cancel_transpositions(model: ir.Model) -> bool:
    """Remove pairs of transpositions that undo each other; return whether there was any.

    Between them are element-wise operators only, each with one operand beside constants of one
    element, and each with one reader.
    """
    found = False
    for last in list(model.graph):
        first, *between = _chain_before(last) or [last]
        if not between:
            continue
        source, result = first.inputs[0], between[-1].outputs[0]
        between[0].replace_input_with(between[0].inputs.index(first.outputs[0]), source)
        for node in between:
            node.outputs[0].shape = None
        ir.convenience.replace_all_uses_with(last.outputs[0], result)
        model.graph.remove(last, safe=True)
        found = True
    passes.RemoveUnusedNodesPass()(model)
    return found


def _chain_before(last: ir.Node) -> list[ir.Node]:
    """Return the transposition that ``last`` undoes, and the operators between the two, if any."""
    if last.op_type != "Transpose" or last.outputs[0].is_graph_output():
        return []
    chain: list[ir.Node] = []
    data = last.inputs[0]
    while data is not None and not data.is_graph_output() and (node := data.producer()):
        if node.op_type == "Transpose":
            first, second = (np.array(_permutation(one)) for one in (node, last))
            undone = first.size == second.size and np.array_equal(first[second], np.sort(second))
            return [node, *chain] if undone else []
        operands = [v for v in node.inputs if v and not (v.const_value and v.const_value.size == 1)]
        if node.op_type not in ELEMENTWISE or len(data.uses()) != 1 or len(operands) != 1:
            return []
        chain.insert(0, node)
        (data,) = operands
    return []


def _permutation(transpose: ir.Node) -> Sequence[int]:
    """Return the axes of a transposition; one without axes reverses them."""
    shape = transpose.outputs[0].shape
    return transpose.attributes.get_ints("perm", [*reversed(range(len(shape or ())))])


def clean_up(
    model: ir.Model, dims: Mapping[str, int], kept: Collection[str], chosen: Passes = DEFAULT_PASSES
) -> ir.Model:
    """Return a model that computes the same with static shapes, few kinds of nodes and no waste.

    ``dims`` are lengths of dynamic dimensions by name, ``kept`` the kinds of operators to keep
    whole although ONNX defines them by others, ``chosen`` the passes that are on.

    Raises a ``SpmilpError`` if a dimension is unknown or stays unbound, or the operator set cannot
    be upgraded.
    """
    try:
        with quiet_libraries():
            passes.RemoveInitializersFromInputsPass()(model)
            passes.InlinePass()(model)
            mark_missing_values(model)
            upgrade_opset(model)
            mark_origins(model)
            bind_dimensions(model, dims)
            declared = forget_types(model)
            infer_shapes(model)
            refuse_other_types(model, declared)
            mark_filled_weights(model)
            is_expanded = True
            while is_expanded:
                fold_constants(model, chosen)
                fold_shapes(model)
                is_expanded = unroll_loops(model) or expand_functions(model, kept)
                infer_shapes(model)
            widen_four_bits(model)
            refuse_unknown_control_flow(model)
            if chosen.batch_norm:
                fold_batch_norms(model)
            if chosen.layout and cancel_transpositions(model):
                infer_shapes(model)
                fold_constants(model, chosen)
            infer_shapes(model)
    except MALFORMED as error:
        raise SpmilpError(
            f"the model is not well-formed: {first_line(error)}; onnx.checker.check_model and "
            "onnx.shape_inference.infer_shapes with strict_mode=True may say where"
        ) from error
    return model


WIDER = {ir.DataType.INT4: ir.DataType.INT8, ir.DataType.UINT4: ir.DataType.UINT8}


def widen_four_bits(model: ir.Model) -> None:
    """Let every constant of four bits be one of bytes.

    Only its DequantizeLinear may read it; other nodes keep it, and are reported for its type.
    """
    for value in list(model.graph.initializers.values()):
        tensor, readers = value.const_value, {node.op_type for node, _ in value.uses()}
        if tensor is not None and tensor.dtype in WIDER and readers <= {"DequantizeLinear"}:
            wider = WIDER[tensor.dtype]
            value.const_value = ir.tensor(tensor.numpy().astype(wider.numpy()), name=value.name)
            value.type = ir.TensorType(wider)


def forget_types(model: ir.Model) -> dict[ir.Value, ir.TypeProtocol]:
    """Drop shapes and types of what nodes give, outputs too; return the types that there were."""
    declared = {}
    for node in model.graph.all_nodes():
        for value in node.outputs:
            if value.type is not None:
                declared[value] = value.type
            value.shape = value.type = None
    return declared


def infer_shapes(model: ir.Model) -> None:
    """Infer the shapes that follow from inputs, constants and nodes; keep the others unknown.

    Shapes that are themselves computed (``data_prop``) follow when constants are folded; ONNX would
    take seconds over them where large constants are computed, too.
    """
    passes.ShapeInferencePass(check_type=False, strict_mode=False, data_prop=False)(model)


OLDEST = 18
"""The first operator set in which axes, sizes, steps and splits are inputs everywhere."""

MEANT = 23
"""The operator set to which all below are taken. From 18 on only GroupNormalization changes its
meaning before it; until 22 ONNX infers windows of pooling that no implementation has."""


UNKNOWN = "spmilp.unknown"
"""The domain of nodes that ONNX does not know, while it converts the others."""

ASYMMETRIC = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": SIMPLE}
"""What Resize and Upsample always were before set 11, in attributes that Resize has since."""


def upgrade_opset(model: ir.Model) -> None:
    """Bring a model to operator set 23 at least; newer ones stay as they are.

    Nodes of which ONNX knows nothing stay as they are, too, and so do those that contradict what
    their operator set says of them: the reason is noted.

    Raises a ``SpmilpError`` if the model's operator set is none, or ONNX's version converter fails.
    """
    imports = model.graph.opset_imports
    if "ai.onnx" in imports:
        imports[""] = imports.pop("ai.onnx")
    version, newest = imports.get(""), onnx.defs.onnx_opset_version()
    if version is None and next(_nodes_of_onnx(model), None) is None:
        imports[""] = version = MEANT
    if version is None or not 1 <= version <= newest:
        raise SpmilpError(
            f"the model's operator set is {version}, but the installed onnx {onnx.__version__} "
            f"knows 1 to {newest}; export it with one of these, or update onnx"
        )
    faults = {_written(node): fault_of(node, version) for node in _nodes_of_onnx(model)}
    if version < OLDEST:
        _convert(model, version, faults)
    for node in _nodes_of_onnx(model):
        fault = faults.get(_written(node))
        if fault is not None:
            set_reason(node, fault)
        elif node.op_type == "GroupNormalization" and version < 21:
            node.metadata_props[PER_GROUP] = "1"
    model.graph.opset_imports[""] = max(version, MEANT)


def _nodes_of_onnx(model: ir.Model) -> Iterator[ir.Node]:
    return (node for node in model.graph.all_nodes() if node.domain == "")


def _written(node: ir.Node) -> str:
    """Return the first name that a node writes, which stays while all else is converted."""
    return next((value.name for value in node.outputs if value.name), "")


def _convert(model: ir.Model, version: int, faults: Mapping[str, str | None]) -> None:
    """Convert a model to ``OLDEST``; nodes with faults are left alone."""
    if version < 7:
        infer_shapes(model)
    resized = set()
    for node in _nodes_of_onnx(model):
        if faults[_written(node)] or not onnx.defs.has(node.op_type, version):
            node.domain = UNKNOWN
            model.graph.opset_imports[UNKNOWN] = 1
        elif node.op_type == "Hardmax" and version < 13:  # one of all axes from its own on
            node.domain = FLAT
            model.graph.opset_imports[FLAT] = 1
        elif node.op_type in ("Resize", "Upsample") and version < 11:
            resized.add(_written(node))
        elif version < 7 and node.op_type == "PRelu":
            _align_operand(model.graph, node, 1)
        elif version < 7 and {"broadcast", "axis"} <= node.attributes.keys():
            _align_operand(model.graph, node, node.attributes.pop("axis").as_int())
    marked = {value.name for value in model.graph.inputs if is_shape_only(value)}
    version_converter.convert_version(model, OLDEST, fallback=True)
    # The converter makes new values and nodes, without the marks of the old.
    for value in model.graph.inputs:
        if value.name in marked:
            mark_shape_only(value)
    for node in model.graph.all_nodes():
        node.domain = "" if node.domain == UNKNOWN else node.domain
        if _written(node) in resized:
            for name, mode in ASYMMETRIC.items():
                node.attributes[name] = ir.AttrString(name, mode)
        elif node.op_type == "Scatter":
            node.op_type = "ScatterElements"
    if model.graph.opset_imports[""] < OLDEST:
        raise SpmilpError(
            f"the model's operator set {version} cannot be converted to {OLDEST}; export it anew "
            f"with operator set {OLDEST} or later"
        )


def _align_operand(graph: ir.Graph, node: ir.Node, axis: int) -> None:
    """Let the second operand broadcast from the right, whose first axis is ``axis`` of the first.

    The converter takes every axis for 0, and one slope per channel of PRelu for one per column.
    """
    data, other = node.inputs[:2]
    if data is None or data.shape is None or other is None or other.shape is None:
        return
    ones = len(data.shape) - axis % len(data.shape) - len(other.shape)
    if ones > 0 < len(other.shape):
        tape, name = Tape(), f"{name_of(node)}/shape"
        lengths = np.array([0] * len(other.shape) + [1] * ones, np.int64)
        shape = tape.initializer(ir.tensor(lengths, name=name), name)
        graph.register_initializer(shape)
        reshaped = ir.Value(name=f"{name_of(node)}/Reshape/out")
        made = tape.op("Reshape", [other, shape], name=f"{name_of(node)}/Reshape", output=reshaped)
        node.replace_input_with(1, made)
        graph.insert_before(node, tape.nodes)


FLAGS = frozenset(
    {
        *("align_corners", "allowzero", "antialias", "ceil_mode", "count_include_pad", "exclusive"),
        *("detect_negative", "detect_positive", "exclude_outside", "fmod", "input_forget"),
        *("interleaved", "is_causal", "keepdims", "largest", "linear_before_reset", "reverse"),
        *("noop_with_empty_axes", "saturate", "select_last_index", "sorted", "training_mode"),
        *("transA", "transB", "upper"),
    }
)
"""Attributes of which ONNX says only what 0 and 1 mean."""


def fault_of(node: ir.Node, version: int) -> str | None:
    """Return what in a node contradicts its operator's definition in an operator set, if anything.

    Nothing is said of operators that ONNX does not have at all.
    """
    kind = node.op_type
    if not onnx.defs.has(kind, version):
        if not onnx.defs.has(kind):
            return None
        since = onnx.defs.get_schema(kind).since_version
        return f"operator set {version} has no {kind}, set {since} has"
    schema = onnx.defs.get_schema(kind, version)
    for name, attribute in node.attributes.items():
        known = schema.attributes.get(name)
        if known is None:
            there = ", ".join(schema.attributes) or "none"
            return f"{kind} of operator set {version} has no attribute {name}; it has {there}"
        expected = str(known.type).rpartition(".")[2]
        if attribute.type.name != expected:
            return f"attribute {name} is of type {attribute.type.name}, expected {expected}"
        if name in FLAGS and attribute.value not in (0, 1):
            return f"attribute {name} is {attribute.value}, expected 0 or 1"
    # ONNX's shape inference crashes over this one.
    if kind == "GatherND" and node.attributes.get_int("batch_dims", 0) < 0:
        return "attribute batch_dims is negative, expected 0 or more"
    if kind == "Scan" and version < 9:
        return "Scan of operator set 8 scans along the second axis; export it with set 9 or later"
    # ONNX's converter gives the whole model up.
    if kind == "BatchNormalization" and node.attributes.get_int("spatial", 1) == 0:
        return "attribute spatial is 0, expected 1"
    given = len(node.inputs)
    if not schema.min_input <= given <= schema.max_input:
        return f"{given} inputs, expected {schema.min_input} to {schema.max_input}"
    return None


def refuse_other_types(model: ir.Model, declared: Mapping[ir.Value, ir.TypeProtocol]) -> None:
    """Note at nodes that their operands, or their results, have types that they cannot have.

    What the file says of results, ``declared``, stays where nothing can be inferred.
    """
    for value, said in declared.items():
        node = value.producer()
        if value.type is None:
            value.type = said
        elif said.dtype not in (value.dtype, ir.DataType.UNDEFINED) and node is not None:
            set_reason(node, f"it gives {_typed(value)}, but the file says {_name(said.dtype)}")
    version = model.graph.opset_imports.get("", 0)
    for node in _nodes_of_onnx(model):
        if onnx.defs.has(node.op_type, version):
            _operands_go_together(node, onnx.defs.get_schema(node.op_type, version))


def _operands_go_together(node: ir.Node, schema: onnx.defs.OpSchema) -> None:
    first: dict[str, ir.Value] = {}
    newest = onnx.defs.get_schema(node.op_type).inputs
    for position, value in enumerate(node.inputs):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if value is None or not isinstance(value.type, ir.TensorType) or not formal.is_homogeneous:
            continue
        other = first.setdefault(formal.type_str, value)
        if other.dtype is not value.dtype:
            types = f"{_typed(other)} and {_typed(value)}"
            set_reason(node, f"its operands {types} must have one type; cast one of them")
        takes = {kind for one in newest if one.name == formal.name for kind in one.types}
        if takes and f"tensor({_name(value.dtype)})" not in takes:
            set_reason(node, f"{node.op_type} takes no {_typed(value)}")


def _typed(value: ir.Value) -> str:
    return f"{value.name} of type {_name(value.dtype)}"


def _name(dtype: ir.DataType | None) -> str:
    return str(dtype).lower()
