"""LSTM and GRU become matrix products and element-wise operators, one set per time step.

The products with the input do not depend on the state, so one MatMul computes them for all steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from spmilp.frontend.cleanup.nodes import (
    Builder,
    name_of,
    noting_what_is_malformed,
    replace_node,
    set_reason,
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Operands of one direction.

    Parameters
    ----------
    weight, recurrence
        For the input ``(inputs, gates * hidden)`` and for the state ``(hidden, gates * hidden)``.
    input_bias, state_bias
        ``(gates * hidden)``; ``None`` when the node has no bias.
    hidden
        Length of the state.
    activations
        ONNX operators, in the order of the node's attribute.
    """

    weight: ir.Value
    recurrence: ir.Value
    input_bias: ir.Value | None
    state_bias: ir.Value | None
    hidden: int
    activations: tuple[str, ...]


def lstm_step(
    build: Builder,
    gates: ir.Value,
    state: ir.Value | None,
    cell: ir.Value | None,
    parameters: Parameters,
) -> tuple[ir.Value, ir.Value]:
    """Return the next state and cell; a state or cell that is ``None`` is zero.

    ``gates`` is the product with the input, biases added: input, output, forget, cell.
    """
    outer, inner, last = parameters.activations
    if state is not None:
        gates = build.add(gates, build.op("MatMul", [state, parameters.recurrence]))
    size = parameters.hidden
    into, out, forget, new = (_gate(build, gates, position, size) for position in range(4))
    fresh = build.op("Mul", [build.op(outer, [into]), build.op(inner, [new])])
    if cell is not None:
        kept = build.op("Mul", [build.op(outer, [forget]), cell])
        fresh = build.op("Add", [kept, fresh])
    return build.op("Mul", [build.op(outer, [out]), build.op(last, [fresh])]), fresh


def gru_step(
    build: Builder,
    gates: ir.Value,
    state: ir.Value | None,
    parameters: Parameters,
    linear_before_reset: bool,
) -> ir.Value:
    """Return the next state; a state that is ``None`` is zero.

    ``gates`` is the product with the input, its bias added: update, reset, hidden.
    """
    size = parameters.hidden
    recurrent = _recurrent_part(build, state, parameters, 3 if linear_before_reset else 2)
    update = _activated(build, gates, recurrent, 0, parameters)
    candidate = _gate(build, gates, 2, size)
    if linear_before_reset:
        if recurrent is not None:
            reset = _activated(build, gates, recurrent, 1, parameters)
            candidate = build.add(
                candidate, build.op("Mul", [reset, _gate(build, recurrent, 2, size)])
            )
    else:
        if parameters.state_bias is not None:
            candidate = build.add(candidate, _gate(build, parameters.state_bias, 2, size))
        if state is not None:
            reset = _activated(build, gates, recurrent, 1, parameters)
            weight = _gate(build, parameters.recurrence, 2, size)
            product = build.op("MatMul", [build.op("Mul", [reset, state]), weight])
            candidate = build.add(candidate, product)
    candidate = build.op(parameters.activations[1], [candidate])
    # (1 - update) candidate + update state
    faded = build.op("Sub", [candidate, build.op("Mul", [update, candidate])])
    return faded if state is None else build.add(faded, build.op("Mul", [update, state]))


def _recurrent_part(
    build: Builder, state: ir.Value | None, parameters: Parameters, gates: int
) -> ir.Value | None:
    """Return what the state adds to the first ``gates`` gates, its bias included."""
    width = gates * parameters.hidden
    bias = parameters.state_bias
    if bias is not None:
        bias = build.part(bias, -1, 0, width)
    if state is None:
        return bias
    weight = build.part(parameters.recurrence, -1, 0, width)
    return build.add(build.op("MatMul", [state, weight]), bias)


def _activated(
    build: Builder,
    gates: ir.Value,
    recurrent: ir.Value | None,
    position: int,
    parameters: Parameters,
) -> ir.Value:
    """Return an outer gate: the activation of what input and state give."""
    total = _gate(build, gates, position, parameters.hidden)
    if recurrent is not None:
        total = build.add(total, _gate(build, recurrent, position, parameters.hidden))
    return build.op(parameters.activations[0], [total])


def _gate(build: Builder, gates: ir.Value, position: int, size: int) -> ir.Value:
    """Return one gate's part of the last axis."""
    return build.part(gates, -1, position * size, (position + 1) * size)


GATES = {"LSTM": 4, "GRU": 3}
DEFAULT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
ACTIVATIONS = ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")
"""Activations that are operators without parameters of their own."""

BACKWARDS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

INPUTS = {
    "LSTM": ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"),
    "GRU": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
}

Inputs: TypeAlias = Mapping[str, ir.Value]


class UnsupportedRecurrenceError(Exception):
    """A form of LSTM or GRU that is not decomposed; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Time steps, length of the state, and the axis of time in X (ONNX's ``layout``)."""

    steps: int
    hidden: int
    layout: int


def unroll_recurrences(model: ir.Model) -> None:
    """Replace every LSTM and GRU; note the reason at those that cannot be."""
    for node in list(model.graph):
        if node.domain == "" and node.op_type in GATES:
            with noting_what_is_malformed(node):
                try:
                    _unroll(model.graph, node)
                except UnsupportedRecurrenceError as error:
                    set_reason(node, str(error))


