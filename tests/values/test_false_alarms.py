"""Sound plans of networks whose sums cancel and whose integers tie raise no alarm; errors do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spmilp.checker.values import compare
from spmilp.checker.values.compare import Difference, replay_plan
from spmilp.checker.values.kernels import registry
from spmilp.checker.values.kernels.call import Call
from spmilp.checker.values.state import Addresses, ReplayError, State
from spmilp.frontend.graph import Network, Operator
from spmilp.frontend.load import load_network
from spmilp.lowering.lower import lower
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout
from tests.frontend.running import saved
from tests.values.test_lowered_networks import cut
from values.sequential import MACHINE, sequential_plan

pytestmark = pytest.mark.full


RandomNetwork: TypeAlias = Callable[[int], onnx.ModelProto]


class Maker:
    """Writes a random network, node by node."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return its result."""
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Add a constant; return its name."""
        self.constants.append(
            numpy_helper.from_array(np.asarray(values), f"c{len(self.constants)}")
        )
        return self.constants[-1].name

    def model(self, shape: Sequence[int], output: str, kind: int) -> onnx.ModelProto:
        """Return the model with one input, ``x``."""
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(output, kind, None)],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def cancelling(seed: int) -> onnx.ModelProto:
    """Return a float network whose sums cancel: weights in pairs of large opposite numbers."""
    make = Maker(seed)
    random, channels, side = make.random, int(make.random.integers(4, 13)), 16
    value = "x"

    def weights(*shape: int) -> Any:
        small = random.normal(size=shape)
        large = 10.0 ** random.uniform(1, 5) * random.normal(size=shape)
        half = shape[1] // 2
        large[:, half : 2 * half] = -large[:, :half]  # of channels that are nearly the same
        large[:, 2 * half :] = 0
        return (small + large).astype(np.float32)

    for _ in range(int(random.integers(3, 8))):
        match random.integers(9):
            case 0 | 1:
                both = make.node("Concat", value, value, axis=1)
                wide = weights(channels, 2 * channels, 3, 3)
                value = make.node("Conv", both, make.constant(wide), pads=[1, 1, 1, 1])
            case 2:
                scale, bias, mean = (random.normal(size=channels) * size for size in (1, 50, 50))
                numbers = (scale, bias, mean, random.uniform(1e-4, 2, channels))
                given = [make.constant(each.astype(np.float32)) for each in numbers]
                kernel = make.constant(random.normal(size=(channels, 1, 3, 3)).astype(np.float32))
                value = make.node("Conv", value, kernel, pads=[1, 1, 1, 1], group=channels)
                value = make.node("BatchNormalization", value, *given)
            case 3:
                shift = make.constant(np.float32(10.0 ** random.integers(7)))
                value = make.node("Sub", make.node("Add", value, shift), shift)
                value = make.node("Add", value, "x")
            case 4:
                mean = make.node("ReduceMean", value, make.constant(np.int64([2, 3])), keepdims=1)
                value = make.node("Sub", value, mean)
            case 5:
                last = make.constant(np.ones(side, np.float32))
                far = make.node("Add", value, make.constant(np.float32(random.integers(1000))))
                value = make.node("LayerNormalization", far, last, axis=3)
            case 6:
                value = make.node("Softmax", value, axis=int(random.integers(1, 4)))
            case 7:
                value = make.node("MatMul", value, make.node("Transpose", value, perm=[0, 1, 3, 2]))
            case _:
                kinds = ("Sigmoid", "Tanh", "Elu", "Gelu20", "HardSwish", "Exp", "Softplus")
                kind = str(random.choice(kinds)).replace("Gelu20", "Erf")
                value = make.node(kind, make.node("Clip", value, "", make.constant(np.float32(3))))
    match random.integers(3):
        case 0:
            found = make.node("ArgMax", value, axis=1, keepdims=int(random.integers(2)))
            return make.model((1, channels, side, side), found, TensorProto.INT64)
        case 1:
            value = make.node("GlobalAveragePool", value)
            value = make.node("Softmax", make.node("Flatten", value))
    return make.model((1, channels, side, side), value, TensorProto.FLOAT)


def tying(seed: int) -> onnx.ModelProto:
    """Return a quantised network of residual chains, with scales of which many results tie."""
    make = Maker(seed)
    random, channels = make.random, int(make.random.integers(4, 33))
    power = bool(random.integers(2))

    def scale(low: int, high: int, *shape: int) -> Any:
        numbers = (
            2.0 ** random.integers(low, high, shape)
            if power
            else 2.0 ** (random.uniform(low, high, shape))
        )
        return np.float32(numbers)

    def requantised(value: str, low: int = -5, high: int = -2) -> str:
        pair = make.constant(scale(low, high)), make.constant(np.int8(random.integers(-9, 9)))
        return make.node("DequantizeLinear", make.node("QuantizeLinear", value, *pair), *pair)

    def convolved(value: str, kernel: int) -> str:
        shape = (channels, channels, kernel, kernel)
        integers = make.constant(random.integers(-127, 128, shape).astype(np.int8))
        steps = make.constant(scale(-11, -8, channels))
        zeros = make.constant(np.zeros(channels, np.int8))
        weight = make.node("DequantizeLinear", integers, steps, zeros, axis=0)
        bias = make.constant(random.normal(size=channels).astype(np.float32))
        return make.node("Conv", value, weight, bias, pads=[kernel // 2] * 4)

    value = requantised("x")
    for _ in range(int(random.integers(2, 7))):
        branch = requantised(make.node("Relu", convolved(value, int(random.choice([1, 3])))))
        match random.integers(5):
            case 0:
                limits = (make.constant(np.float32(each)) for each in (0, 6))
                branch = requantised(make.node("Clip", convolved(branch, 3), *limits))
            case 1:
                around = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
                kind = str(random.choice(["MaxPool", "AveragePool"]))
                branch = requantised(make.node(kind, branch, **around))
            case 2:
                branch = requantised(make.node("Sigmoid", branch), -9, -7)
            case 3:
                branch = requantised(make.node("Mul", branch, value), -4, -1)
            case _:
                branch = requantised(convolved(branch, 1))
        value = requantised(make.node("Add", value, branch))
    if random.integers(2):
        found = make.node("ArgMax", value, axis=1, keepdims=int(random.integers(2)))
        return make.model((1, channels, 16, 16), found, TensorProto.INT64)
    value = requantised(make.node("GlobalAveragePool", value))
    value = make.node("Softmax", make.node("Flatten", value))
    return make.model((1, channels, 16, 16), value, TensorProto.FLOAT)


def equal(seed: int) -> onnx.ModelProto:
    """Return a network that looks for the largest of equal numbers: the first."""
    make = Maker(seed)
    same = make.node("Mul", "x", make.constant(np.float32(0)))
    return make.model((1, 4, 8, 8), make.node("ArgMax", same, axis=1), TensorProto.INT64)


@dataclass(frozen=True)
class Planned:
    """A plan without skill, of a network cut into a few tiles."""

    problem: Problem
    plan: Plan
    path: Path
    network: Network


def planned(folder: Path, model: onnx.ModelProto, seed: int = 0) -> Planned:
    """Cut each group, and lay out a plan by hand."""
    path = saved(folder, model)
    network = load_network(path, machine=MACHINE)
    problem = lower(network, MACHINE, cut(network, 2 + seed % 3, 1 + seed % 2))
    return Planned(problem, sequential_plan(problem), path, network)


def replayed(one: Planned, seed: int = 0) -> tuple[Difference, ...]:
    """Return how the outputs differ."""
    return replay_plan(one.problem, one.plan, one.path, seed=seed)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("network", [cancelling, tying])
def test_a_sound_plan_raises_no_alarm(network: RandomNetwork, seed: int, tmp_path: Path) -> None:
    for one in replayed(planned(tmp_path, network(seed), seed), seed):
        assert one.within, one.why
        assert one.allowed is None


def test_a_topk_that_leaves_the_order_free_raises_no_alarm(tmp_path: Path) -> None:
    make = Maker(0)
    five = make.constant(np.int64([5]))
    model = make.model((4, 30), make.node("TopK", "x", five, sorted=0), TensorProto.FLOAT)
    model.graph.node[0].output.append("indices")
    assert all(one.within for one in replayed(planned(tmp_path, model)))


Plant = Callable[[Network], tuple[Network, str]]
"""Returns a network with an error in it, and the result of the operator that has it, or ``""``."""


def planting(kinds: Sequence[str], change: Callable[[Operator], Operator]) -> Plant:
    """Change the first operator of some kinds for which there is a change."""

    def plant(network: Network) -> tuple[Network, str]:
        for group in network.groups:
            for position, operator in enumerate(group.operators):
                other = change(operator) if operator.kind in kinds else operator
                if other is not operator:
                    operators = list(group.operators)
                    operators[position] = other
                    groups = list(network.groups)
                    groups[group.index] = replace(group, operators=tuple(operators))
                    return replace(network, groups=tuple(groups)), operator.output
        return network, ""

    return plant


def neighbours_scale(operator: Operator) -> Operator:
    """Give each output channel of a convolution its neighbour's scale."""
    data, weight = operator.quantisation.inputs[:2]
    rolled = replace(weight, scale=np.roll(weight.scale, 1))
    if np.array_equal(rolled.scale, weight.scale):
        return operator
    inputs = (data, rolled, *operator.quantisation.inputs[2:])
    return replace(operator, quantisation=replace(operator.quantisation, inputs=inputs))


