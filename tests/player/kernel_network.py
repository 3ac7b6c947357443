"""A network of operators that have nothing to do with each other: one for each case of a kernel."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from operators.networks import onnx_cases, random_cases
from spmilp.export.codes import require_kernels
from spmilp.export.errors import ExportError
from spmilp.frontend.graph import Group, Network, Operator, Quantisation, Rounding, Scale, Tensor
from spmilp.frontend.operators.boxes import whole
from spmilp.frontend.operators.registry import family_of, geometries

VIEWS = frozenset({"Flatten", "Reshape", "Slice", "Squeeze", "Unsqueeze"})


def kernel_names() -> frozenset[str]:
    """Return the operator types that ``spmilp_kernels.c`` has a kernel for, in capitals."""
    source = files("spmilp.export").joinpath("c/plan/spmilp_kernels.c").read_text("utf-8")
    return frozenset(re.findall(r"\[SPMILP_OPERATOR_(\w+)\]", source))


class KernelNetwork:
    """Collects operators; each has inputs and an output of its own."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.tensors: dict[str, Tensor] = {}
        self.inputs: dict[str, np.ndarray] = {}
        self.groups: list[Group] = []
        self.in_fixed_point = False

    def reals(self, *shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        """Return random float32 values."""
        return self.random.uniform(low, high, shape).astype(np.float32)

    def integers(self, *shape: int, dtype: Any = np.int8) -> np.ndarray:
        """Return random integers of the whole range of a type."""
        limits = np.iinfo(dtype)
        return self.random.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    def add(
        self,
        kind: str,
        arrays: Sequence[np.ndarray | None],
        attributes: Mapping[str, Any] | None = None,
        *,
        dtype: Any = None,
        scales: Sequence[Scale | None] = (),
        output: Scale | None = None,
        limits: tuple[float | None, float | None] = (None, None),
    ) -> None:
        """Add an operator on arrays that are inputs of the network.

        A view is followed by a copy, because it has no task of its own. ``scales`` and ``output``
        make it a quantised one.
        """
        number = len(self.groups)
        if self.in_fixed_point and output is not None:
            if any(array is not None and array.dtype == np.float32 for array in arrays):
                return
            output = replace(output, rounding=Rounding.FIXED_POINT)
        names = []
        for position, array in enumerate(arrays):
            names.append("" if array is None else f"i{number}_{position}")
            if array is not None:
                self.inputs[names[-1]] = array
                self._tensor(names[-1], array.shape, array.dtype)
        quantisation = None
        if scales or output:
            low, high = limits
            quantisation = Quantisation(inputs=tuple(scales), output=output, low=low, high=high)
        first = Operator(
            name=f"{number} {kind}",
            kind=kind,
            inputs=tuple(names),
            output=f"o{number}",
            attributes=attributes or {},
            quantisation=quantisation,
        )
        shape = family_of(kind)(first, [self.tensors.get(name) for name in names]).shape
        if dtype is None and quantisation is not None:
            dtype = np.float32 if output is None else output.dtype
        self._tensor(first.output, shape, arrays[0].dtype if dtype is None else dtype)
        operators = [first]
        if kind in VIEWS:
            self._tensor(f"copy{number}", shape, self.tensors[first.output].dtype)
            operators.append(
                Operator(
                    name=f"copy {number}",
                    kind="Identity",
                    inputs=(first.output,),
                    output=f"copy{number}",
                )
            )
        self.groups.append(
            Group(
                index=number,
                name=first.name,
                operators=tuple(operators),
                anchor=len(operators) - 1,
                inputs=tuple(filter(None, names)),
                output=operators[-1].output,
            )
        )

    def network(self) -> Network:
        """Return what has been collected."""
        return Network(
            name="kernels",
            tensors=self.tensors,
            groups=tuple(self.groups),
            inputs=tuple(self.inputs),
            outputs=tuple(group.output for group in self.groups),
            sha256="",
        )

    def _tensor(self, name: str, shape: Sequence[int], dtype: Any) -> None:
        self.tensors[name] = Tensor(name=name, shape=tuple(shape), dtype=np.dtype(dtype))


def scale_of(
    step: Any,
    zero: int = 0,
    dtype: Any = np.int8,
    axis: int | None = None,
    rounding: Rounding = Rounding.HALF_EVEN,
) -> Scale:
    """Return a scale for one tensor, or for each position of an axis."""
    steps = np.asarray(step, dtype=np.float32).reshape(-1)
    return Scale(
        scale=steps,
        zero_point=np.full(steps.shape, zero, dtype=np.int32),
        axis=axis,
        dtype=np.dtype(dtype),
        rounding=rounding,
    )


def windows(
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return attributes of a sliding window."""
    ones = (1,) * len(kernel)
    return {
        "kernel_shape": tuple(kernel),
        "strides": tuple(strides or ones),
        "dilations": tuple(dilations or ones),
        "pads": tuple(pads or (0,) * (2 * len(kernel))),
        **more,
    }


def integer_network() -> tuple[Network, dict[str, np.ndarray]]:
    """Return operators of integers: their outputs have to be the same bits."""
    made = KernelNetwork(seed=3)
    for made.in_fixed_point in (False, True):
        _add_integer_products(made)
        _add_operators_on_reals(made)
    _add_tables(made)
    return made.network(), made.inputs


def _add_tables(made: KernelNetwork) -> None:
    """Add what becomes a table of bytes in TensorFlow Lite's fixed point."""
    for kind, attributes in (
        ("Abs", {}),
        ("Clip", {"min": 0.0, "max": 6.0}),
        ("HardSwish", {}),
        ("LeakyRelu", {"alpha": 0.1}),
        ("Sigmoid", {}),
        ("Tanh", {}),
    ):
        scales = (scale_of(0.06, 4),)
        made.add(
            kind, (made.integers(2, 300),), attributes, scales=scales, output=scale_of(0.05, -9)
        )


def _add_integer_products(made: KernelNetwork) -> None:
    per_channel = made.reals(6, low=0.01, high=0.1)
    bias = made.random.integers(-9000, 9000, 6, np.int32)
    for pads, strides, dilations, group, zero in (
        ((1, 1, 1, 1), (1, 1), (1, 1), 1, -128),  # behind a Relu: PULP-NN can pad it
        ((2, 0, 1, 2), (2, 1), (2, 1), 1, 5),
        ((0, 0, 0, 0), (2, 1), (1, 1), 1, 5),
        ((0, 1, 2, 1), (1, 2), (1, 1), 6, 5),
        ((1, 1, 1, 1), (1, 2), (1, 1), 2, 5),  # neither whole nor depthwise
    ):
        made.add(
            "Conv",
            (made.integers(2, 6, 7, 5), made.integers(6, 6 // group, 3, 3), bias),
            windows((3, 3), strides, pads, dilations, group=group),
            scales=(scale_of(0.03, zero), scale_of(per_channel, axis=0), None),
            output=scale_of(1.7, -9),
            limits=(0.0, 60.0),
        )
    # One dimension, bytes without sign, limits, a bias of reals, and a result of reals.
    data, weight = made.integers(1, 4, 9, dtype=np.uint8), made.integers(6, 4, 3)
    scales = (scale_of(0.02, 100, np.uint8), scale_of(0.05, -3), None)
    for output in (scale_of(0.9, 7, np.uint8), None):
        made.add(
            "Conv",
            (data, weight, made.reals(6)),
            windows((3,), None, (1, 1), group=1),
            scales=scales,
            output=output,
            limits=(0.0, 60.0),
        )
    for kernel in ((2, 2), (3, 2)):
        made.add(
            "ConvTranspose",
            (made.integers(1, 4, 3, 4), made.integers(4, 3, *kernel)),
            windows(kernel, (2, 1), (1, 0, 0, 1), group=2, output_padding=(0, 0)),
            scales=(scale_of(0.02, 3), scale_of(made.reals(3, low=0.01, high=0.1), 0, axis=1)),
            output=scale_of(0.3, -1),
        )
    for left, right, trans_a, trans_b in (
        ((3, 40), (6, 40), 0, 1),
        ((3, 40), (40, 6), 0, 0),
        ((40, 3), (6, 40), 1, 1),
    ):
        made.add(
            "Gemm",
            (made.integers(*left), made.integers(*right), bias),
            {"alpha": 1.0, "beta": 1.0, "transA": trans_a, "transB": trans_b},
            scales=(scale_of(0.04, -7), scale_of(per_channel, 0, axis=trans_b ^ 1), None),
            output=scale_of(2.1, 30),
        )
    for left, right in (((2, 1, 3, 9), (4, 9, 5)), ((9,), (9, 5)), ((2, 9), (9,))):
        made.add(
            "MatMul",
            (made.integers(*left, dtype=np.uint8), made.integers(*right)),
            scales=(scale_of(0.04, 128, np.uint8), scale_of(0.1, 2)),
            output=scale_of(1.9, -3),
        )
    # Sixteen bits: the sums wrap around.
    made.add(
        "MatMul",
        (made.integers(3, 30, dtype=np.int16), made.integers(30, 4, dtype=np.int16)),
        scales=(scale_of(0.04, 128, np.int16), scale_of(0.1, 2, np.int16)),
        output=scale_of(90000.0, -3, np.int16),
    )


def _add_operators_on_reals(made: KernelNetwork) -> None:
    """Add what computes on the reals that integers stand for, and rounds."""
    one, other = scale_of(0.03, 4), scale_of(0.017, -20)
    image = made.integers(2, 6, 8, 6)
    average = windows((3, 3), (2, 1), (1, 1, 0, 1), ceil_mode=0)
    for kind, arrays, attributes in (
        ("Add", (image, made.integers(6, 1, 6)), {}),
        ("Mul", (image, made.integers(1)), {}),
        ("Concat", (image, made.integers(2, 3, 8, 6)), {"axis": 1}),
    ):
        made.add(kind, arrays, attributes, scales=(one, other), output=scale_of(0.05, 1))
    for kind, attributes in (
        ("AveragePool", {**average, "count_include_pad": 0}),
        ("AveragePool", {**average, "count_include_pad": 1}),
        ("MaxPool", average),
        ("GlobalAveragePool", {}),
        ("ReduceMean", {"axes": (3,), "keepdims": 0}),
        ("ReduceLogSumExp", {"axes": (1, 2), "keepdims": 1}),
        ("Relu", {}),
        ("Softmax", {"axis": 3}),
        ("Transpose", {"perm": (0, 2, 3, 1)}),
    ):
        made.add(kind, (image,), attributes, scales=(one,), output=scale_of(0.02, -5))
    # What CMSIS-NN computes: planes of equal scales, and the only scale of a Softmax.
    same = scale_of(0.07, 12)
    for kind in ("AveragePool", "MaxPool"):
        attributes = windows((3, 2), (2, 1), (1, 0, 1, 1), ceil_mode=0, count_include_pad=0)
        made.add(kind, (made.integers(2, 3, 8, 6),), attributes, scales=(same,), output=same)
    byte = scale_of(1 / 256, -128)
    made.add("Softmax", (made.integers(5, 12),), {"axis": 1}, scales=(same,), output=byte)
    pair = (made.integers(2, 3, 4, 5), made.integers(2, 3, 4, 5))
    made.add("Add", pair, scales=(scale_of(0.2, 3), scale_of(0.05, -4)), output=scale_of(0.21, 9))
    # onnxruntime's QLinear operators; with powers of two many results end in one half.
    for step in (0.05, 0.0625):
        output = scale_of(step, 1, rounding=Rounding.WITH_ZERO)
        scales = (scale_of(0.03, 4), other) if step == 0.05 else (scale_of(0.03125, 4),) * 2
        for kind in ("Add", "Mul"):
            made.add(kind, (image, made.integers(6, 1, 6)), scales=scales, output=output)
        made.add(
            "AveragePool",
            (image,),
            windows((2, 2), (2, 1), ceil_mode=0, count_include_pad=0),
            scales=scales[:1],
            output=output,
        )
    rounded = {"scales": (one,), "output": scale_of(0.02, -5)}
    for mode in ("nearest", "linear", "cubic"):
        attributes = resized((2, 6, 11, 5), image.shape, mode=mode)
        made.add("Resize", (image,), attributes, **rounded)
    attributes = resized((2, 6, 11, 5), image.shape)
    made.add("Resize", (image,), attributes, scales=(one,), output=one)
    made.add(
        "Einsum",
        (made.integers(2, 3, 5), made.integers(2, 5, 4)),
        {"equation": "bij,bjk->bki"},
        scales=(one, other),
        output=scale_of(0.05, 1),
    )
    # Indices may be fewer than elements along the other axes.
    spots = made.random.integers(-6, 6, (1, 5, 3, 6))
    made.add("GatherElements", (image, spots), {"axis": 1})
    for how in ("none", "max", "mul"):
        updates = made.integers(*spots.shape)
        made.add("ScatterElements", (image, spots, updates), {"axis": 1, "reduction": how})
    steps = made.reals(6, low=0.01, high=0.1)
    reals = made.reals(2, 6, 5)
    made.add("QuantizeLinear", (reals,), scales=(None,), output=scale_of(steps, 3, axis=1))
    made.add("DequantizeLinear", (made.integers(2, 6, 5),), scales=(scale_of(steps, 3, axis=1),))


def resized(sizes: Sequence[int], shape: Sequence[int], **more: Any) -> dict[str, Any]:
    """Return attributes of a Resize."""
    return {
        "sizes": tuple(sizes),
        "scales": tuple(size / length for size, length in zip(sizes, shape, strict=True)),
        "mode": "linear",
        "coordinate_transformation_mode": "half_pixel",
        "nearest_mode": "round_prefer_floor",
        "cubic_coeff_a": -0.75,
        "exclude_outside": 0,
        "antialias": 0,
        "extrapolation_value": 0.5,
        **more,
    }


def onnx_network(folder: Path) -> tuple[Network, dict[str, np.ndarray]]:
    """Return the operators of ONNX's own cases, and random ones, as one network with its inputs."""
    tensors: dict[str, Tensor] = {}
    inputs: dict[str, np.ndarray] = {}
    groups: list[Group] = []
    outputs: list[str] = []
    for number, sample in enumerate([*onnx_cases(folder, each=5), *random_cases(folder, 10)]):
        network = sample.network
        if not is_playable(network):
            continue
        names = {name: f"{number} {name}" for name in network.tensors} | {"": ""}
        for name, tensor in network.tensors.items():
            tensors[names[name]] = replace(tensor, name=names[name])
        inputs |= {names[name]: sample.feeds[name] for name in network.inputs}
        outputs += [names[name] for name in network.outputs]
        for group in network.groups:
            operators = tuple(
                replace(
                    each,
                    name=f"{number} {each.name}",
                    inputs=tuple(names[name] for name in each.inputs),
                    output=names[each.output],
                )
                for each in group.operators
            )
            whole_group = replace(
                group,
                index=len(groups),
                name=f"{number} {group.name}",
                operators=operators,
                inputs=tuple(names[name] for name in group.inputs),
                output=names[group.output],
            )
            groups.append(whole_group)
    network = Network(
        name="onnx",
        tensors=tensors,
        groups=tuple(groups),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        sha256="",
    )
    return network, inputs


def is_playable(network: Network) -> bool:
    """Say whether there are kernels for a network that reads all of its inputs."""
    read = set[str]()
    for operator in (each for group in network.groups for each in group.operators):
        boxes = geometries(network)[operator].reads(whole(network.tensors[operator.output].shape))
        read |= {name for name, box in zip(operator.inputs, boxes, strict=True) if box is not None}
    try:
        require_kernels(network)
    except ExportError:
        return False
    return set(network.inputs) <= read
