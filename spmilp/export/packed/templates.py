"""Templates: what many rows of numbers have in common, and the numbers that fill their holes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spmilp.export.packed.bits import WIDTH_BITS, Bits, number_bits
from spmilp.export.packed.groups import GROUP_BITS, Group, Ints, groups_of

HOLES = 64
"""``SPMILP_PACKED_HOLES`` of the sources."""

NEIGHBOURS = 24
"""Templates of one shape that are compared each with each; more are compared as sorted."""

_ONE_TURN = [1, 0, 0]


@dataclass(frozen=True, slots=True)
class Row:
    """Fields of one transfer or task.

    Parameters
    ----------
    shape
        What decides how the fields are read, loops left out: rows of different shapes share no
        template.
    loops
        Where in the fields the loops of a copy begin, with their number; rows that have fewer get
        loops of one turn if that makes a template less.
    likely
        Fields that equal tiles have in common.
    fields
        All of them, in the order in which they are read.
    """

    shape: tuple[int, ...]
    loops: tuple[tuple[int, int], ...]
    likely: tuple[int, ...]
    fields: tuple[int, ...]


class RowBuilder:
    """Collects the fields of a row."""

    def __init__(self) -> None:
        self._shape: list[int] = []
        self._loops: list[tuple[int, int]] = []
        self._likely: list[int] = []
        self._fields: list[int] = []

    def decides(self, value: int) -> None:
        """Add a field that decides how the following are read."""
        self._shape.append(value)
        self._fields.append(value)

    def has_loops(self, loops: Sequence[tuple[int, int, int]]) -> None:
        """Add the loops of a copy: turns, and strides on both sides."""
        self._loops.append((len(self._fields), len(loops)))
        self._fields.append(len(loops))
        for loop in loops:
            self.is_likely(*loop)

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
        own = tuple(self._shape), tuple(self._loops), tuple(self._likely), tuple(self._fields)
        return Row(*own)


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
    """What rows of one shape have in common.

    Parameters
    ----------
    values
        The rows' fields.
    members
        Numbers of the rows.
    loops
        Where in the fields loops begin, with their number.
    """

    def __init__(
        self, values: Ints, members: Sequence[int], loops: Sequence[tuple[int, int]]
    ) -> None:
        self.values, self.members, self.loops = values, members, tuple(loops)

    def with_loops(self, counts: Sequence[int]) -> "Template":
        """Return the template with loops of one turn before its own."""
        parts, loops = [], []
        first = added = 0
        for (at, own), wanted in zip(self.loops, counts, strict=True):
            loops.append((at + added, wanted))
            parts.append(self.values[:, first:at])
            head = [wanted, *_ONE_TURN * (wanted - own)]
            parts.append(np.tile(np.array(head, np.int64), (len(self.values), 1)))
            first, added = at + 1, added + len(head) - 1
        parts.append(self.values[:, first:])
        return Template(np.hstack(parts), self.members, loops)

    def merged(self, other: "Template") -> "Template":
        """Return one template for the rows of both."""
        one = self
        if self.loops != other.loops:
            counts = [max(a, b) for (_, a), (_, b) in zip(self.loops, other.loops, strict=True)]
            one, other = self.with_loops(counts), other.with_loops(counts)
        values = np.concatenate([one.values, other.values])
        return Template(values, [*one.members, *other.members], one.loops)

    @cached_property
    def columns(self) -> list[_Column]:
        """Return how each field is made."""
        known: dict[bytes, int] = {}
        found: list[_Column] = []
        lowest = self.values.min(axis=0)
        above = self.values - lowest
        factors = np.gcd.reduce(above, axis=0)
        raws = np.ascontiguousarray((above // np.maximum(factors, 1)).T)
        largest = raws.max(axis=1).tolist()
        for base, factor, raw, most in zip(
            lowest.tolist(), factors.tolist(), raws, largest, strict=True
        ):
            if factor == 0:
                found.append(_Column(base))
                continue
            key = raw.tobytes()
            if key in known:
                found.append(_Column(base, factor, same=known[key]))
                continue
            if len(known) < HOLES:
                known[key] = len(known)
            found.append(_Column(base, factor, width=most.bit_length()))
        return found

    @cached_property
    def cost(self) -> int:
        """Return the bits of the template and of all that fills its holes."""
        columns = self.columns
        holes = sum(column.width for column in columns)
        return sum(column.bits for column in columns) + holes * len(self.values)

    @cached_property
    def _raws(self) -> Ints:
        """Return what fills the holes, a row for each member and a column for each field."""
        bases = np.array([column.base for column in self.columns], np.int64)
        factors = np.array([max(1, column.factor) for column in self.columns], np.int64)
        return np.asarray((self.values - bases) // factors)

    @cached_property
    def _groups(self) -> list[Group]:
        """Return the holes that are filled together from a table."""
        holes = {at: column.width for at, column in enumerate(self.columns) if column.width}
        return groups_of(self._raws, holes)

    def put(self, bits: Bits) -> int:
        """Append the template behind the tables of its groups; return where it begins."""
        tables = [bits.at]
        for group in self._groups:
            for row in group.rows:
                for value, width in zip(row, group.widths, strict=True):
                    bits.put(value, width)
            tables.append(bits.at)
        start = bits.at
        bits.put(len(self._groups), GROUP_BITS)
        group_of = {}
        for number, group in enumerate(self._groups, start=1):
            group_of.update(dict.fromkeys(group.columns, number))
            bits.number(tables[number - 1])
            bits.number(sum(group.widths))
            bits.put(group.index_bits, WIDTH_BITS)
        for at, column in enumerate(self.columns):
            bits.put(int(column.factor != 0), 1)
            if not column.factor:
                bits.number(column.base)
                continue
            bits.put(int(column.same is not None), 1)
            if column.same is None:
                bits.put(column.width, WIDTH_BITS)
                bits.put(group_of.get(at, 0), GROUP_BITS if self._groups else 0)
            else:
                bits.number(column.same)
            bits.number(column.base)
            bits.number(column.factor)
        return start

    def fill(self, bits: Bits, member: int) -> None:
        """Append what fills the holes for a row: the rows of the groups' tables, and the rest."""
        together = set[int]()
        for group in self._groups:
            bits.put(group.row_of[member], group.index_bits)
            together.update(group.columns)
        for at, column in enumerate(self.columns):
            if column.width and at not in together:
                bits.put(int(self._raws[member, at]), column.width)


