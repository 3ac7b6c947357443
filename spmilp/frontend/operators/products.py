"""Operators that add up products: convolutions, products of matrices, Einsum.

ConvInteger and MatMulInteger: products of bytes whose int32 sums are the result. Inputs: two
operands of one byte per element, then optionally the zero point of each: one number, or one per
row of the first or per column (output channel) of the second operand. Every element counts less
its zero point. Attributes, reductions and loops are those of Conv and MatMul.
"""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from functools import cached_property
from math import prod

import numpy as np

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.boxes import broadcast_box, extents, volume, whole
from spmilp.frontend.operators.geometry import Fusion, Geometry, Part, Reads, Work
from spmilp.frontend.operators.windows import (
    data_box,
    transposed_pairs,
    transposed_reads,
    window_reads,
    windows_of,
)
from spmilp.units import Box, Extents, Interval


class Product(Geometry):
    """Adds up products.

    A reduction may be computed in parts. Only the last part adds the third input (the bias) and
    requantises. The bias costs 1 element operation per output element.
    """

    fusion = Fusion.COMPLEX
    needs = 2

    @abstractmethod
    def loops(self, box: Box, part: Part) -> tuple[tuple[str, int], ...]:
        """Return the loops of the multiply-accumulates for ``box``."""

    def count(self, box: Box, reads: Reads) -> int:
        return 0

    def work(self, box: Box, part: Part = None) -> Work:
        vector = self.count(box, ()) + self.requantisation(box) if self.ends(part) else 0
        return Work(loops=self.loops(box, part), vector=vector, dtype=self.dtype)

    def ends(self, part: Part) -> bool:
        """Return whether a part of the reduction is the last."""
        return part is None or part[1] == self.reduction

    @cached_property
    def on_bytes(self) -> bool:
        """Whether the inputs are bytes and their zero points."""
        return self.operator.kind.endswith("Integer")

    @cached_property
    def added(self) -> Extents | None:
        """The shape of the third input (bias), which is added to the products; ``None`` without."""
        return None if self.on_bytes else self.input(2)

    def check_bytes(self, *lengths: int) -> None:
        """Raise if the operands are no bytes, or have other than one or ``lengths`` zero points."""
        for position, length in enumerate(lengths if self.on_bytes else ()):
            dtype, zero = self.dtypes[position], self.input(position + 2)
            if dtype is None or dtype.name not in ("int8", "uint8"):
                raise ValueError(f"input {position} holds {dtype}, expected int8 or uint8")
            if zero not in (None, (), (1,), (length,)):
                raise ValueError(
                    f"zero points of shape {zero} for input {position}, expected one or {length}"
                )

    def zeros(self, *intervals: Interval | None) -> Reads:
        """Return the box of each operand's zero points: the one, or those of its interval."""
        boxes: list[Box | None] = []
        for zero, interval in zip(self.inputs[2:], intervals, strict=False):
            if zero is None or interval is None or zero in ((), (1,)):
                boxes.append(None if zero is None else whole(zero))
            else:
                boxes.append((interval,))
        return tuple(boxes)


