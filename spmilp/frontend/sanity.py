"""A check of fused groups: their shapes, types and scales are those of the tensors."""

from collections.abc import Iterator

from spmilp.frontend.graph import Network, Operator
from spmilp.frontend.operators.geometry import Geometry
from spmilp.frontend.operators.registry import geometries
from spmilp.frontend.quantise import MOVING, WEIGHTED


def check_groups(network: Network) -> None:
    """Raise a ``RuntimeError`` that names the operator if the front end has made a mistake."""
    for group in network.groups:
        for operator in group.operators:
            for fault in _faults(network, operator, geometries(network)[operator]):
                raise RuntimeError(f"group {group.name}: {operator.name} ({operator.kind}) {fault}")


def _faults(network: Network, operator: Operator, geometry: Geometry) -> Iterator[str]:
    inputs = [network.tensors[name] if name else None for name in operator.inputs]
    result = network.tensors[operator.output]
    if geometry.shape != result.shape:
        yield f"computes shape {geometry.shape}, its result has {result.shape}"
    given = operator.quantisation
    if given is None:
        data = inputs[:1] if operator.kind == "Gather" else inputs
        for tensor in data if operator.kind in MOVING else ():
            if tensor is not None and tensor.dtype != result.dtype:
                yield f"moves {tensor.dtype} of {tensor.name} into {result.dtype}"
        return
    for tensor, scale in zip((*inputs, result), (*given.inputs, given.output), strict=True):
        if tensor is None or scale is None:
            continue
        length = scale.scale.size if scale.axis is None else tensor.shape[scale.axis]
        if tensor.dtype != scale.dtype or length != scale.scale.size:
            yield (
                f"has {scale.scale.size} scales of {scale.dtype} for {tensor.name}, which is "
                f"{tensor.dtype} of shape {tensor.shape}, along axis {scale.axis}"
            )
    if operator.kind in WEIGHTED and given.inputs[0] and given.inputs[1]:
        yield from _scales_of_sums(operator, geometry, given.inputs[1].axis)


def _scales_of_sums(operator: Operator, geometry: Geometry, axis: int | None) -> Iterator[str]:
    """What the first and the last element of the result read of a weight must have one scale."""
    shape, weight = geometry.shape, geometry.inputs[1]
    channels = 1 if operator.kind.startswith("Conv") else len(shape) - 1
    for first in ((0,) * len(shape), tuple(length - 1 for length in shape)):
        box = tuple((at, at + 1) for at in first)
        read = geometry.reads(box)[1]
        if read is None or weight is None or axis is None:
            continue
        channel = box[channels][0] % weight[axis]
        if read[axis] != (channel, channel + 1):
            yield f"reads {read[axis]} of axis {axis}, which has scales, for channel {channel}"
