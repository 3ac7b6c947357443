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
    RefusedError,
    name_of,
    noting_what_is_malformed,
    replace_node,
)

GATES = {"LSTM": 4, "GRU": 3}
DEFAULT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
ACTIVATIONS = ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")
"""Activations that are operators without parameters of their own."""

BACKWARDS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
"""Those of LSTM; GRU has the first six."""

Inputs: TypeAlias = Mapping[str, ir.Value]


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
                _unroll(model.graph, node)


def _unroll(graph: ir.Graph, node: ir.Node) -> None:
    names = INPUTS if node.op_type == "LSTM" else INPUTS[:6]
    inputs = {name: v for name, v in zip(names, node.inputs, strict=False) if v is not None}
    sizes = _sizes(node, inputs)
    _only_supported_forms(node, inputs, sizes)
    build = Builder(graph, name_of(node))
    directions = BACKWARDS[node.attributes.get_string("direction", "forward")]
    chosen = [_activations(node, index) for index in range(len(directions))]
    histories, finals, cells = [], [], []
    for index, backwards in enumerate(directions):
        direction = _direction(build, node, inputs, sizes, index, chosen[index])
        states, cell = _run(direction, node, inputs, sizes, index, backwards)
        histories.append(states)
        finals.append(states[0] if backwards else states[-1])
        cells.append(cell)
    new = [_history(build, histories, sizes.layout), _stacked(build, finals, sizes.layout)]
    if node.op_type == "LSTM":
        new.append(_stacked(build, [cell for cell in cells if cell is not None], sizes.layout))
    replace_node(graph, node, build.tape.nodes, new[: len(node.outputs)])


def _sizes(node: ir.Node, inputs: Inputs) -> Sizes:
    shapes = {}
    for name in ("X", "W", "R"):
        if name not in inputs:
            raise RefusedError(f"its input {name} is not given")
        shape = inputs[name].shape
        if shape is None or not shape.is_static():
            raise RefusedError(f"the shape of {name} is not known")
        shapes[name] = shape.numpy()
    layout = node.attributes.get_int("layout", 0)
    return Sizes(shapes["X"][layout], shapes["R"][2], layout)


def _only_supported_forms(node: ir.Node, inputs: Inputs, sizes: Sizes) -> None:
    if "P" in inputs:
        raise RefusedError("peephole weights (input P) are not supported")
    for attribute in ("clip", "input_forget"):
        if attribute in node.attributes and node.attributes[attribute].value:
            raise RefusedError(f"attribute {attribute} is not supported")
    if "sequence_lens" in inputs:
        known = inputs["sequence_lens"].const_value
        if known is None or np.any(known.numpy() != sizes.steps):
            raise RefusedError(f"sequence_lens must be constant, {sizes.steps} for every sequence")


def _activations(node: ir.Node, direction: int) -> tuple[str, ...]:
    default = DEFAULT_ACTIVATIONS[node.op_type]
    attribute = node.attributes.get("activations")
    if attribute is None:
        return default
    first = direction * len(default)
    chosen = tuple(attribute.as_strings())[first : first + len(default)]
    for name in chosen:
        if name not in ACTIVATIONS:
            raise RefusedError(f"activation {name} is not supported")
    if len(chosen) < len(default):
        raise RefusedError(f"{len(chosen)} activations, expected {len(default)}")
    return chosen