def neighbours_weights(network: Network) -> tuple[Network, str]:
    """Give each output channel of a convolution, whose scale is in its weights, its neighbour's."""
    every = (one for group in network.groups for one in group.operators if one.kind == "Conv")
    for operator in every:
        weight = network.tensors[operator.inputs[1]]
        assert weight.data is not None
        rolled = replace(weight, data=np.roll(weight.data, 1, axis=0))
        return replace(network, tensors={**network.tensors, weight.name: rolled}), operator.output
    return network, ""


def zero_point_off_by_one(operator: Operator) -> Operator:
    """Move the zero point of a result."""
    quantisation = operator.quantisation
    if quantisation is None or quantisation.output is None:
        return operator
    output = replace(quantisation.output, zero_point=quantisation.output.zero_point + 1)
    return replace(operator, quantisation=replace(quantisation, output=output))


def swapped(operator: Operator) -> Operator:
    """Swap the operands, but not their scales."""
    given = operator.quantisation
    if given is not None and len({one and one.scale.tobytes() for one in given.inputs}) == 1:
        return operator
    return replace(operator, inputs=operator.inputs[::-1])


def moved_up(operator: Operator) -> Operator:
    """Pad a row less before and one more behind."""
    top, left, bottom, right = operator.integers("pads", 4)
    if top == 0:
        return operator
    pads = (top - 1, left, bottom + 1, right)
    return replace(operator, attributes={**operator.attributes, "pads": pads})


