"""A plan as a string of bits: what runs, without times and names (``docs/player.md``)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count
from typing import NamedTuple, TypeAlias

from spmilp.commands.commands import (
    ChannelCommands,
    Command,
    CommandLists,
    CoreCommands,
    EventScheme,
    LoopCommand,
    LoopWait,
    Move,
    Run,
    Signal,
    StreamCommands,
    Wait,
)
from spmilp.export.actions import Actions, Call, Copy, Operand, OperatorCode, repeated
from spmilp.export.bits import (
    FIELD,
    LIKELY,
    LOOPS,
    SHAPE,
    Bits,
    PrefixCode,
    Row,
    Templates,
    digits,
    number,
)
from spmilp.export.names import comment
from spmilp.export.places import FIRST_SPACE, WORKSPACE_SPACE, Address
from spmilp.export.sources import (
    TITLE,
    files_beside,
    filled,
    marks_of,
    numbers,
    program_files,
    sources_of_all_plans,
    words_of_a_list,
)
from spmilp.export.subject import Subject
from spmilp.machine.controllers import StridedCopy
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.units import Bytes, MemoryIdx

Numbers = Iterator[tuple[int, int]]
"""Numbers of a row, as pairs of the number's roles (flags) and the number."""


class PackedPlan(NamedTuple):
    """What runs of a plan, as bits; ``inputs`` are those of the step that has most.

    ``marks`` has what stands for the marks of the templates: of ``struct spmilp_packed``, and of
    what the plan keeps beside the bits. ``workspace`` has the bytes for each core besides the plan:
    workspace that no scratch holds, and behind it the numbers of a step.
    """

    actions: Actions
    bits: bytes
    marks: dict[str, object]
    workspace: Bytes
    inputs: int


@lru_cache(maxsize=1)
def packed_plan(subject: Subject) -> PackedPlan:
    """Return a plan as bits.

    Raises an ``ExportError`` if the network is not known, a kernel cannot compute an operator, or a
    number is too large.
    """
    actions, lists, loop, bits = Actions(subject), subject.lists, subject.loop, Bits()
    parts = [_part(actions, one, one.commands) for one in lists.lists]
    if loop is not None:
        both = zip(lists.lists, loop.body, strict=True)
        parts += [_part(actions, one, body, loop) for one, body in both]
    works = {
        side: [work for part in parts if part.is_core == side for work in part.works]
        for side in (True, False)
    }
    tasks, transfers = (Templates(row for e in some for row in e.rows) for some in works.values())

    def index(values: Sequence[int]) -> str:
        """Append a table of equally wide numbers; return where it is and how wide they are."""
        at, width = bits.at, max(values, default=0).bit_length()
        bits.add(*(digits(value, width) for value in values))
        return f"{{{at}U, {width}U}}"

    marks = marks_of(actions, "plan", TITLE)
    marks |= {"CORES": len(lists.cores), "NUMBERS_AT": actions.workspace}
    marks["OPERATORS"] = index(
        _put(bits, ("".join(map(number, _numbers_of(each))) for each in actions.operators))
    )
    marks["TASKS"], marks["TRANSFERS"] = index(tasks.put(bits)), index(transfers.put(bits))
    fillings: tuple[_Fillings, _Fillings] = map(tasks.of, count()), map(transfers.of, count())
    if loop is not None:
        marks["LAST_STAGE"], ways = loop.last_stage, _Ways(bits)
        fillings = ways.fillings(tasks, works[True]), ways.fillings(transfers, works[False])
        marks["WAYS"] = index(ways.positions)
    commands = Commands(parts, lists, fillings)
    marks["CODES"] = index(_put(bits, (code.table() for code in commands.codes)))
    marks["TOTALS"] = index(commands.totals)
    heads = [(e.own_memory, *rest) for e, rest in zip(parts, commands.heads, strict=True)]
    widths = [max(fields).bit_length() for fields in zip(*heads, strict=True)]
    marks["HEAD_BITS"] = f"{{{', '.join(f'{width}U' for width in widths)}}}"
    marks["LISTS_AT"] = bits.at
    for fields in heads:
        bits.add(*map(digits, fields, widths))
    marks["COMMANDS_AT"] = bits.at
    bits.add(commands.bits.all())
    every = actions.calls
    return PackedPlan(
        actions=actions,
        bits=bits.content(),
        marks=marks,
        workspace=actions.workspace + max(map(_bytes_of_numbers, every), default=0),
        inputs=max((len(call.inputs) for call in every), default=1),
    )


