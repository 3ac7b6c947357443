"""Models with broken nodes: an error that a user can act on, and no other exception."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spmilp.errors import SpmilpError, UnsupportedOperatorError
from spmilp.frontend.load import load_network
from tests.frontend.running import model_of, saved
from tests.frontend.test_planned_operators import CASES, filled_model, four_bit_model
from tests.frontend.test_planned_operators import model_with as model_of_operator
from tests.frontend.test_qlinear import CALLS
from tests.frontend.test_qlinear import model_with as model_of_quantised

ATTRIBUTES = (0, -1, 7, 1 << 40, 2.5, "x", [1], [0, 0], [-3, 9, 2, 2], [1.5])
CONSTANTS = (
    *(np.float32(number) for number in (0, -1, np.nan, np.inf)),
    *(np.zeros(shape, np.float32) for shape in ((0,), (3,), (2, 2))),
    *(np.array(numbers, np.int64) for numbers in (7, [0, 0])),
    np.zeros((2, 2), np.int8),
)
TYPES = (TensorProto.FLOAT, TensorProto.INT8, TensorProto.STRING, TensorProto.INT4)
LENGTHS = (0, 1, 2, 5, 1 << 40)


@lru_cache
def sound_models() -> tuple[bytes, ...]:
    models = [model_of_quantised(call, np.dtype(np.uint8), coarse=False) for call in CALLS.values()]
    models += [model_of_operator(*case) for case in CASES.values()]
    models += [filled_model()]
    models += [four_bit_model(TensorProto.INT4, block, zero=True) for block in (0, 16)]
    return tuple(model.SerializeToString() for model in models)


def drop_an_input(node: onnx.NodeProto, random: Random) -> None:
    del node.input[random.randrange(len(node.input))]


def leave_an_input_out(node: onnx.NodeProto, random: Random) -> None:
    node.input[random.randrange(len(node.input))] = ""


def swap_inputs(node: onnx.NodeProto, random: Random) -> None:
    node.input[:] = random.sample(list(node.input), len(node.input))


def change_an_attribute(node: onnx.NodeProto, random: Random) -> None:
    if node.attribute:
        attribute = random.choice(node.attribute)
        attribute.CopyFrom(helper.make_attribute(attribute.name, random.choice(ATTRIBUTES)))


def change_a_constant(graph: onnx.GraphProto, random: Random) -> None:
    constant = random.choice(graph.initializer)
    array = np.asarray(random.choice(CONSTANTS))
    constant.CopyFrom(numpy_helper.from_array(array, constant.name))


def give_a_constant_at_run_time(graph: onnx.GraphProto, random: Random) -> None:
    constant = random.choice(graph.initializer)
    graph.input.append(
        helper.make_tensor_value_info(constant.name, constant.data_type, list(constant.dims))
    )
    graph.initializer.remove(constant)


def change_an_input(graph: onnx.GraphProto, random: Random) -> None:
    tensor = random.choice(graph.input).type.tensor_type
    if tensor.shape.dim and random.random() < 0.5:
        random.choice(tensor.shape.dim).dim_value = random.choice(LENGTHS)
    else:
        tensor.elem_type = random.choice(TYPES)


OF_NODES = (drop_an_input, leave_an_input_out, swap_inputs, change_an_attribute)
OF_GRAPHS = (change_a_constant, give_a_constant_at_run_time, change_an_input)


@pytest.mark.full
@pytest.mark.parametrize("change", [*OF_NODES, *OF_GRAPHS], ids=lambda change: change.__name__)
def test_a_broken_model_is_read_or_refused_with_a_reason(
    tmp_path: Path, change: Callable[..., None]
) -> None:
    reasons = []
    for seed in range(30):
        random = Random(seed)
        model = onnx.load_model_from_string(random.choice(sound_models()))
        nodes = [node for node in model.graph.node if node.input]
        if change in OF_NODES:
            change(random.choice(nodes), random)
        elif model.graph.initializer:
            change(model.graph, random)
        path = saved(tmp_path, model)
        try:
            load_network(path)
        except SpmilpError as error:
            reasons.append(str(error))
    assert reasons
    assert all(reasons)


def test_negative_batch_axes_do_not_reach_the_library_that_they_crash(tmp_path: Path) -> None:
    graph = """
    agraph (float[1,8,16] x, int64[1,20,2] p) => (float[m,n] y)
    { [taken] y = GatherND<batch_dims=-5>(x, p) }
    """
    with pytest.raises(UnsupportedOperatorError, match=r"taken \(GatherND\): .* is negative"):
        load_network(saved(tmp_path, model_of(graph)))


def test_a_tensor_without_a_type_is_refused(tmp_path: Path) -> None:
    model = model_of("agraph (float[4] x) => (float[4] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.UNDEFINED
    with pytest.raises(UnsupportedOperatorError, match="data type of x is not known"):
        load_network(saved(tmp_path, model))


def test_a_node_that_is_not_well_formed_is_named(tmp_path: Path) -> None:
    graph = """
    agraph (float[1,2,4,4] x) => (float[1,8,2,2] y)
    <float[8,2,3,3] w = {W}, float[3] three = {1, 1, 1}>
    { [conv] c = Conv(x, w) [norm] y = BatchNormalization(c, three, three, three, three) }
    """
    path = saved(tmp_path, model_of(graph.replace("{W}", f"{{{', '.join(['1'] * 144)}}}")))
    with pytest.raises(UnsupportedOperatorError) as raised:
        load_network(path)
    ((name, kind, reason),) = raised.value.nodes
    assert (name, kind) == ("norm", "BatchNormalization")
    assert "not well-formed" in reason
