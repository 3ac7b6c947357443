"""Quantities as people write and read them: durations, bytes, shares, counts, clocks."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from spmilp.errors import ArgumentError

SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
"""Seconds of each unit of time."""
BYTES = {"": 1, "b": 1} | {
    unit: 2 ** (10 * power)
    for power, letter in enumerate("kmgt", start=1)
    for unit in (letter, f"{letter}i", f"{letter}ib")
}
"""Bytes of each unit of memory, as memories are counted."""
MOST_BYTES = 2**60 - 1
MOST_NAMES = 12
"""Names that a message lists."""


def duration(given: str | float) -> float:
    """Read ``5m``, ``1.5h``, ``200ms``, seconds or ``none`` as seconds; a ``ValueError`` if not."""
    text = str(given)
    if text.strip().lower() in ("none", "inf"):
        return math.inf
    if isinstance(given, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", text)
        if match is None or match[2] not in SECONDS:
            raise ValueError(f"{text!r} is no duration; write 60s, 5m, 1h, 500ms or none")
        seconds = float(match[1]) * SECONDS[match[2]]
    else:
        seconds = float(given)
    if not seconds > 0:
        raise ValueError(f"{text!r} is no time at all; write 60s, 5m, 1h, 500ms or none")
    return seconds


def byte_count(given: str | int) -> int:
    """Read ``1048576``, ``0x100000``, ``64K`` or ``1.5 MiB`` as bytes; a ``ValueError`` if not."""
    text = str(given).strip()
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
        return _in_range(int(text, 16), text)
    match = re.fullmatch(r"([0-9]{1,20})(?:\.([0-9]{1,20}))?\s*([a-zA-Z]*)", text)
    if match is not None and match[3].lower() in ("kb", "mb", "gb", "tb"):
        unit = f"{match[3][0].upper()}iB"
        raise ValueError(f"{text!r} may count by 1000 or by 1024; write {unit} or bytes")
    if match is None or match[3].lower() not in BYTES:
        raise ValueError(f"{text!r} is no size in bytes; write 1048576, 0x100000 or 1MiB")
    decimals = match[2] or ""
    whole, rest = divmod(int(match[1] + decimals) * BYTES[match[3].lower()], 10 ** len(decimals))
    if rest:
        raise ValueError(f"{text!r} is no whole number of bytes")
    return _in_range(whole, text)


def byte_range(given: str) -> tuple[int, int]:
    """Read ``0-4KiB`` as a half-open range of bytes; a ``ValueError`` if it is none, or empty."""
    first, dash, last = str(given).partition("-")
    if not dash:
        raise ValueError(f"{given!r} is no range of bytes; write FROM-TO, as in 0-4KiB")
    start = 0 if first.strip() in ("0", "0x0") else byte_count(first)
    end = byte_count(last)
    if start >= end:
        raise ValueError(f"{given!r} is empty: it ends at {end} B, and begins at {start} B")
    return start, end


def _in_range(number: int, text: str) -> int:
    if not 1 <= number <= MOST_BYTES:
        raise ValueError(f"{text!r} is {number} B, expected 1 to {MOST_BYTES}")
    return number


def dimensions(given: Mapping[str, int] | Iterable[str] | None) -> dict[str, int]:
    """Read ``batch=1`` as sizes by name; an ``ArgumentError`` if that is none, or comes twice."""
    if isinstance(given, Mapping):
        return dict(given)
    return numbers_by_name("dim", given, "NAME=SIZE with a size of 1 or more, as in --dim batch=1")


def numbers_by_name(
    option: str, given: Mapping[str, int] | Iterable[str] | None, expected: str
) -> dict[str, int]:
    """Read ``kws=2`` as numbers of 1 or more by name; an ``ArgumentError`` says what is none."""
    texts = [f"{k}={v}" for k, v in given.items()] if isinstance(given, Mapping) else given
    read = _by_name(option, texts, expected)
    for name, number in read.items():
        if not (number.isascii() and number.isdecimal() and int(number) > 0):
            raise ArgumentError(f"{option} {name}={number}: expected {expected}", is_option=True)
    return {name: int(number) for name, number in read.items()}


def input_values(given: Mapping[str, object] | Iterable[str] | None) -> dict[str, str]:
    """Read ``sr=16000`` or ``{"sr": 16000}`` as texts by name; lists have commas.

    An ``ArgumentError`` says that a text is not ``NAME=VALUE``, or a name comes twice.
    """
    if not isinstance(given, Mapping):
        return _by_name("input", given, "NAME=VALUE, as in --input sr=16000 or --input sizes=2,3")
    return {
        name: ",".join(map(str, each))
        if isinstance(each, Iterable) and not isinstance(each, str)
        else str(each)
        for name, each in given.items()
    }


def states(given: Mapping[str, str] | Iterable[str] | None) -> dict[str, str]:
    """Read ``h_in=h_out`` as outputs by input; an ``ArgumentError`` says what is none."""
    if isinstance(given, Mapping):
        return dict(given)
    return _by_name("state", given, "INPUT=OUTPUT, as in --state h_in=h_out")


def _by_name(option: str, given: Iterable[str] | None, expected: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given or ():
        name, _, value = text.rpartition("=")
        if not (name and value):
            raise ArgumentError(f"{option} {text}: expected {expected}", is_option=True)
        if found.setdefault(name, value) != value:
            raise ArgumentError(
                f"{option} {name} is given as {found[name]} and as {value}", is_option=True
            )
    return found


def share(given: str | float) -> float:
    """Read ``0.01`` or ``1%`` as a number from 0 to 1; a ``ValueError`` if it is none."""
    text = str(given)
    number, scale = (text.removesuffix("%"), 0.01) if text.endswith("%") else (text, 1.0)
    try:
        value = float(number) * scale
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{text!r} is no share; write 0.01 or 1%")
    return value


def count(number: int, unit: str) -> str:
    """Return ``1 task``, ``2,000 tasks``."""
    return f"{number:,} {unit}" + ("" if number == 1 else "s")


def names(some: Sequence[str]) -> str:
    """Write names with commas between them, and how many more there are behind a dozen."""
    more = f" and {len(some) - MOST_NAMES} more" if len(some) > MOST_NAMES else ""
    return ", ".join(some[:MOST_NAMES]) + more


def size(number: int) -> str:
    """Return bytes as people read them, exact below 10 KiB."""
    value = float(number)
    if number < 10 * 1024:
        return f"{number:,} B"
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024 or unit == "GiB":
            break
    return f"{value:,.1f} {unit}"


def shown_bytes(number: int) -> str:
    """Return bytes exactly, in the largest unit of which they are a whole number."""
    for unit in ("B", "KiB", "MiB"):
        if number % 1024 or number == 0:
            return f"{number:,} {unit}"
        number //= 1024
    return f"{number:,} GiB"


def time(seconds: float) -> str:
    """Return seconds with a unit that gives one to three digits before the point."""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * scale >= 1.0:
            return f"{seconds * scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def percent(part: float) -> str:
    """Return a share as a percentage with one decimal."""
    return f"{part:.1%}"


def frequency(hertz: int) -> str:
    """Return cycles per second as MHz or GHz."""
    return f"{hertz / 1e9:g} GHz" if hertz >= 10**9 else f"{hertz / 1e6:g} MHz"


def relative_gap(objective: int, bound: int) -> float:
    """Return ``(objective - bound) / objective``; 0 for an objective of 0."""
    return (objective - bound) / objective if objective else 0.0
