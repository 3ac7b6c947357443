"""One operator in two forms: ours, and a model of one node that onnxruntime runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from spmilp.checker.values.compare import with_unsigned_weights
from spmilp.checker.values.kernels.call import Call
from spmilp.checker.values.kernels.registry import compute
from spmilp.frontend.graph import Operator, Quantisation, Tensor
from spmilp.frontend.operators.boxes import slices
from spmilp.frontend.operators.geometry import Geometry
from spmilp.frontend.operators.registry import family_of
from spmilp.units import Box

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """An operator, its inputs, and how ONNX writes it.

    ``attributes`` are ours; ``onnx_attributes`` are the node's and ``side_inputs`` the constants
    that the node has behind its data inputs (``None``: left out). ``tight`` are the inputs of which
    each face of what is read holds an element that matters. ``outputs`` are the node's; the one
    named ``out`` is compared.
    """

    kind: str
    arrays: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    onnx_attributes: Mapping[str, Any] | None = None
    side_inputs: Sequence[Array | None] = ()
    opset: int = 22
    tight: tuple[int, ...] = (0, 1, 2)
    rtol: float = 1e-5
    quantisation: Quantisation | None = None
    reference: bool = False
    outputs: tuple[str, ...] = ("out",)

    def __post_init__(self) -> None:
        """Make arrays of the scalars to which NumPy turns results without axes."""
        arrays = [None if array is None else np.asarray(array) for array in self.arrays]
        object.__setattr__(self, "arrays", arrays)

    def expected(self) -> Array:
        """Run the node as a model, on whole tensors."""
        feeds, names, constants = {}, [], []
        for position, array in enumerate([*self.arrays, *self.side_inputs]):
            if array is None:
                names.append("")
                continue
            names.append(f"in{position}")
            if position < len(self.arrays):
                feeds[names[-1]] = array
            else:
                constants.append(numpy_helper.from_array(array, names[-1]))
        attributes = self.attributes if self.onnx_attributes is None else self.onnx_attributes
        node = helper.make_node(self.kind, names, self.outputs, **attributes)
        graph = helper.make_graph(
            [node],
            "one",
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                )
                for name, array in feeds.items()
            ],
            [onnx.ValueInfoProto(name="out")],
            constants,
        )
        opset = helper.make_opsetid("", self.opset)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
        return run(model, feeds, reference=self.reference)

    def operator(self) -> Operator:
        """Return our form of the node."""
        names = tuple(
            "" if array is None else f"in{position}" for position, array in enumerate(self.arrays)
        )
        return Operator(
            name="node",
            kind=self.kind,
            inputs=names,
            output="out",
            attributes=self.attributes,
            quantisation=self.quantisation,
        )

    def tensors(self, dtype: Any = None) -> dict[str, Tensor]:
        """Return inputs and output; the output's shape is what the family says."""
        operator = self.operator()
        tensors = {
            name: Tensor(name=name, shape=array.shape, dtype=array.dtype)
            for name, array in zip(operator.inputs, self.arrays, strict=True)
            if array is not None
        }
        shape = geometry_of(operator, tensors).shape
        tensors["out"] = Tensor(name="out", shape=shape, dtype=np.dtype(dtype or np.float32))
        return tensors

    def pieces(self, boxes: Sequence[Box | None]) -> list[Array | None]:
        """Return copies of what is read: nothing else can be looked at."""
        return [
            None if box is None or array is None else array[slices(box, (0,) * array.ndim)].copy()
            for array, box in zip(self.arrays, boxes, strict=True)
        ]

    def compute(self, tensors: Mapping[str, Tensor], box: Box) -> Array:
        """Compute a box from what it reads."""
        operator = self.operator()
        boxes = family_of(operator.kind)(
            operator, [tensors.get(name) for name in operator.inputs]
        ).reads(box)
        return compute(Call(operator, tensors, self.pieces(boxes), boxes, box))


def geometry_of(operator: Operator, tensors: Mapping[str, Tensor]) -> Geometry:
    """Return the geometry of an operator on tensors."""
    inputs = [tensors.get(name) for name in operator.inputs]
    return family_of(operator.kind)(operator, inputs)


def run(model: onnx.ModelProto, feeds: Mapping[str, Array], reference: bool = False) -> Array:
    """Return the one output of a model, its nodes run as they are."""
    if reference:
        return np.asarray(ReferenceEvaluator(model).run(None, dict(feeds))[0])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        with_unsigned_weights(model).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )
    return np.asarray(session.run(None, dict(feeds))[0])
