"""Operators of a network as kernels see them: what all tiles of one have in common."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spmilp.export.tables.codes import OPERATORS, AttributeType
from spmilp.export.tables.layouts import ATTRIBUTES, SCALES, VIEWS
from spmilp.export.tables.table import NONE, Layout, Tables, Texts, Words

_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators whose bias is added as it is where both factors are integers that stand for reals."""


@dataclass(frozen=True, slots=True)
class Scales:
    """The quantisation of an operand; positions are in words.

    Parameters
    ----------
    axis
        Along which scales differ, -1 for one scale.
    first
        Position of the scales.
    zeros, first_zero
        How many zero points there are, and their position.
    """

    type: int
    axis: int
    first: int
    zeros: int
    first_zero: int


@dataclass(frozen=True, slots=True)
class Described:
    """What an operator says of an operand.

    Parameters
    ----------
    rank
        Axes; ``None`` for an input that is not read.
    shape
        Of the whole tensor; zeros for partial sums.
    """

    rank: int | None
    type: int = 0
    shape: tuple[int, ...] = ()
    scale: Scales | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: codes of its name and type, words, and the first one (of a text in texts)."""

    name: int
    type: int
    count: int
    first: int


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """What all tiles of an operator have in common.

    Parameters
    ----------
    kind, quantised, limits
        As in the table of steps.
    low_and_high
        Position of both limits in words; ``None`` without limits.
    """

    kind: int
    quantised: int
    limits: int
    low_and_high: int | None
    attributes: tuple[Attribute, ...]
    output: Described
    inputs: tuple[Described, ...]


class Operators:
    """Finds the operators of steps; equal ones are kept once.

    ``words`` and ``texts`` are pools that keep only what runs.
    """

    def __init__(self, tables: Tables) -> None:
        self.words, self.texts = Words(), Texts()
        self.texts.add("")
        self.all: dict[OperatorCode, int] = {}
        self._given, self._texts_given = tables.words, tables.texts
        self._rows = {table.layout.table: table.rows for table in tables.tables}

    def number(
        self,
        step: dict[str, int],
        inputs: Sequence[tuple[int, ...] | None],
        output: tuple[int, ...],
    ) -> int:
        """Return the number of the operator of a step.

        Parameters
        ----------
        inputs, output
            Rows of views; ``None`` for an input that is not read.
        """
        low_and_high = self.words.add((step["low"], step["high"])) if step["limits"] else None
        first, count = step["first_attribute"], step["attributes"]
        attributes = tuple(
            self._attribute(named(ATTRIBUTES, row))
            for row in self._rows["attributes"][first : first + count]
        )
        scales = self._scales(step)
        made = OperatorCode(
            kind=step["kind"],
            quantised=step["quantised"],
            limits=step["limits"],
            low_and_high=low_and_high,
            attributes=attributes,
            output=self._described(output, scales[-1]),
            inputs=tuple(map(self._described, inputs, scales)),
        )
        return self.all.setdefault(made, len(self.all))

    def given(self, first: int, count: int) -> list[int]:
        """Return words of the tables."""
        return list(self._given[first : first + count])

    def _scales(self, step: dict[str, int]) -> list[int]:
        """Return the numbers of the scales of inputs and output that its kernel looks at."""
        scales = self.given(step["scales"], step["inputs"] + 1)
        if not step["quantised"]:
            return [-1] * len(scales)
        if OPERATORS[step["kind"]] in _PRODUCTS and min(scales[:2]) >= 0:
            scales[2:-1] = [-1] * len(scales[2:-1])
        return scales

    def _described(self, view: tuple[int, ...] | None, scale: int) -> Described:
        scales = None if scale < 0 else self._scale(named(SCALES, self._rows["scales"][scale]))
        if view is None:
            return Described(None, scale=scales)
        fields = named(VIEWS, view)
        shape = [0] * fields["rank"]
        if fields["value"] != NONE:
            shape = self.given(self._rows["values"][fields["value"]][2], fields["rank"])
        return Described(fields["rank"], fields["type"], tuple(shape), scales)

    def _attribute(self, row: dict[str, int]) -> Attribute:
        if row["type"] == AttributeType.TEXT:
            end = self._texts_given.index(b"\0", row["first"])
            first = self.texts.add(self._texts_given[row["first"] : end].decode())
        else:
            first = self.words.add(self.given(row["first"], row["count"]))
        return Attribute(row["name"], row["type"], row["count"], first)

    def _scale(self, row: dict[str, int]) -> Scales:
        scales = self.words.add(self.given(row["scales"], row["count"]))
        zeros = self.given(row["zero_points"], row["zeros"])
        zeros = zeros[:1] if len(set(zeros)) == 1 else zeros
        return Scales(row["type"], row["axis"], scales, len(zeros), self.words.add(zeros))


def named(layout: Layout, row: Sequence[int]) -> dict[str, int]:
    """Return the fields of a row by the names of their columns."""
    return dict(zip((column.name for column in layout.columns), row, strict=True))


def numbers_of(operator: OperatorCode) -> Iterator[int]:
    """Yield an operator as numbers, none of them negative."""
    yield from (operator.kind, len(operator.inputs), operator.quantised, operator.limits)
    if operator.low_and_high is not None:
        yield operator.low_and_high
    yield len(operator.attributes)
    for each in operator.attributes:
        yield from (each.name, each.type, each.count, each.first)
    for operand in (operator.output, *operator.inputs):
        if operand.rank is None:
            yield 0
        else:
            yield from (operand.rank + 1, operand.type, *operand.shape)
        scale = operand.scale
        if scale is None:
            yield 0
        else:
            yield from (1, scale.type, scale.axis + 1, scale.first, scale.zeros, scale.first_zero)
