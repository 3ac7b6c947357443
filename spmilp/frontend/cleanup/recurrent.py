"""LSTM and GRU become matrix products and element-wise operators, one set per time step.

The products with the input do not depend on the state, so one MatMul computes them for all steps.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from spmilp.frontend.cleanup.nodes import Builder, RefusedError, noting_what_is_malformed

DEFAULT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
ACTIVATIONS = {"Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"}
"""Activations that are operators without parameters of their own."""

BACKWARDS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
"""Inputs of LSTM; GRU has the first six."""


def unroll_recurrences(model: ir.Model) -> None:
    """Replace every LSTM and GRU; note the reason at those that cannot be."""
    for node in list(model.graph):
        if node.domain == "" and node.op_type in DEFAULT_ACTIVATIONS:
            with noting_what_is_malformed(node):
                build = _Unrolling(model.graph, node)
                build.replace(build.outputs()[: len(node.outputs)])


class _Unrolling(Builder):
    """Builds what stands for a node, one direction after the other, step by step.

    Weights for the input are ``(inputs, gates * hidden)``, for the state ``(hidden, gates *
    hidden)``, biases ``(gates * hidden)``; gates lie side by side in the last axis. A state, cell
    or bias that is ``None`` is zero.
    """

    def __init__(self, graph: ir.Graph, node: ir.Node) -> None:
        super().__init__(graph, node)
        self.is_lstm = node.op_type == "LSTM"
        names = INPUTS if self.is_lstm else INPUTS[:6]
        given = zip(names, node.inputs, strict=False)
        self.inputs = {name: value for name, value in given if value is not None}
        self.layout = node.attributes.get_int("layout", 0)
        self.steps, self.hidden = self._shape("X")[self.layout], self._shape("R")[2]
        self._shape("W")
        if "P" in self.inputs:
            raise RefusedError("peephole weights (input P) are not supported")
        for attribute in ("clip", "input_forget"):
            if attribute in node.attributes and node.attributes[attribute].value:
                raise RefusedError(f"attribute {attribute} is not supported")
        if "sequence_lens" in self.inputs:
            known = self.inputs["sequence_lens"].const_value
            if known is None or np.any(known.numpy() != self.steps):
                raise RefusedError(
                    f"sequence_lens must be constant, {self.steps} for every sequence"
                )

    def _shape(self, name: str) -> tuple[int, ...]:
        shape = self.inputs[name].shape if name in self.inputs else None
        if shape is None or not shape.is_static():
            raise RefusedError(f"its input {name} is not given, or its shape is not known")
        return shape.numpy()

    def outputs(self) -> list[ir.Value]:
        """Return Y, Y_h, and of an LSTM Y_c."""
        directions = BACKWARDS[self.node.attributes.get_string("direction", "forward")]
        chosen = [self._activations(index) for index in range(len(directions))]
        histories, finals, cells = [], [], []
        for index, backwards in enumerate(directions):
            self.activations = chosen[index]
            states, cell = self._direction(index, backwards)
            histories.append(states)
            finals.append(states[0] if backwards else states[-1])
            cells.extend([] if cell is None else [cell])
        # Y is (steps, directions, batch, hidden); batch comes first in layout 1.
        steps = []
        for side_by_side in zip(*histories, strict=True):
            joined = self._stacked(side_by_side)
            steps.append(self.op("Unsqueeze", [joined, self.integers(self.layout)]))
        found = [self.op("Concat", steps, axis=self.layout), self._stacked(finals)]
        return [*found, self._stacked(cells)] if self.is_lstm else found

    def _activations(self, direction: int) -> tuple[str, ...]:
        default = DEFAULT_ACTIVATIONS[self.node.op_type]
        names = self.node.attributes.get_strings("activations", (direction + 1) * default)
        chosen = tuple(names)[direction * len(default) : (direction + 1) * len(default)]
        if len(chosen) < len(default) or not set(chosen) <= ACTIVATIONS:
            raise RefusedError(f"activations {', '.join(names)} are not supported")
        return chosen

    def _direction(self, index: int, backwards: bool) -> tuple[list[ir.Value], ir.Value | None]:
        """Return the states after each step, in order of time, and the last cell."""
        weight, self.recurrence = (
            self.op("Transpose", [self.at(self.inputs[name], 0, index)]) for name in ("W", "R")
        )
        bias = self.state_bias = None
        if "B" in self.inputs:
            width = (4 if self.is_lstm else 3) * self.hidden
            both = self.at(self.inputs["B"], 0, index)
            bias = self.part(both, 0, 0, width)
            self.state_bias = self.part(both, 0, width, 2 * width)
        product = self.add(self.op("MatMul", [self.inputs["X"], weight]), bias)
        if self.is_lstm:
            product = self.add(product, self.state_bias)
        state, cell = (self._initial(name, index) for name in ("initial_h", "initial_c"))
        states = []
        for step in reversed(range(self.steps)) if backwards else range(self.steps):
            gates = self.at(product, self.layout, step)
            if self.is_lstm:
                state, cell = self._lstm_step(gates, state, cell)
            else:
                state = self._gru_step(gates, state)
            states.append(state)
        return (states[::-1] if backwards else states), cell

    def _initial(self, name: str, index: int) -> ir.Value | None:
        """Return an initial state ``(batch, hidden)``."""
        value = self.inputs.get(name)
        known = None if value is None else value.const_value
        if value is None or (known is not None and not known.numpy().any()):
            return None
        return self.at(value, self.layout, index)

    def _lstm_step(
        self, gates: ir.Value, state: ir.Value | None, cell: ir.Value | None
    ) -> tuple[ir.Value, ir.Value]:
        """Return the next state and cell.

        ``gates`` is the product with the input, biases added: input, output, forget, cell.
        """
        outer, inner, last = self.activations
        if state is not None:
            gates = self.add(gates, self.op("MatMul", [state, self.recurrence]))
        into, out, forget, new = (self._gate(gates, position) for position in range(4))
        fresh = self.op("Mul", [self.op(outer, [into]), self.op(inner, [new])])
        if cell is not None:
            kept = self.op("Mul", [self.op(outer, [forget]), cell])
            fresh = self.op("Add", [kept, fresh])
        return self.op("Mul", [self.op(outer, [out]), self.op(last, [fresh])]), fresh

    def _gru_step(self, gates: ir.Value, state: ir.Value | None) -> ir.Value:
        """Return the next state.

        ``gates`` is the product with the input, its bias added: update, reset, hidden.
        """
        linear_before_reset = bool(self.node.attributes.get_int("linear_before_reset", 0))
        recurrent = self._recurrent_part(state, 3 if linear_before_reset else 2)
        update = self._activated(gates, recurrent, 0)
        candidate = self._gate(gates, 2)
        if linear_before_reset:
            if recurrent is not None:
                reset = self._activated(gates, recurrent, 1)
                kept = self.op("Mul", [reset, self._gate(recurrent, 2)])
                candidate = self.add(candidate, kept)
        else:
            if self.state_bias is not None:
                candidate = self.add(candidate, self._gate(self.state_bias, 2))
            if state is not None:
                reset = self._activated(gates, recurrent, 1)
                weight = self._gate(self.recurrence, 2)
                product = self.op("MatMul", [self.op("Mul", [reset, state]), weight])
                candidate = self.add(candidate, product)
        candidate = self.op(self.activations[1], [candidate])
        # (1 - update) candidate + update state
        faded = self.op("Sub", [candidate, self.op("Mul", [update, candidate])])
        return faded if state is None else self.add(faded, self.op("Mul", [update, state]))

    def _recurrent_part(self, state: ir.Value | None, gates: int) -> ir.Value | None:
        """Return what the state adds to the first ``gates`` gates, its bias included."""
        width, bias = gates * self.hidden, self.state_bias
        if bias is not None:
            bias = self.part(bias, -1, 0, width)
        if state is None:
            return bias
        weight = self.part(self.recurrence, -1, 0, width)
        return self.add(self.op("MatMul", [state, weight]), bias)

    def _activated(self, gates: ir.Value, recurrent: ir.Value | None, position: int) -> ir.Value:
        """Return an outer gate: the activation of what input and state give."""
        total = self._gate(gates, position)
        if recurrent is not None:
            total = self.add(total, self._gate(recurrent, position))
        return self.op(self.activations[0], [total])

    def _gate(self, gates: ir.Value, position: int) -> ir.Value:
        """Return one gate's part of the last axis."""
        return self.part(gates, -1, position * self.hidden, (position + 1) * self.hidden)

    def _stacked(self, states: Sequence[ir.Value]) -> ir.Value:
        """Return states side by side: ``(directions, batch, hidden)``; batch first in layout 1."""
        parts = [self.op("Unsqueeze", [state, self.integers(self.layout)]) for state in states]
        return self.op("Concat", parts, axis=self.layout) if len(parts) > 1 else parts[0]
