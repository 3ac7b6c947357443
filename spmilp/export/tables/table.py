"""Tables: columns of fixed width, rows that fit them, and pools that rows point into."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from spmilp.export.errors import ExportError

Width: TypeAlias = Literal["u64", "u32", "i32"]

BYTES: dict[Width, int] = {"u64": 8, "u32": 4, "i32": 4}

LIMITS: dict[Width, tuple[int, int]] = {
    "u64": (0, 2**64 - 1),
    "u32": (0, 2**32 - 1),
    "i32": (-(2**31), 2**31 - 1),
}

NONE = 2**32 - 1
"""The index that stands for nothing."""

ZERO_FILL = "reserved"
"""Name of columns that are 0, and will mean something in a later version."""


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a row; ``says`` is its comment in the C header and in the documentation."""

    name: str
    width: Width
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of a table.

    Parameters
    ----------
    code
        Number of the table in the binary format; never used for another.
    table, struct
        Names in C: of the array, and of the struct of a row.

    Raises
    ------
    ValueError
        If a compiler could put padding into the struct, for any alignment of 64-bit integers.
    """

    code: int
    table: str
    struct: str
    says: str
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        offset = 0
        for column in self.columns:
            if offset % BYTES[column.width]:
                raise ValueError(f"struct {self.struct}: {column.name} at {offset} needs padding")
            offset += BYTES[column.width]
        if offset % max(BYTES[column.width] for column in self.columns):
            raise ValueError(f"struct {self.struct}: {offset} B need padding at the end")

    @property
    def stride(self) -> int:
        """Bytes of a row."""
        return sum(BYTES[column.width] for column in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of a layout.

    Parameters
    ----------
    notes
        Comments for each row, untrusted text; empty for none at all.

    Raises
    ------
    ExportError
        If a value does not fit its column.
    """

    layout: Layout
    rows: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        limits = [LIMITS[column.width] for column in self.layout.columns]
        for number, row in enumerate(self.rows):
            for value, (low, high), column in zip(row, limits, self.layout.columns, strict=True):
                if not low <= value <= high:
                    raise ExportError(
                        f"tables: row {number} of {self.layout.table}: {column.name} is {value}, "
                        f"outside [{low}, {high}] of its {BYTES[column.width]} bytes"
                    )


@dataclass(slots=True)
class Words:
    """The pool of 32-bit words: lists of integers and reals, each list kept once."""

    values: list[int] = field(default_factory=list)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def add(self, values: Iterable[int]) -> int:
        """Return the position of the first of some words."""
        words = tuple(map(int, values))
        if words not in self._known:
            self._known[words] = len(self.values)
            self.values += words
        return self._known[words]


@dataclass(slots=True)
class Texts:
    """The pool of texts: UTF-8, each with a zero behind it and kept once."""

    data: bytearray = field(default_factory=bytearray)
    _known: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> int:
        """Return the position of a text's first byte; a zero inside it is left out."""
        if text not in self._known:
            self._known[text] = len(self.data)
            self.data += text.encode("utf-8", "backslashreplace").replace(b"\0", b"") + b"\0"
        return self._known[text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """All tables of a plan, and the pools.

    Parameters
    ----------
    words
        Signed 32-bit integers; reals stand there as the bits of float32.
    texts
        Names, each with a zero behind it.
    image
        Initial bytes of constants, one segment behind the other; empty without a model.
    """

    tables: tuple[Table, ...]
    words: Sequence[int]
    texts: bytes
    image: bytes

    def of(self, name: str) -> Table:
        """Return a table by its name."""
        return next(table for table in self.tables if table.layout.table == name)
