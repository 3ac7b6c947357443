"""A plan in the release profile: everything that runs as one string of bits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from spmilp.commands.commands import ChannelCommands, Command, CoreCommands, Move, Run, Signal, Wait
from spmilp.export.actions.actions import Actions
from spmilp.export.actions.kept import Kept, keep
from spmilp.export.packed.bits import Bits
from spmilp.export.packed.rows import Rows, put_operators
from spmilp.export.packed.templates import Templates
from spmilp.export.subject import Subject
from spmilp.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A table of positions in the bits: where it is, bits of a row, bits of a row's number."""

    at: int
    width: int
    row_bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Bits of the fields of heads and commands."""

    own: int
    event: int
    length: int
    start: int
    count: int

    def of_head(self) -> tuple[int, ...]:
        """Return the widths of own memory, own event, commands and start of a list."""
        return self.own, self.event, self.length, self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPlan:
    """What the release profile keeps of a plan.

    Parameters
    ----------
    lists, commands
        Positions of the heads of lists and of the first command.
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
    widths: Widths
    kept: Kept
    numbers: Bytes
    inputs: int


@lru_cache(maxsize=1)
def packed_plan(subject: Subject) -> PackedPlan:
    """Return the release profile of a plan.

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
    kept = keep(actions)
    bits = Bits()
    operators = _index(bits, put_operators(bits, actions.operators.all))
    task_index, transfer_index = (_index(bits, each.put(bits)) for each in (tasks, transfers))
    commands = _Commands(
        subject, (tasks, task_index.row_bits), (transfers, transfer_index.row_bits)
    )
    lists = bits.at
    for head in commands.heads:
        for value, width in zip(head, commands.widths.of_head(), strict=True):
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
        widths=commands.widths,
        kept=kept,
        numbers=rows.numbers,
        inputs=rows.inputs,
    )


class _Commands:
    """The command lists as bits, and a head for each list.

    A wait is a 0, event and count. A 1 and a 1 are a signal: of the list's own event, or of the one
    that follows where a list signals several. A 1 and a 0 are a task or a transfer: the number of
    its template, and what fills its holes.
    """

    def __init__(
        self, subject: Subject, tasks: tuple[Templates, int], transfers: tuple[Templates, int]
    ) -> None:
        lists = subject.lists
        every = [command for one in lists.lists for command in one.commands]
        counts = [command.count for command in every if isinstance(command, Wait)]
        event_bits, count_bits = lists.events.bit_length(), max(counts, default=0).bit_length()
        self.bits = Bits()
        self.heads: list[tuple[int, int, int, int]] = []
        runs = moves = 0
        for one in lists.lists:
            signalled = {each.event for each in one.commands if isinstance(each, Signal)}
            own_event = min(signalled) + 1 if len(signalled) == 1 else 0
            self.heads.append(
                (_own_memory(subject, one), own_event, len(one.commands), self.bits.at)
            )
            for command in one.commands:
                self.bits.put(int(not isinstance(command, Wait)), 1)
                match command:
                    case Wait(event, count):
                        self.bits.put(event, event_bits)
                        self.bits.put(count, count_bits)
                    case Signal(event):
                        self.bits.put(1, 1)
                        if not own_event:
                            self.bits.put(event, event_bits)
                    case Run():
                        self.bits.put(0, 1)
                        tasks[0].put_row(self.bits, runs, tasks[1])
                        runs += 1
                    case Move():
                        self.bits.put(0, 1)
                        transfers[0].put_row(self.bits, moves, transfers[1])
                        moves += 1
        self.widths = Widths(
            own=max(head[0] for head in self.heads).bit_length(),
            event=event_bits,
            length=max(head[2] for head in self.heads).bit_length(),
            start=self.bits.at.bit_length(),
            count=count_bits,
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


def _index(bits: Bits, starts: Sequence[int]) -> Index:
    """Append a table of positions."""
    at, width = bits.at, max(starts, default=0).bit_length()
    for start in starts:
        bits.put(start, width)
    return Index(at=at, width=width, row_bits=(max(1, len(starts)) - 1).bit_length())
