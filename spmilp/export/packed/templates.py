"""Templates: what many rows of numbers have in common, and the numbers that fill their holes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spmilp.export.packed.bits import WIDTH_BITS, Bits, number_bits

HOLES = 64
"""``SPMILP_PACKED_HOLES`` of the sources."""

NEIGHBOURS = 24
"""Templates of one shape that are compared each with each; more are compared as sorted."""


@dataclass(frozen=True, slots=True)
class Row:
    """Fields of one transfer or task.

    Parameters
    ----------
    shape
        What decides how the fields are read: rows of different shapes share no template.
    likely
        Fields that equal tiles have in common.
    fields
        All of them, in the order in which they are read.
    """

    shape: tuple[int, ...]
    likely: tuple[int, ...]
    fields: tuple[int, ...]


class RowBuilder:
    """Collects the fields of a row."""

    def __init__(self) -> None:
        self._shape: list[int] = []
        self._likely: list[int] = []
        self._fields: list[int] = []

    def decides(self, value: int) -> None:
        """Add a field that decides how the following are read."""
        self._shape.append(value)
        self._fields.append(value)

    def is_likely(self, *values: int) -> None:
        """Add fields that equal tiles have in common."""
        self._likely += values
        self._fields += values

    def begins_with(self, *values: bool) -> None:
        """Say what equal tiles have in common, though it is no field."""
        self._likely += values

    def varies(self, *values: int) -> None:
        """Add fields that are another for each tile."""
        self._fields += values

    def must_equal(self, value: int) -> None:
        """Say something that rows of one template must have in common, though it is no field."""
        self._shape.append(value)

    def row(self) -> Row:
        """Return the row."""
        return Row(tuple(self._shape), tuple(self._likely), tuple(self._fields))


@dataclass(frozen=True, slots=True)
class _Column:
    """A field: ``base + factor * raw``; ``raw`` has ``width`` bits, or is that of hole ``same``."""

    base: int
    factor: int = 0
    width: int = 0
    same: int | None = None

    @property
    def bits(self) -> int:
        if not self.factor:
            return 1 + number_bits(self.base)
        where = WIDTH_BITS if self.same is None else number_bits(self.same)
        return 2 + where + number_bits(self.base) + number_bits(self.factor)


class Template:
    """What rows of one shape have in common."""

    def __init__(self, values: NDArray[np.int64]) -> None:
        self.values = values

    @cached_property
    def columns(self) -> list[_Column]:
        """Return how each field is made."""
        known: dict[bytes, int] = {}
        found: list[_Column] = []
        lowest = self.values.min(axis=0)
        above = self.values - lowest
        for base, column in zip(lowest.tolist(), np.ascontiguousarray(above.T), strict=True):
            factor = int(np.gcd.reduce(column))
            if factor == 0:
                found.append(_Column(base))
                continue
            raw = column // factor
            key = raw.tobytes()
            if key in known:
                found.append(_Column(base, factor, same=known[key]))
                continue
            if len(known) < HOLES:
                known[key] = len(known)
            found.append(_Column(base, factor, width=int(raw.max()).bit_length()))
        return found

    @cached_property
    def cost(self) -> int:
        """Return the bits of the template and of all that fills its holes."""
        columns = self.columns
        holes = sum(column.width for column in columns)
        return sum(column.bits for column in columns) + holes * len(self.values)

    def put(self, bits: Bits) -> None:
        """Append the template."""
        for column in self.columns:
            bits.put(int(column.factor != 0), 1)
            if not column.factor:
                bits.number(column.base)
                continue
            bits.put(int(column.same is not None), 1)
            if column.same is None:
                bits.put(column.width, WIDTH_BITS)
            else:
                bits.number(column.same)
            bits.number(column.base)
            bits.number(column.factor)

    def fill(self, bits: Bits, fields: Sequence[int]) -> None:
        """Append what fills the holes for a row."""
        for column, value in zip(self.columns, fields, strict=True):
            if column.width:
                bits.put((value - column.base) // column.factor, column.width)


class Templates:
    """The templates of some rows, chosen so that all takes few bits.

    Rows of one shape begin with a template for each set of likely fields; then two templates become
    one as long as that saves bits.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        shapes: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
        self._rows = tuple(rows)
        for number, row in enumerate(self._rows):
            shapes.setdefault((len(row.fields), *row.shape), {}).setdefault(row.likely, []).append(
                number
            )
        self.all: list[Template] = []
        self._template_of = [0] * len(self._rows)
        for _, groups in sorted(shapes.items()):
            for template, members in _merged(
                [members for _, members in sorted(groups.items())], self._rows
            ):
                for member in members:
                    self._template_of[member] = len(self.all)
                self.all.append(template)

    def of(self, row: int) -> tuple[int, Template]:
        """Return number and template of a row."""
        number = self._template_of[row]
        return number, self.all[number]

    def put(self, bits: Bits) -> list[int]:
        """Append all templates and return where each begins."""
        starts = []
        for template in self.all:
            starts.append(bits.at)
            template.put(bits)
        return starts

    def put_row(self, bits: Bits, row: int, index_bits: int) -> None:
        """Append the template's number and what fills its holes."""
        number, template = self.of(row)
        bits.put(number, index_bits)
        template.fill(bits, self._rows[row].fields)


def _merged(groups: list[list[int]], rows: Sequence[Row]) -> list[tuple[Template, list[int]]]:
    made = [
        (Template(np.array([rows[each].fields for each in group], np.int64)), group)
        for group in groups
    ]
    while len(made) > 1:
        near = len(made) if len(made) <= NEIGHBOURS else 2
        best: tuple[int, int, int, Template] | None = None
        changed = False
        first = 0
        while first < len(made) - 1:
            for second in range(first + 1, min(len(made), first + near)):
                one, other = made[first][0], made[second][0]
                both = Template(np.concatenate([one.values, other.values]))
                saved = one.cost + other.cost - both.cost
                if saved > 0 and near == 2:
                    made[first : second + 1] = [(both, made[first][1] + made[second][1])]
                    changed = True
                    break
                if saved > 0 and (best is None or saved > best[0]):
                    best = (saved, first, second, both)
            else:
                first += 1
        if best is not None:
            _, first, second, both = best
            made[first] = (both, made[first][1] + made[second][1])
            del made[second]
        elif not changed:
            break
    return made
