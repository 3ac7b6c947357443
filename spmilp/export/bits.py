"""Templates: what many rows of numbers have in common, as bits, and the numbers in their holes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from spmilp.export.errors import ExportError

INSTEAD = "export straight C, which has no such limit: --format c-code"

WIDTH_BITS = 5

CLASS_BITS, SHORT, LONG = 2, 3, 6
"""Numbers: 0; those of ``SHORT`` bits from 1 on; those of ``LONG`` bits behind; with a width."""
_FIRST_LONG = 1 + (1 << SHORT)
_FIRST_WIDE = _FIRST_LONG + (1 << LONG)

READ_AT_ONCE = 4
"""Bytes that the sources read from any byte on that has bits."""

LARGEST = 2**31 - 1
"""The largest number that the width before it can express."""


class Bits:
    """Bits in the order in which they are read, the lowest of each field first."""

    def __init__(self) -> None:
        self._whole = bytearray()
        self._rest, self._length = 0, 0

    @property
    def at(self) -> int:
        """Position of the next bit."""
        return 8 * len(self._whole) + self._length

    def put(self, value: int, width: int) -> None:
        """Append a field of ``width`` bits.

        Raises
        ------
        ValueError
            If the value does not fit.
        """
        if not 0 <= value < 1 << width:
            raise ValueError(f"{value} does not fit {width} bits")
        self._rest |= value << self._length
        self._length += width
        while self._length >= 8:
            self._whole.append(self._rest & 255)
            self._rest >>= 8
            self._length -= 8

    def number(self, value: int) -> None:
        """Append a number: its class, and what is left of it."""
        if not 0 <= value <= LARGEST:
            raise ExportError(
                f"packed tables: {value} is outside [0, {LARGEST}] of their numbers; {INSTEAD}"
            )
        class_ = _class_of(value)
        self.put(class_, CLASS_BITS)
        if class_ == 1:
            self.put(value - 1, SHORT)
        elif class_ == 2:
            self.put(value - _FIRST_LONG, LONG)
        elif class_ == 3:
            width = value.bit_length()
            self.put(width, WIDTH_BITS)
            self.put(value - (1 << (width - 1)), width - 1)

    def append(self, other: "Bits") -> None:
        """Append all bits of another string."""
        for byte in other._whole:
            self.put(byte, 8)
        self.put(other._rest, other._length)

    def content(self) -> bytes:
        """Return all bits as bytes, with zeros behind the last: C reads four bytes at once.

        Even behind the last bit: a field may have no bits.
        """
        rest = bytes([self._rest]) if self._length else b""
        return bytes(self._whole) + rest + bytes(READ_AT_ONCE)


def _class_of(value: int) -> int:
    return (value > 0) + (value >= _FIRST_LONG) + (value >= _FIRST_WIDE)


def number_bits(value: int) -> int:
    """Return how many bits a number takes."""
    rest = (0, SHORT, LONG, WIDTH_BITS + value.bit_length() - 1)
    return CLASS_BITS + rest[_class_of(value)]


LONGEST = 24
"""Bits that the sources read at once."""


class PrefixCode:
    """A code for some symbols, made for how often each of them is written.

    Codes of one length follow each other in the order of their symbols, the shorter ones come
    first; so lengths and symbols say it all.

    Raises
    ------
    ExportError
        If a code is too long, which takes more than 120,000 symbols.
    """

    def __init__(self, written: Iterable[int]) -> None:
        lengths = _lengths(Counter(written))
        longest = max(lengths.values(), default=0)
        if longest > LONGEST:
            raise ExportError(
                f"packed tables: a prefix code of {longest} bits > {LONGEST}, the most that are "
                f"read at once; {INSTEAD}"
            )
        self._symbols = sorted(lengths, key=lambda symbol: (lengths[symbol], symbol))
        self._counts = [0] * (longest + 1)
        for length in lengths.values():
            self._counts[length] += 1
        self._codes: dict[int, tuple[int, int]] = {}
        code, before = 0, 0
        for symbol in self._symbols:
            length = lengths[symbol]
            code <<= length - before
            self._codes[symbol] = (code, length)
            code, before = code + 1, length

    def put_table(self, bits: Bits) -> None:
        """Append width of a symbol, longest code, how many there are of each length, symbols."""
        width = max(self._symbols, default=0).bit_length()
        count_bits = len(self._symbols).bit_length()
        for value in (width, count_bits, len(self._counts) - 1):
            bits.put(value, WIDTH_BITS)
        for count in self._counts:
            bits.put(count, count_bits)
        for symbol in self._symbols:
            bits.put(symbol, width)

    def put(self, bits: Bits, symbol: int) -> None:
        """Append a symbol, the highest bit of its code first."""
        code, length = self._codes[symbol]
        for place in reversed(range(length)):
            bits.put(code >> place & 1, 1)


def _lengths(counts: Counter[int]) -> dict[int, int]:
    """Return the length of each symbol's code; 0 for one that is alone."""
    waiting: list[tuple[int, int, tuple[int, ...]]] = [
        (count, symbol, (symbol,)) for symbol, count in counts.items()
    ]
    heapify(waiting)
    lengths = dict.fromkeys(counts, 0)
    while len(waiting) > 1:
        one, other = heappop(waiting), heappop(waiting)
        for symbol in (*one[2], *other[2]):
            lengths[symbol] += 1
        heappush(waiting, (one[0] + other[0], min(one[1], other[1]), one[2] + other[2]))
    return lengths


