"""TensorFlow Lite models of a few operators, built for tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spmilp.frontend.tflite.file import schema, write_tflite


class Builder:
    """Adds tensors and operators one by one; tensors are numbers.

    Its subgraph is the next one of the model that another one builds, if there is one.
    """

    def __init__(self, other: "Builder | None" = None) -> None:
        self._classes = schema()
        self._model = self._classes.ModelT() if other is None else other._model
        if other is None:
            self._model.version = 3
            self._model.buffers = [self._classes.BufferT()]
            self._model.operatorCodes, self._model.subgraphs = [], []
        self._graph = self._classes.SubGraphT()
        self._graph.tensors, self._graph.operators = [], []
        self._model.subgraphs.append(self._graph)

    @property
    def tensors(self) -> list[Any]:
        """All tensors of the file."""
        found: list[Any] = self._graph.tensors
        return found

    def tensor(
        self,
        shape: Sequence[int],
        dtype: str = "int8",
        scale: float | Sequence[float] | None = None,
        zero: int | Sequence[int] = 0,
        data: Any = None,
        axis: int = 0,
        name: str = "",
        signature: Sequence[int] | None = None,
    ) -> int:
        """Add a tensor, with values if it is a constant; -1 in a signature leaves a length open."""
        one = self._classes.TensorT()
        one.shape = np.array(shape, np.int32)
        one.type = getattr(self._classes.TensorType, dtype.upper())
        if signature is not None:
            one.shapeSignature = np.array(signature, np.int32)
        one.name = name or f"t{len(self._graph.tensors)}"
        one.buffer = 0
        if data is not None:
            buffer = self._classes.BufferT()
            buffer.data = np.frombuffer(np.asarray(data, dtype).tobytes(), np.uint8)
            self._model.buffers.append(buffer)
            one.buffer = len(self._model.buffers) - 1
        if scale is not None:
            quantisation = self._classes.QuantizationParametersT()
            quantisation.scale = np.atleast_1d(np.array(scale, np.float32))
            zeros = np.broadcast_to(zero, quantisation.scale.shape)
            quantisation.zeroPoint = np.array(zeros, np.int64)
            quantisation.quantizedDimension = axis
            one.quantization = quantisation
        self._graph.tensors.append(one)
        return len(self._graph.tensors) - 1

    def operator(
        self, kind: str, inputs: Sequence[int], outputs: Sequence[int], **options: Any
    ) -> None:
        """Add an operator; its options are the schema's for it."""
        code = self._classes.OperatorCodeT()
        code.builtinCode = getattr(self._classes.BuiltinOperator, kind)
        code.deprecatedBuiltinCode, code.version = (
            min(code.builtinCode, 127),
            options.pop("version", 1),
        )
        self._model.operatorCodes.append(code)
        one = self._classes.OperatorT()
        one.opcodeIndex = len(self._model.operatorCodes) - 1
        one.inputs, one.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
        table = options.pop("table", None)
        if table:
            one.builtinOptionsType = getattr(self._classes.BuiltinOptions, table)
            one.builtinOptions = getattr(self._classes, f"{table}T")()
            for name, value in options.items():
                assert hasattr(one.builtinOptions, name), name
                setattr(one.builtinOptions, name, value)
        self._graph.operators.append(one)

    def write(self, path: Path, inputs: Sequence[int], outputs: Sequence[int]) -> Path:
        """Write the model."""
        self._graph.inputs, self._graph.outputs = (
            np.array(inputs, np.int32),
            np.array(outputs, np.int32),
        )
        path.write_bytes(write_tflite(self._model))
        return path
