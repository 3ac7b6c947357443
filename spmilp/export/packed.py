"""A plan as a string of bits: what runs, without times and names (``docs/player.md``)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import count

from spmilp.commands.commands import (
    ChannelCommands,
    Command,
    CommandLists,
    CoreCommands,
    EventScheme,
    Move,
    Run,
    Signal,
    Wait,
)
from spmilp.export.actions import (
    FIRST_SPACE,
    WORKSPACE_SPACE,
    Actions,
    Address,
    Call,
    Kept,
    Operand,
    OperatorCode,
)
from spmilp.export.bits import INSTEAD, Bits, PrefixCode, Row, RowBuilder, Templates
from spmilp.export.c_text import (
    LAYOUTS,
    SECTION,
    SECTION_MACRO,
    KeptArrays,
    guarded,
    head,
    image_files,
    linkage,
    numbers,
    tables_of,
    types_header,
)
from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.subject import Subject
from spmilp.problem.strides import StridedCopy
from spmilp.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A table of equally wide numbers in the bits: where it is, and bits of a number."""

    at: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPlan:
    """What runs of a plan, and what stays beside it.

    Parameters
    ----------
    lists, commands
        Positions of the heads of lists and of the first command.
    widths
        Bits of own memory, own event, number of commands and beginning in a head.
    numbers
        Bytes behind the packed operands of a workspace, for the numbers of a step.
    inputs
        Of the step that has most.
    """

    bits: bytes
    lists: int
    commands: int
    tasks: Index
    transfers: Index
    operators: Index
    codes: Index
    totals: Index
    widths: tuple[int, ...]
    kept: Kept
    numbers: Bytes
    inputs: int


@lru_cache(maxsize=1)
def packed_plan(subject: Subject) -> PackedPlan:
    """Return a plan as bits.

    Raises
    ------
    ExportError
        If the network is not known, a number is too large, or an operator has too many attributes.
    """
    actions = Actions(subject)
    rows = Rows(actions, actions.places.image)
    tasks = Templates(
        rows.task(command.task, own)
        for own, command in _with_own_memory(subject)
        if isinstance(command, Run)
    )
    transfers = Templates(
        rows.transfer(command.transfer, own)
        for own, command in _with_own_memory(subject)
        if isinstance(command, Move)
    )
    kept = actions.kept()
    bits = Bits()
    operators = _index(bits, put_operators(bits, actions.operators))
    task_index, transfer_index = (_index(bits, each.put(bits)) for each in (tasks, transfers))
    commands = Commands(subject.lists, tasks, transfers)
    codes = _index(bits, commands.put_codes(bits))
    totals = _index(bits, commands.totals)
    heads = [
        (_own_memory(subject, one), *head)
        for one, head in zip(subject.lists.lists, commands.heads, strict=True)
    ]
    widths = tuple(max(fields).bit_length() for fields in zip(*heads, strict=True))
    lists = bits.at
    for fields in heads:
        for value, width in zip(fields, widths, strict=True):
            bits.put(value, width)
    first_command = bits.at
    bits.append(commands.bits)
    return PackedPlan(
        bits=bits.content(),
        lists=lists,
        commands=first_command,
        tasks=task_index,
        transfers=transfer_index,
        operators=operators,
        codes=codes,
        totals=totals,
        widths=widths,
        kept=kept,
        numbers=rows.numbers,
        inputs=rows.inputs,
    )


def _with_own_memory(subject: Subject) -> Iterator[tuple[int, Command]]:
    """Yield every command with its list's own memory, list by list."""
    for one in subject.lists.lists:
        own = _own_memory(subject, one)
        for command in one.commands:
            yield own, command


def _own_memory(subject: Subject, one: CoreCommands | ChannelCommands) -> int:
    """Return the memory of a list's core, or of the owner of its engine (0 without one)."""
    machine = subject.problem.machine
    if isinstance(one, CoreCommands):
        return machine.cores[one.core].memory
    return machine.engines[one.engine].owner or 0


