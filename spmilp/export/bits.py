"""Bits and prefix codes; templates: what many rows have in common, and what fills their holes.

Bits are strings of binary digits in the order in which they are read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import NamedTuple, TypeAlias

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


def digits(value: int, width: int) -> str:
    """Return a field of ``width`` bits, the lowest first."""
    if not 0 <= value < 1 << width:
        raise ValueError(f"{value} does not fit {width} bits")
    return f"{value:0{width}b}"[::-1] if width else ""


@lru_cache(maxsize=1 << 16)
def number(value: int) -> str:
    """Return the bits of a number from 0 to :data:`LARGEST`: its class, and what is left of it."""
    if not 0 <= value <= LARGEST:
        raise ExportError(
            f"packed tables: {value} is outside [0, {LARGEST}] of their numbers; {INSTEAD}"
        )
    if value == 0:
        return digits(0, CLASS_BITS)
    if value < _FIRST_LONG:
        return digits(1, CLASS_BITS) + digits(value - 1, SHORT)
    if value < _FIRST_WIDE:
        return digits(2, CLASS_BITS) + digits(value - _FIRST_LONG, LONG)
    below = value.bit_length() - 1
    return (
        digits(3, CLASS_BITS) + digits(below + 1, WIDTH_BITS) + digits(value - (1 << below), below)
    )


class Bits:
    """Bits, one behind the other; ``at`` is the position of the next one."""

    def __init__(self) -> None:
        self.at = 0
        self._parts: list[str] = []

    def add(self, *parts: str) -> None:
        """Append some."""
        self._parts += parts
        self.at += sum(map(len, parts))

    def all(self) -> str:
        """Return all bits."""
        return "".join(self._parts)

    def content(self) -> bytes:
        """Return all bits as bytes, with zeros behind the last: C reads four bytes at once.

        Even behind the last bit: a field may have no bits.
        """
        whole = int(self.all()[::-1] or "0", 2)
        return whole.to_bytes(-(-self.at // 8) + READ_AT_ONCE, "little")


LONGEST = 24
"""Bits that the sources read at once."""


class PrefixCode:
    """A code for some symbols, made for how often each of them is written.

    ``codes`` are read the highest bit first. Codes of one length follow each other in the order of
    their symbols, the shorter ones come first; so lengths and symbols say it all.

    Raises an ``ExportError`` if a code is too long, which takes more than 120,000 symbols.
    """

    def __init__(self, written: Iterable[int]) -> None:
        lengths = _lengths(Counter(written))
        longest = max(lengths.values(), default=0)
        if longest > LONGEST:
            raise ExportError(
                f"packed tables: a prefix code of {longest} bits > {LONGEST}, the most that are "
                f"read at once; {INSTEAD}"
            )
        counts = Counter(lengths.values())
        self._counts = [counts[length] for length in range(longest + 1)]
        self.codes: dict[int, str] = {}
        code = before = 0
        for symbol in sorted(lengths, key=lambda each: (lengths[each], each)):
            length = lengths[symbol]
            code <<= length - before
            self.codes[symbol] = f"{code:0{length}b}" if length else ""
            code, before = code + 1, length

    def table(self) -> str:
        """Return width of a symbol, longest code, how many there are of each length, symbols."""
        width, count_bits = max(self.codes, default=0).bit_length(), len(self.codes).bit_length()
        head = (width, count_bits, len(self._counts) - 1)
        return "".join(
            (
                *(digits(value, WIDTH_BITS) for value in head),
                *(digits(count, count_bits) for count in self._counts),
                *(digits(symbol, width) for symbol in self.codes),
            )
        )


def _lengths(counts: Counter[int]) -> dict[int, int]:
    """Return the length of each symbol's code; 0 for one that is alone (Huffman, 1952)."""
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


FIELD, SHAPE, LIKELY, LOOPS = 1, 2, 4, 8
"""Roles of a number of a row, as bits: it is read; it decides how the fields are read, so that rows
of different shapes share no template; equal tiles have it in common; it counts the loops that
follow, and rows with fewer may get loops of one turn."""


