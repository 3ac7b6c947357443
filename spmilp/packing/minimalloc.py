"""MiniMalloc's CSV: buffers in, offsets out.

``id,lower,upper,size`` in any order, with ``offset``, ``alignment``, ``gaps`` and ``pools`` where
there are any; other columns, such as ``hint``, are passed through. The meaning of each is that of
google/minimalloc, ``src/converter.cc``: ``lower`` and ``upper`` are a half-open lifetime, and an
``offset`` in the input fixes the buffer there. Ours are ``pools``, names with ``|`` between them of
pools that the buffer may lie in, and the offset ``end``, the end of its pool.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.packing.items import LARGEST, Item
from spmilp.packing.pools import Buffer
from spmilp.units import Bytes, Cycles

REQUIRED = ("id", "lower", "upper", "size")
OPTIONAL = ("alignment", "gaps", "offset", "pools")
AT_END = "end"
LONGEST_ID = 40
"""Characters of an id that a message shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The buffers of a file, and the file's cells as they were.

    Cells are in ``header`` and ``rows``, empty rows left out; each row has a buffer.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    buffers: tuple[Buffer, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The name of each buffer."""
        return tuple(buffer.name for buffer in self.buffers)

    @property
    def items(self) -> tuple[Item, ...]:
        """What each buffer is, wherever it lies."""
        return tuple(buffer.item for buffer in self.buffers)

    def content(self, offsets: Sequence[Bytes]) -> str | bytes:
        """Return the file with an offset for each buffer; see :func:`text_with_offsets`."""
        return text_with_offsets(self, offsets)


def read_table(path: Path | str) -> Table:
    """Read a file; a ``FileError`` says why that cannot be done, and names the line."""
    return parse_table(read_bytes(path), str(path))


def parse_table(data: bytes, name: str) -> Table:
    """Read the bytes of a file, by whose name messages call it.

    Raises a ``FileError`` if it is not of the format; the message names the line.
    """
    reader = csv.reader(io.StringIO(_text(data, name), newline=""), strict=True)
    header: tuple[str, ...] = ()
    columns: dict[str, int] = {}
    rows, buffers = [], []
    line_of: dict[str, int] = {}
    total, number = 0, 1
    try:
        while (row := next(reader, None)) is not None:
            cells = tuple(row)
            if not any(cell.strip() for cell in cells):
                pass
            elif not header:
                header, columns = cells, _columns_of(cells)
            else:
                if len(cells) != len(header):
                    raise ValueError(f"{len(cells)} cells, but the first line has {len(header)}")
                buffer = _id_of(cells[columns["id"]])
                if buffer in line_of:
                    raise ValueError(f"id {_shown(buffer)} is that of line {line_of[buffer]} too")
                one = _buffer_of(buffer, {column: cells[at] for column, at in columns.items()})
                # No packing needs more, and offsets stay inside 64 bits.
                total += one.item.size + one.item.alignment - 1
                if total >= LARGEST:
                    raise ValueError(f"sizes with alignments add up to {total} B, 2^60 B or more")
                line_of[buffer] = number
                rows.append(cells)
                buffers.append(one)
            number = reader.line_num + 1
    except csv.Error as error:
        raise FileError(f"{name}, line {number}: is no line of a CSV file: {error}") from error
    except ValueError as error:
        raise FileError(f"{name}, line {number}: {error}") from error
    if not header:
        raise FileError(f"{name}: is empty; expected a first line such as id,lower,upper,size")
    return Table(header=header, rows=tuple(rows), buffers=tuple(buffers))


def text_with_offsets(
    table: Table, offsets: Sequence[Bytes], pools: Sequence[str] | None = None
) -> str:
    """Return the file's text with an offset, and a pool where there are several, in each row.

    All else is as it was; lines end in ``\\n``. Raises a ``ValueError`` if there is not one offset
    and pool for each row.
    """
    header, columns = [*table.header], _columns_of(table.header)
    written = {"offset": [str(offset) for offset in offsets], **({"pools": pools} if pools else {})}
    for name in written:
        if name not in columns:
            columns[name] = len(header)
            header.append(name)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row, *cells in zip(table.rows, *written.values(), strict=True):
        out = [*row, *[""] * (len(header) - len(row))]
        for name, cell in zip(written, cells, strict=True):
            out[columns[name]] = cell
        writer.writerow(out)
    return text.getvalue()


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number, value = data.count(b"\n", 0, error.start) + 1, data[error.start]
        raise FileError(
            f"{name}, line {number}: byte 0x{value:02x} is not UTF-8; is this a CSV file?"
        ) from error


def _columns_of(header: Sequence[str]) -> dict[str, int]:
    """Return the position of each column; those with unknown names are left out."""
    columns: dict[str, int] = {}
    for position, cell in enumerate(header):
        name = cell.strip().casefold()
        if name in columns:
            raise ValueError(f"two columns are named {name!r}")
        if name in (*REQUIRED, *OPTIONAL):
            columns[name] = position
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise ValueError(
            f"there is no column {', '.join(missing)}; expected a first line that names the "
            "columns id,lower,upper,size in any order"
        )
    return columns


def _id_of(cell: str) -> str:
    """Return the id of a row, untrusted text: control characters could act on a terminal."""
    name = cell.strip()
    if not name:
        raise ValueError("the id is empty")
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise ValueError(f"id {_shown(name)} has control characters")
    return name


def _buffer_of(name: str, cells: Mapping[str, str]) -> Buffer:
    """Return the buffer of a row."""
    at_end = cells.get("offset", "").strip().casefold() == AT_END
    pools = (pool.strip() for pool in cells.get("pools", "").split("|"))
    item = _item_of({**cells, "offset": ""} if at_end else cells)
    return Buffer(name=name, item=item, pools=tuple(filter(None, pools)), at_end=at_end)


def _item_of(cells: Mapping[str, str]) -> Item:
    """Return the item of a row."""
    lower, upper = _whole("lower", cells["lower"]), _whole("upper", cells["upper"])
    if lower >= upper:
        given = f"lower {lower} and upper {upper}"
        raise ValueError(f"{given} leave no time to live in; upper must be above lower")
    alignment, offset = (
        _whole(name, cells[name]) if cells.get(name, "").strip() else None
        for name in ("alignment", "offset")
    )
    return Item(
        size=_whole("size", cells["size"]),
        lifetimes=_without_gaps(lower, upper, cells.get("gaps", "")),
        alignment=1 if alignment is None else alignment,
        offset=offset,
    )


def _shown(text: str) -> str:
    """Return untrusted text in quotes, escaped and cut where it is too long to read."""
    return repr(text if len(text) <= LONGEST_ID else f"{text[: LONGEST_ID - 1]}…")


def _whole(name: str, cell: str) -> int:
    text = cell.strip()
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f"{name} is {_shown(text)}, expected a whole number")
    # Python refuses to convert thousands of digits; twenty are enough to be too many here.
    digits = text.lstrip("+-").lstrip("0")
    value = int(digits or "0") if len(digits) <= 20 else LARGEST
    if value >= LARGEST:
        raise ValueError(f"{name} is {_shown(text)}, expected less than 2^60 = {LARGEST}")
    return -value if text.startswith("-") else value


def _without_gaps(lower: Cycles, upper: Cycles, text: str) -> tuple[tuple[Cycles, Cycles], ...]:
    """Return what gaps such as ``3-5 8-9`` leave of a lifetime."""
    start, lifetimes = lower, []
    for gap_start, gap_end in sorted(map(_gap, text.split())):
        if not start <= gap_start < gap_end <= upper:
            raise ValueError(
                f"gap {gap_start}-{gap_end} is empty, overlaps another, or is outside the "
                f"lifetime [{lower}, {upper})"
            )
        if start < gap_start:
            lifetimes.append((start, gap_start))
        start = gap_end
    if start < upper:
        lifetimes.append((start, upper))
    if not lifetimes:
        raise ValueError(f"the gaps leave nothing of the lifetime [{lower}, {upper})")
    return tuple(lifetimes)


def _gap(word: str) -> tuple[Cycles, Cycles]:
    match = re.fullmatch(r"(-?[0-9]+)-(-?[0-9]+)", word)
    if match is None:
        raise ValueError(f"gap {_shown(word)} is not of the form 3-5; all of a buffer is away")
    return _whole("a gap's start", match[1]), _whole("a gap's end", match[2])