class _Work(NamedTuple):
    """What a task or a transfer is in each round: a row of numbers; none of the application's.

    ``stage`` counts the turns that have begun when it is of the first inference: 0 before the loop.
    """

    stage: int
    rows: list[Row]


class _Part(NamedTuple):
    """Commands that a list has once, or in each turn of a loop, and what works among them."""

    is_core: bool
    own_memory: MemoryIdx
    commands: Sequence[Command | LoopCommand]
    works: list[_Work]


def _part(
    actions: Actions,
    one: CoreCommands | ChannelCommands,
    commands: Sequence[Command | LoopCommand],
    loop: StreamCommands | None = None,
) -> _Part:
    """Return a part of a list, of a loop or not."""
    own, works = _own_memory(actions.subject, one), list[_Work]()
    rows = _RowsOf(own, actions.places.space_of_image)
    for command in commands:
        if isinstance(command, Run):
            found = [Row.of(rows.task(calls)) for calls in repeated(actions.calls_of(command.task))]
        elif isinstance(command, Move):
            copies = repeated(actions.copies_of(command.transfer))
            found = [Row.of(rows.transfer(each)) for each in copies]
        else:
            continue
        works.append(_Work(0 if loop is None else 1 + loop.stage(command), found))
    return _Part(isinstance(one, CoreCommands), own, commands, works)


def _own_memory(subject: Subject, one: CoreCommands | ChannelCommands) -> MemoryIdx:
    """Return the memory of a list's core, or of the owner of its engine (0 without one)."""
    machine = subject.problem.machine
    if isinstance(one, CoreCommands):
        return machine.cores[one.core].memory if one.core < len(machine.cores) else 0
    return machine.engines[one.engine].owner or 0


class _Ways:
    """What fills templates in each round of a stream, in bits; equal ones stand there once."""

    def __init__(self, bits: Bits) -> None:
        self.positions: list[int] = []
        self._bits, self._known = bits, dict[str, int]()

    def fillings(self, templates: Templates, works: Iterable[_Work]) -> "_Fillings":
        """Return what follows the one symbol of all that works: stage, rounds, first position."""
        found, row = list[tuple[int, str]](), count()
        for work in works:
            parts = work.stage, len(work.rows), len(self.positions)
            found.append((0, "".join(map(number, parts))))
            for _ in work.rows:
                template, filling = templates.of(next(row))
                text = number(template) + filling
                if text not in self._known:
                    self._known[text] = self._bits.at
                    self._bits.add(text)
                self.positions.append(self._known[text])
        return iter(found)


def _bytes_of_numbers(call: Call) -> Bytes:
    """Return the bytes of a call's boxes and shapes, which are decoded into the workspace."""
    ranks = [each.rank for each in (*call.inputs, call.output) if each is not None]
    return 4 * (sum(3 * rank for rank in ranks) + 2 * call.output.rank)


