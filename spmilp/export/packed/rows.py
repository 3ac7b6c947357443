"""The fields of transfers and tasks, made of the tables, in the order in which C reads them."""

from collections.abc import Iterable, Iterator, Sequence

from spmilp.export.errors import ExportError
from spmilp.export.packed.bits import Bits
from spmilp.export.packed.places import FIRST_SPACE, WORKSPACE_SPACE, Places
from spmilp.export.packed.templates import Row, RowBuilder
from spmilp.export.tables.codes import OPERATORS, AttributeType
from spmilp.export.tables.layouts import ATTRIBUTES, COPIES, SCALES, STEPS, TASKS, VIEWS
from spmilp.export.tables.table import NONE, Layout, Tables, Texts, Words
from spmilp.problem.strides import Layout as Strided
from spmilp.problem.strides import row_major_strides, strided_copy

MOST_ATTRIBUTES = 16
"""``SPMILP_PACKED_ATTRIBUTES`` of the sources."""

_INTEGER_BYTES = 4

_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators whose bias is added as it is where both factors are integers that stand for reals."""


class Rows:
    """Makes rows of fields, and the operators that steps name.

    ``words`` and ``texts`` are the pools of the release profile, which keep only what runs.
    """

    def __init__(self, tables: Tables, places: Places) -> None:
        self.words, self.texts = Words(), Texts()
        self.texts.add("")
        self.operators: list[tuple[int, ...]] = []
        self.numbers = 0
        self.inputs = 1
        self._operator_numbers: dict[tuple[int, ...], int] = {}
        self._given, self._places = tables.words, places
        self._texts_given = tables.texts
        self._rows = {table.layout.table: table.rows for table in tables.tables}

    def transfer(self, number: int, own: int) -> Row:
        """Return the row of a transfer of an engine whose owner is memory ``own``."""
        row, made = self._rows["transfers"][number], RowBuilder()
        made.decides(row[6])
        for copy in self._rows["copies"][row[5] : row[5] + row[6]]:
            fields = _named(COPIES, copy)
            for side in ("source", "destination"):
                memory, address = fields[f"{side}_memory"], fields[side]
                self._address(made, memory, address, own)
            made.is_likely(fields["run"])
            loops = self._rows["loops"][copy[5] : copy[5] + copy[6]]
            _add_loops(made, [(count, from_, to) for from_, to, count, _ in loops])
        return made.row()

    def task(self, number: int, own: int) -> Row:
        """Return the row of a task of a core that works in memory ``own``."""
        fields, made = _named(TASKS, self._rows["tasks"][number]), RowBuilder()
        made.decides(fields["steps"])
        first = fields["first_step"]
        for step in self._rows["steps"][first : first + fields["steps"]]:
            self._step(made, _named(STEPS, step), own)
        return made.row()

    def port(self, row: Sequence[int]) -> tuple[int, ...]:
        """Return a port with its place in the program, and without its name."""
        address, size, memory, direction, type_, rank, shape, strides, _, _ = row
        space, offset = self._places.of(memory, address)
        given = self._given
        return (
            *(offset, size, space - FIRST_SPACE, direction, type_, rank),
            *(self.words.add(given[shape : shape + rank]),),
            *(self.words.add(given[strides : strides + rank]), 0, 0),
        )

    def _address(self, made: RowBuilder, memory: int, address: int, own: int) -> None:
        if memory == NONE:
            made.is_likely(WORKSPACE_SPACE)
            made.varies(address)
            return
        space, offset = self._places.of(memory, address)
        is_own = space == FIRST_SPACE + own
        made.begins_with(is_own, space == self._places.image)
        made.varies(0 if is_own else space, offset)

    def _step(self, made: RowBuilder, step: dict[str, int], own: int) -> None:
        views = self._rows["views"]
        first, count = step["first_input"], step["inputs"]
        inputs = [views[each] if each >= 0 else None for each in self._words(first, count)]
        output = views[step["output"]]
        made.varies(self._operator(step, inputs, output))
        made.is_likely(step["part"])
        made.must_equal(count)
        for view in inputs:
            made.must_equal(-1 if view is None else view[5])
            if view is not None:
                self._view(made, _named(VIEWS, view), own, into_pieces=False)
        made.decides(int(step["previous"] != NONE))
        if step["previous"] != NONE:
            self._view(made, _named(VIEWS, views[step["previous"]]), own, into_pieces=False)
        made.must_equal(output[5])
        self._view(made, _named(VIEWS, output), own, into_pieces=True)
        ranks = [view[5] for view in (*inputs, output) if view is not None]
        room = sum(3 * rank for rank in ranks) + 2 * output[5]
        self.numbers = max(self.numbers, _INTEGER_BYTES * room)
        self.inputs = max(self.inputs, count)

    def _view(self, made: RowBuilder, view: dict[str, int], own: int, *, into_pieces: bool) -> None:
        rank, box = view["rank"], self._words(view["box"], 2 * view["rank"])
        made.decides(int(not view["direct"]))
        made.is_likely(view["type"] if view["value"] == NONE else 0)
        for start, length in zip(box[::2], box[1::2], strict=True):
            made.varies(start)
            made.is_likely(length)
        first = view["first_piece"]
        pieces = self._rows["pieces"][first : first + view["pieces"]]
        if view["direct"]:
            self._address(made, pieces[0][1], view["offset"], own)
            return
        made.is_likely(view["slot"])
        item = view["bytes"] // max(1, _product(box[1::2]))
        shared = [
            (memory, *common)
            for offset, memory, _, own_box, strides in pieces
            if (
                common := _common(
                    box, self._words(own_box, 2 * rank), offset, self._words(strides, rank), item
                )
            )
            is not None
        ]
        made.decides(len(shared))
        for memory, extent, lies, packed in shared:
            self._address(made, memory, lies.offset, own)
            made.varies(packed.offset)
            from_, to = (packed, lies) if into_pieces else (lies, packed)
            copy = strided_copy(extent, item, from_, to)
            made.is_likely(copy.run)
            _add_loops(made, copy.loops)

    def _operator(
        self,
        step: dict[str, int],
        inputs: Sequence[tuple[int, ...] | None],
        output: tuple[int, ...],
    ) -> int:
        """Return the number of the operator of a step: what all its tiles have in common."""
        if step["attributes"] > MOST_ATTRIBUTES:
            raise ExportError(
                f"release profile: an operator has {step['attributes']} attributes > "
                f"{MOST_ATTRIBUTES}; export with --profile debug"
            )
        fields = [step["kind"], step["inputs"], step["quantised"], step["limits"]]
        if step["limits"]:
            fields.append(self.words.add((step["low"], step["high"])))
        first, count = step["first_attribute"], step["attributes"]
        fields.append(count)
        for attribute in self._rows["attributes"][first : first + count]:
            fields += self._attribute(_named(ATTRIBUTES, attribute))
        scales = self._words(step["scales"], step["inputs"] + 1)
        if not step["quantised"]:
            scales = [-1] * len(scales)
        elif OPERATORS[step["kind"]] in _PRODUCTS and min(scales[:2]) >= 0:
            scales[2:-1] = [-1] * len(scales[2:-1])
        for view, scale in zip((output, *inputs), (scales[-1], *scales), strict=False):
            fields += self._described(view)
            fields += [0] if scale < 0 else [1, *self._scale(self._rows["scales"][scale])]
        key = tuple(fields)
        if key not in self._operator_numbers:
            self._operator_numbers[key] = len(self.operators)
            self.operators.append(key)
        return self._operator_numbers[key]

    def _described(self, view: tuple[int, ...] | None) -> Iterator[int]:
        if view is None:
            yield 0
            return
        fields = _named(VIEWS, view)
        yield fields["rank"] + 1
        yield fields["type"]
        if fields["value"] == NONE:
            yield from [0] * fields["rank"]
            return
        shape = self._rows["values"][fields["value"]][2]
        yield from self._words(shape, fields["rank"])

    def _attribute(self, row: dict[str, int]) -> tuple[int, ...]:
        if row["type"] == AttributeType.TEXT:
            end = self._texts_given.index(b"\0", row["first"])
            first = self.texts.add(self._texts_given[row["first"] : end].decode())
        else:
            first = self.words.add(self._words(row["first"], row["count"]))
        return row["name"], row["type"], row["count"], first

    def _scale(self, row: tuple[int, ...]) -> tuple[int, ...]:
        fields = _named(SCALES, row)
        scales = self.words.add(self._words(fields["scales"], fields["count"]))
        zeros = self._words(fields["zero_points"], fields["zeros"])
        zeros = zeros[:1] if len(set(zeros)) == 1 else zeros
        return fields["type"], fields["axis"] + 1, scales, len(zeros), self.words.add(zeros)

    def _words(self, first: int, count: int) -> list[int]:
        return list(self._given[first : first + count])


def put_operators(bits: Bits, operators: Iterable[tuple[int, ...]]) -> list[int]:
    """Append operators and return where each begins."""
    starts = []
    for fields in operators:
        starts.append(bits.at)
        for value in fields:
            bits.number(value)
    return starts


def _named(layout: Layout, row: Sequence[int]) -> dict[str, int]:
    return dict(zip((column.name for column in layout.columns), row, strict=True))


def _add_loops(made: RowBuilder, loops: Sequence[tuple[int, int, int]]) -> None:
    made.decides(len(loops))
    for loop in loops:
        made.is_likely(*loop)


def _common(
    box: Sequence[int], own: Sequence[int], offset: int, strides: Sequence[int], item: int
) -> tuple[tuple[int, ...], Strided, Strided] | None:
    """Return what a piece has of a box: extent, and how it lies in memory and packed."""
    extent, skipped, inside = [], [], []
    for axis in range(len(strides)):
        start, length = box[2 * axis : 2 * axis + 2]
        own_start, own_length = own[2 * axis : 2 * axis + 2]
        first = max(start, own_start)
        extent.append(min(start + length, own_start + own_length) - first)
        skipped.append(first - own_start)
        inside.append(first - start)
    if any(each <= 0 for each in extent):
        return None
    packed = row_major_strides(tuple(box[1::2]), item)
    lies = Strided(offset + _dot(skipped, strides), tuple(strides))
    return tuple(extent), lies, Strided(_dot(inside, packed), packed)


def _dot(counts: Iterable[int], strides: Iterable[int]) -> int:
    return sum(count * stride for count, stride in zip(counts, strides, strict=True))


def _product(lengths: Iterable[int]) -> int:
    total = 1
    for length in lengths:
        total *= length
    return total