@dataclass(frozen=True, slots=True)
class _Direction:
    """One direction of a node: what its steps are made of.

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

    build: Builder
    weight: ir.Value
    recurrence: ir.Value
    input_bias: ir.Value | None
    state_bias: ir.Value | None
    hidden: int
    activations: tuple[str, ...]

    def lstm_step(
        self, gates: ir.Value, state: ir.Value | None, cell: ir.Value | None
    ) -> tuple[ir.Value, ir.Value]:
        """Return the next state and cell; a state or cell that is ``None`` is zero.

        ``gates`` is the product with the input, biases added: input, output, forget, cell.
        """
        build, (outer, inner, last) = self.build, self.activations
        if state is not None:
            gates = build.add(gates, build.op("MatMul", [state, self.recurrence]))
        into, out, forget, new = (self._gate(gates, position) for position in range(4))
        fresh = build.op("Mul", [build.op(outer, [into]), build.op(inner, [new])])
        if cell is not None:
            kept = build.op("Mul", [build.op(outer, [forget]), cell])
            fresh = build.op("Add", [kept, fresh])
        return build.op("Mul", [build.op(outer, [out]), build.op(last, [fresh])]), fresh

    def gru_step(
        self, gates: ir.Value, state: ir.Value | None, linear_before_reset: bool
    ) -> ir.Value:
        """Return the next state; a state that is ``None`` is zero.

        ``gates`` is the product with the input, its bias added: update, reset, hidden.
        """
        build = self.build
        recurrent = self._recurrent_part(state, 3 if linear_before_reset else 2)
        update = self._activated(gates, recurrent, 0)
        candidate = self._gate(gates, 2)
        if linear_before_reset:
            if recurrent is not None:
                reset = self._activated(gates, recurrent, 1)
                kept = build.op("Mul", [reset, self._gate(recurrent, 2)])
                candidate = build.add(candidate, kept)
        else:
            if self.state_bias is not None:
                candidate = build.add(candidate, self._gate(self.state_bias, 2))
            if state is not None:
                reset = self._activated(gates, recurrent, 1)
                weight = self._gate(self.recurrence, 2)
                product = build.op("MatMul", [build.op("Mul", [reset, state]), weight])
                candidate = build.add(candidate, product)
        candidate = build.op(self.activations[1], [candidate])
        # (1 - update) candidate + update state
        faded = build.op("Sub", [candidate, build.op("Mul", [update, candidate])])
        return faded if state is None else build.add(faded, build.op("Mul", [update, state]))

    def _recurrent_part(self, state: ir.Value | None, gates: int) -> ir.Value | None:
        """Return what the state adds to the first ``gates`` gates, its bias included."""
        width, bias = gates * self.hidden, self.state_bias
        if bias is not None:
            bias = self.build.part(bias, -1, 0, width)
        if state is None:
            return bias
        weight = self.build.part(self.recurrence, -1, 0, width)
        return self.build.add(self.build.op("MatMul", [state, weight]), bias)

    def _activated(self, gates: ir.Value, recurrent: ir.Value | None, position: int) -> ir.Value:
        """Return an outer gate: the activation of what input and state give."""
        total = self._gate(gates, position)
        if recurrent is not None:
            total = self.build.add(total, self._gate(recurrent, position))
        return self.build.op(self.activations[0], [total])

    def _gate(self, gates: ir.Value, position: int) -> ir.Value:
        """Return one gate's part of the last axis."""
        return self.build.part(gates, -1, position * self.hidden, (position + 1) * self.hidden)


def _direction(
    build: Builder,
    node: ir.Node,
    inputs: Inputs,
    sizes: Sizes,
    index: int,
    activations: tuple[str, ...],
) -> _Direction:
    width = GATES[node.op_type] * sizes.hidden
    weight, recurrence = (
        build.op("Transpose", [build.at(inputs[name], 0, index)]) for name in ("W", "R")
    )
    input_bias = state_bias = None
    if "B" in inputs:
        both = build.at(inputs["B"], 0, index)
        input_bias = build.part(both, 0, 0, width)
        state_bias = build.part(both, 0, width, 2 * width)
    return _Direction(build, weight, recurrence, input_bias, state_bias, sizes.hidden, activations)


def _run(
    direction: _Direction,
    node: ir.Node,
    inputs: Inputs,
    sizes: Sizes,
    index: int,
    backwards: bool,
) -> tuple[list[ir.Value], ir.Value | None]:
    """Return the states of one direction after each step, in order of time, and the last cell."""
    build = direction.build
    product = build.add(build.op("MatMul", [inputs["X"], direction.weight]), direction.input_bias)
    if node.op_type == "LSTM":
        product = build.add(product, direction.state_bias)
    state, cell = (
        _initial(build, inputs.get(name), sizes, index) for name in ("initial_h", "initial_c")
    )
    linear_before_reset = bool(node.attributes.get_int("linear_before_reset", 0))
    states = []
    for step in reversed(range(sizes.steps)) if backwards else range(sizes.steps):
        gates = build.at(product, sizes.layout, step)
        if node.op_type == "LSTM":
            state, cell = direction.lstm_step(gates, state, cell)
        else:
            state = direction.gru_step(gates, state, linear_before_reset)
        states.append(state)
    return (states[::-1] if backwards else states), cell


def _initial(build: Builder, value: ir.Value | None, sizes: Sizes, index: int) -> ir.Value | None:
    """Return an initial state ``(batch, hidden)``; ``None`` where it is zero."""
    if value is None:
        return None
    if value.const_value is not None and not np.any(value.const_value.numpy()):
        return None
    return build.at(value, sizes.layout, index)


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
