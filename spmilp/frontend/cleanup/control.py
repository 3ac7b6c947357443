"""Loop and Scan become their steps, one set of nodes each; what cannot says why.

An If whose condition is a constant is replaced by its branch when constants are folded.
"""

import sys
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from spmilp.frontend.cleanup.constants import elements_of, fold_once, is_shape_only
from spmilp.frontend.cleanup.nodes import (
    Builder,
    RefusedError,
    noting_what_is_malformed,
    set_reason,
)

MOST_NODES = 20_000
"""Most nodes of a model with the steps of its loops: they are folded in half a minute."""

MOST_VALUES = 16
"""Most elements of an input of which it is proposed to fix the values."""

DECIDING = {"If": (1, "condition"), "Loop": (2, "number of steps"), "Scan": (0, "number of steps")}
"""How many of the first inputs decide what is computed, and what they say."""


def unroll_loops(model: ir.Model) -> bool:
    """Replace every Loop and Scan whose steps are known; return whether there was any.

    Shapes must have been inferred; those of new nodes are unknown.
    """
    loops = [node for node in model.graph if node.op_type in ("Loop", "Scan") and not node.domain]
    if loops:
        passes.LiftSubgraphInitializersToMainGraphPass()(model)
    unrolled = False
    for node in loops:
        with noting_what_is_malformed(node):
            unrolled |= _unroll(model.graph, node)
    return unrolled


def _unroll(graph: ir.Graph, node: ir.Node) -> bool:
    body, listed = node.attributes["body"].as_graph(), node.attributes.get_ints
    # A Loop and its body begin with a number of steps, or of the step, and a condition.
    first = 2 if node.op_type == "Loop" else 0
    count = len(body.inputs) - first - node.attributes.get_int("num_scan_inputs", 0)
    inputs = [value for value in node.inputs[first:] if value is not None]
    states, scanned = inputs[:count], inputs[count:]
    if first + len(inputs) != len(body.inputs):
        raise RefusedError(f"{first + len(inputs)} inputs, but its body has {len(body.inputs)}")
    none = (0,) * len(scanned)
    axes, backwards = listed("scan_input_axes", none), listed("scan_input_directions", none)
    trips: int | ir.SymbolicDim | None = None
    goes_on: int | None = 1
    if first:
        trips, goes_on = _number(node.inputs[0], sys.maxsize), _number(node.inputs[1], 1)
    elif scanned[0].shape is not None:
        trips = scanned[0].shape[axes[0]]
    if not isinstance(trips, int) or goes_on is None:
        return False
    last = body.outputs[0].producer() if first else None
    may_end = last is not None and last.op_type not in ("Constant", "Identity")
    step, given = 0, list[ir.Value]()
    there, size = graph.num_nodes(), sum(1 for _ in body.all_nodes())
    while goes_on and step < trips:
        steps = step + 1 if may_end else trips
        if there + steps * size > MOST_NODES:
            raise RefusedError(
                f"with its {steps:,} steps the model has {there + steps * size:,} nodes, expected "
                f"at most {MOST_NODES:,}; export the model with fewer steps"
            )
        build = Builder(graph, node, f"/{step}")
        told = [build.constant(np.array(one)) for one in (step, True)[:first]]
        slices = [
            build.at(value, axis, trips - 1 - step if is_backwards else step)
            for value, axis, is_backwards in zip(scanned, axes, backwards, strict=True)
        ]
        node.prepend(build.tape.nodes)
        results = _copied(build, [*told, *states, *slices])
        condition = results.pop(0) if first else None
        goes_on, step = _number(condition, 1), step + 1
        if goes_on is None:
            raise RefusedError(_dependence("number of steps", [condition]))
        states, given = results[:count], given + results[count:]
    _end(Builder(graph, node), states, given, len(body.outputs) - count - first // 2)
    return True


def _number(value: ir.Value | None, default: int) -> int | None:
    """Return what a constant of one element is, ``None`` for what is no constant."""
    if value is None:
        return default
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else int(tensor.numpy().item())


def _copied(build: Builder, given: Sequence[ir.Value]) -> list[ir.Value]:
    """Put a copy of a loop's body, its inputs given, before the loop; return what it gives."""
    graph, node = build.graph, build.node
    copy = node.attributes["body"].as_graph().clone(allow_outer_scope_values=True)
    inputs = dict(zip(copy.inputs, given, strict=True))
    for old, new in inputs.items():
        for user, position in tuple(old.uses()):
            user.replace_input_with(position, new)
    for value in (value for each in copy.all_nodes() for value in each.outputs):
        value.shape = value.type = None
    copy.opset_imports.update(graph.opset_imports)
    # The condition may follow from the number of the step.
    fold_once(ir.Model(copy, ir_version=10))
    results = [inputs.get(value, value) for value in copy.outputs]
    nodes, own = list(copy), list(copy.initializers.values())
    copy.outputs.clear()
    copy.initializers.clear()
    copy.remove(nodes)
    named: list[ir.Node | ir.Value] = [*nodes, *own]
    for each in (*named, *(value for one in nodes for value in one.outputs)):
        each.name = f"{build.prefix}/{each.name}"
    for value in own:
        graph.register_initializer(value)
    node.prepend(nodes)
    return results


def _end(build: Builder, states: Sequence[ir.Value], given: Sequence[ir.Value], scans: int) -> None:
    """Put the last states, and what the steps have given side by side, in place of a loop."""
    node, listed = build.node, build.node.attributes.get_ints
    axes, backwards = (listed(f"scan_output_{one}", (0,) * scans) for one in ("axes", "directions"))
    if scans and not given:
        raise RefusedError(f"it takes no step, so that {node.outputs[-1].name} has no elements")
    for place, (axis, is_backwards) in enumerate(zip(axes, backwards, strict=True)):
        pieces = given[place::scans][:: -1 if is_backwards else 1]
        parts = [build.op("Unsqueeze", [each, build.integers(axis)]) for each in pieces]
        states = [*states, build.op("Concat", parts, axis=axis)]
    build.replace([build.op("Identity", [value]) for value in states])


def refuse_unknown_control_flow(model: ir.Model) -> None:
    """Note at every If, Loop and Scan that is left what decides about it."""
    for node in model.graph:
        if node.op_type in DECIDING and not node.domain:
            count, what = DECIDING[node.op_type]
            set_reason(node, _dependence(what, node.inputs[:count]))


def _dependence(what: str, values: Sequence[ir.Value | None]) -> str:
    """Say on which of the graph's inputs some values depend, and what to do."""
    found, waiting = dict[str, ir.Value](), [value for value in values if value is not None]
    seen = set(waiting)
    while waiting:
        value = waiting.pop()
        if value.is_graph_input() and not is_shape_only(value):
            found[str(value.name)] = value
        node = value.producer()
        more = {one for one in (node.inputs if node else ()) if one is not None} - seen
        seen |= more
        waiting += more
    if not found:
        return f"its {what} is not known; export the model with the {what} fixed"
    said = f"its {what} depends on input {', '.join(sorted(found))}"
    if all(1 <= elements_of(value) <= MOST_VALUES for value in found.values()):
        return f"{said}; fix it: {' '.join(f'--input {name}=...' for name in sorted(found))}"
    return f"{said}; export the model with the {what} fixed"