def _index(bits: Bits, values: Sequence[int]) -> Index:
    """Append a table of equally wide numbers."""
    at, width = bits.at, max(values, default=0).bit_length()
    for value in values:
        bits.put(value, width)
    return Index(at=at, width=width)


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
                f"packed tables: an operator has {len(operator.attributes)} attributes > "
                f"{MOST_ATTRIBUTES}; {INSTEAD}"
            )
        starts.append(bits.at)
        for value in _numbers_of(operator):
            bits.number(value)
    return starts


def _numbers_of(operator: OperatorCode) -> Iterator[int]:
    """Yield an operator as numbers, none of them negative."""
    yield from (operator.kind, len(operator.inputs), operator.quantised, operator.limits)
    if operator.low_and_high is not None:
        yield operator.low_and_high
    yield len(operator.attributes)
    for each in operator.attributes:
        yield from (each.name, each.type, each.count, each.first)
    for operand in (operator.output, *operator.inputs):
        if operand.rank is None:
            yield 0
        else:
            yield from (operand.rank + 1, operand.type, *operand.shape)
        scale = operand.scale
        if scale is None:
            yield 0
        else:
            yield from (1, scale.type, scale.axis + 1, scale.first, scale.zeros, scale.first_zero)


def _add_runs(made: RowBuilder, shape: StridedCopy) -> None:
    made.is_likely(shape.run)
    made.has_loops(shape.loops)


WAIT, SIGNAL, FIRST_TEMPLATE = range(3)
"""Symbols of commands; a task or a transfer has that of its template."""

AFTER_SIGNAL, AFTER_WAIT, AFTER_WORK, EVENT, COUNT, SIGNALLED, CODES = 0, 1, 3, 4, 5, 7, 8
"""Codes: of commands by what is before them in the list (a wait for the event of a core, or for
another one), of events that are waited for, of counts (by the same), of events that are signalled.
Lists of channels have as many of their own behind those of cores."""


WORD = (1 << 32) - 1
"""What the sources multiply wraps around."""


class Commands:
    """The command lists as bits, and own event, number of commands and beginning of each list.

    The own event is the one that a list signals, plus 1; 0 where it signals several. A wait is
    followed by event and count, a signal by its event if the list has no own one, a task or a
    transfer by what fills the holes of its template.

    All lists are about as far at any time: where events count, a wait's count is written as its
    distance from the same share of the event's signals as that of the list's commands before it.
    ``totals`` has the signals of each event, zeros where events do not count.
    """

    def __init__(self, lists: CommandLists, tasks: Templates, transfers: Templates) -> None:
        self._cores = len(lists.cores)
        self.totals = [0] * lists.events
        if lists.scheme is EventScheme.COUNTERS:
            for event in (each.event for one in lists.lists for each in _signals(one)):
                self.totals[event] += 1
        work = (tasks, count()), (transfers, count())
        streams = [
            list(self._symbols(one, *work[number >= self._cores]))
            for number, one in enumerate(lists.lists)
        ]
        written: list[list[int]] = [[] for _ in range(2 * CODES)]
        for number, stream in enumerate(streams):
            for code, value, _ in stream:
                written[code + CODES * (number >= self._cores)].append(value)
        self._codes = list(map(PrefixCode, written))
        self.bits = Bits()
        self.heads: list[tuple[int, int, int]] = []
        for number, (one, stream) in enumerate(zip(lists.lists, streams, strict=True)):
            self.heads.append((_own_event(one), len(one.commands), self.bits.at))
            is_channel = number >= self._cores
            for code, value, row in stream:
                self._codes[code + CODES * is_channel].put(self.bits, value)
                if row is not None:
                    work[is_channel][0].fill(self.bits, row)

    def put_codes(self, bits: Bits) -> list[int]:
        """Append the tables of all codes and return where each begins."""
        starts = []
        for code in self._codes:
            starts.append(bits.at)
            code.put_table(bits)
        return starts

    def _symbols(
        self, one: CoreCommands | ChannelCommands, work: Templates, rows: "count[int]"
    ) -> Iterator[tuple[int, int, int | None]]:
        """Yield code and symbol of all that a list has, and the row that is filled in behind it."""
        own, before = _own_event(one), AFTER_SIGNAL
        for done, command in enumerate(one.commands):
            match command:
                case Wait(event, awaited):
                    is_other = event >= self._cores
                    likely = (self.totals[event] * done & WORD) // len(one.commands)
                    yield before, WAIT, None
                    yield EVENT, event, None
                    yield COUNT + is_other, _folded(awaited - likely), None
                    before = AFTER_WAIT + is_other
                case Signal(event):
                    yield before, SIGNAL, None
                    if not own:
                        yield SIGNALLED, event, None
                    before = AFTER_SIGNAL
                case _:
                    row = next(rows)
                    yield before, FIRST_TEMPLATE + work.number_of(row), row
                    before = AFTER_WORK


