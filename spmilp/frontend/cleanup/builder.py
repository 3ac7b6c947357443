"""Adds nodes to a graph, with names that tell where they come from."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape


class Builder:
    """New nodes in place of one; their names begin with its name."""

    def __init__(self, graph: ir.Graph, prefix: str) -> None:
        self.tape = Tape()
        self._graph = graph
        self._prefix = prefix
        self._count = 0

    def op(self, kind: str, inputs: Sequence[ir.Value | None], **attributes: int) -> ir.Value:
        """Add a node and return its output."""
        self._count += 1
        name = f"{self._prefix}/{kind}_{self._count}"
        output = ir.Value(name=f"{name}/out")
        return self.tape.op(kind, inputs, attributes, name=name, output=output)

    def integers(self, *values: int) -> ir.Value:
        """Add a constant of one axis."""
        self._count += 1
        name = f"{self._prefix}/integers_{self._count}"
        value = self.tape.initializer(ir.tensor(np.array(values, dtype=np.int64), name=name), name)
        self._graph.register_initializer(value)
        return value

    def part(self, value: ir.Value, axis: int, start: int, stop: int) -> ir.Value:
        """Return the elements ``[start, stop)`` along one axis."""
        bounds = [self.integers(start), self.integers(stop), self.integers(axis)]
        return self.op("Slice", [value, *bounds])

    def at(self, value: ir.Value, axis: int, index: int) -> ir.Value:
        """Return one position along an axis, without the axis."""
        part = self.part(value, axis, index, index + 1)
        return self.op("Squeeze", [part, self.integers(axis)])

    def add(self, value: ir.Value, *others: ir.Value | None) -> ir.Value:
        """Add what is there of ``others``."""
        for other in others:
            if other is not None:
                value = self.op("Add", [value, other])
        return value
