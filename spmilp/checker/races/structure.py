"""The rule that comes before the others: the lists run the plan's tasks and transfers, each once.

The others rely on it; they are not asked when it is broken.
"""

from collections.abc import Iterator

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.commands.commands import (
    ChannelCommands,
    Command,
    CommandLists,
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


def command_lists(case: Case, lists: CommandLists) -> Iterator[Violation]:
    """Each core and channel has its list, with all its tasks or transfers, once, and no others."""
    defects = list(_missing_lists(case, lists))
    if not defects:
        defects = [*_wrong_commands(case, lists), *_missing_commands(case, lists)]
    for who, what in defects:
        yield Violation("command_lists", (who,), f"{who}: {what}")


def _missing_lists(case: Case, lists: CommandLists) -> Iterator[tuple[str, str]]:
    cores = [core.index for core in case.machine.cores]
    if [one.core for one in lists.cores] != cores:
        yield (
            "lists",
            f"{len(lists.cores)} of cores, expected one for each of {len(cores)}, in order",
        )
    channels = [(e.index, channel) for e in case.machine.engines for channel in range(e.channels)]
    if [(one.engine, one.channel) for one in lists.channels] != channels:
        yield (
            "lists",
            f"{len(lists.channels)} of channels, expected one for each of {len(channels)}, in the "
            "order of engines and channels",
        )


def _wrong_commands(case: Case, lists: CommandLists) -> Iterator[tuple[str, str]]:
    for one in lists.lists:
        for number, command in enumerate(one.commands):
            who = f"command {number} of {list_name(case, one)}"
            match command:
                case Run(task):
                    if not isinstance(one, CoreCommands):
                        yield who, "runs a task, but is in the list of a channel"
                    elif not 0 <= task < len(case.plan.placements):
                        yield who, f"runs task {task}, but there are {len(case.plan.placements)}"
                    elif case.plan.placements[task].core != one.core:
                        where = case.core(case.plan.placements[task].core)
                        yield who, f"runs {case.task(task)}, which the plan places on {where}"
                case Move(transfer):
                    if not isinstance(one, ChannelCommands):
                        yield who, "moves a transfer, but is in the list of a core"
                    elif not 0 <= transfer < len(case.plan.transfers):
                        yield (
                            who,
                            f"moves transfer {transfer}, but there are {len(case.plan.transfers)}",
                        )
                    else:
                        move = case.plan.transfers[transfer]
                        if (move.engine, move.channel) != (one.engine, one.channel):
                            name = case.machine.engines[move.engine].name
                            yield (
                                who,
                                f"moves transfer {transfer}, which the plan gives to channel "
                                f"{move.channel} of engine {name}",
                            )
                case Wait(event, count):
                    if not 0 <= event < lists.events or count < 1:
                        yield who, f"waits for event {event} of {lists.events} to reach {count}"
                case Signal(event):
                    if not 0 <= event < lists.events:
                        yield who, f"signals event {event}, but there are {lists.events}"


def _missing_commands(case: Case, lists: CommandLists) -> Iterator[tuple[str, str]]:
    tasks = [0] * len(case.plan.placements)
    transfers = [0] * len(case.plan.transfers)
    for one in lists.lists:
        for command in one.commands:
            if isinstance(command, Run) and 0 <= command.task < len(tasks):
                tasks[command.task] += 1
            if isinstance(command, Move) and 0 <= command.transfer < len(transfers):
                transfers[command.transfer] += 1
    for task, times in enumerate(tasks):
        if times != 1:
            yield case.task(task), f"is run {times} times, expected once"
    for transfer, times in enumerate(transfers):
        if times != 1:
            yield f"transfer {transfer}", f"is moved {times} times, expected once"
