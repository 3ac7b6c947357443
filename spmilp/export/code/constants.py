"""Constants that calls of straight code have in common, each kept once."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files

from spmilp.export.actions.actions import Call
from spmilp.export.actions.operators import Attribute, Described, OperatorCode, Operators, Scales
from spmilp.export.c_text import SECTION
from spmilp.export.tables.codes import (
    ATTRIBUTES,
    OPERATORS,
    AttributeType,
    Elements,
    Part,
)
from spmilp.problem.strides import StridedCopy

_WIDTHS = ((1, "uint8_t", 2**8), (2, "uint16_t", 2**16), (4, "int32_t", 2**31))
"""Bytes, type and limit of the numbers of boxes."""

_Variant = tuple[int, int, int, int]
"""Operator, part, and types of the sums that it reads and writes (0 where there are none)."""


class _Pool:
    """Named constants by what stands between their braces."""

    def __init__(self, start: str) -> None:
        self._start, self.known = start, dict[tuple[str, ...], str]()

    def name(self, *parts: str, kind: str = "") -> str:
        """Return the name of a constant."""
        return self.known.setdefault(parts, f"{self._start}{kind}{len(self.known)}")


class Constants:
    """Gives names to what calls and transfers have in common, and defines it.

    Parameters
    ----------
    start
        Beginning of all names.
    calls
        All calls that there will be: the tiles of an operator have boxes of one width.
    """

    def __init__(self, start: str, operators: Operators, calls: Iterable[Call]) -> None:
        self._start = start
        self._operators = tuple(operators.all)
        self._words = operators.words
        pools = ("operands", "attributes", "scale", "boxes", "shape")
        self._pools = {name: _Pool(f"{start}_{name}") for name in pools}
        self._pools["operator"] = _Pool(f"{start}_")
        self._largest: dict[_Variant, int] = {}
        for call in calls:
            variant = _variant(call)
            self._largest[variant] = max(self._largest.get(variant, 0), *_box_numbers(call), 0)
        self.inputs = max((len(each.inputs) for each in self._operators), default=0)

    def operator(self, call: Call) -> str:
        """Return the name of what a call has in common with those of other tiles."""
        operator, part, read, written = variant = _variant(call)
        made = self._operators[operator]
        kind = OPERATORS[made.kind].upper()
        operands = [self._operand(each) for each in made.inputs]
        if read:
            operands.append(self._operand(Described(made.output.rank, read), is_sums=True))
        operands.append(
            self._operand(Described(made.output.rank, written, scale=made.output.scale), True)
            if written
            else self._operand(made.output)
        )
        own = (
            f".kernel = {kernel_macro(made)}, .words = {self._start}_words",
            f".texts = {self._start}_texts",
            f".attributes = {self._attributes(made)}",
            f".operands = {self._pools['operands'].name(*operands)}",
            f".kind = SPMILP_OPERATOR_{kind}, .inputs = {len(made.inputs)}U",
            f".attribute_count = {len(made.attributes)}U, .quantised = {made.quantised}U",
            f".limits = {made.limits}U, .low_and_high = {made.low_and_high or 0}U",
            f".part = SPMILP_PART_{Part(part).name}, .has_previous = {int(read != 0)}U",
            f".width = {self._width(variant)[0]}U",
        )
        return self._pools["operator"].name(*own, kind=kind.lower())

    def boxes(self, call: Call) -> str:
        """Return the name of the boxes of a call's operands."""
        _, type_, _ = self._width(_variant(call))
        numbers = ", ".join(map(str, _box_numbers(call))) or "0"
        return self._pools["boxes"].name(type_, numbers)

    def shape(self, shape: StridedCopy) -> str:
        """Return the name of the shape of a copy."""
        numbers = (shape.run, len(shape.loops), *(each for loop in shape.loops for each in loop))
        return self._pools["shape"].name(", ".join(f"{number}U" for number in numbers))

    def kernels(self) -> dict[str, str]:
        """Return the function of each macro of a kernel that an operator has."""
        return {
            kernel_macro(each): kernel_functions()[OPERATORS[each.kind].upper()]
            for each in self._operators
        }

    def declarations(self) -> Iterator[str]:
        """Yield the declarations of what lists name."""
        for name in self._pools["operator"].known.values():
            yield f"extern const struct spmilp_operator {name};"
        for (type_, _), name in self._pools["boxes"].known.items():
            yield f"extern const {type_} {name}[];"
        for name in self._pools["shape"].known.values():
            yield f"extern const spmilp_shape {name}[];"

    def definitions(self) -> Iterator[str]:
        """Yield all definitions."""
        pools, static = self._pools, f"static {SECTION} const"
        for fields, name in pools["scale"].known.items():
            yield f"{static} struct spmilp_scale {name} = {{{', '.join(fields)}}};"
        for fields, name in pools["attributes"].known.items():
            yield from _array(f"{static} struct spmilp_attribute {name}[]", fields)
        for fields, name in pools["operands"].known.items():
            yield from _array(f"{static} struct spmilp_described {name}[]", fields)
        for fields, name in pools["operator"].known.items():
            yield from _array(f"{SECTION} const struct spmilp_operator {name}", fields)
        yield "/* First element and length along each axis of each operand. */"
        for (type_, numbers), name in pools["boxes"].known.items():
            yield f"{SECTION} const {type_} {name}[] = {{{numbers}}};"
        yield "/* Bytes of a run, loops, and turns and strides of each loop. */"
        for (numbers,), name in pools["shape"].known.items():
            yield f"{SECTION} const spmilp_shape {name}[] = {{{numbers}}};"

    def _width(self, variant: _Variant) -> tuple[int, str, int]:
        return next(each for each in _WIDTHS if self._largest[variant] < each[2])

    def _operand(self, operand: Described, is_sums: bool = False) -> str:
        scale = "0" if operand.scale is None else f"&{self._scale(operand.scale)}"
        if operand.rank is None:
            return f"{{{scale}, 0, 0U, 0U}}"
        shape = "0" if is_sums else f"{self._start}_words + {self._words.add(operand.shape)}"
        type_ = f"SPMILP_TYPE_{Elements(operand.type).name}"
        return f"{{{scale}, {shape}, {type_}, {operand.rank}U}}"

    def _scale(self, scale: Scales) -> str:
        return self._pools["scale"].name(
            f".type = SPMILP_TYPE_{Elements(scale.type).name}, .axis = {scale.axis}",
            f".scales = {scale.first}U, .zeros = {scale.zeros}U",
            f".zero_points = {scale.first_zero}U",
        )

    def _attributes(self, operator: OperatorCode) -> str:
        if not operator.attributes:
            return "0"
        return self._pools["attributes"].name(*map(_attribute, operator.attributes))


