"""Resize, and how it interpolates along one axis (ONNX operator specification, Resize)."""

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.frontend.fixed_point import PLACES, is_fixed, places_of
from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.boxes import covering_ranges, volume
from spmilp.frontend.operators.geometry import Fusion, Geometry, Part, Reads
from spmilp.units import Box, Extents, Interval

SIMPLE = "simple"
"""The ``nearest_mode`` before there were any: ``ceil`` where an axis becomes shorter, else
``floor`` (onnxruntime, ``upsamplebase.h``). The front end puts one of these in its place."""


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """For each output position, the input positions it is made of and their weights.

    Of shape ``(taps, outputs)``; positions lie inside the input. Outputs ``outside`` take the
    extrapolation value; their weights are 0.
    """

    positions: NDArray[np.int64]
    weights: NDArray[np.float32]
    outside: NDArray[np.bool_]


Weighted: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Positions and weights, as in :class:`Taps`."""


@lru_cache(maxsize=4096)
def taps(operator: Operator, length: int, axis: int, interval: Interval) -> Taps:
    """Return what the outputs of an interval are made of, along an axis of so many inputs."""
    outputs = np.arange(*interval, dtype=np.float32)
    outside = np.zeros(outputs.size, dtype=np.bool_)
    size, scale = operator.integers("sizes")[axis], operator.numbers("scales")[axis]
    crops = operator.text("coordinate_transformation_mode") == "tf_crop_and_resize"
    if length == size and scale == 1 and not crops:
        return Taps(np.arange(*interval)[None], np.ones((1, outputs.size), np.float32), outside)
    source = _source_coordinates(operator, length, axis, outputs)
    if crops:
        outside = (source < 0) | (source > length - 1)
    how = {"nearest": _nearest, "linear": _linear, "cubic": _cubic}.get(operator.text("mode"))
    if how is None:
        raise ValueError(f"mode {operator.text('mode')} of Resize is not supported")
    positions, weights = how(operator, length, source)
    weights = np.where(outside[None], np.float32(0), weights)
    return Taps(np.clip(positions, 0, length - 1), weights, outside)


def _source_coordinates(
    operator: Operator, inputs: int, axis: int, outputs: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the coordinate in the input of each output, computed in float32."""
    if is_fixed(operator):
        distance, first = places_of(operator, inputs, operator.integers("sizes")[axis])
        return (outputs * np.float32(distance) + np.float32(first)) / np.float32(PLACES)
    scale, half = np.float32(operator.numbers("scales")[axis]), np.float32(0.5)
    length, size = np.float32(inputs), np.float32(operator.integers("sizes")[axis])
    match operator.text("coordinate_transformation_mode"):
        case "asymmetric":
            return outputs / scale
        case "align_corners" | "pytorch_half_pixel" if size == 1:
            return outputs * np.float32(0)
        case "align_corners":
            return outputs * (length - 1) / (size - 1)
        case "tf_half_pixel_for_nn":
            return (outputs + half) / scale
        case "half_pixel_symmetric":
            adjustment = size / (scale * length)
            return length / 2 * (1 - adjustment) + (outputs + half) / scale - half
        case "tf_crop_and_resize":
            roi = operator.numbers("roi")
            begin, end = np.float32(roi[axis]), np.float32(roi[axis + len(roi) // 2])
            if size == 1:
                return outputs * np.float32(0) + half * (begin + end) * (length - 1)
            return begin * (length - 1) + outputs * (end - begin) * (length - 1) / (size - 1)
        case "half_pixel" | "pytorch_half_pixel":
            return (outputs + half) / scale - half
        case other:
            raise ValueError(f"coordinate_transformation_mode {other} of Resize is not supported")


def _nearest(operator: Operator, length: int, source: NDArray[np.float32]) -> Weighted:
    half = np.float32(0.5)
    match operator.text("nearest_mode"):
        case "floor":
            chosen = np.floor(source)
        case "ceil":
            chosen = np.ceil(source)
        case "round_prefer_ceil":
            chosen = np.floor(source + half)
        case "round_prefer_floor":
            chosen = np.ceil(source - half)
        case other:
            raise ValueError(f"nearest_mode {other} of Resize is not supported")
    return chosen.astype(np.int64)[None], np.ones((1, source.size), np.float32)


def _linear(operator: Operator, length: int, source: NDArray[np.float32]) -> Weighted:
    inside = np.clip(source, np.float32(0), np.float32(length - 1))
    low = np.floor(inside).astype(np.int64)
    high_weight = (inside - low).astype(np.float32)
    positions = np.stack([low, np.minimum(low + 1, length - 1)])
    return positions, np.stack([1 - high_weight, high_weight])


def _cubic(operator: Operator, length: int, source: NDArray[np.float32]) -> Weighted:
    """Keys' convolution kernel with coefficient a (IEEE Trans. ASSP 29, 1981, equation 15)."""
    a = np.float32(operator.number("cubic_coeff_a"))
    low = np.floor(source)
    rest = (source - low).astype(np.float32)
    near, far = [rest, 1 - rest], [1 + rest, 2 - rest]
    inner = [((a + 2) * x - (a + 3)) * x * x + 1 for x in near]
    outer = [((a * x - 5 * a) * x + 8 * a) * x - 4 * a for x in far]
    positions = low.astype(np.int64)[None] + np.array([[-1], [0], [1], [2]])
    weights = np.stack([outer[0], inner[0], inner[1], outer[1]]).astype(np.float32)
    if operator.integer("exclude_outside"):
        weights = np.where((positions >= 0) & (positions < length), weights, np.float32(0))
        total = weights.sum(axis=0, keepdims=True)
        weights = (weights / np.where(total == 0, 1, total)).astype(np.float32)
    return positions, weights.astype(np.float32)


class Resize(Geometry):
    """Resize (an Upsample is one with ``asymmetric`` coordinates).

    Input: X. Attributes: ``sizes`` (lengths of the result, all axes), ``scales`` (all axes: those
    of the model, else ``sizes / lengths``), ``mode`` (``nearest``, ``linear``, ``cubic``),
    ``coordinate_transformation_mode``, ``nearest_mode``, ``cubic_coeff_a``, ``exclude_outside``
    (0 or 1), ``antialias`` (must be 0), ``extrapolation_value``; ``roi`` (all beginnings, then all
    ends) for ``tf_crop_and_resize``.

    Every axis is interpolated on its own. Reads are the range of the positions with a weight other
    than zero. Costs 1 per output element for ``nearest``, else 2 for each position used.
    """

    kinds = frozenset({"Resize"})
    fusion = Fusion.INJECTIVE

    def prepare(self, data: Extents) -> Extents:
        sizes = self.operator.integers("sizes", len(data))
        if self.operator.integer("antialias"):
            raise ValueError("antialias of Resize is not supported")
        self.operator.numbers("scales", len(data))
        self.data = data
        if min(sizes, default=1) < 1:
            raise ValueError(f"sizes are {sizes}, expected positive integers")
        # A mode that is not known is told here.
        self._taps(tuple((0, 1) for _ in data))
        return sizes

    def reads(self, box: Box, part: Part = None) -> Reads:
        used = self._taps(box)
        return (covering_ranges([one.positions[one.weights != 0].tolist() for one in used]),)

    def count(self, box: Box, reads: Reads) -> int:
        if self.operator.text("mode") == "nearest":
            return volume(box)
        used: int = prod(one.positions.shape[0] for one in self._taps(box))
        return 2 * used * volume(box)

    def _taps(self, box: Box) -> list[Taps]:
        along = enumerate(zip(self.data, box, strict=True))
        return [taps(self.operator, length, axis, interval) for axis, (length, interval) in along]


FAMILIES = (Resize,)
