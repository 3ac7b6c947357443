"""The passes of the clean-up in their order, the smallest ones among them.

Models of old operator sets are brought to one in which today's operators mean what they say,
dynamic dimensions of the inputs become numbers, operators that ONNX itself defines by others are
replaced by those, and transpositions around chains of element-wise operators cancel.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnx import inliner
from onnxscript import version_converter

from spmilp.errors import SpmilpError
from spmilp.frontend.cleanup.constants import (
    become_input,
    fold_batch_norms,
    fold_constants,
    fold_shapes,
    is_shape_only,
    mark_filled_weights,
    mark_missing_values,
    mark_shape_only,
)
from spmilp.frontend.cleanup.nodes import (
    MALFORMED,
    ORIGIN,
    first_line,
    inherit_origin,
    mark_origins,
    noting_what_is_malformed,
    quiet_libraries,
    set_reason,
)
from spmilp.frontend.cleanup.quantisation import (
    expand_qlinear,
    expand_run_time_scales,
    widen_four_bits,
)
from spmilp.frontend.cleanup.recurrent import unroll_recurrences
from spmilp.frontend.operators.elementwise import Elementwise, Quantise
from spmilp.frontend.passes import DEFAULT_PASSES, Passes
from spmilp.units import LARGEST

LARGE = 1024
"""Constants of more bytes are set aside while ONNX's inliner copies the model."""


def park_constants(model: ir.Model) -> Mapping[str, ir.TensorProtocol]:
    """Make the large constants inputs, and return their values by name."""
    parked = {}
    for value in list(model.graph.initializers.values()):
        tensor = value.const_value
        if value.name and tensor is not None and tensor.nbytes > LARGE:
            parked[value.name] = tensor
            become_input(model.graph, value, tensor)
    return parked


def restore_constants(model: ir.Model, parked: Mapping[str, ir.TensorProtocol]) -> None:
    """Make the parked inputs constants again."""
    for value in list(model.graph.inputs):
        if value.name is not None and value.name in parked:
            model.graph.inputs.remove(value)
            value.const_value = parked[value.name]
            model.graph.register_initializer(value)


NEW_GROUP_NORM = 21
"""Before this operator set GroupNormalization had one scale per group, not one per channel."""


def expand_functions(model: ir.Model, known: Collection[str]) -> ir.Model:
    """Return the model with ONNX's own function bodies in place of operators not in ``known``.

    Shapes must have been inferred: some bodies depend on them.
    """
    version = model.graph.opset_imports.get("", 0)
    foreign = {node.op_type for node in model.graph if node.domain == ""}.difference(known)
    if version < NEW_GROUP_NORM:
        foreign |= {n.op_type for n in model.graph if n.op_type == "GroupNormalization"}
    wanted = sorted(kind for kind in foreign if onnx.defs.has(kind, version))
    if not wanted:
        return model
    # A body refers to attributes by name; ONNX's inliner does not know their defaults.
    passes.AddDefaultAttributesPass()(model)
    expanded = {value.name: node for node in model.graph for value in node.outputs}
    parked = park_constants(model)
    proto = inliner.inline_selected_functions(
        ir.to_proto(model), [("", kind) for kind in wanted], inline_schema_functions=True
    )
    new = ir.from_proto(proto)
    restore_constants(new, parked)
    _note_origins_of_bodies(new, expanded)
    return new


def _note_origins_of_bodies(model: ir.Model, expanded: Mapping[str | None, ir.Node]) -> None:
    """Let the nodes of a body, which end with an output of the operator, stand for it."""
    body: list[ir.Node] = []
    for node in model.graph:
        if ORIGIN in node.metadata_props:
            continue
        body.append(node)
        operator = next((expanded[v.name] for v in node.outputs if v.name in expanded), None)
        if operator is not None:
            inherit_origin(body, operator)
            body = []


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
    model: ir.Model,
    dims: Mapping[str, int],
    known: Collection[str],
    chosen: Passes = DEFAULT_PASSES,
) -> ir.Model:
    """Return a model that computes the same with static shapes, few kinds of nodes and no waste.

    Parameters
    ----------
    dims
        Lengths of dynamic dimensions by name.
    known
        Kinds of operators to keep whole although ONNX defines them by others.
    chosen
        The passes that are on; the others always are.

    Raises
    ------
    SpmilpError
        If a dimension is unknown or stays unbound, or the operator set cannot be upgraded.
    """
    with quiet_libraries(), _complaints_as_errors():
        passes.RemoveInitializersFromInputsPass()(model)
        passes.InlinePass()(model)
        mark_missing_values(model)
        set_aside_what_crashes_onnx(model)
        upgrade_opset(model)
        mark_origins(model)
        bind_dimensions(model, dims)
        forget_shapes(model)
        infer_shapes(model)
        mark_filled_weights(model)
        fold_shapes(model)
        fold_constants(model, chosen)
        infer_shapes(model)
        if expand_qlinear(model):
            infer_shapes(model)
        widen_four_bits(model)
        if expand_run_time_scales(model):
            infer_shapes(model)
        unroll_recurrences(model)
        model = expand_functions(model, known)
        infer_shapes(model)
        fold_constants(model, chosen)
        fold_shapes(model)
        if chosen.batch_norm:
            fold_batch_norms(model)
        if chosen.layout and cancel_transpositions(model):
            infer_shapes(model)
            fold_constants(model, chosen)
        infer_shapes(model)
    return model


