"""``commands.csv``: what each core and each DMA channel does, one row for each command.

``planned_cycle`` is when the plan starts (a task, a transfer) what the command runs; only the waits
order anything.
"""

import csv
from collections.abc import Iterator
from io import StringIO

from spmilp.commands.commands import (
    ChannelCommands,
    Command,
    CoreCommands,
    Move,
    Run,
    Signal,
    Wait,
)
from spmilp.export.names import field
from spmilp.export.subject import Subject

NAME, VERSION = "spmilp-commands-csv", "1.0"

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
    out = StringIO()
    out.writelines(f"# {line}\n" for line in subject.stamp.lines(NAME, VERSION))
    out.write(f"# events: {lists.events}, all 0 at the start, scheme {lists.scheme}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, one in enumerate(lists.lists):
        owner, channel = _owner(subject, one)
        for position, command in enumerate(one.commands):
            writer.writerow((number, owner, channel, position, *_cells(subject, command)))
    return {"commands.csv": out.getvalue().encode()}


def _owner(subject: Subject, one: CoreCommands | ChannelCommands) -> tuple[str, object]:
    machine = subject.problem.machine
    if isinstance(one, CoreCommands):
        return field(machine.cores[one.core].name), ""
    return field(machine.engines[one.engine].name), one.channel


def _cells(subject: Subject, command: Command) -> Iterator[object]:
    match command:
        case Wait(event, count):
            yield from ("WAIT", event, count, "", "")
        case Signal(event):
            yield from ("SIGNAL", event, "", "", "")
        case Run(task):
            start = subject.plan.placements[task].start
            yield from ("RUN", task, "", start, field(subject.problem.tasks[task].name))
        case Move(transfer):
            move = subject.plan.transfers[transfer]
            name = subject.name(subject.plan.residencies[move.source])
            yield from ("MOVE", transfer, "", move.start, field(name))
