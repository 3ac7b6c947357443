"""onnxruntime's products of bytes are exact, whatever the processor."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spmilp.checker.values.compare import with_unsigned_weights
from spmilp.checker.values.kernels.call import Array

WEIGHTS = np.full((8, 2), 127, np.int8)


def product(kind: int, zeros: bool) -> onnx.ModelProto:
    """Return a product of bytes of a kind and signed weights, with zero points or without."""
    given = {"w": WEIGHTS}
    if zeros:
        value = np.uint8(3) if kind == TensorProto.UINT8 else np.int8(3)
        given |= {"x_zero": np.asarray(value), "w_zero": np.asarray(np.int8(-5))}
    node = helper.make_node("MatMulInteger", ["x", *given], ["y"])
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", kind, [1, 8])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 2])],
        [numpy_helper.from_array(array, name) for name, array in given.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def computed(model: onnx.ModelProto, values: Array) -> Array:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {"x": values})[0])


@pytest.mark.parametrize("zeros", [False, True])
def test_sums_of_the_largest_products_are_not_cut_off(zeros: bool) -> None:
    values = np.full((1, 8), 255, np.uint8)
    changed = with_unsigned_weights(product(TensorProto.UINT8, zeros))
    onnx.checker.check_model(changed)
    x_zero, w_zero = (3, -5) if zeros else (0, 0)
    assert computed(changed, values).tolist() == [[8 * (255 - x_zero) * (127 - w_zero)] * 2]


def test_weights_of_signed_values_stay_signed() -> None:
    model = product(TensorProto.INT8, zeros=True)
    assert with_unsigned_weights(model) == model