def _unroll(graph: ir.Graph, node: ir.Node) -> None:
    given = zip(INPUTS[node.op_type], node.inputs, strict=False)
    inputs = {name: value for name, value in given if value is not None}
    sizes = _sizes(node, inputs)
    _only_supported_forms(node, inputs, sizes)
    build = Builder(graph, name_of(node))
    directions = BACKWARDS[node.attributes.get_string("direction", "forward")]
    chosen = [_activations(node, index) for index in range(len(directions))]
    histories, finals, cells = [], [], []
    for index, backwards in enumerate(directions):
        parameters = _parameters(build, node, inputs, sizes, index, chosen[index])
        states, cell = _run(build, node, inputs, sizes, index, backwards, parameters)
        histories.append(states)
        finals.append(states[0] if backwards else states[-1])
        cells.append(cell)
    new = [_history(build, histories, sizes.layout), _stacked(build, finals, sizes.layout)]
    if node.op_type == "LSTM":
        new.append(_stacked(build, [cell for cell in cells if cell is not None], sizes.layout))
    replace_node(graph, node, build.tape.nodes, new[: len(node.outputs)])


def _sizes(node: ir.Node, inputs: Inputs) -> Sizes:
    for name in ("X", "W", "R"):
        if name not in inputs:
            raise UnsupportedRecurrenceError(f"its input {name} is not given")
        shape = inputs[name].shape
        if shape is None or not shape.is_static():
            raise UnsupportedRecurrenceError(f"the shape of {name} is not known")
    layout = node.attributes.get_int("layout", 0)
    given, recurrence = inputs["X"].shape, inputs["R"].shape
    if given is None or recurrence is None:
        raise UnsupportedRecurrenceError("the shapes of its inputs are not known")
    return Sizes(given.numpy()[layout], recurrence.numpy()[2], layout)


def _only_supported_forms(node: ir.Node, inputs: Inputs, sizes: Sizes) -> None:
    if "P" in inputs:
        raise UnsupportedRecurrenceError("peephole weights (input P) are not supported")
    for attribute in ("clip", "input_forget"):
        if attribute in node.attributes and node.attributes[attribute].value:
            raise UnsupportedRecurrenceError(f"attribute {attribute} is not supported")
    if "sequence_lens" in inputs:
        known = inputs["sequence_lens"].const_value
        if known is None or np.any(known.numpy() != sizes.steps):
            raise UnsupportedRecurrenceError(
                f"sequence_lens must be constant, {sizes.steps} for every sequence"
            )


def _activations(node: ir.Node, direction: int) -> tuple[str, ...]:
    default = DEFAULT_ACTIVATIONS[node.op_type]
    attribute = node.attributes.get("activations")
    if attribute is None:
        return default
    first = direction * len(default)
    chosen = tuple(attribute.as_strings())[first : first + len(default)]
    for name in chosen:
        if name not in ACTIVATIONS:
            raise UnsupportedRecurrenceError(f"activation {name} is not supported")
    if len(chosen) < len(default):
        raise UnsupportedRecurrenceError(f"{len(chosen)} activations, expected {len(default)}")
    return chosen


def _parameters(
    build: Builder,
    node: ir.Node,
    inputs: Inputs,
    sizes: Sizes,
    direction: int,
    activations: tuple[str, ...],
) -> Parameters:
    width = GATES[node.op_type] * sizes.hidden
    weight, recurrence = (
        build.op("Transpose", [build.at(inputs[name], 0, direction)]) for name in ("W", "R")
    )
    input_bias = state_bias = None
    if "B" in inputs:
        both = build.at(inputs["B"], 0, direction)
        input_bias, state_bias = (
            build.part(both, 0, 0, width),
            build.part(both, 0, width, 2 * width),
        )
    return Parameters(weight, recurrence, input_bias, state_bias, sizes.hidden, activations)


def _run(
    build: Builder,
    node: ir.Node,
    inputs: Inputs,
    sizes: Sizes,
    direction: int,
    backwards: bool,
    parameters: Parameters,
) -> tuple[list[ir.Value], ir.Value | None]:
    """Return the states of one direction after each step, in order of time, and the last cell."""
    product = build.add(build.op("MatMul", [inputs["X"], parameters.weight]), parameters.input_bias)
    if node.op_type == "LSTM":
        product = build.add(product, parameters.state_bias)
    state = _initial(build, inputs.get("initial_h"), sizes, direction)
    cell = _initial(build, inputs.get("initial_c"), sizes, direction)
    linear_before_reset = bool(node.attributes.get_int("linear_before_reset", 0))
    states = []
    for step in reversed(range(sizes.steps)) if backwards else range(sizes.steps):
        gates = build.at(product, sizes.layout, step)
        if node.op_type == "LSTM":
            state, cell = lstm_step(build, gates, state, cell, parameters)
        else:
            state = gru_step(build, gates, state, parameters, linear_before_reset)
        states.append(state)
    return (states[::-1] if backwards else states), cell


def _initial(
    build: Builder, value: ir.Value | None, sizes: Sizes, direction: int
) -> ir.Value | None:
    """Return an initial state ``(batch, hidden)``; ``None`` where it is zero."""
    if value is None:
        return None
    if value.const_value is not None and not np.any(value.const_value.numpy()):
        return None
    return build.at(value, sizes.layout, direction)


def _history(build: Builder, histories: Sequence[Sequence[ir.Value]], layout: int) -> ir.Value:
    """Return Y: ``(steps, directions, batch, hidden)``; batch comes first in layout 1."""
    steps = []
    for states in zip(*histories, strict=True):
        joined = _stacked(build, states, layout)
        steps.append(build.op("Unsqueeze", [joined, build.integers(layout)]))
    return build.op("Concat", steps, axis=layout)


def _stacked(build: Builder, states: Sequence[ir.Value], layout: int) -> ir.Value:
    """Return states side by side: ``(directions, batch, hidden)``; batch first in layout 1."""
    parts = [build.op("Unsqueeze", [state, build.integers(layout)]) for state in states]
    return build.op("Concat", parts, axis=layout) if len(parts) > 1 else parts[0]