Ints = NDArray[np.int64]

GROUP_BITS = 2
MOST_GROUPS = (1 << GROUP_BITS) - 1
"""``SPMILP_PACKED_GROUPS`` of the sources."""

_HEAD = 40
"""Bits that a group takes besides its table, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Some columns, and the different rows that they have.

    Parameters
    ----------
    rows
        What fills the holes, of ``widths`` bits each.
    row_of
        For each member of the template the number of its row.
    """

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    row_of: tuple[int, ...]

    @property
    def index_bits(self) -> int:
        """Bits of a row's number."""
        return _index_bits(len(self.rows))


def groups_of(raws: Ints, holes: Mapping[int, int]) -> list[Group]:
    """Return groups of columns that take fewer bits in a table than in each row.

    Parameters
    ----------
    raws
        A row for each member, a column for each field.
    holes
        Bits of the columns that may be in a group.
    """
    left, found = dict(holes), list[Group]()
    while left and len(found) < MOST_GROUPS:
        chosen = _best_columns(raws, left)
        if not chosen:
            break
        widths = tuple(left.pop(column) for column in chosen)
        rows, row_of = np.unique(raws[:, chosen], axis=0, return_inverse=True)
        found.append(
            Group(
                columns=tuple(chosen),
                widths=widths,
                rows=tuple(map(tuple, rows.tolist())),
                row_of=tuple(row_of.reshape(-1).tolist()),
            )
        )
    return found


def _best_columns(raws: Ints, holes: Mapping[int, int]) -> list[int]:
    """Return columns, added one after the other, up to where most bits are saved; in order."""
    columns = {at: np.unique(raws[:, at], return_inverse=True)[1].reshape(-1) for at in holes}
    labels = np.zeros(len(raws), np.int64)
    chosen: list[int] = []
    best, best_columns = 0, list[int]()
    while len(chosen) < len(holes):
        width = sum(holes[at] for at in chosen)
        tried = []
        for at in columns.keys() - set(chosen):
            rows = len(np.unique(labels * len(raws) + columns[at]))
            tried.append((_saved(len(raws), rows, width + holes[at]), -at))
        saved, at = max(tried)
        chosen.append(-at)
        labels = np.unique(labels * len(raws) + columns[-at], return_inverse=True)[1].reshape(-1)
        if saved > best:
            best, best_columns = saved, sorted(chosen)
    return best_columns


def _saved(members: int, rows: int, width: int) -> int:
    """Return the bits that a table of some rows saves."""
    return (members - rows) * width - members * _index_bits(rows) - _HEAD


def _index_bits(rows: int) -> int:
    return (rows - 1).bit_length()


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
