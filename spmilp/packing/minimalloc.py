"""The cells of a packing CSV: columns by their names, numbers, gaps in a lifetime."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lcm
from pathlib import Path

from spmilp.errors import FileError
from spmilp.files import read_bytes, write_atomically
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


Pairs = tuple[tuple[int, int], ...]
"""Rows of two buffers, counted from 0, the lower one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What the pairs are checked against: of each row its line in the file, id and item."""

    lines: Sequence[int]
    ids: Sequence[str]
    items: Sequence[Item]

    def named(self, row: int) -> str:
        """Return what a message calls the buffer of a row."""
        return f"{shown(self.ids[row])} of line {self.lines[row]}"


class PairError(ValueError):
    """A pair that cannot be; it knows the line to blame."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def ids_in(cell: str) -> list[str]:
    """Return the ids in a cell: separated by spaces, in double quotes where they have some.

    Raises
    ------
    ValueError
        If quotes do not match.
    """
    try:
        (ids,) = csv.reader([cell.strip()], delimiter=" ", skipinitialspace=True, strict=True)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{shown(cell)} is no list of ids separated by spaces") from error
    return [name for name in ids if name]


def pairs_of(column: str, cells: Iterable[str], rows: Rows) -> Pairs:
    """Return the pairs of a column; it is enough that one buffer names the other.

    Raises
    ------
    PairError
        If a cell cannot be read, or names no buffer, or the row's own.
    """
    row_of = {name: row for row, name in enumerate(rows.ids)}
    pairs: set[tuple[int, int]] = set()
    for row, cell in enumerate(cells):
        line = rows.lines[row]
        try:
            named = ids_in(cell) if cell.strip() else []
        except ValueError as error:
            raise PairError(line, f"{column} {error}") from error
        for name in named:
            other = row_of.get(name)
            if other is None:
                raise PairError(line, f"{column} names {shown(name)}, and no buffer has that id")
            if other == row:
                raise PairError(line, f"{column} names {shown(name)}, the id of the line itself")
            pairs.add((min(row, other), max(row, other)))
    return tuple(sorted(pairs))


def require_consistent(rows: Rows, together: Pairs, apart: Pairs) -> None:
    """Refuse buffers that must lie together and cannot.

    Raises
    ------
    PairError
        If they must also lie apart, are fixed at two offsets or where one of them may not lie, or
        no offset is a multiple of all their alignments.
    """
    first_of = _first_of_each_set(len(rows.ids), together)
    for a, b in apart:
        if first_of[a] == first_of[b]:
            message = f"{rows.named(a)} must lie together with {rows.named(b)}, and apart from it"
            raise PairError(rows.lines[b], message)
    fixed: dict[int, int] = {}
    for row, item in enumerate(rows.items):
        if item.offset is None:
            continue
        other = fixed.setdefault(first_of[row], row)
        there = rows.items[other].offset
        if there != item.offset:
            message = f"{rows.named(other)} at {there} B and {rows.named(row)} at {item.offset} B"
            raise PairError(rows.lines[row], f"{message} must lie together, and are fixed apart")
    alignments: dict[int, int] = {}
    for row, item in enumerate(rows.items):
        first = first_of[row]
        offset = rows.items[fixed[first]].offset if first in fixed else None
        if offset is not None and offset % item.alignment:
            message = f"{rows.named(row)} must lie together with {rows.named(fixed[first])}, at"
            raise PairError(
                rows.lines[row], f"{message} {offset} B, no multiple of {item.alignment} B"
            )
        alignments[first] = lcm(alignments.get(first, 1), item.alignment)
        if alignments[first] >= LARGEST:
            message = f"{rows.named(row)} and those that must lie together with it need a multiple"
            raise PairError(rows.lines[row], f"{message} of {alignments[first]} B, 2^60 B or more")


def _first_of_each_set(count: int, together: Pairs) -> list[int]:
    """Return for each row the first of those that pairs tie it to."""
    first = list(range(count))

    def find(row: int) -> int:
        while first[row] != row:
            first[row] = first[first[row]]
            row = first[row]
        return row

    for a, b in together:
        low, high = sorted((find(a), find(b)))
        first[high] = low
    return [find(row) for row in range(count)]