class Templates:
    """The templates of some rows, chosen so that all takes few bits.

    Rows of one shape begin with a template for each set of likely fields; then two templates become
    one as long as that saves bits: first those with equal loops, then any.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        first: dict[tuple[tuple[int, ...], ...], dict[tuple[int, ...], list[int]]] = {}
        made = tuple(rows)
        for number, row in enumerate(made):
            own = first.setdefault((row.shape, tuple(n for _, n in row.loops)), {})
            own.setdefault(row.likely, []).append(number)
        shapes: dict[tuple[int, ...], list[Template]] = {}
        for (shape, _), groups in sorted(first.items()):
            templates = [
                Template(
                    np.array([made[each].fields for each in members], np.int64),
                    members,
                    made[members[0]].loops,
                )
                for _, members in sorted(groups.items())
            ]
            shapes.setdefault(shape, []).extend(_merged(templates))
        self.all = [template for _, found in sorted(shapes.items()) for template in _merged(found)]
        self._places = {
            member: (number, place)
            for number, template in enumerate(self.all)
            for place, member in enumerate(template.members)
        }

    def number_of(self, row: int) -> int:
        """Return the number of a row's template."""
        return self._places[row][0]

    def put(self, bits: Bits) -> list[int]:
        """Append all templates and return where each begins."""
        return [template.put(bits) for template in self.all]

    def fill(self, bits: Bits, row: int) -> None:
        """Append what fills the holes of a row's template."""
        number, place = self._places[row]
        self.all[number].fill(bits, place)


def _merged(made: list[Template]) -> list[Template]:
    """Return templates of one shape, some of them joined."""
    joined: dict[tuple[int, int], Template] = {}
    kept = list(made)
    while len(made) > 1:
        near = len(made) if len(made) <= NEIGHBOURS else 2
        best: tuple[int, int, int, Template] | None = None
        changed = False
        first = 0
        while first < len(made) - 1:
            for second in range(first + 1, min(len(made), first + near)):
                pair = made[first], made[second]
                key = id(pair[0]), id(pair[1])
                if key not in joined:
                    joined[key] = pair[0].merged(pair[1])
                both = joined[key]
                saved = pair[0].cost + pair[1].cost - both.cost
                if saved > 0 and near == 2:
                    made[first : second + 1] = [both]
                    kept.append(both)
                    changed = True
                    break
                if saved > 0 and (best is None or saved > best[0]):
                    best = (saved, first, second, both)
            else:
                first += 1
        if best is not None:
            _, first, second, made[first] = best
            kept.append(made[first])
            del made[second]
        elif not changed:
            break
    return made
