"""Helpers of the passes: what users call a node, reasons against it, new nodes, quiet libraries."""

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.tape import Tape


def name_of(node: ir.Node) -> str:
    """Return the name of a node, else that of its first output."""
    return node.name or next((value.name for value in node.outputs if value.name), node.op_type)


def is_used(value: ir.Value) -> bool:
    """Return whether anything reads a value."""
    return bool(value.uses()) or value.is_graph_output()


KEY = "spmilp.reason"


ASIDE = "spmilp.aside"
"""The domain of nodes that cannot be lowered, so that no pass looks at them."""


def set_reason(node: ir.Node, reason: str) -> None:
    """Note why a node cannot be lowered, and set it aside."""
    node.metadata_props[KEY] = reason
    node.domain = ASIDE
    if node.graph is not None:
        node.graph.opset_imports[ASIDE] = 1


def reason_of(node: ir.Node) -> str | None:
    """Return what has been noted of a node, if anything."""
    return node.metadata_props.get(KEY)


MALFORMED = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)
"""What broken nodes raise, here and in the libraries: each in its own way."""


class RefusedError(Exception):
    """A node cannot be replaced; the message is the reason."""


@contextmanager
def noting_what_is_malformed(node: ir.Node) -> Iterator[None]:
    """Take an error over a node as the reason why it cannot be lowered."""
    try:
        yield
    except RefusedError as error:
        set_reason(node, str(error))
    except MALFORMED as error:
        set_reason(node, f"it is not well-formed: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """Return the first line of what caused an error, or its kind where it says nothing."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next(iter(str(error).splitlines()), type(error).__name__)


ORIGIN = "spmilp.origin"


def mark_origins(model: ir.Model) -> None:
    """Note at every node its place, operator type and name, before others come in its place."""
    for place, node in enumerate(model.graph.all_nodes()):
        node.metadata_props.setdefault(ORIGIN, f"{place} {node.op_type} {name_of(node)}")


def origin_of(node: ir.Node) -> tuple[int, str, str]:
    """Return place, name and operator type of the node in the file that a node stands for.

    A node of which nothing has been noted stands for itself, behind all others.
    """
    noted = node.metadata_props.get(ORIGIN)
    if noted is None:
        return sys.maxsize, name_of(node), node.op_type
    place, kind, name = noted.split(" ", 2)
    return int(place), name, kind


class Builder:
    """New nodes in place of one; their names begin with its name."""

    def __init__(self, graph: ir.Graph, node: ir.Node, label: str = "") -> None:
        self.tape = Tape()
        self.graph, self.node = graph, node
        self.prefix = f"{name_of(node)}{label}"
        self._count = 0

    def replace(self, outputs: Sequence[ir.Value]) -> None:
        """Put the nodes in place of that one; ``outputs`` take its first outputs' place."""
        node, nodes = self.node, self.tape.nodes
        for new in nodes if ORIGIN in node.metadata_props else ():
            new.metadata_props[ORIGIN] = node.metadata_props[ORIGIN]
        ir.convenience.replace_nodes_and_values(
            self.graph, node, [node], nodes, node.outputs[: len(outputs)], outputs
        )

    def op(self, kind: str, inputs: Sequence[ir.Value | None], **attributes: Any) -> ir.Value:
        """Add a node and return its output."""
        self._count += 1
        name = f"{self.prefix}/{kind}_{self._count}"
        output = ir.Value(name=f"{name}/out")
        return self.tape.op(kind, inputs, attributes, name=name, output=output)

    def constant(self, values: NDArray[Any], kind: str = "constant") -> ir.Value:
        """Add a constant; ``kind`` is part of its name."""
        self._count += 1
        name = f"{self.prefix}/{kind}_{self._count}"
        value = self.tape.initializer(ir.tensor(values, name=name), name)
        self.graph.register_initializer(value)
        return value

    def integers(self, *values: int) -> ir.Value:
        """Add a constant of one axis."""
        return self.constant(np.array(values, dtype=np.int64), "integers")

    def at(self, value: ir.Value, axis: int, index: int) -> ir.Value:
        """Return one position along an axis, without the axis."""
        along = self.integers(axis)
        part = self.op("Slice", [value, self.integers(index), self.integers(index + 1), along])
        return self.op("Squeeze", [part, along])


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Hold back what the ONNX libraries log, and NumPy's warnings while constants are folded."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
