"""DepthToSpace and SpaceToDepth."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integer, text
from spmilp.frontend.operators.base import input_shape, output_shape_of, required
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.moves import Moves
from spmilp.frontend.operators.reshape import covering_box
from spmilp.units import Box, Extents


class DepthToSpace(Moves):
    """DepthToSpace, SpaceToDepth.

    Input: X ``(N, C, H, W)``. Attributes: ``blocksize``; DepthToSpace ``mode``, ``DCR`` or ``CRD``.

    Both are a reshape to six axes, a transposition and a reshape back; what is read is the least
    box that covers what each of the three needs.
    """

    kinds = frozenset({"DepthToSpace", "SpaceToDepth"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape of the rearranged tensor."""
        shape = required(operator, inputs, 0).shape
        block = integer(operator, "blocksize")
        if len(shape) != 4:
            raise ValueError(f"input of shape {shape}, expected four axes")
        batch, channels, rows, columns = shape
        if operator.kind == "SpaceToDepth":
            if rows % block or columns % block:
                raise ValueError(f"{rows} x {columns} elements in blocks of {block}")
            return (batch, channels * block * block, rows // block, columns // block)
        if channels % (block * block):
            raise ValueError(f"{channels} channels in blocks of {block} x {block}")
        return (batch, channels // (block * block), rows * block, columns * block)

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the least covering box."""
        source, target = input_shape(operator, tensors, 0), output_shape_of(operator, tensors)
        split, perm = split_and_permutation(operator, source)
        permuted = tuple(split[axis] for axis in perm)
        inner = covering_box(permuted, target, box)
        before = tuple(inner[perm.index(axis)] for axis in range(6))
        return (covering_box(source, split, before),)


def split_and_permutation(operator: Operator, shape: Extents) -> tuple[Extents, tuple[int, ...]]:
    """Return the shape of six axes, and how they are permuted."""
    batch, channels, rows, columns = shape
    block = integer(operator, "blocksize")
    if operator.kind == "SpaceToDepth":
        split = (batch, channels, rows // block, block, columns // block, block)
        return split, (0, 3, 5, 1, 2, 4)
    depth = channels // (block * block)
    if text(operator, "mode") == "DCR":
        return (batch, block, block, depth, rows, columns), (0, 3, 4, 1, 5, 2)
    return (batch, depth, block, block, rows, columns), (0, 1, 4, 2, 5, 3)