def kernel_macro(operator: OperatorCode) -> str:
    """Return the macro that says which function computes an operator."""
    return f"SPMILP_KERNEL_{OPERATORS[operator.kind].upper()}"


@cache
def kernel_functions() -> dict[str, str]:
    """Return the reference kernel of each operator type in capitals."""
    source = files("spmilp.export.player").joinpath("c/spmilp_kernels.c").read_text("utf-8")
    return dict(re.findall(r"\[SPMILP_OPERATOR_(\w+)\] = (\w+)", source))


def _attribute(attribute: Attribute) -> str:
    name, type_ = ATTRIBUTES[attribute.name].upper(), AttributeType(attribute.type).name
    return (
        f"{{SPMILP_ATTRIBUTE_{name}, SPMILP_VALUE_{type_}, {attribute.count}U, {attribute.first}U}}"
    )


def _variant(call: Call) -> _Variant:
    read = 0 if call.previous is None else call.previous.sums
    return call.operator, call.part, read, call.output.sums


def _box_numbers(call: Call) -> Iterator[int]:
    for operand in (*call.inputs, call.previous, call.output):
        if operand is not None:
            yield from operand.box


def _array(declaration: str, rows: Sequence[str]) -> Iterator[str]:
    yield f"{declaration} = {{"
    yield from (f"    {row}," for row in rows)
    yield "};"
