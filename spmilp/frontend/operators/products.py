"""Products of matrices: MatMul, Gemm and Einsum."""

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.attributes import integer, number, text
from spmilp.frontend.operators.base import (
    Base,
    has_input,
    input_shape,
    requantisation,
    required,
    work_dtype,
)
from spmilp.frontend.operators.boxes import broadcast_box, broadcast_shape, volume
from spmilp.frontend.operators.family import Fusion, Inputs, Part, Reads, Tensors, Work
from spmilp.units import Box, Extents


class MatMul(Base):
    """MatMul as in NumPy: batched, broadcast, with one-dimensional operands. No attributes.

    The reduction is over the last axis of the first operand. Loops: ``B`` batch positions that
    share the second operand, ``G`` those that have one each, ``X`` rows, ``K`` columns, ``C``
    reduction.
    """

    kinds = frozenset({"MatMul"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the batch axes, then rows and columns where the operands have them."""
        left, right = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
        if not left or not right:
            raise ValueError(f"operands of shapes {left} and {right}, expected no scalars")
        inner = right[0] if len(right) == 1 else right[-2]
        if left[-1] != inner:
            raise ValueError(f"inner lengths {left[-1]} and {inner} differ")
        batch = broadcast_shape((left[:-2], right[:-2]))
        rows = left[-2:-1] if len(left) > 1 else ()
        columns = right[-1:] if len(right) > 1 else ()
        return (*batch, *rows, *columns)

    def reduction(self, operator: Operator, tensors: Tensors) -> int:
        """Length of the reduction."""
        return input_shape(operator, tensors, 0)[-1]

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the boxes of both operands."""
        left, right = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        part = part or (0, left[-1])
        batch, rows, columns = _split(box, left, right)
        if len(right) == 1:
            right_box: Box = (part,)
        else:
            right_box = (*broadcast_box(right[:-2], batch), part, *columns)
        return (*broadcast_box(left[:-2], batch), *rows, part), right_box

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        """Return the exact number of MACs, and requantisation as vector work."""
        left, right = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        part = part or (0, left[-1])
        batch, rows, columns = _split(box, left, right)
        own = volume(broadcast_box(right[:-2], batch)) if len(right) > 2 else 1
        return Work(
            loops=(
                ("B", volume(batch) // own),
                ("G", own),
                ("X", volume(rows)),
                ("K", volume(columns)),
                ("C", part[1] - part[0]),
            ),
            vector=requantisation(operator, box) if part[1] == left[-1] else 0,
            dtype=work_dtype(operator, tensors),
        )


def _split(box: Box, left: Extents, right: Extents) -> tuple[Box, Box, Box]:
    """Return the batch, row and column axes of a box of the result."""
    rows, columns = len(left) > 1, len(right) > 1
    batch = len(box) - rows - columns
    return box[:batch], box[batch : batch + rows], box[batch + rows :]


class Gemm(Base):
    """Gemm: ``alpha * A' @ B' + beta * C``.

    Inputs: A, B, optional C that broadcasts to the result.

    Attributes: ``alpha``, ``beta`` (numbers), ``transA``, ``transB`` (0 or 1).

    The reduction is over the columns of A'. Only the part that ends at the last one reads (and
    adds) C. Loops: ``B`` rows, ``K`` columns, ``C`` reduction. C costs 1 per output element, each
    of alpha and beta 1 more where it is not 1.
    """

    kinds = frozenset({"Gemm"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return ``(rows, columns)``."""
        left, right = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
        _scales_are_plain(operator)
        if len(left) != 2 or len(right) != 2:
            raise ValueError(f"operands of shapes {left} and {right}, expected matrices")
        left = left[::-1] if integer(operator, "transA") else left
        right = right[::-1] if integer(operator, "transB") else right
        if left[1] != right[0]:
            raise ValueError(f"inner lengths {left[1]} and {right[0]} differ")
        result = (left[0], right[1])
        added = inputs[2] if len(inputs) > 2 else None
        if added is not None and broadcast_shape((added.shape, result)) != result:
            raise ValueError(f"C of shape {added.shape} does not broadcast to {result}")
        return result

    def reduction(self, operator: Operator, tensors: Tensors) -> int:
        """Length of the reduction: the columns of A'."""
        return input_shape(operator, tensors, 0)[0 if integer(operator, "transA") else 1]

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the boxes of A, B and C."""
        length = self.reduction(operator, tensors)
        part = part or (0, length)
        left, right = (box[0], part), (part, box[1])
        boxes: list[Box | None] = [
            left[::-1] if integer(operator, "transA") else left,
            right[::-1] if integer(operator, "transB") else right,
        ]
        if has_input(operator, 2):
            shape = input_shape(operator, tensors, 2)
            boxes.append(broadcast_box(shape, box) if part[1] == length else None)
        return tuple(boxes)

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        """Return the exact number of MACs; scaling, C and requantisation as vector work."""
        length = self.reduction(operator, tensors)
        part = part or (0, length)
        vector = 0
        if part[1] == length:
            added = has_input(operator, 2)
            each = added + (number(operator, "alpha") != 1)
            each += added and number(operator, "beta") != 1
            vector = each * volume(box) + requantisation(operator, box)
        (row, row_end), (column, column_end) = box
        return Work(
            loops=(("B", row_end - row), ("K", column_end - column), ("C", part[1] - part[0])),
            vector=vector,
            dtype=work_dtype(operator, tensors),
        )


def _scales_are_plain(operator: Operator) -> None:
    scaled = number(operator, "alpha") != 1 or number(operator, "beta") != 1
    if scaled and operator.quantisation is not None:
        raise ValueError("a quantised Gemm with alpha or beta other than 1 is not supported")


class Einsum(Base):
    """Einsum with explicit letters; attribute ``equation``, for example ``bhid,bhjd->bhij``.

    Without ``...``, without a letter twice in one operand, and with the result written out (the
    front end resolves what is implicit). A letter has one length: no broadcasting.

    Loops: ``X`` letters of the result, ``C`` letters that are summed. The MACs are those of one
    loop nest over all letters, whatever the number of operands.
    """

    kinds = frozenset({"Einsum"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
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

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the box of each operand; summed letters are read whole."""
        intervals = self._intervals(operator, tensors, box)
        operands, _ = letters(operator)
        return tuple(tuple(intervals[letter] for letter in operand) for operand in operands)

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
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
        self, operator: Operator, tensors: Tensors, box: Box
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
        plain = term.isascii() and all(map(str.isalpha, term))
        if not arrow or len(set(term)) < len(term) or not plain:
            raise ValueError(f"equation {equation} is not of the form ij,jk->ik")
    if not set(result) <= known:
        raise ValueError(f"equation {equation}: a letter of the result is in no operand")
    return operands, result
