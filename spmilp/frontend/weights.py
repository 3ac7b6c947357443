"""Constants in integers: transposed as integers, or as reals where an operator wants floats."""

from dataclasses import replace

import numpy as np

from spmilp.frontend.graph import Operator, Quantisation, Scale, Tensor
from spmilp.frontend.unfused import UnfusedNetwork


def transpose_integer_weights(network: UnfusedNetwork) -> UnfusedNetwork:
    """Return the network with ``Transpose(DequantizeLinear(w))`` as ``DequantizeLinear(w')``."""
    tensors = dict(network.tensors)
    reals: dict[str, Operator] = {}
    operators = []
    for operator in network.operators:
        source = reals.get(operator.inputs[0]) if operator.kind == "Transpose" else None
        if source is not None:
            operator = _transposed(operator, source, tensors)
        if _dequantises_constant(operator, tensors):
            reals[operator.output] = operator
        operators.append(operator)
    return replace(network, operators=tuple(operators), tensors=tensors)


def compute_constant_reals(network: UnfusedNetwork) -> UnfusedNetwork:
    """Return the network with the result of every DequantizeLinear of a constant as a constant."""
    tensors = dict(network.tensors)
    operators = []
    for operator in network.operators:
        if _dequantises_constant(operator, tensors) and operator.output not in network.outputs:
            source, given = tensors[operator.inputs[0]], operator.quantisation
            scale = None if given is None else given.inputs[0]
            data = None if source.data is None or scale is None else _reals(source.data, scale)
            tensors[operator.output] = replace(
                tensors[operator.output], data=data, shape_only=source.shape_only
            )
        else:
            operators.append(operator)
    return replace(network, operators=tuple(operators), tensors=tensors)


def _dequantises_constant(operator: Operator, tensors: dict[str, Tensor]) -> bool:
    if operator.kind != "DequantizeLinear":
        return False
    source = tensors[operator.inputs[0]]
    return source.data is not None or source.shape_only


def _transposed(transpose: Operator, source: Operator, tensors: dict[str, Tensor]) -> Operator:
    """Return the DequantizeLinear of a transposed constant."""
    perm = transpose.attributes["perm"]
    scale = None if source.quantisation is None else source.quantisation.inputs[0]
    if scale is None or not isinstance(perm, tuple):
        return transpose
    weight = tensors[source.inputs[0]]
    order = [int(axis) for axis in perm]
    name = f"{weight.name}/{transpose.name}"
    tensors[name] = Tensor(
        name=name,
        shape=tuple(weight.shape[axis] for axis in order),
        dtype=weight.dtype,
        data=None if weight.data is None else np.ascontiguousarray(weight.data.transpose(order)),
        shape_only=weight.shape_only,
    )
    axis = None if scale.axis is None else order.index(scale.axis)
    return replace(
        source,
        name=transpose.name,
        inputs=(name,),
        output=transpose.output,
        quantisation=Quantisation(inputs=(replace(scale, axis=axis),), output=None),
    )


def _reals(integers: np.ndarray, scale: Scale) -> np.ndarray:
    """Return ``scale * (integer - zero point)`` in float32."""
    shape = [1] * integers.ndim
    if scale.axis is not None:
        shape[scale.axis] = -1
    centred = integers.astype(np.int32) - scale.zero_point.reshape(shape)
    return centred.astype(np.float32) * scale.scale.reshape(shape)
