"""What holds for every operator: a box of its output is computed from what it reads, and no less.

On the operators of ONNX's own cases, and of random ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from operators.networks import Sample, onnx_cases, random_cases
from spmilp.checker.values.kernels.call import Call
from spmilp.checker.values.kernels.registry import complete, compute, partial
from spmilp.frontend.graph import Network, Operator
from spmilp.frontend.operators.boxes import slices, whole
from spmilp.frontend.operators.geometry import Fusion
from spmilp.frontend.operators.registry import geometries, known_kinds
from spmilp.units import Box
from tests.frontend.running import Array, network_values


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    folder = tmp_path_factory.mktemp("cases")
    return [*onnx_cases(folder, each=1), *random_cases(folder, 5)]


def test_operators_compute_box_by_box_what_onnx_says(some: list[Sample]) -> None:
    kinds = {kind for sample in some for kind in check(sample)}
    assert len(known_kinds() - kinds) < 5


@pytest.mark.full
def test_all_of_onnx_s_cases_are_computed_or_refused(tmp_path: Path) -> None:
    samples = [*onnx_cases(tmp_path), *random_cases(tmp_path, 60)]
    assert len(samples) > 1000
    kinds = {kind for sample in samples for kind in check(sample)}
    assert kinds == known_kinds()


def check(sample: Sample) -> set[str]:
    """Check a network against what it should give; return the kinds of its operators."""
    network, random = sample.network, np.random.default_rng(len(sample.name))
    with np.errstate(all="ignore"):
        values = network_values(network, sample.feeds)
        (output,) = network.outputs
        result = values[output].reshape(sample.expected.shape)
        assert result.dtype == sample.expected.dtype, sample.name
        close(result, sample.expected, sample)
        for operator in operators(network):
            box = random_box(random, network.tensors[operator.output].shape)
            own = Own(network, operator, values)
            own.close_to_the_whole(own.compute(box), box, sample)
            own.every_face_matters(box, sample)
            own.work_adds_up(random)
            own.parts_of_the_reduction_add_up(random, box, sample)
    return {operator.kind for operator in operators(network)}


def operators(network: Network) -> Iterator[Operator]:
    return (operator for group in network.groups for operator in group.operators)


def random_box(random: np.random.Generator, shape: tuple[int, ...]) -> Box:
    starts = [int(random.integers(0, length)) for length in shape]
    return tuple(
        (start, int(random.integers(start, length)) + 1)
        for start, length in zip(starts, shape, strict=True)
    )


def close(found: Array, expected: Array, sample: Sample) -> None:
    """Assert that two arrays are equal, or within the rounding of sums as large as the result."""
    if not np.issubdtype(expected.dtype, np.number) or np.issubdtype(expected.dtype, np.integer):
        np.testing.assert_array_equal(found, expected, err_msg=sample.name)
        return
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(sample.expected[np.isfinite(sample.expected.astype(np.float64))])
    atol = sample.rtol * max(float(finite.max(initial=0)), 1e-3)
    np.testing.assert_allclose(found, expected, sample.rtol, atol, err_msg=sample.name)


UNEVEN = frozenset(
    {
        *("ArgMax", "ArgMin", "CumSum", "DepthToSpace", "Gather", "GatherElements", "GatherND"),
        *("ScatterElements", "ScatterND", "SpaceToDepth", "TopK", "Trilu"),
    }
)
"""Operators that read boxes of which not every face need matter."""


class Own:
    """An operator of a network, and the values that it reads and gives."""

    def __init__(self, network: Network, operator: Operator, values: Mapping[str, Array]) -> None:
        self.geometry = geometries(network)[operator]
        self.operator, self.tensors, self.values = operator, network.tensors, values

    def call(self, boxes: tuple[Box | None, ...], box: Box) -> Call:
        pieces = [
            None if read is None else self.values[name][slices(read, (0,) * len(read))].copy()
            for name, read in zip(self.operator.inputs, boxes, strict=True)
        ]
        return Call(self.operator, self.tensors, pieces, boxes, box)

    def compute(self, box: Box) -> Array:
        return compute(self.call(self.geometry.reads(box), box))

    def close_to_the_whole(self, found: Array, box: Box, sample: Sample) -> None:
        result = self.values[self.operator.output][slices(box, (0,) * len(box))]
        assert found.dtype == result.dtype
        close(found, result, sample)

    def every_face_matters(self, box: Box, sample: Sample) -> None:
        """No smaller box than what is read would do: NaN in any of its faces shows."""
        call = self.call(self.geometry.reads(box), box)
        if self.operator.kind in UNEVEN or self.geometry.fusion is Fusion.ELEMENTWISE:
            return
        for position, piece in enumerate(call.inputs):
            is_weight = position == 1 and self.operator.kind.startswith("Conv")
            if piece is None or piece.dtype != np.float32 or is_weight:
                continue
            for axis, end in product(range(piece.ndim), (0, -1)):
                poisoned = piece.copy()
                np.moveaxis(poisoned, axis, 0)[end] = np.nan
                given = [*call.inputs[:position], poisoned, *call.inputs[position + 1 :]]
                found = compute(replace(call, inputs=given))
                assert np.isnan(found).any(), f"{sample.name}: input {position}, {axis}, {end}"

    def work_adds_up(self, random: np.random.Generator) -> None:
        """The MACs of the parts of an output, and of the reduction, are those of the whole."""
        box, own = whole(self.geometry.shape), self.geometry
        long = [axis for axis, length in enumerate(own.shape) if length > 1]
        total = own.work(box)
        if long and total.loops:
            axis = int(random.choice(long))
            cut = int(random.integers(1, own.shape[axis]))
            parts = [
                (*box[:axis], part, *box[axis + 1 :]) for part in ((0, cut), (cut, box[axis][1]))
            ]
            assert sum(own.work(part).macs for part in parts) == total.macs
        if own.reduction > 1:
            cut = int(random.integers(1, own.reduction))
            works = [own.work(box, part) for part in ((0, cut), (cut, own.reduction))]
            assert sum(work.macs for work in works) == total.macs
            assert sum(work.vector for work in works) == total.vector

    def parts_of_the_reduction_add_up(
        self, random: np.random.Generator, box: Box, sample: Sample
    ) -> None:
        """Summing the parts of a reduction one after the other gives the result of the whole."""
        length, total = self.geometry.reduction, None
        if length == 1:
            return
        cut = int(random.integers(1, length))
        for part in ((0, cut), (cut, length)):
            call = self.call(self.geometry.reads(box, part), box)
            total = partial(call, total)
        assert total is not None
        self.close_to_the_whole(complete(call, total), box, sample)
