"""CSV files: command lists, DMA descriptors, and where what lies when."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spmilp.commands.commands import (
    Command,
    CoreCommands,
    LoopCommand,
    LoopWait,
    Move,
    Run,
    Signal,
    StreamCommands,
    Wait,
)
from spmilp.export.names import field
from spmilp.export.subject import Subject, Title
from spmilp.machine.controllers import StridedCopy, starts_of_runs
from spmilp.plan.frames import residency_frame
from spmilp.plan.plan import Transfer
from spmilp.plan.running import in_round, rounds_of

if TYPE_CHECKING:
    import pandas as pd

COMMANDS: Title = ("spmilp-commands-csv", "1.0")
DMA: Title = ("spmilp-dma", "2.0")
ALLOCATION: Title = ("spmilp-allocation-csv", "2.0")

COMMAND_COLUMNS = (
    *("list", "runs_on", "channel", "position", "operation", "argument", "count"),
    *("planned_cycle", "name"),
)
DESCRIPTOR_COLUMNS = (
    *("transfer", "engine", "channel", "dir"),
    *("src_memory", "src_addr", "dst_memory", "dst_addr", "bytes", "row_bytes"),
    *("rows", "src_stride", "dst_stride", "planes", "src_pstride", "dst_pstride"),
    *("start_cycle", "cycles", "last", "name"),
)
OF_A_STREAM: Mapping[Title, Sequence[str]] = {
    COMMANDS: ("turn", "stage", "back"),
    DMA: ("round",),
    ALLOCATION: ("instances",),
}
"""Columns that are there of a stream only, behind the others."""


def command_table(subject: Subject) -> dict[str, bytes]:
    """Return ``commands.csv``: what each core and each DMA channel does, a row for each command.

    ``planned_cycle`` is when the plan starts (a task, a transfer) what the command runs; only the
    waits order anything. Of a stream, the rows of a list's ``turn`` are those of its loop.
    """
    lists = subject.lists
    events = f"events: {lists.events}, all 0 at the start, scheme {lists.scheme}"
    frame = _frame(_command_rows(subject), _columns(subject, COMMANDS, COMMAND_COLUMNS))
    return {"commands.csv": _csv(subject, COMMANDS, frame, events)}


def _columns(subject: Subject, title: Title, columns: Sequence[str]) -> Sequence[str]:
    return columns if subject.plan.stream is None else (*columns, *OF_A_STREAM[title])


def _command_rows(subject: Subject) -> Iterator[tuple[object, ...]]:
    machine, loop, lists = subject.problem.machine, subject.loop, subject.lists.lists
    bodies = ((),) * len(lists) if loop is None else loop.body
    for number, (one, body) in enumerate(zip(lists, bodies, strict=True)):
        owner, channel = "application", None
        if not isinstance(one, CoreCommands):
            owner, channel = machine.engines[one.engine].name, one.channel
        elif one.core < len(machine.cores):
            owner = machine.cores[one.core].name
        for position, command in enumerate((*one.commands, *body)):
            row = (number, field(owner), channel, position, *_cells(subject, command))
            is_loop = position >= len(one.commands)
            yield row if loop is None else (*row, *_in_turn(loop, command, is_loop))


def _in_turn(
    loop: StreamCommands, command: Command | LoopCommand, is_loop: bool
) -> tuple[object, ...]:
    """Return whether a command is in a loop, its stage, and how many turns before it waits for."""
    stage = loop.stage(command) if is_loop and isinstance(command, Run | Move) else None
    return int(is_loop), stage, command.back if isinstance(command, LoopWait) else None


def _cells(subject: Subject, command: Command | LoopCommand) -> tuple[object, ...]:
    match command:
        case Wait(event, count) | LoopWait(event, count):
            return "WAIT", event, count, None, None
        case Signal(event):
            return "SIGNAL", event, None, None, None
        case Run(task) if task >= len(subject.problem.tasks):
            is_first = task == len(subject.problem.tasks)
            return "HAND_IN" if is_first else "TAKE", None, None, None, None
        case Run(task):
            start = subject.plan.placements[task].start
            return "RUN", task, None, start, field(subject.problem.tasks[task].name)
        case Move(transfer):
            move = subject.plan.transfers[transfer]
            name = subject.name(subject.plan.residencies[move.source])
            return "MOVE", transfer, None, move.start, field(name)


def descriptor_table(subject: Subject) -> dict[str, bytes]:
    """Return ``dma.csv``: descriptors of up to three dimensions, which any controller can be fed.

    A row moves ``planes`` times ``rows`` times ``row_bytes``; copies with more loops become several
    rows. The rows of a channel stand together, in the order in which it works; ``last`` marks the
    end of a transfer (when it may be signalled). A stream has those of each ``round``: inference
    ``k`` is of round ``k`` modulo the number of rounds; the prologue has none.
    """
    frame = _frame(_descriptor_rows(subject), _columns(subject, DMA, DESCRIPTOR_COLUMNS))
    return {"dma.csv": _csv(subject, DMA, frame)}


def _descriptor_rows(subject: Subject) -> Iterator[tuple[object, ...]]:
    stream, moves = subject.plan.stream, subject.plan.transfers
    if stream is None:
        yield from _descriptors(subject, moves)
        return
    once = [move for move in moves if move.start < stream.begins]
    turn = [move for move in moves if move.start >= stream.begins]
    yield from ((*row, None) for row in _descriptors(subject, once))
    for number in range(rounds_of(subject.plan, stream)):
        plan = in_round(subject.problem, subject.plan, stream, number)
        rows = _descriptors(replace(subject, plan=plan), turn)
        yield from ((*row, number) for row in rows)


def _descriptors(subject: Subject, moves: Iterable[Transfer]) -> Iterator[tuple[object, ...]]:
    machine, plan = subject.problem.machine, subject.plan
    for move in sorted(moves, key=lambda e: (e.engine, e.channel, e.start, e.index)):
        engine = machine.engines[move.engine]
        blocks = [
            (field(machine.memories[source].name), machine.memories[target], block)
            for source, target, copy in subject.copies(move)
            for block in _of_three_dimensions(copy)
        ]
        for number, (source, target, block) in enumerate(blocks, start=1):
            planes, turns = [(1, 0, 0)] * (2 - len(block.loops)) + list(block.loops)
            direction = "load" if target.index == engine.owner else "store"
            direction = "move" if engine.owner is None else direction
            yield (
                *(move.index, field(engine.name), move.channel, direction, field(source)),
                *(f"0x{block.source:x}", field(target.name), f"0x{block.destination:x}"),
                *(block.bytes, block.run, *turns, *planes, move.start, move.end - move.start),
                *(int(number == len(blocks)), field(subject.name(plan.residencies[move.source]))),
            )


def _of_three_dimensions(copy: StridedCopy) -> Iterator[StridedCopy]:
    """Yield what a copy moves in blocks of two loops over runs; outer loops are written out."""
    for source, destination in starts_of_runs(copy, copy.loops[:-2]):
        yield replace(copy, source=source, destination=destination, loops=copy.loops[-2:])


def allocation_table(subject: Subject) -> dict[str, bytes]:
    """Return ``allocation.csv``: the frame of residencies of a ``Result``.

    Of a stream it has further addresses, too, which inferences use in turn behind the ``offset``.
    """
    frame = residency_frame(subject.problem, subject.plan).reset_index()
    for column in ("name", "memory_name"):
        frame[column] = frame[column].map(field, na_action="ignore")
    for column in _columns(subject, ALLOCATION, ()):
        frame[column] = [" ".join(map(str, one.instances)) for one in subject.plan.residencies]
    return {"allocation.csv": _csv(subject, ALLOCATION, frame)}


def _frame(rows: Iterable[tuple[object, ...]], columns: Sequence[str]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(columns), dtype=object)


def _csv(subject: Subject, title: Title, frame: "pd.DataFrame", *more: str) -> bytes:
    """Return a CSV file; the lines of its head begin with ``#``."""
    stream, head = subject.plan.stream, [*subject.head(title), *more]
    if stream is not None:
        head.append(f"stream: period {stream.period}, the first inference at {stream.begins}")
    above = "".join(f"# {line}\n" for line in head)
    rows: str = frame.to_csv(index=False, lineterminator="\n")
    return (above + rows).encode()
