"""What messages call the lists and what is in them."""

from spmilp.checker.rules.case import Case
from spmilp.commands.commands import (
    ChannelCommands,
    Command,
    CoreCommands,
    Move,
    Run,
    Signal,
    Wait,
)


def list_name(case: Case, one: CoreCommands | ChannelCommands) -> str:
    """Return the name of a list."""
    if isinstance(one, CoreCommands):
        return case.core(one.core)
    return f"channel {one.channel} of engine {case.machine.engines[one.engine].name}"


def command_name(case: Case, command: Command) -> str:
    """Return a command as text."""
    match command:
        case Run(task):
            return case.task(task)
        case Move(transfer):
            return f"transfer {transfer} of {case.slice(case.plan.transfers[transfer].slice)}"
        case Wait(event, count):
            return f"wait for event {event} to reach {count}"
        case Signal(event):
            return f"signal of event {event}"