class Row(NamedTuple):
    """Numbers of one transfer or task, by their roles in the order in which they are read.

    Loops are where in the fields the loops of a copy begin, with their number.
    """

    shape: tuple[int, ...]
    loops: tuple[tuple[int, int], ...]
    likely: tuple[int, ...]
    fields: tuple[int, ...]

    @classmethod
    def of(cls, numbers: Iterable[tuple[int, int]]) -> "Row":
        """Return the row of numbers with their roles."""
        shape, likely, fields = list[int](), list[int](), list[int]()
        loops: list[tuple[int, int]] = []
        for role, value in numbers:
            if role & SHAPE:
                shape.append(value)
            if role & LIKELY:
                likely.append(value)
            if role & LOOPS:
                loops.append((len(fields), value))
            if role & FIELD:
                fields.append(value)
        return cls(tuple(shape), tuple(loops), tuple(likely), tuple(fields))


Ints: TypeAlias = NDArray[np.int64]

GROUP_BITS = 2
MOST_GROUPS = (1 << GROUP_BITS) - 1
"""``SPMILP_PACKED_GROUPS`` of the sources."""

_GROUP_HEAD = 40
"""Bits that a group takes besides its table, about."""

HOLES = 64
"""``SPMILP_PACKED_HOLES`` of the sources."""

NEIGHBOURS = 24
"""Templates of one shape that are compared each with each; more are compared as sorted."""

_ONE_TURN = [1, 0, 0]


class Group(NamedTuple):
    """Some columns whose holes are filled together from a table of the different rows they have.

    ``widths`` are the bits of each column, ``row_of`` the number of each member's row.
    """

    columns: list[int]
    widths: list[int]
    rows: list[list[int]]
    row_of: list[int]


def _groups_of(raws: Ints, holes: Mapping[int, int]) -> list[Group]:
    """Return groups of columns that take fewer bits in a table than in each row.

    ``raws`` has a row for each member and a column for each field, ``holes`` the bits of those
    columns that may be in a group.
    """
    left, found = dict(holes), list[Group]()
    while left and len(found) < MOST_GROUPS:
        chosen = _best_columns(raws, left)
        if not chosen:
            break
        widths = [left.pop(column) for column in chosen]
        rows, row_of = np.unique(raws[:, chosen], axis=0, return_inverse=True)
        found.append(Group(chosen, widths, rows.tolist(), row_of.reshape(-1).tolist()))
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
            saved = (len(raws) - rows) * (width + holes[at]) - len(raws) * _index_bits(rows)
            tried.append((saved - _GROUP_HEAD, -at))
        saved, at = max(tried)
        chosen.append(-at)
        labels = np.unique(labels * len(raws) + columns[-at], return_inverse=True)[1].reshape(-1)
        if saved > best:
            best, best_columns = saved, sorted(chosen)
    return best_columns


def _index_bits(rows: int) -> int:
    return (rows - 1).bit_length()


class _Column(NamedTuple):
    """A field: ``base + factor * raw``; ``raw`` has ``width`` bits, or is that of hole ``same``."""

    base: int
    factor: int = 0
    width: int = 0
    same: int | None = None

    def bits(self, group: str = "") -> str:
        """Return how the field stands in a template, with the bits of its group if there are some.

        The group of a field is a table from which its hole is filled together with others.
        """
        if not self.factor:
            return digits(0, 1) + number(self.base)
        where = digits(0, 1) + digits(self.width, WIDTH_BITS) + group
        if self.same is not None:
            where = digits(1, 1) + number(self.same)
        return digits(1, 1) + where + number(self.base) + number(self.factor)


