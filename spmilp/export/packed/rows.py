"""The fields of transfers and tasks, in the order in which C reads them."""

from collections.abc import Iterable

from spmilp.export.actions.actions import Actions, Call, Operand
from spmilp.export.actions.operators import OperatorCode, numbers_of
from spmilp.export.actions.places import FIRST_SPACE, WORKSPACE_SPACE, Address
from spmilp.export.errors import ExportError
from spmilp.export.packed.bits import Bits
from spmilp.export.packed.templates import Row, RowBuilder
from spmilp.problem.strides import StridedCopy

MOST_ATTRIBUTES = 16
"""``SPMILP_PACKED_ATTRIBUTES`` of the sources."""

_INTEGER_BYTES = 4


class Rows:
    """Makes rows of fields.

    Parameters
    ----------
    image
        The space of constants.
    """

    def __init__(self, actions: Actions, image: int) -> None:
        self.numbers = 0
        self.inputs = 1
        self._actions, self._image = actions, image

    def transfer(self, number: int, own: int) -> Row:
        """Return the row of a transfer of an engine whose owner is memory ``own``."""
        copies, made = self._actions.transfer(number), RowBuilder()
        made.decides(len(copies))
        for copy in copies:
            self._address(made, copy.source, own)
            self._address(made, copy.destination, own)
            _add_runs(made, copy.shape)
        return made.row()

    def task(self, number: int, own: int) -> Row:
        """Return the row of a task of a core that works in memory ``own``."""
        calls, made = self._actions.task(number), RowBuilder()
        made.decides(len(calls))
        for call in calls:
            self._call(made, call, own)
        return made.row()

    def _address(self, made: RowBuilder, address: Address, own: int) -> None:
        if address.space == WORKSPACE_SPACE:
            made.is_likely(WORKSPACE_SPACE)
            made.varies(address.offset)
            return
        is_own = address.space == FIRST_SPACE + own
        made.begins_with(is_own, address.space == self._image)
        made.varies(0 if is_own else address.space, address.offset)

    def _call(self, made: RowBuilder, call: Call, own: int) -> None:
        made.varies(call.operator)
        made.is_likely(call.part)
        made.must_equal(len(call.inputs))
        for operand in call.inputs:
            made.must_equal(-1 if operand is None else operand.rank)
            if operand is not None:
                self._operand(made, operand, own)
        made.decides(int(call.previous is not None))
        if call.previous is not None:
            self._operand(made, call.previous, own)
        made.must_equal(call.output.rank)
        self._operand(made, call.output, own, is_written=True)
        ranks = [each.rank for each in (*call.inputs, call.output) if each is not None]
        room = sum(3 * rank for rank in ranks) + 2 * call.output.rank
        self.numbers = max(self.numbers, _INTEGER_BYTES * room)
        self.inputs = max(self.inputs, len(call.inputs))

    def _operand(
        self, made: RowBuilder, operand: Operand, own: int, *, is_written: bool = False
    ) -> None:
        made.decides(int(operand.copies is not None))
        made.is_likely(operand.sums)
        for start, length in zip(operand.box[::2], operand.box[1::2], strict=True):
            made.varies(start)
            made.is_likely(length)
        if operand.copies is None:
            self._address(made, operand.place, own)
            return
        made.is_likely(operand.place.offset)
        made.decides(len(operand.copies))
        for copy in operand.copies:
            inside, there = copy.destination, copy.source
            if is_written:
                inside, there = there, inside
            self._address(made, there, own)
            made.varies(inside.offset - operand.place.offset)
            _add_runs(made, copy.shape)


def put_operators(bits: Bits, operators: Iterable[OperatorCode]) -> list[int]:
    """Append operators and return where each begins.

    Raises
    ------
    ExportError
        If one has too many attributes.
    """
    starts = []
    for operator in operators:
        if len(operator.attributes) > MOST_ATTRIBUTES:
            raise ExportError(
                f"release profile: an operator has {len(operator.attributes)} attributes > "
                f"{MOST_ATTRIBUTES}; export with --profile debug"
            )
        starts.append(bits.at)
        for value in numbers_of(operator):
            bits.number(value)
    return starts


def _add_runs(made: RowBuilder, shape: StridedCopy) -> None:
    made.is_likely(shape.run)
    made.has_loops(shape.loops)