class _RowsOf:
    """Gives the numbers of transfers and tasks in lists whose own memory is ``own``.

    ``image`` is the space of constants.
    """

    def __init__(self, own: MemoryIdx, image: int) -> None:
        self._own_space, self._image = FIRST_SPACE + own, image

    def transfer(self, copies: Sequence[Copy]) -> Numbers:
        """Yield the numbers of a transfer."""
        yield FIELD | SHAPE, len(copies)
        for copy in copies:
            yield from self._address(copy.source)
            yield from self._address(copy.destination)
            yield from _runs(copy.shape)

    def task(self, calls: Sequence[Call]) -> Numbers:
        """Yield the numbers of a task."""
        yield FIELD | SHAPE, len(calls)
        for call in calls:
            yield FIELD, call.operator
            yield FIELD | LIKELY, call.part
            yield SHAPE, len(call.inputs)
            for operand in call.inputs:
                yield SHAPE, -1 if operand is None else operand.rank
                if operand is not None:
                    yield from self._operand(operand)
            yield FIELD | SHAPE, int(call.previous is not None)
            if call.previous is not None:
                yield from self._operand(call.previous)
            yield SHAPE, call.output.rank
            yield from self._operand(call.output, is_written=True)

    def _address(self, address: Address) -> Numbers:
        if address.space == WORKSPACE_SPACE:
            yield FIELD | LIKELY, WORKSPACE_SPACE
            yield FIELD, address.offset
            return
        is_own = address.space == self._own_space
        yield LIKELY, int(is_own)
        yield LIKELY, int(address.space == self._image)
        yield FIELD, 0 if is_own else address.space
        yield FIELD, address.offset

    def _operand(self, operand: Operand, *, is_written: bool = False) -> Numbers:
        yield FIELD | SHAPE, int(operand.copies is not None)
        yield FIELD | LIKELY, operand.sums
        for start, length in zip(operand.box[::2], operand.box[1::2], strict=True):
            yield FIELD, start
            yield FIELD | LIKELY, length
        yield from self._address(operand.place)
        if operand.copies is None:
            return
        yield FIELD | SHAPE, len(operand.copies)
        for copy in operand.copies:
            inside, there = copy.destination, copy.source
            if is_written:
                inside, there = there, inside
            yield from self._address(there)
            yield FIELD, inside.offset - operand.place.offset
            yield from _runs(copy.shape)


def _runs(shape: StridedCopy) -> Numbers:
    yield FIELD | LIKELY, shape.run
    yield FIELD | LOOPS, len(shape.loops)
    for loop in shape.loops:
        for each in loop:
            yield FIELD | LIKELY, each


def _put(bits: Bits, parts: Iterable[str]) -> list[int]:
    """Append some bits and return where each part begins."""
    starts = []
    for part in parts:
        starts.append(bits.at)
        bits.add(part)
    return starts


def _numbers_of(operator: OperatorCode) -> Iterator[int]:
    """Yield an operator as numbers, none of them negative."""
    yield from (operator.kind, len(operator.inputs), operator.quantised, operator.limits)
    if operator.low_and_high is not None:
        yield operator.low_and_high
    yield len(operator.attributes)
    for attribute in operator.attributes:
        yield from attribute
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


WAIT, SIGNAL, FIRST_TEMPLATE = range(3)
"""Symbols of commands; for a task or transfer ``FIRST_TEMPLATE`` plus its template's number."""

AFTER_SIGNAL, AFTER_WAIT, AFTER_WORK, EVENT, COUNT, SIGNALLED, CODES = 0, 1, 3, 4, 5, 7, 8
"""Numbers of the prefix codes. The code of a command depends on the command before it in the list:
``AFTER_SIGNAL``, ``AFTER_WAIT`` (1 more if the event is not below the number of cores) or
``AFTER_WORK``. ``EVENT`` is for events that are waited for, ``COUNT`` for their counts (1 more as
above), ``SIGNALLED`` for events that are signalled. Lists of channels have ``CODES`` codes of their
own behind these."""

WORD = (1 << 32) - 1
"""The C sources multiply modulo 2^32."""


_Fillings: TypeAlias = Iterator[tuple[int, str]]
"""For each task or transfer of a list the number of its template, and what fills the holes."""


