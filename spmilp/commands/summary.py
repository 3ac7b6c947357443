"""How much synchronisation command lists have."""

from dataclasses import dataclass

from spmilp.commands.commands import CommandLists, EventScheme, Signal, Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSummary:
    """Counts of what command lists consist of, besides the plan's tasks and transfers.

    Parameters
    ----------
    lists
        Those that are not empty.
    highest
        The highest count that a wait asks for.
    """

    lists: int
    waits: int
    signals: int
    events: int
    highest: int
    scheme: EventScheme


def summary_of(lists: CommandLists) -> CommandSummary:
    """Return the counts of command lists."""
    commands = [command for one in lists.lists for command in one.commands]
    waits = [command.count for command in commands if isinstance(command, Wait)]
    return CommandSummary(
        lists=sum(1 for one in lists.lists if one.commands),
        waits=len(waits),
        signals=sum(1 for command in commands if isinstance(command, Signal)),
        events=lists.events,
        highest=max(waits, default=0),
        scheme=lists.scheme,
    )
