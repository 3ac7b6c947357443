"""Values of a machine's fields that are to be tried: lists, doublings and steps."""

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from numbers import Integral
from typing import TypeAlias

from spmilp.amounts import byte_count, shown_bytes
from spmilp.errors import ArgumentError

Value: TypeAlias = int | Fraction | str | bool
"""Of a field: numbers are exact, what is no number is text or a truth value."""

SHORT_NAMES = ("spm", "dma_channels", "dma_rate", "dram_rate")
"""Fields that all machines have, as :meth:`~spmilp.machine.read.MachineFile.replace` calls them."""

MOST_VALUES = 100_000
"""Of one field."""

FINEST_SIZE = 1024
"""Bytes between the sizes of a range without a step, where each of them may be the answer."""

_NUMBER = re.compile(r"\d+(\.\d+|/0*[1-9]\d*)?")


def values_of(name: str, given: object) -> tuple[Value, ...]:
    """Return the values that a text or a list stands for, ascending, each once.

    ``1,2,4`` is a list, ``16k:256k`` doubles from the first to the last, ``16k:256k:16k`` goes
    in steps. Sizes in bytes have units.

    Raises
    ------
    ValueError
        If something is no value of the field; the message names the field and what is given.
    """
    return _ordered(value for part in _parts(given) for value in _of_part(name, part, _doublings))


def every_value_of(name: str, given: object) -> tuple[Value, ...]:
    """Return all values of a range, of which the smallest that is good enough is looked for.

    As :func:`values_of`, but ``16k:256k`` stands for every KiB, and for every whole number where
    it is no size in bytes.

    Raises
    ------
    ValueError
        As :func:`values_of`.
    """

    def all_between(first: int | Fraction, last: int | Fraction) -> Iterator[int | Fraction]:
        step = FINEST_SIZE if _is_size(name) and last >= 2 * FINEST_SIZE else 1
        return _steps(first, last, step)

    return _ordered(value for part in _parts(given) for value in _of_part(name, part, all_between))


def plain(value: Value) -> int | str | bool:
    """Return a value as files and machines hold it: ``47/2`` for what is no whole number."""
    return str(value) if isinstance(value, Fraction) else value


def shown(name: str, value: Value) -> str:
    """Return a value for people: sizes with their unit."""
    return shown_bytes(int(value)) if _is_size(name) and isinstance(value, Integral) else str(value)


def _is_size(name: str) -> bool:
    return name == "spm" or name.endswith("_bytes")


def _parts(given: object) -> Iterator[object]:
    each = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    for one in each:
        yield from (text.strip() for text in one.split(",")) if isinstance(one, str) else (one,)


_Between: TypeAlias = Callable[[int | Fraction, int | Fraction], Iterator[int | Fraction]]


def _of_part(name: str, part: object, between: _Between) -> Iterator[Value]:
    if not isinstance(part, str) or ":" not in part:
        yield _value(name, part)
        return
    first, last, *step = (_value(name, text.strip()) for text in part.split(":"))
    if any(isinstance(each, str | bool) for each in (first, last, *step)) or len(step) > 1:
        raise ArgumentError(f"{name}={part}: expected FROM:TO or FROM:TO:STEP of numbers")
    numbers = [each for each in (first, last, *step) if isinstance(each, int | Fraction)]
    if numbers[0] > numbers[1] or 0 in (numbers[0], *numbers[2:]):
        raise ArgumentError(f"{name}={part}: expected 0 < FROM <= TO, and a STEP > 0")
    if step:
        yield from _steps(*numbers)
    else:
        yield from between(numbers[0], numbers[1])


def _doublings(first: int | Fraction, last: int | Fraction) -> Iterator[int | Fraction]:
    while first < last:
        yield first
        first *= 2
    yield last


def _steps(
    first: int | Fraction, last: int | Fraction, step: int | Fraction
) -> Iterator[int | Fraction]:
    while first <= last:
        yield first
        first += step


def _value(name: str, given: object) -> Value:
    try:
        if isinstance(given, bool):
            return given
        if _is_size(name) and str(given) != "0":
            return byte_count(str(given))
    except ValueError as error:
        raise ArgumentError(f"{name}={given}: {error}") from error
    text = str(given).strip()
    if _NUMBER.fullmatch(text):
        number = Fraction(text)
        return int(number) if number.denominator == 1 else number
    if name in SHORT_NAMES or not text:
        raise ArgumentError(f"{name}={text}: expected numbers such as 1,2,4 or 1:8 or 1:8:1")
    return {"true": True, "false": False}.get(text.lower(), text)


def _ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    found: dict[Value, None] = {}
    for value in values:
        found[value] = None
        if len(found) > MOST_VALUES:
            raise ArgumentError(
                f"more than {MOST_VALUES:,} values of one field; give a larger step"
            )
    if any(isinstance(value, str) for value in found):
        return tuple(found)
    return tuple(sorted(found, key=lambda value: value if not isinstance(value, str) else 0))
