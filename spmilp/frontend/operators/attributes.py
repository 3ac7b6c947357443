"""Typed access to the attributes of an operator."""

from collections.abc import Sequence

from spmilp.frontend.graph import Attribute, Operator


def integer(operator: Operator, name: str) -> int:
    """Return an attribute that is one integer."""
    value = _value(operator, name)
    if not isinstance(value, int):
        raise _wrong(operator, name, value, "an integer")
    return value


def number(operator: Operator, name: str) -> float:
    """Return an attribute that is one number."""
    value = _value(operator, name)
    if not isinstance(value, int | float):
        raise _wrong(operator, name, value, "a number")
    return float(value)


def text(operator: Operator, name: str) -> str:
    """Return an attribute that is a text."""
    value = _value(operator, name)
    if not isinstance(value, str):
        raise _wrong(operator, name, value, "a text")
    return value


def integers(operator: Operator, name: str, count: int | None = None) -> tuple[int, ...]:
    """Return an attribute that is a tuple of integers, ``count`` of them where given."""
    values = _tuple(operator, name, count)
    found = tuple(value for value in values if isinstance(value, int))
    if len(found) < len(values):
        raise _wrong(operator, name, values, "integers")
    return found


def integers_at(operator: Operator, name: str, positions: Sequence[int]) -> tuple[int, ...]:
    """Return some values of an attribute that is a tuple of integers; no others are looked at."""
    values = _tuple(operator, name, None)
    chosen = tuple(values[position] for position in positions)
    found = tuple(value for value in chosen if isinstance(value, int))
    if len(found) < len(chosen):
        raise _wrong(operator, name, chosen, "integers")
    return found


def numbers(operator: Operator, name: str, count: int | None = None) -> tuple[float, ...]:
    """Return an attribute that is a tuple of numbers, ``count`` of them where given."""
    return tuple(float(value) for value in _tuple(operator, name, count))


def has(operator: Operator, name: str) -> bool:
    """Return whether an attribute is present."""
    return name in operator.attributes


def axis_of(operator: Operator, rank: int, name: str = "axis") -> int:
    """Return an attribute that is an axis of a tensor of ``rank`` axes."""
    axis = integer(operator, name)
    if not 0 <= axis < rank:
        raise ValueError(f"{name} is {axis}, expected 0 to {rank - 1}")
    return axis


def _value(operator: Operator, name: str) -> Attribute:
    if name not in operator.attributes:
        raise ValueError(f"attribute {name} of {operator.kind} is missing")
    return operator.attributes[name]


def _tuple(operator: Operator, name: str, count: int | None) -> tuple[int, ...] | tuple[float, ...]:
    value = _value(operator, name)
    if not isinstance(value, tuple):
        raise _wrong(operator, name, value, "a tuple")
    if count is not None and len(value) != count:
        raise _wrong(operator, name, value, f"{count} values")
    return value


def _wrong(operator: Operator, name: str, value: Attribute, expected: str) -> ValueError:
    return ValueError(f"attribute {name} of {operator.kind} is {value!r}, expected {expected}")