def _own_event(one: CoreCommands | ChannelCommands) -> int:
    signalled = {each.event for each in _signals(one)}
    return min(signalled) + 1 if len(signalled) == 1 else 0


def _signals(one: CoreCommands | ChannelCommands) -> Iterator[Signal]:
    return (each for each in one.commands if isinstance(each, Signal))


def _folded(value: int) -> int:
    """Return 0, -1, 1, -2, 2 and so on as 0, 1, 2, 3, 4."""
    return 2 * value if value >= 0 else -2 * value - 1


def packed_files(subject: Subject) -> dict[str, bytes]:
    """Return headers and sources of the packed plan, and the constants' bytes.

    Raises
    ------
    ExportError
        If the network is not known, a number does not fit, or an operator cannot be expressed.
    """
    plan, prefix = packed_plan(subject), subject.prefix
    arrays = KeptArrays(subject, plan.kept, "plan")
    return {
        "spmilp_types.h": types_header(subject.stamp.tool).encode(),
        "spmilp_packed.h": files("spmilp.export").joinpath("c/spmilp_packed.h").read_bytes(),
        f"{prefix}_plan.h": _header(subject, plan, arrays).encode(),
        f"{prefix}_plan.c": _source(subject, plan, arrays).encode(),
        **image_files(subject, plan.kept.image),
    }


def _header(subject: Subject, plan: PackedPlan, arrays: KeptArrays) -> str:
    prefix = subject.prefix
    lines = head(subject.stamp, "A plan as bits.")
    lines += ["", "/*", *(f" * {comment(line)}" for line in footprint(subject).lines()), " */"]
    lines += ["", "#include <stdint.h>", ""]
    lines += ['#include "spmilp_packed.h"', '#include "spmilp_types.h"', ""]
    lines += [*_sizes(subject, plan), *arrays.sizes(), ""]
    declared = [f"extern {each};" for each in _declarations(prefix, plan)]
    lines += [*linkage([*declared, *arrays.declarations()]), "", *arrays.initialiser()]
    return guarded(f"{prefix}_plan", lines)


def _sizes(subject: Subject, plan: PackedPlan) -> Iterator[str]:
    start = f"#define {subject.prefix.upper()}_PLAN"
    yield f"{start}_WORKSPACE_BYTES UINT64_C({plan.kept.workspace + plan.numbers})"
    yield f"{start}_TASKS {len(subject.problem.tasks)}U"
    yield f"{start}_TRANSFERS {len(subject.plan.transfers)}U"


def _declarations(prefix: str, plan: PackedPlan) -> tuple[str, str]:
    return (
        f"const struct spmilp_packed {prefix}_plan_packed",
        f"const uint8_t {prefix}_plan_bits[{max(1, len(plan.bits))}U]",
    )


def _source(subject: Subject, plan: PackedPlan, arrays: KeptArrays) -> str:
    prefix = subject.prefix
    lines = head(subject.stamp, "A plan as bits.")
    lines += ["", f'#include "{prefix}_plan.h"', "", *SECTION_MACRO, ""]
    packed, bits = _declarations(prefix, plan)
    lines += [*_packed(subject, plan, packed), ""]
    lines += [*numbers(f"{SECTION} {bits}", plan.bits, None), "", *arrays.definitions()]
    return "\n".join(lines)


