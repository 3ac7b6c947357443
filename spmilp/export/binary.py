"""``plan.spmb``: all tables in one file that firmware can load and use where it lies.

Little endian. Offsets are from the beginning of the file; every section begins at a multiple of 8,
so that a loader on a little-endian machine can point at its rows.

====== ===== ==================================================================================
offset bytes content
====== ===== ==================================================================================
0      4     ``SPMB``
4      2, 2  major and minor version of the layouts; refuse another major version
8      4     offset of the section table (grows if fields are added before it)
12     4     size of the file, the checksum included
16     4     number of sections
20     32    SHA-256 of the model; zeros where unknown
52     32    SHA-256 of the machine file
84     32    SHA-256 of the plan
116    28    program and version that wrote it, ASCII, zeros behind it
144    16 n  section table: type, offset, count and stride, 4 bytes each
...          rows: ``count`` times ``stride`` bytes; bytes beyond the known fields are to be skipped
size-4 4     CRC-32 (IEEE 802.3, as zlib's) of everything before
====== ===== ==================================================================================

Types are the codes of :mod:`spmilp.export.tables.layouts`; 101 is the pool of words (stride 4), 102
texts and 103 the image (stride 1). A reader skips types that it does not know.
"""

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from spmilp.errors import FileError
from spmilp.export.errors import ExportError
from spmilp.export.subject import Subject
from spmilp.export.tables import layouts
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.table import Layout, Table, Tables, Width
from spmilp.files import read_bytes
from spmilp.units import align_up

NAME, VERSION = "spmb", ".".join(map(str, layouts.VERSION))

MAGIC = b"SPMB"
LARGEST = 2**32 - 1

_HEAD = struct.Struct("<4sHHIII32s32s32s28s")
_SECTION = struct.Struct("<IIII")
_CHECKSUM = struct.Struct("<I")
_LETTERS: dict[Width, str] = {"u64": "Q", "u32": "I", "i32": "i"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Content of a binary file; the SHA-256s are lower-case hex."""

    version: tuple[int, int]
    tool: str
    model_sha256: str
    machine_sha256: str
    plan_sha256: str
    tables: Tables


def binary(subject: Subject) -> dict[str, bytes]:
    """Return the file.

    Raises
    ------
    ExportError
        If it were larger than 4 GiB.
    """
    return {"plan.spmb": blob_bytes(subject, all_tables(subject))}


def blob_bytes(subject: Subject, tables: Tables) -> bytes:
    """Return the bytes of a file with these tables."""
    sections = [
        (table.layout.code, len(table.rows), table.layout.stride, _rows(table))
        for table in tables.tables
    ]
    words = struct.pack(f"<{len(tables.words)}i", *tables.words)
    sections += [
        (layouts.WORDS_CODE, len(tables.words), 4, words),
        (layouts.TEXTS_CODE, len(tables.texts), 1, tables.texts),
        (layouts.IMAGE_CODE, len(tables.image), 1, tables.image),
    ]
    index, payload = bytearray(), bytearray()
    first = align_up(_HEAD.size + _SECTION.size * len(sections), 8)
    for code, count, stride, rows in sections:
        index += _SECTION.pack(code, first + len(payload), count, stride)
        payload += rows + bytes(align_up(len(rows), 8) - len(rows))
    size = first + len(payload) + _CHECKSUM.size
    if size > LARGEST:
        raise ExportError(f"bin: the file has {size} B > {LARGEST} B; export without --model")
    stamp = subject.stamp
    head = _HEAD.pack(
        MAGIC,
        *layouts.VERSION,
        *(_HEAD.size, size, len(sections)),
        *(bytes.fromhex(each) for each in (stamp.model, stamp.machine, stamp.plan)),
        stamp.tool.encode("ascii", "replace")[:28],
    )
    body = head + bytes(index)
    body += bytes(first - len(body)) + bytes(payload)
    return body + _CHECKSUM.pack(zlib.crc32(body))


def read_binary(path: Path | str) -> Blob:
    """Read a binary file.

    Raises
    ------
    FileError
        If it cannot be read, is of another format or version, or its bytes have changed.
    """
    return parse_binary(read_bytes(path), str(path))


def parse_binary(data: bytes, origin: str) -> Blob:
    """Return the content of a file's bytes; messages call it ``origin``.

    Raises
    ------
    FileError
        As :func:`read_binary`.
    """
    if len(data) < _HEAD.size + _CHECKSUM.size or data[:4] != MAGIC:
        raise FileError(f"{origin}: no SPMB file: it begins with {data[:4]!r}")
    head = _HEAD.unpack_from(data)
    _, major, minor, index, size, count, model, machine, plan, tool = head
    if size != len(data):
        raise FileError(f"{origin}: {len(data)} B, but its head states {size} B: it is cut off")
    (stated,) = _CHECKSUM.unpack_from(data, size - _CHECKSUM.size)
    found = zlib.crc32(data[: -_CHECKSUM.size])
    if stated != found:
        raise FileError(
            f"{origin}: CRC-32 is {found:#010x}, expected {stated:#010x}: it is damaged"
        )
    if major != layouts.VERSION[0]:
        raise FileError(f"{origin}: version {major}.{minor}, expected {layouts.VERSION[0]}.x")
    try:
        tables = _tables(data, index, count)
    except (struct.error, ValueError, ExportError) as error:
        raise FileError(f"{origin}: a section leaves the file: {error}") from error
    return Blob(
        version=(major, minor),
        tool=tool.rstrip(b"\0").decode("ascii", "replace"),
        model_sha256=model.hex(),
        machine_sha256=machine.hex(),
        plan_sha256=plan.hex(),
        tables=tables,
    )


def _rows(table: Table) -> bytes:
    row = _struct(table.layout)
    return b"".join(row.pack(*each) for each in table.rows)


def _struct(layout: Layout) -> struct.Struct:
    return struct.Struct("<" + "".join(_LETTERS[column.width] for column in layout.columns))


def _tables(data: bytes, index: int, count: int) -> Tables:
    sections = {}
    for number in range(count):
        code, *where = _SECTION.unpack_from(data, index + number * _SECTION.size)
        sections[code] = where
    words = _plain(data, sections, layouts.WORDS_CODE)
    return Tables(
        tables=tuple(_table(data, sections, layout) for layout in layouts.LAYOUTS),
        words=struct.unpack(f"<{len(words) // 4}i", words),
        texts=_plain(data, sections, layouts.TEXTS_CODE),
        image=_plain(data, sections, layouts.IMAGE_CODE),
    )


def _table(data: bytes, sections: dict[int, list[int]], layout: Layout) -> Table:
    first, count, stride = sections.get(layout.code, [0, 0, layout.stride])
    row = _struct(layout)
    if stride < row.size:
        raise ValueError(f"rows of {layout.table} have {stride} B, expected {row.size} B or more")
    rows = tuple(row.unpack_from(data, first + number * stride) for number in range(count))
    return Table(layout=layout, rows=rows)


def _plain(data: bytes, sections: dict[int, list[int]], code: int) -> bytes:
    first, count, stride = sections.get(code, [0, 0, 1])
    if first + count * stride > len(data):
        raise ValueError(f"section {code} ends at {first + count * stride} > {len(data)}")
    return data[first : first + count * stride]
