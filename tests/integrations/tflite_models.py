"""TensorFlow Lite models built by hand, by the object API of the schema."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from spmilp.frontend.tflite.file import write_tflite


class Graph:
    """One subgraph of a model: tensors by their index, operators in their order."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self.built = schema.SubGraphT(tensors=[], operators=[], inputs=[], outputs=[])
        model.built.subgraphs.append(self.built)
        self.random = np.random.default_rng(len(model.built.subgraphs))

    def tensor(
        self,
        shape: Sequence[int],
        kind: str = "INT8",
        *,
        scale: float | Sequence[float] | None = None,
        zero_point: int | Sequence[int] = 0,
        axis: int = 0,
        data: NDArray[Any] | None = None,
        name: str = "",
        is_variable: bool = False,
    ) -> int:
        """Add a tensor, a constant where there is data, and return its index."""
        quantised = scale is not None and schema.QuantizationParametersT(
            scale=np.atleast_1d(np.float32(scale)),
            zeroPoint=np.broadcast_to(np.int64(zero_point), np.atleast_1d(scale).shape).copy(),
            quantizedDimension=axis,
        )
        self.built.tensors.append(
            schema.TensorT(
                shape=np.array(shape, dtype=np.int32),
                type=getattr(schema.TensorType, kind),
                buffer=0 if data is None else self.model.buffer(data),
                name=name or f"t{len(self.built.tensors)}",
                quantization=quantised or None,
                isVariable=is_variable,
            )
        )
        return len(self.built.tensors) - 1

    def operator(
        self,
        kind: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: Any = None,
        *,
        version: int = 1,
    ) -> None:
        """Add an operator: ``ADD``, with options such as ``schema.AddOptionsT()``."""
        code, codes = getattr(schema.BuiltinOperator, kind), self.model.built.operatorCodes
        known = [(one.builtinCode, one.version) for one in codes]
        if (code, version) not in known:
            known.append((code, version))
            codes.append(
                schema.OperatorCodeT(
                    builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=version
                )
            )
        named = type(options).__name__.removesuffix("T") if options else "NONE"
        self.built.operators.append(
            schema.OperatorT(
                opcodeIndex=known.index((code, version)),
                inputs=np.array(inputs, dtype=np.int32),
                outputs=np.array(outputs, dtype=np.int32),
                builtinOptionsType=getattr(schema.BuiltinOptions, named),
                builtinOptions=options,
            )
        )

    def ends(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Say which tensors go in and out."""
        self.built.inputs = np.array(inputs, dtype=np.int32)
        self.built.outputs = np.array(outputs, dtype=np.int32)

    def shape(self, tensor: int) -> list[int]:
        """Return the extents of a tensor."""
        return [int(extent) for extent in self.built.tensors[tensor].shape]

    def conv(self, source: int, channels: int, *, kernel: int = 1, stride: int = 1) -> int:
        """Add an int8 convolution with padding SAME and random weights; return its output."""
        batch, height, width, depth = self.shape(source)
        weights = self.random.integers(-99, 99, (channels, kernel, kernel, depth), dtype=np.int8)
        bias = self.random.integers(-500, 500, channels, dtype=np.int32)
        scales = [0.01] * channels
        filters = self.tensor(weights.shape, scale=scales, zero_point=0, data=weights)
        biases = self.tensor([channels], "INT32", scale=[0.001] * channels, data=bias)
        extents = [batch, -(-height // stride), -(-width // stride), channels]
        output = self.tensor(extents, scale=0.1)
        options = schema.Conv2DOptionsT(padding=0, strideH=stride, strideW=stride)
        self.operator("CONV_2D", [source, filters, biases], [output], options, version=3)
        return output

    def add(self, first: int, second: int) -> int:
        """Add an int8 sum; return its output."""
        output = self.tensor(self.shape(first), scale=0.1)
        self.operator("ADD", [first, second], [output], schema.AddOptionsT(), version=2)
        return output

    def concat(self, *sources: int) -> int:
        """Add a concatenation of channels; return its output."""
        extents = self.shape(sources[0])
        extents[-1] = sum(self.shape(source)[-1] for source in sources)
        output = self.tensor(extents, scale=0.1)
        options = schema.ConcatenationOptionsT(axis=3)
        self.operator("CONCATENATION", sources, [output], options, version=2)
        return output


class Model:
    """A model; its first subgraph is the network."""

    def __init__(self) -> None:
        empty = schema.BufferT()
        self.built = schema.ModelT(version=3, operatorCodes=[], subgraphs=[], buffers=[empty])

    def buffer(self, data: NDArray[Any]) -> int:
        """Add the bytes of an array; return the index of their buffer."""
        content = np.frombuffer(np.ascontiguousarray(data).tobytes(), dtype=np.uint8)
        self.built.buffers.append(schema.BufferT(data=content))
        return len(self.built.buffers) - 1

    def content(self) -> bytes:
        """Return the model's file."""
        return write_tflite(self.built)
