"""What all encodings share: tables of hardware words beside a table of what they belong to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spmilp.export.dma.chains import Descriptor
from spmilp.export.tables.table import Column, Layout, Table

INFO = Layout(
    code=0,
    table="info",
    struct="dma_info",
    says="What a descriptor belongs to, and what its addresses are relative to",
    columns=tuple(
        Column(name, "u32", says)
        for name, says in (
            ("transfer", "number in the tables of the plan"),
            ("engine", "that has it"),
            ("channel", "of the engine"),
            ("source_memory", "add its base to the source address"),
            ("destination_memory", "add its base to the destination address"),
            ("last", "1 for the last descriptor of its transfer"),
        )
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How a controller's descriptors are written.

    Parameters
    ----------
    notes
        What firmware has to do with them: lines of a comment.
    encode
        From descriptors, in the order of their channels, to tables.
    """

    notes: tuple[str, ...]
    encode: Callable[[Sequence[Descriptor]], list[Table]]


def words(name: str, says: str, *columns: tuple[str, str]) -> Layout:
    """Return the layout of a descriptor: 32-bit words, written ``(name, what it says)``."""
    return Layout(
        code=0,
        table=name,
        struct=f"dma_{name}",
        says=says,
        columns=tuple(Column(column, "u32", meaning) for column, meaning in columns),
    )


def info(descriptors: Sequence[Descriptor]) -> Table:
    """Return the table of what descriptors belong to."""
    rows = tuple(
        (
            *(each.copy.transfer.index, each.copy.transfer.engine, each.copy.transfer.channel),
            *(each.copy.source, each.copy.destination, int(each.last)),
        )
        for each in descriptors
    )
    return Table(layout=INFO, rows=rows)


def high_low(high: int, low: int) -> int:
    """Return two numbers of 16 bits, which may be negative, as one word."""
    return (high & 0xFFFF) << 16 | low & 0xFFFF
