"""CSV files: command lists, DMA descriptors, and where what lies when."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spmilp.commands.commands import Command, CoreCommands, Move, Run, Signal, Wait
from spmilp.export.names import field
from spmilp.export.subject import Subject, Title
from spmilp.machine.controllers import StridedCopy, starts_of_runs
from spmilp.plan.frames import residency_frame

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


def command_table(subject: Subject) -> dict[str, bytes]:
    """Return ``commands.csv``: what each core and each DMA channel does, a row for each command.

    ``planned_cycle`` is when the plan starts (a task, a transfer) what the command runs; only the
    waits order anything.
    """
    lists = subject.lists
    events = f"events: {lists.events}, all 0 at the start, scheme {lists.scheme}"
    frame = _frame(_command_rows(subject), COMMAND_COLUMNS)
    return {"commands.csv": _csv([*subject.head(COMMANDS), events], frame)}


def _command_rows(subject: Subject) -> Iterator[tuple[object, ...]]:
    machine = subject.problem.machine
    for number, one in enumerate(subject.lists.lists):
        if isinstance(one, CoreCommands):
            owner, channel = machine.cores[one.core].name, None
        else:
            owner, channel = machine.engines[one.engine].name, one.channel
        for position, command in enumerate(one.commands):
            yield (number, field(owner), channel, position, *_cells(subject, command))


def _cells(subject: Subject, command: Command) -> tuple[object, ...]:
    match command:
        case Wait(event, count):
            return "WAIT", event, count, None, None
        case Signal(event):
            return "SIGNAL", event, None, None, None
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
    end of a transfer (when it may be signalled).
    """
    frame = _frame(_descriptor_rows(subject), DESCRIPTOR_COLUMNS)
    return {"dma.csv": _csv(subject.head(DMA), frame)}


def _descriptor_rows(subject: Subject) -> Iterator[tuple[object, ...]]:
    machine, plan = subject.problem.machine, subject.plan
    for move in sorted(plan.transfers, key=lambda e: (e.engine, e.channel, e.start, e.index)):
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
    """Return ``allocation.csv``: the frame of residencies of a ``Result``."""
    frame = residency_frame(subject.problem, subject.plan).reset_index()
    for column in ("name", "memory_name"):
        frame[column] = frame[column].map(field, na_action="ignore")
    return {"allocation.csv": _csv(subject.head(ALLOCATION), frame)}


def _frame(rows: Iterable[tuple[object, ...]], columns: Sequence[str]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(columns), dtype=object)


def _csv(head: Iterable[str], frame: "pd.DataFrame") -> bytes:
    """Return a CSV file; the lines of its head begin with ``#``."""
    above = "".join(f"# {line}\n" for line in head)
    rows: str = frame.to_csv(index=False, lineterminator="\n")
    return (above + rows).encode()
