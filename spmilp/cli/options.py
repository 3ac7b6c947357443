"""How words on the command line become values; each reader says what it expected."""

import math
import re
from collections.abc import Iterable
from enum import StrEnum

import typer


class Tiles(StrEnum):
    """How tile sizes are chosen."""

    FIRST = "first"
    SEARCH = "search"


SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
"""Seconds of each unit of time."""
BYTES = {"": 1, "b": 1} | {
    unit: 2 ** (10 * power)
    for power, letter in enumerate("kmgt", start=1)
    for unit in (letter, f"{letter}i", f"{letter}ib")
}
"""Bytes of each unit of memory, as memories are counted."""
MOST_BYTES = 2**60 - 1


def duration(given: str | float) -> float:
    """Read ``60s``, ``5m``, ``1.5h``, ``200ms``, plain seconds, or ``none``, in seconds.

    Raises
    ------
    BadParameter
        If the text is nothing of that, or no time at all.
    """
    text = str(given)
    if text.strip().lower() in ("none", "inf"):
        return math.inf
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", text)
    if match is None or match[2] not in SECONDS:
        raise typer.BadParameter(f"{text!r} is no duration; write 60s, 5m, 1h, 500ms or none")
    seconds = float(match[1]) * SECONDS[match[2]]
    if seconds <= 0:
        raise typer.BadParameter(f"{text!r} is no time at all; write 60s, 5m, 1h, 500ms or none")
    return seconds


def byte_count(given: str | int) -> int:
    """Read ``1048576``, ``0x100000``, ``64K``, ``1MiB`` or ``1.5 MiB`` as bytes.

    Raises
    ------
    BadParameter
        If the text is nothing of that, no whole number of bytes, or out of range.
    """
    text = str(given).strip()
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
        return _in_range(int(text, 16), text)
    match = re.fullmatch(r"([0-9]{1,20})(?:\.([0-9]{1,20}))?\s*([a-zA-Z]*)", text)
    if match is not None and match[3].lower() in ("kb", "mb", "gb", "tb"):
        unit = f"{match[3][0].upper()}iB"
        raise typer.BadParameter(f"{text!r} may count by 1000 or by 1024; write {unit} or bytes")
    if match is None or match[3].lower() not in BYTES:
        raise typer.BadParameter(f"{text!r} is no size in bytes; write 1048576, 0x100000 or 1MiB")
    decimals = match[2] or ""
    whole, rest = divmod(int(match[1] + decimals) * BYTES[match[3].lower()], 10 ** len(decimals))
    if rest:
        raise typer.BadParameter(f"{text!r} is no whole number of bytes")
    return _in_range(whole, text)


def _in_range(number: int, text: str) -> int:
    if not 1 <= number <= MOST_BYTES:
        raise typer.BadParameter(f"{text!r} is {number} B, expected 1 to {MOST_BYTES}")
    return number


def share(given: str | float) -> float:
    """Read ``0.01`` or ``1%`` as a number from 0 to 1.

    Raises
    ------
    BadParameter
        If the text is no such number.
    """
    text = str(given)
    number, scale = (text.removesuffix("%"), 0.01) if text.endswith("%") else (text, 1.0)
    try:
        value = float(number) * scale
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise typer.BadParameter(f"{text!r} is no share; write 0.01 or 1%")
    return value


def dimensions(texts: Iterable[str]) -> dict[str, int]:
    """Read ``batch=1`` and its like as sizes by name.

    Raises
    ------
    BadParameter
        If a text is not ``NAME=SIZE`` with a positive size, or a name comes twice.
    """
    sizes: dict[str, int] = {}
    for text in texts:
        name, equals, size = text.rpartition("=")
        if not (name and equals and size.isascii() and size.isdecimal() and int(size) > 0):
            raise typer.BadParameter(
                f"--dim {text}: expected NAME=SIZE with a size of 1 or more, as in --dim batch=1"
            )
        if name in sizes and sizes[name] != int(size):
            raise typer.BadParameter(f"--dim {name} is given as {sizes[name]} and as {size}")
        sizes[name] = int(size)
    return sizes


def seeds(text: str) -> tuple[int, ...]:
    """Read ``0,1,2``.

    Raises
    ------
    BadParameter
        If there is none, one comes twice, or one is no whole number of 0 or more.
    """
    found = names(text)
    if not all(name.isascii() and name.isdecimal() and len(name) < 10 for name in found):
        raise typer.BadParameter(f"{text!r}: expected whole numbers with commas between them")
    return tuple(int(name) for name in found)


def names(text: str) -> tuple[str, ...]:
    """Read ``a,b,c``.

    Raises
    ------
    BadParameter
        If there is no name, or one comes twice.
    """
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found or len(set(found)) < len(found):
        raise typer.BadParameter(f"{text!r}: expected different names with commas between them")
    return found
