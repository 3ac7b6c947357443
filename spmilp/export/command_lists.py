"""``commands.csv``: what each core and each DMA channel does, one row for each command.

``planned_cycle`` is when the plan starts (a task, a transfer) what the command runs; only the waits
order anything.
"""

from collections.abc import Iterator

from spmilp.commands.commands import Command, CoreCommands, Move, Run, Signal, Wait
from spmilp.export.names import csv_file, field
from spmilp.export.subject import Subject

TITLE = ("spmilp-commands-csv", "1.0")

COLUMNS = (
    *("list", "runs_on", "channel", "position", "operation", "argument", "count"),
    *("planned_cycle", "name"),
)


def command_lists(subject: Subject) -> dict[str, bytes]:
    """Return the file.

    Raises
    ------
    TooManyEventsError
        If the machine has too few events.
    """
    lists = subject.lists
    events = f"events: {lists.events}, all 0 at the start, scheme {lists.scheme}"
    head = [*subject.head(TITLE), events]
    return {"commands.csv": csv_file(head, COLUMNS, _rows(subject))}


def _rows(subject: Subject) -> Iterator[tuple[object, ...]]:
    machine = subject.problem.machine
    for number, one in enumerate(subject.lists.lists):
        if isinstance(one, CoreCommands):
            owner, channel = machine.cores[one.core].name, ""
        else:
            owner, channel = machine.engines[one.engine].name, str(one.channel)
        for position, command in enumerate(one.commands):
            yield (number, field(owner), channel, position, *_cells(subject, command))


def _cells(subject: Subject, command: Command) -> tuple[object, ...]:
    match command:
        case Wait(event, count):
            return "WAIT", event, count, "", ""
        case Signal(event):
            return "SIGNAL", event, "", "", ""
        case Run(task):
            start = subject.plan.placements[task].start
            return "RUN", task, "", start, field(subject.problem.tasks[task].name)
        case Move(transfer):
            move = subject.plan.transfers[transfer]
            name = subject.name(subject.plan.residencies[move.source])
            return "MOVE", transfer, "", move.start, field(name)
