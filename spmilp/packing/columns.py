"""The cells of a packing CSV: columns by their names, numbers, gaps in a lifetime."""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from spmilp.packing.items import LARGEST, Item
from spmilp.units import Bytes, Cycles

REQUIRED = ("id", "lower", "upper", "size")
OPTIONAL = ("alignment", "gaps", "offset", "apart", "together")
OTHER_NAMES = {
    "buffer": "id",
    "buffer_id": "id",
    "begin": "lower",
    "start": "lower",
    "end": "upper",
}
"""Older names of columns, as MiniMalloc's converter knows them."""
LONGEST_ID = 40
"""Characters of an id that a message shows."""

Columns = Mapping[str, int]
"""The position of each column that means something."""


def columns_of(header: Sequence[str]) -> Columns:
    """Return the position of each column; those with unknown names are left out.

    Raises
    ------
    ValueError
        If a column that is needed is missing, or one comes twice.
    """
    columns: dict[str, int] = {}
    for position, cell in enumerate(header):
        name = cell.strip().casefold()
        meaning = OTHER_NAMES.get(name, name)
        if meaning in columns:
            first = header[columns[meaning]].strip()
            raise ValueError(f"columns {first!r} and {cell.strip()!r} both give {meaning!r}")
        if meaning in (*REQUIRED, *OPTIONAL):
            columns[meaning] = position
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        names = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        some = f"is no column {names}" if len(missing) == 1 else f"are no columns {names}"
        raise ValueError(f"there {some}; expected id,lower,upper,size in any order")
    return columns


def ends_are_inclusive(header: Sequence[str]) -> bool:
    """Return whether the last instant of a lifetime is given rather than the one after it.

    MiniMalloc reads a column named ``end`` so, and one named ``upper`` as the instant after.
    """
    return any(cell.strip().casefold() == "end" for cell in header)


def id_of(cells: Sequence[str], columns: Columns) -> str:
    """Return the id of a row, which is untrusted text.

    Raises
    ------
    ValueError
        If it is empty or has control characters, which could act on a terminal.
    """
    name = cells[columns["id"]].strip()
    if not name:
        raise ValueError("the id is empty")
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise ValueError(f"id {shown(name)} has control characters")
    return name


def item_of(cells: Sequence[str], columns: Columns, *, inclusive: bool) -> Item:
    """Return the item of a row.

    Raises
    ------
    ValueError
        If a cell is no whole number, or numbers are out of range or contradict each other.
    """
    after = 1 if inclusive else 0
    lower = _number("lower", cells, columns)
    upper = _number("upper", cells, columns) + after
    if lower >= upper:
        given = f"lower {lower} and upper {upper - after}"
        raise ValueError(f"{given} leave no time to live in; upper must be above lower")
    size = _number("size", cells, columns)
    if size <= 0:
        raise ValueError(f"size is {size} B, expected 1 or more")
    alignment = _optional("alignment", cells, columns)
    if alignment is not None and alignment <= 0:
        raise ValueError(f"alignment is {alignment} B, expected 1 or more")
    offset = _optional("offset", cells, columns)
    if offset is not None and offset < 0:
        raise ValueError(f"offset is {offset} B, expected 0 or more, or an empty cell for any")
    gaps = cells[columns["gaps"]] if "gaps" in columns else ""
    return Item(
        size=size,
        lifetimes=_without_gaps((lower, upper), gaps, after),
        alignment=1 if alignment is None else alignment,
        offset=offset,
    )


def shown(text: str) -> str:
    """Return untrusted text in quotes, escaped and cut where it is too long to read."""
    return repr(text if len(text) <= LONGEST_ID else f"{text[: LONGEST_ID - 1]}…")


def _number(name: str, cells: Sequence[str], columns: Columns) -> int:
    return _whole(name, cells[columns[name]].strip())


def _optional(name: str, cells: Sequence[str], columns: Columns) -> Bytes | None:
    if name not in columns or not cells[columns[name]].strip():
        return None
    return _number(name, cells, columns)


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f"{name} is {shown(text)}, expected a whole number")
    # Python refuses to convert thousands of digits; twenty are enough to be too many here.
    digits = text.lstrip("+-").lstrip("0")
    value = int(digits or "0") if len(digits) <= 20 else LARGEST
    if value >= LARGEST:
        raise ValueError(f"{name} is {shown(text)}, expected less than 2^60 = {LARGEST}")
    return -value if text.startswith("-") else value


def _without_gaps(
    lifetime: tuple[Cycles, Cycles], text: str, after: int
) -> tuple[tuple[Cycles, Cycles], ...]:
    """Return what gaps such as ``3-5 8-9`` leave of a lifetime; each end is as ``upper`` is."""
    start, upper = lifetime
    lifetimes = []
    for gap_start, gap_end in sorted(_gap(word, after) for word in text.split()):
        if not start <= gap_start < gap_end <= upper:
            span = f"{gap_start}-{gap_end - after}"
            raise ValueError(
                f"gap {span} is empty, overlaps another, or is outside the lifetime "
                f"[{lifetime[0]}, {upper})"
            )
        if start < gap_start:
            lifetimes.append((start, gap_start))
        start = gap_end
    if start < upper:
        lifetimes.append((start, upper))
    if not lifetimes:
        raise ValueError(f"the gaps leave nothing of the lifetime [{lifetime[0]}, {upper})")
    return tuple(lifetimes)


def _gap(word: str, after: int) -> tuple[Cycles, Cycles]:
    if "@" in word:
        raise ValueError(
            f"gap {shown(word)} keeps a part of the buffer, which is not supported; leave the gap "
            "out to keep all of it, or make the part a buffer of its own"
        )
    match = re.fullmatch(r"(-?[0-9]+)-(-?[0-9]+)", word)
    if match is None:
        raise ValueError(f"gap {shown(word)} is not of the form 3-5")
    return _whole("a gap's start", match[1]), _whole("a gap's end", match[2]) + after