@dataclass(frozen=True, eq=False)
class Template:
    """What rows of one shape have in common: values of their fields, numbers of rows, and loops."""

    values: Ints
    members: Sequence[int]
    loops: tuple[tuple[int, int], ...]

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
        return Template(np.hstack(parts), self.members, tuple(loops))

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
        """How each field is made."""
        known: dict[bytes, int] = {}
        found: list[_Column] = []
        lowest, factors, raws = self._parts
        for base, factor, raw in zip(lowest.tolist(), factors.tolist(), raws.T, strict=True):
            key = raw.tobytes()
            if factor == 0:
                found.append(_Column(base))
            elif key in known:
                found.append(_Column(base, factor, same=known[key]))
            else:
                if len(known) < HOLES:
                    known[key] = len(known)
                found.append(_Column(base, factor, width=int(raw.max()).bit_length()))
        return found

    @cached_property
    def _parts(self) -> tuple[Ints, Ints, Ints]:
        """Base and factor of each field, and what fills the holes: a row for each member."""
        lowest = self.values.min(axis=0)
        above = self.values - lowest
        factors = np.gcd.reduce(above, axis=0)
        return lowest, factors, above // np.maximum(factors, 1)

    @cached_property
    def cost(self) -> int:
        """The bits of the template and of all that fills its holes."""
        holes = sum(column.width for column in self.columns)
        return sum(len(each.bits()) for each in self.columns) + holes * len(self.values)

    @cached_property
    def _groups(self) -> list[Group]:
        """The holes that are filled together from a table."""
        holes = {at: column.width for at, column in enumerate(self.columns) if column.width}
        return _groups_of(self._parts[2], holes)

    def put(self, bits: Bits) -> int:
        """Append the template behind the tables of its groups; return where it begins."""
        heads, group_of = list[str](), dict[int, int]()
        for group_number, group in enumerate(self._groups, start=1):
            group_of |= dict.fromkeys(group.columns, group_number)
            heads += [number(bits.at), number(sum(group.widths))]
            heads.append(digits(_index_bits(len(group.rows)), WIDTH_BITS))
            for row in group.rows:
                bits.add(*map(digits, row, group.widths))
        start = bits.at
        bits.add(digits(len(self._groups), GROUP_BITS), *heads)
        for at, column in enumerate(self.columns):
            group_bits = digits(group_of.get(at, 0), GROUP_BITS) if self._groups else ""
            bits.add(column.bits(group_bits))
        return start

    def filling(self, member: int) -> str:
        """Return what fills the holes for a row: the rows of the groups' tables, and the rest."""
        parts = [digits(g.row_of[member], _index_bits(len(g.rows))) for g in self._groups]
        together = {column for group in self._groups for column in group.columns}
        raws = self._parts[2]
        parts += (
            digits(int(raws[member, at]), column.width)
            for at, column in enumerate(self.columns)
            if column.width and at not in together
        )
        return "".join(parts)


class Templates:
    """The templates of some rows, chosen so that all takes few bits.

    Rows of one shape begin with a template for each set of likely fields; then two templates become
    one as long as that saves bits: first those with equal loops, then any.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        made = tuple(rows)
        alike: defaultdict[tuple[tuple[int, ...], ...], list[int]] = defaultdict(list)
        for member, row in enumerate(made):
            loops = tuple(count for _, count in row.loops)
            alike[row.shape, loops, row.likely].append(member)
        equal_loops: defaultdict[tuple[tuple[int, ...], ...], list[Template]] = defaultdict(list)
        for (shape, loops, _), members in sorted(alike.items()):
            values = np.array([made[each].fields for each in members], np.int64)
            template = Template(values, members, made[members[0]].loops)
            equal_loops[shape, loops].append(template)
        shapes: defaultdict[tuple[int, ...], list[Template]] = defaultdict(list)
        for (shape, _), templates in equal_loops.items():
            shapes[shape] += _merged(templates)
        self.all = [template for found in shapes.values() for template in _merged(found)]
        self._places = {
            member: (which, place)
            for which, template in enumerate(self.all)
            for place, member in enumerate(template.members)
        }

    def put(self, bits: Bits) -> list[int]:
        """Append all templates and return where each begins."""
        return [template.put(bits) for template in self.all]

    def of(self, row: int) -> tuple[int, str]:
        """Return the number of a row's template, and what fills its holes."""
        which, place = self._places[row]
        return which, self.all[which].filling(place)


def _merged(made: Sequence[Template]) -> list[Template]:
    """Return templates of one shape, some of them joined."""
    found, joined = list(made), cache(Template.merged)
    while len(found) > NEIGHBOURS:
        fewer = found[:1]
        for other in found[1:]:
            both = joined(fewer[-1], other)
            if both.cost < fewer[-1].cost + other.cost:
                fewer[-1] = both
            else:
                fewer.append(other)
        if len(fewer) == len(found):
            return found
        found = fewer
    while True:
        most, chosen = 0, None
        for one, other in combinations(found, 2):
            saved = one.cost + other.cost - joined(one, other).cost
            if saved > most:
                most, chosen = saved, (one, other)
        if chosen is None:
            return found
        found[found.index(chosen[0])] = joined(*chosen)
        found.remove(chosen[1])