class Commands:
    """The command lists as bits; ``heads``: own event, commands and first bit of each part.

    The own event is the one that a list signals, plus 1; 0 where it signals several. A wait is
    followed by event and count, a signal by its event if the list has no own one, a task or a
    transfer by what fills the holes of its template.

    ``totals`` has the signals of each event, in a loop those of a turn; zeros with semaphores. With
    counters a count is stored as its difference from a prediction: all lists are about equally far
    at any time, so after a share of a list's commands about the same share of the event's signals
    has been sent. In a loop C adds the totals for each turn that has begun.
    """

    def __init__(
        self, parts: Sequence[_Part], lists: CommandLists, fillings: Sequence[_Fillings]
    ) -> None:
        self._cores = len(lists.cores)
        self.totals = [0] * lists.events
        self._counts = lists.scheme is EventScheme.COUNTERS
        self._loops = len(parts) > len(lists.lists)
        if self._counts:
            for event in (event for one in parts for event in _signalled(one)):
                self.totals[event] += 1
        runs, moves = fillings
        streams = [
            list(self._symbols(one, *((0, runs) if one.is_core else (CODES, moves))))
            for one in parts
        ]
        written: defaultdict[int, list[int]] = defaultdict(list)
        for code, symbol, _ in chain.from_iterable(streams):
            written[code].append(symbol)
        self.codes = [PrefixCode(written[code]) for code in range(2 * CODES)]
        self.bits = Bits()
        self.heads: list[tuple[int, int, int]] = []
        for one, stream in zip(parts, streams, strict=True):
            self.heads.append((_own_event(one), len(one.commands), self.bits.at))
            for code, symbol, filling in stream:
                self.bits.add(self.codes[code].codes[symbol], filling)

    def _symbols(
        self, one: _Part, base: int, fillings: _Fillings
    ) -> Iterator[tuple[int, int, str]]:
        """Yield code and symbol of all that a list has, and the bits that follow it.

        ``base`` is the first code of the list.
        """
        own, before = _own_event(one), base + AFTER_SIGNAL
        for done, command in enumerate(one.commands):
            match command:
                case Wait(event) | LoopWait(event):
                    awaited = self._awaited(command)
                    is_other = event >= self._cores
                    likely = (self.totals[event] * done & WORD) // len(one.commands)
                    yield before, WAIT, ""
                    yield base + EVENT, event, ""
                    yield base + COUNT + is_other, _folded(awaited - likely), ""
                    before = base + AFTER_WAIT + is_other
                case Signal(event):
                    yield before, SIGNAL, ""
                    if not own:
                        yield base + SIGNALLED, event, ""
                    before = base + AFTER_SIGNAL
                case _:
                    template, filling = next(fillings)
                    yield before, FIRST_TEMPLATE + template, filling
                    before = base + AFTER_WORK

    def _awaited(self, wait: Wait | LoopWait) -> int:
        """Return the count of a wait before the first turn.

        With semaphores it is that of all turns; of a stream, where it is 1, the turn that is the
        first to wait.
        """
        turns = wait.back + 1 if isinstance(wait, LoopWait) else 0
        if not self._counts and self._loops:
            return turns
        return wait.count - turns * self.totals[wait.event]


def _own_event(one: _Part) -> int:
    signalled = set(_signalled(one))
    return min(signalled) + 1 if len(signalled) == 1 else 0


def _signalled(one: _Part) -> Iterator[int]:
    return (each.event for each in one.commands if isinstance(each, Signal))


def _folded(value: int) -> int:
    """Return 0, -1, 1, -2, 2 and so on as 0, 1, 2, 3, 4."""
    return 2 * value if value >= 0 else -2 * value - 1