class Convolution(Product):
    """Conv, ConvInteger, ConvTranspose.

    Inputs: X ``(N, C, spatial...)``, W ``(M, C / group, kernel...)``, of ConvTranspose ``(C, M /
    group, kernel...)``, optional bias B ``(M)``. The zero point of ConvInteger's W may be one per
    output channel.

    Attributes: ``kernel_shape``, ``strides``, ``dilations``, ``pads`` (all beginnings, then all
    ends; ``auto_pad`` and ``output_shape`` resolved), ``group``; ConvTranspose ``output_padding``.

    The reduction of Conv is over the input channels when ``group`` is 1.

    Axes before the last spatial one belong to loops ``Y`` and ``R``. Positions on padding count as
    MACs of Conv, as is usual. Those of ConvTranspose are exact: pairs of an output element and a
    kernel position that meets an input; the kernel positions are part of loops ``Y`` and ``X``.
    """

    kinds = frozenset({"Conv", "ConvInteger", "ConvTranspose"})

    def prepare(self, data: Extents, weight: Extents) -> Extents:
        if len(data) < 3 or len(weight) != len(data):
            raise ValueError(f"input of shape {data}, weight of shape {weight}: ranks do not fit")
        group, rank = self.operator.integer("group"), len(data) - 2
        self.data, self.kernel, self.window = data, weight[2:], whole(weight[2:])
        self.transposed = self.operator.kind == "ConvTranspose"
        if self.transposed:
            if weight[0] != data[1] or data[1] % group != 0:
                raise ValueError(
                    f"{data[1]} input channels do not fit a weight of {weight[0]} in {group} groups"
                )
            self.windows = windows_of(self.operator, rank)
            self.inside, self.outside = weight[0] // group, weight[1]
            extra = self.operator.integers("output_padding", rank)
            spatial = tuple(
                (length - 1) * window.stride + window.span - window.pad - window.pad_end + more
                for length, window, more in zip(data[2:], self.windows, extra, strict=True)
            )
            if min(spatial) < 1:
                raise ValueError(f"output of spatial shape {spatial} is empty")
            return (data[0], weight[1] * group, *spatial)
        if weight[1] * group != data[1] or weight[0] % group != 0:
            raise ValueError(
                f"{data[1]} input and {weight[0]} output channels do not fit a weight of "
                f"{weight[1]} channels in {group} groups"
            )
        self.windows = windows_of(self.operator, rank)
        self.inside, self.outside = weight[1], weight[0] // group
        if tuple(window.kernel for window in self.windows) != self.kernel:
            raise ValueError(f"kernel_shape does not fit a weight of shape {weight}")
        self.reduction = data[1] if group == 1 else 1
        self.check_bytes(1, weight[0])
        counts = zip(self.windows, data[2:], strict=True)
        return (data[0], weight[0], *(window.outputs(length) for window, length in counts))

    def reads(self, box: Box, part: Part = None) -> Reads:
        first, last = self._groups(box[1])
        channels = (first * self.inside, (last + 1) * self.inside)
        if self.transposed:
            own = (0, self.outside)
            if first == last:
                own = (box[1][0] - first * self.outside, box[1][1] - first * self.outside)
            weight = (channels, own)
        elif self.reduction > 1:
            channels = part or channels
            weight = (box[1], channels)
        else:
            weight = (box[1], (0, self.inside))
        how = transposed_reads if self.transposed else window_reads
        data = data_box(self.windows, self.data, (box[0], channels), box[2:], how)
        operands = data, (*weight, *self.window)
        if self.on_bytes:
            return (*operands, *self.zeros(None, box[1]))
        bias = (box[1],) if self.ends(part) else None
        return operands if self.added is None else (*operands, bias)

    def count(self, box: Box, reads: Reads) -> int:
        return volume(box) * (self.added is not None)

    def loops(self, box: Box, part: Part) -> tuple[tuple[str, int], ...]:
        first, last = self._groups(box[1])
        count, groups = box[1][1] - box[1][0], last + 1 - first
        # Where the box cuts through groups, each channel counts as a group of one: G * K is exact.
        groups = groups if groups == 1 or count == groups * self.outside else count
        channels = self.inside if part is None else part[1] - part[0]
        loops = ("B", box[0][1] - box[0][0]), ("G", groups), ("K", count // groups), ("C", channels)
        if self.transposed:
            pairs = list(map(transposed_pairs, self.windows, box[2:], self.data[2:]))
            return (*loops, ("Y", prod(pairs[:-1])), ("X", pairs[-1]))
        *rows, columns = extents(box)[2:]
        *high, wide = self.kernel
        return (*loops, ("Y", prod(rows)), ("X", columns), ("R", prod(high)), ("S", wide))

    def _groups(self, outputs: Interval) -> Interval:
        """Return the first and the last group of a range of output channels."""
        return outputs[0] // self.outside, (outputs[1] - 1) // self.outside


class Contraction(Product):
    """Operands with labelled axes. What the result lacks is summed; an axis of 1 broadcasts.

    There are the labels of the axes, the lengths of those that are summed, and the loops with the
    labels that each runs over.
    """

    operands: Sequence[Sequence[Hashable]]
    result: Sequence[Hashable]
    summed: dict[Hashable, int]
    nest: Sequence[tuple[str, Sequence[Hashable]]]

    def reads(self, box: Box, part: Part = None) -> Reads:
        intervals = self._intervals(box, part)
        given = zip(self.inputs, self.operands, strict=False)
        return tuple(
            tuple((0, 1) if n == 1 else intervals[at] for n, at in zip(shape, labels, strict=True))
            for shape, labels in given
            if shape is not None
        )

    def loops(self, box: Box, part: Part) -> tuple[tuple[str, int], ...]:
        intervals = self._intervals(box, part)
        nest = ((name, [intervals[label] for label in labels]) for name, labels in self.nest)
        return tuple((name, volume(tuple(along))) for name, along in nest)

    def _intervals(self, box: Box, part: Part) -> dict[Hashable, Interval]:
        own = {label: part or (0, length) for label, length in self.summed.items()}
        return own | dict(zip(self.result, box, strict=True))


class MatMul(Contraction):
    """MatMul, MatMulInteger, as in NumPy: batched, broadcast, with one-dimensional operands.

    No attributes. The reduction is over the last axis of the first operand. The zero point of
    MatMulInteger may be one per row of A, or per column of B. Loops: ``B`` batch positions that
    share the second operand, ``G`` with one each, ``X`` rows, ``K`` columns, ``C`` reduction.
    """

    kinds = frozenset({"MatMul", "MatMulInteger"})

    def prepare(self, left: Extents, right: Extents) -> Extents:
        if not left or not right:
            raise ValueError(f"operands of shapes {left} and {right}, expected no scalars")
        inner = right[0] if len(right) == 1 else right[-2]
        if left[-1] != inner:
            raise ValueError(f"inner lengths {left[-1]} and {inner} differ")
        batch = np.broadcast_shapes(left[:-2], right[:-2])
        self.rows, self.columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
        rows, columns = ["row"] * len(self.rows), ["column"] * len(self.columns)
        labels = list(range(len(batch)))
        behind = labels[len(batch) - len(right[:-2]) :]
        self.operands = (
            [*labels[len(batch) - len(left[:-2]) :], *rows, "inner"],
            [*behind, "inner", *columns],
        )
        self.result = [*labels, *rows, *columns]
        self.summed, self.reduction = {"inner": inner}, inner
        own = [label for label, length in zip(behind, right, strict=False) if length != 1]
        shared = [label for label in labels if label not in own]
        self.nest = ("B", shared), ("G", own), ("X", rows), ("K", columns), ("C", ["inner"])
        self.check_bytes(prod(self.rows), prod(self.columns))
        return (*batch, *self.rows, *self.columns)

    def reads(self, box: Box, part: Part = None) -> Reads:
        along = self._intervals(box, part)
        zeros = self.zeros(along.get("row"), along.get("column")) if self.on_bytes else ()
        return (*super().reads(box, part), *zeros)


class Gemm(Contraction):
    """Gemm: ``alpha * A' @ B' + beta * C``.

    Inputs: A, B, optional C that broadcasts to the result.

    Attributes: ``alpha``, ``beta`` (numbers), ``transA``, ``transB`` (0 or 1).

    The reduction is over the columns of A'. Loops: ``B`` rows, ``K`` columns, ``C`` reduction. Each
    of alpha and beta costs 1 per output element where it is not 1.
    """

    kinds = frozenset({"Gemm"})

    def prepare(self, left: Extents, right: Extents) -> Extents:
        own = self.operator
        self.scaled = own.number("alpha") != 1, own.number("beta") != 1
        if any(self.scaled) and own.quantisation is not None:
            raise ValueError("a quantised Gemm with alpha or beta other than 1 is not supported")
        if len(left) != 2 or len(right) != 2:
            raise ValueError(f"operands of shapes {left} and {right}, expected matrices")
        first = -1 if own.integer("transA") else 1
        second = -1 if own.integer("transB") else 1
        (rows, inner), (other, columns) = left[::first], right[::second]
        if inner != other:
            raise ValueError(f"inner lengths {inner} and {other} differ")
        result = (rows, columns)
        if self.added is not None and np.broadcast_shapes(self.added, result) != result:
            raise ValueError(f"C of shape {self.added} does not broadcast to {result}")
        self.operands, self.result = ("ik"[::first], "kj"[::second]), "ij"
        self.summed, self.reduction = {"k": inner}, inner
        self.nest = ("B", "i"), ("K", "j"), ("C", "k")
        return result

    def reads(self, box: Box, part: Part = None) -> Reads:
        operands = super().reads(box, part)
        if self.added is None:
            return operands
        return (*operands, broadcast_box(self.added, box) if self.ends(part) else None)

    def count(self, box: Box, reads: Reads) -> int:
        added, (alpha, beta) = self.added is not None, self.scaled
        return (added + alpha + (added and beta)) * volume(box)


class Einsum(Contraction):
    """Einsum with explicit letters; attribute ``equation``, for example ``bhid,bhjd->bhij``.

    Without ``...``, without a letter twice in one operand, and with the result written out (the
    front end resolves what is implicit). A letter has one length: no broadcasting.

    Loops: ``X`` letters of the result, ``C`` letters that are summed. The MACs are those of one
    loop nest over all letters, whatever the number of operands.
    """

    kinds = frozenset({"Einsum"})
    needs = 1

    def prepare(self, first: Extents) -> Extents:
        operands, result = letters(self.operator)
        self.operands, self.result = operands, result
        if len(operands) != len(self.inputs):
            raise ValueError(f"{len(self.inputs)} inputs for {len(operands)} operands")
        lengths: dict[str, int] = {}
        for position, (operand, shape) in enumerate(zip(operands, self.inputs, strict=True)):
            if shape is None:
                raise ValueError(f"input {position} of Einsum is left out")
            if len(shape) != len(operand):
                raise ValueError(f"operand {operand} of shape {shape}")
            for letter, length in zip(operand, shape, strict=True):
                if lengths.setdefault(letter, length) != length:
                    raise ValueError(f"letter {letter} is {lengths[letter]} and {length} long")
        self.summed = {letter: n for letter, n in lengths.items() if letter not in result}
        self.nest = ("X", result), ("C", [*self.summed])
        return tuple(lengths[letter] for letter in result)


def letters(operator: Operator) -> tuple[list[str], str]:
    """Return the letters of each operand, and of the result.

    Raises a ``ValueError`` if the equation is not of the form that the family understands.
    """
    equation = operator.text("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    operands = left.split(",")
    for term in (*operands, result):
        plain = term.isascii() and all(map(str.isalpha, term))
        if not arrow or len(set(term)) < len(term) or not plain:
            raise ValueError(f"equation {equation} is not of the form ij,jk->ik")
    if not set(result) <= set(left):
        raise ValueError(f"equation {equation}: a letter of the result is in no operand")
    return operands, result


FAMILIES = Convolution, Einsum, Gemm, MatMul