@contextmanager
def _complaints_as_errors() -> Iterator[None]:
    """Say that it is the model that a library stumbles over."""
    try:
        yield
    except MALFORMED as error:
        raise SpmilpError(
            f"the model is not well-formed: {first_line(error)}; onnx.checker.check_model and "
            "onnx.shape_inference.infer_shapes with strict_mode=True may say where"
        ) from error


def forget_shapes(model: ir.Model) -> None:
    """Drop the shapes of all values that nodes give, the network's outputs among them."""
    for node in model.graph.all_nodes():
        for value in node.outputs:
            value.shape = None


def infer_shapes(model: ir.Model) -> None:
    """Infer the shapes that follow from inputs, constants and nodes; keep the others unknown.

    Shapes that are themselves computed (``data_prop``) follow when constants are folded; ONNX would
    take seconds over them where large constants are computed, too.
    """
    passes.ShapeInferencePass(check_type=False, strict_mode=False, data_prop=False)(model)


OLDEST = 18
"""The first operator set in which axes, sizes, steps and splits are inputs everywhere."""


ASIDE = "spmilp.aside"
"""The domain of nodes that ONNX must not look at."""


def set_aside_what_crashes_onnx(model: ir.Model) -> None:
    """Keep GatherND with negative batch axes from ONNX's shape inference, which it crashes."""
    for node in model.graph.all_nodes():
        if node.domain == "" and node.op_type == "GatherND":
            with noting_what_is_malformed(node):
                if node.attributes.get_int("batch_dims", 0) < 0:
                    set_reason(node, "attribute batch_dims is negative, expected 0 or more")
                    node.domain = ASIDE
                    model.graph.opset_imports[ASIDE] = 1


UNKNOWN = "spmilp.unknown"
"""The domain of nodes that ONNX does not know, while it converts the others."""


def upgrade_opset(model: ir.Model) -> None:
    """Bring a model to operator set 18 at least; newer ones stay as they are.

    Nodes of which ONNX knows nothing stay as they are, too.

    Raises
    ------
    SpmilpError
        If the ONNX version converter cannot do it.
    """
    version = model.graph.opset_imports.get("", model.graph.opset_imports.get("ai.onnx"))
    if version is None or version >= OLDEST:
        return
    for node in model.graph.all_nodes():
        if node.domain == "" and not onnx.defs.has(node.op_type, version):
            node.domain = UNKNOWN
            model.graph.opset_imports[UNKNOWN] = 1
    marked = {value.name for value in model.graph.inputs if is_shape_only(value)}
    version_converter.convert_version(model, OLDEST, fallback=True)
    # The converter makes new values, without the marks of the old.
    for value in model.graph.inputs:
        if value.name in marked:
            mark_shape_only(value)
    for node in model.graph.all_nodes():
        node.domain = "" if node.domain == UNKNOWN else node.domain
    reached = model.graph.opset_imports[""]
    if reached < OLDEST:
        raise SpmilpError(
            f"the model's operator set {version} cannot be converted to {OLDEST}; export it anew "
            f"with operator set {OLDEST} or later"
        )


NONE_DYNAMIC = "none of its dimensions is dynamic"


def bind_dimensions(model: ir.Model, dims: Mapping[str, int]) -> None:
    """Put ``dims`` in place of the dynamic dimensions of the inputs.

    A dimension without a name of its own goes by ``INPUT.AXIS``, for example ``x.0``.

    Raises
    ------
    SpmilpError
        If ``dims`` names a dimension that the model does not have, a length is not positive or
        beyond all memories, or a dimension stays without a length.
    """
    named = (name for value in model.graph.inputs for name in _names(value) if name)
    known = tuple(dict.fromkeys(named))
    for name, length in dims.items():
        if name not in known:
            there = f"its dynamic dimensions are {', '.join(known)}" if known else NONE_DYNAMIC
            raise SpmilpError(f"the model has no dimension {name!r}; {there}")
        if not 0 < length <= LARGEST:
            raise SpmilpError(f"dimension {name} is {length}, expected 1 to {LARGEST}")
    missing = [name for name in known if name not in dims]
    if missing:
        options = " ".join(f"--dim {name}=..." for name in missing)
        raise SpmilpError(f"the length of {', '.join(missing)} is not known; give {options}")
    for value in model.graph.inputs:
        names = _names(value)
        if names and value.shape is not None:
            lengths = zip(names, value.shape, strict=True)
            value.shape = ir.Shape([dims[name] if name else length for name, length in lengths])


def _names(value: ir.Value) -> tuple[str, ...]:
    """For each axis, the name of its dynamic dimension, ``""`` where its length is fixed."""
    if value.shape is None:
        raise SpmilpError(
            f"input {value.name} is no tensor of known rank; the front end reads tensors only"
        )
    names = []
    for axis, length in enumerate(value.shape):
        symbol = length.value if isinstance(length, ir.SymbolicDim) else None
        fixed = isinstance(length, int) and length > 0
        names.append("" if fixed else symbol or f"{value.name}.{axis}")
    return tuple(names)