def packed_files(subject: Subject) -> dict[str, bytes]:
    """Return headers and sources of the packed plan, and the constants' bytes."""
    plan, name = packed_plan(subject), f"{subject.prefix}_plan"
    marks = {
        **plan.marks,
        "STREAM_H": "",
        "STREAM_C": "",
        "FOOTPRINT": "\n".join(f" * {comment(line)}" for line in footprint(subject).lines()),
        "WORKSPACE": plan.workspace,
        "TASK_COUNT": len(subject.problem.tasks),
        "TRANSFER_COUNT": len(subject.plan.transfers),
        "BITS": numbers(plan.bits),
        "BITS_COUNT": len(plan.bits),
    }
    if subject.loop is not None:
        marks |= {f"STREAM_{e.upper()}": filled(f"packed_stream.{e}", marks) for e in "hc"}
    return {
        "spmilp_packed.h": sources_of_all_plans("plan")["spmilp_packed.h"],
        **{f"{name}.{end}": filled(f"plan.{end}", marks).encode() for end in "hc"},
        **files_beside(plan.actions, marks),
    }


def player_files(subject: Subject) -> dict[str, bytes]:
    """Return the packed plan with sources, a makefile and a linker script that run it."""
    plan, source = packed_plan(subject), f"{subject.prefix}_plan.c"
    program = program_files(plan.actions, plan.marks, "plan", [source], plan.inputs)
    return packed_files(subject) | program


_POINTER, _PACKED, _TABLES, _SUMMARY, _PORT, _SEGMENT = 4, 64, 56, 32, 48, 32
"""Bytes on a processor of 32 bits: of a pointer or a word, and of the sources' structs."""

MOST_NAMED = 2
"""Memories that a line of text names."""

MICROCONTROLLER_BYTES = 16 << 20
"""Bytes on chip up to which a machine is like a microcontroller."""


def is_like_microcontroller(machine: Machine) -> bool:
    """Say whether a machine has so little memory on chip that its flash will be scarce too."""
    on_chip = [memory.size or 0 for memory in machine.memories if memory.kind != MemoryKind.DRAM]
    return sum(on_chip) <= MICROCONTROLLER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes that a packed plan takes in a program, besides its code.

    In flash are constants, weights among them, and tables, all else that is constant. Memories are
    ``(name, bytes)`` of each that the plan uses; constants that stay in flash are left out. The
    workspace is for each core, besides the plan: what kernels need of tasks that have less scratch;
    0 where the problem was lowered for them. State are events, where each list is, and the numbers
    of a call of each core; the alignment is the largest that a base address must have.
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
        """Return the same as text for people; of many memories the first and the fullest other."""
        named = MOST_NAMED if len(self.memories) > MOST_NAMED + 1 else len(self.memories)
        ram = ", ".join(f"{name} {used:,} B" for name, used in self.memories[:named])
        others = self.memories[named:]
        if others:
            fullest, most = max(others, key=lambda memory: memory[1])
            ram += f", {len(others)} more with up to {most:,} B ({fullest})"
        outside = ""
        if self.workspace:
            outside = f"{self.workspace:,} B of workspace for each core that no scratch holds, "
        return (
            f"flash: {self.constants:,} B of constants, {self.tables:,} B of tables",
            f"RAM: {ram}",
            f"besides: {outside}{self.state:,} B for events, lists and calls; alignment "
            f"{self.alignment} B",
        )


def footprint(subject: Subject) -> Footprint:
    """Return what the packed tables take; raises what :func:`packed_plan` does."""
    plan, lists, memories = packed_plan(subject), subject.lists, subject.problem.machine.memories
    actions, places = plan.actions, plan.actions.places
    rows = _PORT * max(1, len(actions.ports())) + _SEGMENT * max(1, len(places.on_chip))
    pools = len(plan.bits) + _POINTER * len(actions.words.values) + len(actions.texts.values)
    used, words = zip(memories, places.used, strict=True), words_of_a_list(subject)
    return Footprint(
        constants=len(places.image),
        tables=_PACKED + _TABLES + _SUMMARY + rows + pools,
        memories=tuple((memory.name, size) for memory, size in used if size),
        workspace=actions.workspace,
        state=_POINTER * (lists.events + 1 + words * len(lists.lists) + 1)
        + sum(1 for one in lists.cores if one.commands) * (plan.workspace - actions.workspace),
        alignment=max(memory.alignment for memory in memories),
    )