ERRORS: dict[str, tuple[RandomNetwork, Plant]] = {
    "scale of the neighbour channel, integers": (tying, planting(["Conv"], neighbours_scale)),
    "scale of the neighbour channel, floats": (cancelling, neighbours_weights),
    "zero point": (tying, planting(["Add", "Mul", "MaxPool"], zero_point_off_by_one)),
    "swapped operands, integers": (tying, planting(["Add", "Mul"], swapped)),
    "swapped operands, floats": (cancelling, planting(["Sub"], swapped)),
    "halo, integers": (tying, planting(["Conv"], moved_up)),
    "halo, floats": (cancelling, planting(["Conv"], moved_up)),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_of_an_operator_is_found_by_its_name(
    error: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, plant = ERRORS[error]
    one, wrong, output = next(
        (one, *planted)
        for each in count(seed, 4)
        for one in [planned(tmp_path, network(each), each)]
        for planted in [plant(one.network)]
        if planted[1]
    )
    monkeypatch.setattr(compare, "load_network_of", lambda *_: (one.path, wrong))
    assert group_of(one.network, output) in found(one)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("network", [cancelling, tying, equal])
def test_an_argmax_that_is_off_by_one_is_found(
    network: RandomNetwork, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def off_by_one(call: Call) -> Any:
        values = registry.compute(call)
        return np.where(values, values - 1, 1) if call.operator.kind == "ArgMax" else values

    networks = map(network, count(seed, 4))
    one = next(one for one in networks if any(node.op_type == "ArgMax" for node in one.graph.node))
    sound = planned(tmp_path, one, seed)
    monkeypatch.setattr("spmilp.checker.values.replay.compute", off_by_one)
    assert "ArgMax argmax" in found(sound)


def group_of(network: Network, output: str) -> str:
    """Return the name of the group that an operator's result is computed in."""
    groups = (one for one in network.groups for each in one.operators if each.output == output)
    return next(groups).name


def found(one: Planned) -> str:
    """Return what a replay finds; fail if it is nothing."""
    try:
        reasons = [each.why for each in replayed(one) if each.why]
    except ReplayError as error:
        return str(error)
    assert reasons, "nothing was found"
    return reasons[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("network", [cancelling, tying])
def test_a_halo_that_is_short_by_one_is_found_by_the_tasks_name(
    network: RandomNetwork, seed: int, tmp_path: Path
) -> None:
    sound, task, read, axis = next(
        (sound, task, read, axis)
        for each in count(seed, 4)
        for sound in [planned(tmp_path, network(each), each)]
        for task in sound.problem.tasks
        for read in task.reads
        for axis, length in enumerate(sound.problem.slices[read].extent)
        if read >= len(sound.problem.buffers) and length > 1
    )
    problem = sound.problem
    one = problem.slices[read]
    extent = tuple(length - (at == axis) for at, length in enumerate(one.extent))
    size = one.bytes // one.extent[axis] * extent[axis]
    short = replace(one, extent=extent, bytes=size)
    slices = (*problem.slices[:read], short, *problem.slices[read + 1 :])
    assert task.name in found(replace(sound, problem=replace(problem, slices=slices)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("network", [cancelling, tying])
def test_an_address_that_is_off_by_one_alignment_is_found_by_the_tasks_name(
    network: RandomNetwork, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = planned(tmp_path, network(seed), seed)
    problem, random = sound.problem, np.random.default_rng(seed)
    task = problem.tasks[random.integers(len(problem.tasks))]
    position = random.integers(len(task.reads))
    wanted = sound.plan.placements[task.index].reads[position]
    layout, read = Addresses.layout, State.read

    def shifted(addresses: Addresses, slice_: int, index: int) -> Layout:
        known = layout(addresses, slice_, index)
        return Layout(known.offset + 4, known.strides)

    def off_by_one(state: State, reader: str, slice_: int, index: int, cycle: int) -> Any:
        if reader == f"task {task.name}" and index == wanted:
            with monkeypatch.context() as only_here:
                only_here.setattr(Addresses, "layout", shifted)
                return read(state, reader, slice_, index, cycle)
        return read(state, reader, slice_, index, cycle)

    monkeypatch.setattr(State, "read", off_by_one)
    assert f"task {task.name}" in found(sound)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("network", [cancelling, tying])
def test_a_stale_tile_is_found_by_the_name_of_a_task(
    network: RandomNetwork, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a tile should be written, the one of the same size before it is left."""
    sound = planned(tmp_path, network(seed), seed)
    before: dict[Any, Any] = {}
    write, left = State.write, [seed % 4]

    def leave(state: State, index: int, values: Any) -> None:
        size = values.shape, values.dtype
        stale, before[size] = before.get(size, values), values
        left[0] -= not np.array_equal(stale, values)
        write(state, index, stale if left[0] == -1 else values)
        left[0] -= left[0] == -1

    monkeypatch.setattr(State, "write", leave)
    assert "are not those" in found(sound)
