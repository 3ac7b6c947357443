"""Operators as integers: attributes, quantisation, types."""

import struct
from collections.abc import Mapping

import numpy as np

from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.tables.codes import ATTRIBUTES, OPERATORS, AttributeType, Bound, Elements
from spmilp.export.tables.table import LIMITS, Texts, Words
from spmilp.frontend.graph import Attribute, Operator, Quantisation, Scale

_OPERATOR: Mapping[str, int] = {name: number for number, name in enumerate(OPERATORS)}
_ATTRIBUTE: Mapping[str, int] = {name: number for number, name in enumerate(ATTRIBUTES)}


def bits(value: float) -> int:
    """Return the bits of a float32 as a signed integer."""
    with np.errstate(over="ignore"):
        return int(np.float32(value).view(np.int32))


def operator_code(operator: Operator) -> int:
    """Return the number of an operator's ONNX type.

    Raises
    ------
    ExportError
        If the format has none for it.
    """
    if operator.kind not in _OPERATOR:
        raise ExportError(
            f"tables: operator {comment(operator.name)}: the format has no number for "
            f"{comment(operator.kind)}"
        )
    return _OPERATOR[operator.kind]


def type_code(dtype: np.dtype[np.generic]) -> int:
    """Return the number of a type of elements.

    Raises
    ------
    ExportError
        If the format has none for it.
    """
    name = dtype.name.upper()
    if name not in Elements.__members__:
        raise ExportError(f"tables: the format has no number for elements of type {dtype}")
    return Elements[name]


def attribute_rows(operator: Operator, words: Words, texts: Texts) -> list[tuple[int, ...]]:
    """Return the rows of an operator's attributes, in the order of their numbers.

    Raises
    ------
    ExportError
        If an integer does not fit a word.
    """
    known = [name for name in operator.attributes if name in _ATTRIBUTE]
    return [
        (_ATTRIBUTE[name], *_encoded(_in_words(operator, name), words, texts))
        for name in sorted(known, key=_ATTRIBUTE.__getitem__)
    ]


def _in_words(operator: Operator, name: str) -> Attribute:
    """Return an attribute whose integers fit words.

    ONNX writes "to the end" as the greatest integer of 64 bits; a Slice's starts and ends are cut
    off at an axis' ends anyway.
    """
    value = operator.attributes[name]
    low, high = LIMITS["i32"]
    if name in ("starts", "ends") and isinstance(value, tuple):
        return tuple(min(max(int(each), low), high) for each in value)
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, int) and not low <= each <= high:
            raise ExportError(
                f"tables: operator {comment(operator.name)}: {name} is {each}, outside "
                f"[{low}, {high}] of a word"
            )
    return value


def _encoded(value: Attribute, words: Words, texts: Texts) -> tuple[int, int, int]:
    """Return type, count and position of an attribute's value."""
    if isinstance(value, str):
        return AttributeType.TEXT, 1, texts.add(value)
    if isinstance(value, float):
        return AttributeType.REAL, 1, words.add([bits(value)])
    if isinstance(value, int):
        return AttributeType.INTEGER, 1, words.add([value])
    if value and all(isinstance(each, float) for each in value):
        return AttributeType.REALS, len(value), words.add(map(bits, value))
    return AttributeType.INTEGERS, len(value), words.add(map(int, value))


def quantised(quantisation: Quantisation | None) -> int:
    """Return 0 for an operator on its inputs as they are; 2 where the zero point is rounded too."""
    if quantisation is None:
        return 0
    output = quantisation.output
    return 2 if output is not None and output.rounds_with_zero else 1


def limits(quantisation: Quantisation | None) -> tuple[int, int, int]:
    """Return which limits an operator's real results have, and their bits."""
    if quantisation is None:
        return 0, 0, 0
    low, high = quantisation.low, quantisation.high
    which = Bound.LOW * (low is not None) + Bound.HIGH * (high is not None)
    return which, bits(low or 0.0), bits(high or 0.0)


class ScaleTable:
    """The table of scales; each is kept once."""

    def __init__(self, words: Words) -> None:
        self.rows: list[tuple[int, ...]] = []
        self._words = words
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, operator: Operator) -> int:
        """Return where the scales of an operator's inputs and of its output stand in words."""
        quantisation = operator.quantisation
        if quantisation is None:
            return self._words.add([-1] * (len(operator.inputs) + 1))
        given = [*quantisation.inputs, *[None] * len(operator.inputs)][: len(operator.inputs)]
        return self._words.add(self._add(scale) for scale in (*given, quantisation.output))

    def _add(self, scale: Scale | None) -> int:
        if scale is None:
            return -1
        steps, zeros = scale.scale.reshape(-1), scale.zero_point.reshape(-1)
        row = (
            type_code(scale.dtype),
            -1 if scale.axis is None else scale.axis,
            len(steps),
            self._words.add(struct.unpack(f"<{len(steps)}i", steps.astype("<f4").tobytes())),
            len(zeros),
            self._words.add(int(zero) for zero in zeros),
        )
        if row not in self._known:
            self._known[row] = len(self.rows)
            self.rows.append(row)
        return self._known[row]