def _packed(subject: Subject, plan: PackedPlan, declaration: str) -> Iterator[str]:
    yield f"{SECTION} {declaration} = {{"
    yield f"    .bits = {subject.prefix}_plan_bits,"
    yield f"    .lists = {plan.lists}U, .commands = {plan.commands}U,"
    yield f"    .cores = {len(subject.problem.machine.cores)}U, .numbers = {plan.kept.workspace}U,"
    yield f"    .tasks = {_index_in_c(plan.tasks)},"
    yield f"    .transfers = {_index_in_c(plan.transfers)},"
    yield f"    .operators = {_index_in_c(plan.operators)},"
    yield f"    .codes = {_index_in_c(plan.codes)}, .totals = {_index_in_c(plan.totals)},"
    yield f"    .head_bits = {{{', '.join(f'{width}U' for width in plan.widths)}}}"
    yield "};"


def _index_in_c(index: Index) -> str:
    return f"{{{index.at}U, {index.width}U}}"


_POINTER, _PACKED_HEAD, _TABLES_HEAD = 4, 64, 8 * (len(LAYOUTS) + 2) + 16
"""Bytes on a processor of 32 bits: of the structs ``spmilp_packed`` and ``spmilp_tables``."""

MOST_NAMED = 2
"""Memories that a line of text names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes that a packed plan takes in a program, besides its code.

    Parameters
    ----------
    constants
        Weights and other constants, in flash.
    tables
        Everything else that is constant.
    memories
        ``(name, bytes)`` of each memory that the plan uses; constants that stay in flash left out.
    workspace
        For packed operands, for each core that runs at the same time as others.
    state
        Events, and where each list is.
    alignment
        The largest that a base address must have.
    """

    constants: Bytes
    tables: Bytes
    memories: tuple[tuple[str, Bytes], ...]
    workspace: Bytes
    state: Bytes
    alignment: Bytes

    def fields(self) -> dict[str, object]:
        """Return the same for JSON."""
        return {
            "flash": {"constants": self.constants, "tables": self.tables},
            "ram": dict(self.memories),
            "workspace": self.workspace,
            "state": self.state,
            "alignment": self.alignment,
        }

    def lines(self) -> tuple[str, ...]:
        """Return the same as text for people; names stand as they are.

        Of many memories the first ones and the fullest of the others.
        """
        named = MOST_NAMED if len(self.memories) > MOST_NAMED + 1 else len(self.memories)
        ram = ", ".join(f"{name} {used:,} B" for name, used in self.memories[:named])
        others = self.memories[named:]
        if others:
            fullest, most = max(others, key=lambda memory: memory[1])
            ram += f", {len(others)} more with up to {most:,} B ({fullest})"
        return (
            f"flash: {self.constants:,} B of constants, {self.tables:,} B of tables",
            f"RAM: {ram}",
            f"besides: {self.workspace:,} B of workspace for each core, {self.state:,} B for "
            f"events and lists; alignment {self.alignment} B",
        )


def footprint(subject: Subject) -> Footprint:
    """Return what the packed tables take.

    Raises
    ------
    ExportError
        If they cannot be made.
    """
    plan = packed_plan(subject)
    kept, memories = plan.kept, subject.problem.machine.memories
    tables = sum(table.layout.stride * max(1, len(table.rows)) for table in tables_of(kept))
    pools = len(plan.bits) + _POINTER * len(kept.words) + len(kept.texts)
    events, lists = subject.lists.events, len(subject.lists.lists)
    return Footprint(
        constants=len(kept.image),
        tables=tables + pools + _PACKED_HEAD + _TABLES_HEAD,
        memories=tuple(
            (memory.name, size) for memory, size in zip(memories, kept.used, strict=True) if size
        ),
        workspace=kept.workspace + plan.numbers,
        state=_POINTER * (events + 1 + 3 * lists + 1),
        alignment=max(memory.alignment for memory in memories),
    )
