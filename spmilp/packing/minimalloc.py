"""MiniMalloc's CSV: buffers in, offsets out.

``id,lower,upper,size`` in any order, with ``offset``, ``alignment``, ``gaps``, ``apart`` and
``together`` where there are any; other columns, such as ``hint``, are passed through. The meaning
of each column is that of google/minimalloc, ``src/converter.cc``, which does not know the last two:
``lower`` and ``upper`` are a half-open lifetime, and an ``offset`` in the input fixes the buffer
there.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spmilp.errors import FileError
from spmilp.files import read_bytes, write_atomically
from spmilp.packing.columns import columns_of, ends_are_inclusive, id_of, item_of, shown
from spmilp.packing.items import LARGEST, Item
from spmilp.packing.pairs import PairError, Pairs, Rows, pairs_of, require_consistent
from spmilp.units import Bytes

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
