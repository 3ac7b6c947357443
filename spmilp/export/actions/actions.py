"""The copies of each transfer, and the calls of kernels of each task."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spmilp.export.actions.operators import Operators, named
from spmilp.export.actions.places import WORKSPACE_SPACE, Address, Places
from spmilp.export.errors import ExportError
from spmilp.export.subject import Subject
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.layouts import COPIES, STEPS, TASKS, VIEWS
from spmilp.export.tables.table import NONE
from spmilp.problem.strides import Layout as Strided
from spmilp.problem.strides import StridedCopy, row_major_strides, strided_copy
from spmilp.units import Bytes


@dataclass(frozen=True, slots=True)
class Copy:
    """Runs of bytes that go from one place to another."""

    source: Address
    destination: Address
    shape: StridedCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A box of a tensor that a kernel reads or writes, packed.

    Parameters
    ----------
    box
        First element and length of each axis, one behind the other.
    sums
        Type of partial sums; 0 for elements of the tensor.
    place
        Where it lies packed.
    copies
        What brings an input there before the call, or an output from there after it; ``None`` where
        it lies packed where the plan has it.
    """

    box: tuple[int, ...]
    sums: int
    place: Address
    copies: tuple[Copy, ...] | None

    @property
    def rank(self) -> int:
        """Axes."""
        return len(self.box) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a kernel.

    Parameters
    ----------
    operator
        Its number.
    part
        Of the reduction: ``PART_...``.
    inputs
        ``None`` for one that is not read.
    previous
        Sums of the part before.
    """

    operator: int
    part: int
    inputs: tuple[Operand | None, ...]
    previous: Operand | None
    output: Operand


class Actions:
    """Makes copies and calls of the tables.

    Raises
    ------
    ExportError
        If the network is not known, or the tables cannot be made.
    """

    def __init__(self, subject: Subject) -> None:
        if subject.network is None:
            raise ExportError("export: only the model says what runs: add --model MODEL.onnx")
        self.tables = tables = all_tables(subject)
        self.places = Places(subject, tables)
        self.operators = Operators(tables)
        self._given = self.operators.given
        self._rows = {table.layout.table: table.rows for table in tables.tables}

    def transfer(self, number: int) -> tuple[Copy, ...]:
        """Return a copy for each destination of a transfer."""
        first, count = self._rows["transfers"][number][5:7]
        return tuple(
            self._copy(named(COPIES, row)) for row in self._rows["copies"][first : first + count]
        )

    def task(self, number: int) -> tuple[Call, ...]:
        """Return the calls of a task, in order."""
        fields = named(TASKS, self._rows["tasks"][number])
        first = fields["first_step"]
        return tuple(
            self._call(named(STEPS, step))
            for step in self._rows["steps"][first : first + fields["steps"]]
        )

    def _copy(self, row: dict[str, int]) -> Copy:
        first = row["first_loop"]
        loops = tuple(
            (count, from_, to)
            for from_, to, count, _ in self._rows["loops"][first : first + row["loops"]]
        )
        return Copy(
            self.places.of(row["source_memory"], row["source"]),
            self.places.of(row["destination_memory"], row["destination"]),
            StridedCopy(row["run"], loops),
        )

    def _call(self, step: dict[str, int]) -> Call:
        views = self._rows["views"]
        numbers = self._given(step["first_input"], step["inputs"])
        inputs = [views[each] if each >= 0 else None for each in numbers]
        output = views[step["output"]]
        number = self.operators.number(step, inputs, output)
        previous = None
        if step["previous"] != NONE:
            previous = self._operand(views[step["previous"]])
        return Call(
            operator=number,
            part=step["part"],
            inputs=tuple(None if view is None else self._operand(view) for view in inputs),
            previous=previous,
            output=self._operand(output, is_written=True),
        )

    def _operand(self, row: tuple[int, ...], *, is_written: bool = False) -> Operand:
        view = named(VIEWS, row)
        box = self._given(view["box"], 2 * view["rank"])
        first = view["first_piece"]
        pieces = self._rows["pieces"][first : first + view["pieces"]]
        place, copies = Address(WORKSPACE_SPACE, view["slot"]), None
        if view["direct"]:
            place = self._address(pieces[0][1], view["offset"])
        else:
            item = view["bytes"] // max(1, _product(box[1::2]))
            made = (self._gathered(place, box, item, piece, is_written) for piece in pieces)
            copies = tuple(copy for copy in made if copy is not None)
        sums = view["type"] if view["value"] == NONE else 0
        return Operand(box=tuple(box), sums=sums, place=place, copies=copies)

    def _gathered(
        self,
        place: Address,
        box: Sequence[int],
        item: Bytes,
        piece: tuple[int, ...],
        is_written: bool,
    ) -> Copy | None:
        """Return the copy of what a piece has of a box; ``None`` if that is nothing."""
        offset, memory, _, own_box, strides = piece
        common = _common(
            *(box, self._given(own_box, len(box)), offset),
            *(self._given(strides, len(box) // 2), item),
        )
        if common is None:
            return None
        extent, lies, packed = common
        there = self._address(memory, lies.offset)
        inside = Address(place.space, place.offset + packed.offset)
        if is_written:
            return Copy(inside, there, strided_copy(extent, item, packed, lies))
        return Copy(there, inside, strided_copy(extent, item, lies, packed))

    def _address(self, memory: int, offset: Bytes) -> Address:
        if memory == NONE:
            return Address(WORKSPACE_SPACE, offset)
        return self.places.of(memory, offset)


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
