"""Readers of option values; each says in its error what it expected."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import typer

from spmilp import quantities

T = TypeVar("T")


def reader(read: Callable[[Any], T]) -> Callable[[str], T]:
    """Return a reader that complains as the command line does."""

    def read_or_complain(given: str) -> T:
        try:
            return read(given)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    return read_or_complain


duration = reader(quantities.duration)
byte_count = reader(quantities.byte_count)
share = reader(quantities.share)
dimensions = quantities.dimensions


def reserved_ranges(texts: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """Read ``0-4KiB`` and its like as half-open ranges of bytes.

    Raises
    ------
    BadParameter
        If a text is no range, or an empty one.
    """
    ranges = []
    for text in texts:
        try:
            ranges.append(quantities.byte_range(text))
        except ValueError as error:
            raise typer.BadParameter(f"--reserve {text}: {error}") from error
    return tuple(ranges)


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