MOST_BYTES = 2**29
"""Bytes of the largest file that is read: more than ten million buffers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The buffers of a file, and the file's cells as they were.

    Parameters
    ----------
    header, rows
        Cells, without rows that are empty.
    ids, items
        One for each row.
    apart, together
        Pairs of rows, counted from 0, that must not share bytes or must have one offset.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    ids: tuple[str, ...]
    items: tuple[Item, ...]
    apart: Pairs = ()
    together: Pairs = ()


def read_table(path: Path | str) -> Table:
    """Read a file.

    Raises
    ------
    FileError
        If it cannot be read or is not of the format; the message names the line.
    """
    file = Path(path)
    if file.exists() and not (file.is_file() or file.is_fifo() or file.is_dir()):
        raise FileError(f"{path}: cannot be read: is no ordinary file")
    if file.is_file() and file.stat().st_size > MOST_BYTES:
        size = file.stat().st_size
        raise FileError(f"{path}: has {size} B, more than the {MOST_BYTES} B that are read")
    return parse_table(read_bytes(path), str(path))


def parse_table(data: bytes, name: str) -> Table:
    """Read the bytes of a file.

    Parameters
    ----------
    name
        What messages call it.

    Raises
    ------
    FileError
        If it is not of the format; the message names the line.
    """
    lines = _lines(_text(data, name), name)
    number, header = next(lines, (1, ()))
    if not header:
        raise FileError(f"{name}: is empty; expected a first line such as id,lower,upper,size")
    try:
        columns = columns_of(header)
    except ValueError as error:
        raise FileError(f"{name}, line {number}: {error}{_advice(header)}") from error
    inclusive = ends_are_inclusive(header)
    rows, items, total = [], [], 0
    line_of: dict[str, int] = {}
    for number, cells in lines:
        try:
            if len(cells) != len(header):
                raise ValueError(f"{len(cells)} cells, but the first line has {len(header)}")
            buffer = id_of(cells, columns)
            if buffer in line_of:
                raise ValueError(f"id {shown(buffer)} is that of line {line_of[buffer]} too")
            item = item_of(cells, columns, inclusive=inclusive)
            # No packing needs more, and offsets stay inside 64 bits.
            total += item.size + item.alignment - 1
            if total >= LARGEST:
                raise ValueError(f"sizes with alignments add up to {total} B, 2^60 B or more")
        except ValueError as error:
            raise FileError(f"{name}, line {number}: {error}") from error
        line_of[buffer] = number
        rows.append(cells)
        items.append(item)
    given = Rows(lines=tuple(line_of.values()), ids=tuple(line_of), items=items)
    try:
        apart, together = (
            pairs_of(column, (cells[columns[column]] for cells in rows), given)
            if column in columns
            else ()
            for column in ("apart", "together")
        )
        require_consistent(given, together, apart)
    except PairError as error:
        raise FileError(f"{name}, line {error.line}: {error}") from error
    return Table(
        header=header,
        rows=tuple(rows),
        ids=tuple(line_of),
        items=tuple(items),
        apart=apart,
        together=together,
    )


def text_with_offsets(table: Table, offsets: Sequence[Bytes]) -> str:
    """Return the file's text with an offset in each row; all else as it was, lines end in ``\\n``.

    Raises
    ------
    ValueError
        If there is not one offset for each row.
    """
    column = columns_of(table.header).get("offset")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.header if column is not None else (*table.header, "offset"))
    for row, offset in zip(table.rows, offsets, strict=True):
        at = len(row) if column is None else column
        writer.writerow((*row[:at], str(offset), *row[at + 1 :]))
    return text.getvalue()


def write_table(table: Table, offsets: Sequence[Bytes], path: Path | str) -> None:
    """Write the table with offsets, as a whole or not at all.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    write_atomically(path, text_with_offsets(table, offsets))


def _text(data: bytes, name: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{name}: is UTF-16; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        value = data[error.start]
        raise FileError(
            f"{name}, line {number}: byte 0x{value:02x} is not UTF-8; is this a CSV file?"
        ) from error
    zero = text.find("\0")
    if zero >= 0:
        number = text.count("\n", 0, zero) + 1
        raise FileError(f"{name}, line {number}: has a zero byte; is this a CSV file?")
    return text


def _lines(text: str, name: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the cells of each line that has any, with its number."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise FileError(f"{name}, line {number}: is no line of a CSV file: {error}") from error
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield number, tuple(cells)


def _advice(header: Sequence[str]) -> str:
    """Say what may be wrong with a first line."""
    if len(header) == 1 and any(sign in header[0] for sign in ";\t"):
        return "; cells are separated by commas"
    if len(header) >= 4 and header[-1].strip().isdecimal():
        return "; the first line must name the columns"
    return ""
