"""A plan in the release profile: everything that runs as one string of bits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from spmilp.commands.commands import ChannelCommands, Command, CoreCommands, Move, Run
from spmilp.export.actions.actions import Actions
from spmilp.export.actions.kept import Kept, keep
from spmilp.export.packed.bits import Bits
from spmilp.export.packed.commands import Commands
from spmilp.export.packed.rows import Rows, put_operators
from spmilp.export.packed.templates import Templates
from spmilp.export.subject import Subject
from spmilp.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A table of equally wide numbers in the bits: where it is, and bits of a number."""

    at: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPlan:
    """What the release profile keeps of a plan.

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
    commands = Commands(subject.lists, tasks, transfers)
    codes = _index(bits, commands.put_codes(bits))
    totals = _index(bits, commands.totals)
    heads = [
        (_own_memory(subject, one), *head)
        for one, head in zip(subject.lists.lists, commands.heads, strict=True)
    ]
    widths = tuple(max(fields).bit_length() for fields in zip(*heads, strict=True))
    lists = bits.at
    for head in heads:
        for value, width in zip(head, widths, strict=True):
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
