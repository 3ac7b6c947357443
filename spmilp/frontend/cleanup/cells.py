"""One time step of an LSTM and of a GRU, as ONNX defines them."""

from dataclasses import dataclass

import onnx_ir as ir

from spmilp.frontend.cleanup.builder import Builder


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
