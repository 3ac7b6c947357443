"""Einsum."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import text
from spmilp.frontend.operators.base import (
    Base,
    input_shape,
    requantisation,
    required,
    work_dtype,
)
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.units import Box, Extents


class Einsum(Base):
    """Einsum with explicit letters; attribute ``equation``, for example ``bhid,bhjd->bhij``.

    Without ``...``, without a letter twice in one operand, and with the result written out (the
    front end resolves what is implicit). A letter has one length: no broadcasting.

    Loops: ``X`` letters of the result, ``C`` letters that are summed. The MACs are those of one
    loop nest over all letters, whatever the number of operands.
    """

    kinds = frozenset({"Einsum"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the length of each letter of the result."""
        operands, result = letters(operator)
        if len(operands) != len(inputs):
            raise ValueError(f"{len(inputs)} inputs for {len(operands)} operands")
        lengths: dict[str, int] = {}
        for position, operand in enumerate(operands):
            shape = required(operator, inputs, position).shape
            if len(shape) != len(operand):
                raise ValueError(f"operand {operand} of shape {shape}")
            for letter, length in zip(operand, shape, strict=True):
                if lengths.setdefault(letter, length) != length:
                    raise ValueError(f"letter {letter} is {lengths[letter]} and {length} long")
        return tuple(lengths[letter] for letter in result)

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the box of each operand; summed letters are read whole."""
        intervals = self._intervals(operator, tensors, box)
        operands, _ = letters(operator)
        return tuple(tuple(intervals[letter] for letter in operand) for operand in operands)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the MACs of the loop nest, and requantisation as vector work."""
        intervals = self._intervals(operator, tensors, box)
        _, result = letters(operator)
        summed = tuple(interval for letter, interval in intervals.items() if letter not in result)
        return Work(
            loops=(("X", volume(box)), ("C", volume(summed))),
            vector=requantisation(operator, box),
            dtype=work_dtype(operator, tensors),
        )

    def _intervals(
        self, operator: Operator, tensors: Mapping[str, Tensor], box: Box
    ) -> dict[str, tuple[int, int]]:
        operands, result = letters(operator)
        intervals = {
            letter: (0, length)
            for position, operand in enumerate(operands)
            for letter, length in zip(
                operand, input_shape(operator, tensors, position), strict=True
            )
        }
        intervals.update(zip(result, box, strict=True))
        return intervals


def letters(operator: Operator) -> tuple[list[str], str]:
    """Return the letters of each operand, and of the result.

    Raises
    ------
    ValueError
        If the equation is not of the form that the family understands.
    """
    equation = text(operator, "equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    operands = left.split(",")
    known = set("".join(operands))
    for term in (*operands, result):
        if not arrow or len(set(term)) < len(term) or not all(map(str.isalpha, term)):
            raise ValueError(f"equation {equation} is not of the form ij,jk->ik")
    if not set(result) <= known:
        raise ValueError(f"equation {equation}: a letter of the result is in no operand")
    return operands, result
