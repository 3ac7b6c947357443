"""QuantizeLinear and DequantizeLinear that stay operators (at the borders of integer parts)."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.base import DEQUANTISE, REQUANTISE, Base, required, work_dtype
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.units import Box, Extents


class Quantise(Base):
    """QuantizeLinear, DequantizeLinear.

    Input: X alone. Scale and zero point are constants in ``operator.quantisation``: for
    QuantizeLinear ``Quantisation(inputs=(None,), output=Scale(...))``, for DequantizeLinear
    ``Quantisation(inputs=(Scale(...),), output=None)``. No attributes.

    Costs 3 per element of QuantizeLinear (multiply, round, clamp), 2 of DequantizeLinear.
    """

    kinds = frozenset({"QuantizeLinear", "DequantizeLinear"})
    fusion = Fusion.ELEMENTWISE

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape of X."""
        shape = required(operator, inputs, 0).shape
        given = operator.quantisation
        if operator.kind == "QuantizeLinear":
            scale = None if given is None else given.output
        else:
            scale = None if given is None else given.inputs[0]
        if scale is None:
            raise ValueError("scale and zero point are not constant")
        if scale.axis is not None and shape[scale.axis] != scale.scale.size:
            raise ValueError(
                f"{scale.scale.size} scales for {shape[scale.axis]} positions of axis {scale.axis}"
            )
        return shape

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the same box."""
        return (box,)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        each = REQUANTISE if operator.kind == "QuantizeLinear" else DEQUANTISE
        return Work(vector=each * volume(box), dtype=work_dtype(operator, tensors))
