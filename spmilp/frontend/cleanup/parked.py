"""Large constants stand aside while a model passes through ONNX's C++ code as one message."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import onnx_ir as ir

LARGE = 1024
"""Bytes from which a constant is large."""


@contextmanager
def parked_constants(model: ir.Model) -> Iterator[Callable[[ir.Model], ir.Model]]:
    """Make the large constants inputs, and give a function that makes them constants again.

    The function takes the new model. The old one is left with its constants as inputs.
    """
    graph = model.graph
    parked = {}
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if value.name and tensor is not None and tensor.nbytes > LARGE:
            parked[value.name] = tensor
            value.shape, value.type = ir.Shape(tensor.shape.numpy()), ir.TensorType(tensor.dtype)
            del graph.initializers[value.name]
            value.const_value = None
            graph.inputs.append(value)

    def restore(new: ir.Model) -> ir.Model:
        for value in list(new.graph.inputs):
            if value.name in parked:
                new.graph.inputs.remove(value)
                value.const_value = parked[value.name]
                new.graph.register_initializer(value)
        return new

    yield restore
