"""How words on the command line become values; each reader says what it expected."""

import math
import re
from collections.abc import Iterable

import typer

SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
"""Seconds of each unit of time."""


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
