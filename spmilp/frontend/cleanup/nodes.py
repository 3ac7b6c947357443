"""Helpers of the passes: names of nodes, reasons against them, new nodes, quiet libraries."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape


def name_of(node: ir.Node) -> str:
    """Return the name of a node, else that of its first output."""
    return node.name or next((value.name for value in node.outputs if value.name), node.op_type)


KEY = "spmilp.reason"


def set_reason(node: ir.Node, reason: str) -> None:
    """Note why a node cannot be lowered."""
    node.metadata_props[KEY] = reason


def reason_of(node: ir.Node) -> str | None:
    """Return what has been noted of a node, if anything."""
    return node.metadata_props.get(KEY)


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


NOISY = ("onnx_ir", "onnxscript")


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Hold back what the ONNX libraries log, and NumPy's warnings while constants are folded."""
    loggers = [logging.getLogger(name) for name in NOISY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
