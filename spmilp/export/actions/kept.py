"""What stays a table where a plan is code or bits: few rows, read before and after a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from spmilp.export.actions.actions import Actions
from spmilp.export.actions.operators import Operators
from spmilp.export.actions.places import FIRST_SPACE, Places
from spmilp.export.tables import layouts
from spmilp.export.tables.table import Table
from spmilp.units import Bytes, align_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Tables, pools and sizes of a program.

    Parameters
    ----------
    on_chip
        Rows of segments: constants that lie in a scratchpad at the start.
    used
        Bytes of each memory, constants in a DRAM left out.
    workspace
        Bytes for the packed operands of a core.
    image
        Bytes of the constants.
    """

    words: Sequence[int]
    texts: bytes
    summary: tuple[int, ...]
    ports: tuple[tuple[int, ...], ...]
    on_chip: tuple[tuple[int, ...], ...]
    used: tuple[Bytes, ...]
    workspace: Bytes
    image: bytes

    def tables(self) -> tuple[Table, ...]:
        """Return the tables."""
        return (
            Table(layout=layouts.SUMMARY, rows=(self.summary,)),
            Table(layout=layouts.PORTS, rows=self.ports),
            Table(layout=layouts.SEGMENTS, rows=self.on_chip),
        )


def keep(actions: Actions) -> Kept:
    """Return what stays, when all calls have been made: operators use the same pools."""
    tables, places, operators = actions.tables, actions.places, actions.operators
    ports = tuple(_port(row, places, operators) for row in tables.of("ports").rows)
    summary = tables.of("summary").rows[0]
    return Kept(
        words=tuple(operators.words.values),
        texts=bytes(operators.texts.data),
        summary=summary,
        ports=ports,
        on_chip=tuple(places.on_chip),
        used=tuple(places.used),
        workspace=align_up(summary[1], 8),
        image=tables.image,
    )


def _port(row: Sequence[int], places: Places, operators: Operators) -> tuple[int, ...]:
    """Return a port with its place in the program, and without its name."""
    address, size, memory, direction, type_, rank, shape, strides, _, _ = row
    space, offset = places.of(memory, address)
    pools = (operators.given(each, rank) for each in (shape, strides))
    first_shape, first_stride = map(operators.words.add, pools)
    return (
        *(offset, size, space - FIRST_SPACE, direction, type_, rank),
        *(first_shape, first_stride, 0, 0),
    )
