"""The one way to ask whether command lists run a plan, whatever the delays."""

from collections.abc import Iterator

from spmilp.checker.check import listed
from spmilp.checker.races.conflicts import Conflicts
from spmilp.checker.races.execution import Execution, ProgramPoint
from spmilp.checker.races.structure import command_lists, command_name, list_name
from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.commands.commands import CommandLists
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem


def check_commands(problem: Problem, plan: Plan, lists: CommandLists) -> tuple[Violation, ...]:
    """Return what is wrong with command lists for a valid plan; nothing if they may run.

    Times play no part but to tell in which order the plan has two accesses of the same bytes. The
    rules are those of ``docs/commands.md``; the first 20 violations of each are listed. The rules
    of plans are not asked again.
    """
    case = Case(problem, plan)
    found = listed(command_lists(case, lists))
    return found if found else listed(_violations(case, lists))


def _violations(case: Case, lists: CommandLists) -> Iterator[Violation]:
    yield from _number_of_events(case, lists)
    execution = Execution(lists, case.machine.event_maximum)
    conflicts = Conflicts(case, execution)
    for point, command in execution.run():
        yield from conflicts.at_start(point, command)
    yield from _deadlock(case, lists, execution)
    yield from _events(case, lists, execution)


def _number_of_events(case: Case, lists: CommandLists) -> Iterator[Violation]:
    limit = case.machine.events
    if limit is not None and lists.events > limit:
        name = case.machine.name
        yield Violation("event_limits", (name,), f"{lists.events} events > {limit} of {name}")


def _deadlock(case: Case, lists: CommandLists, execution: Execution) -> Iterator[Violation]:
    for point, command, value in execution.stuck():
        who = _where(case, lists, point)
        message = f"{who}, {command_name(case, command)}, never ends: the event stays at {value}"
        yield Violation("deadlock", (who, f"event {command.event}"), message)


def _events(case: Case, lists: CommandLists, execution: Execution) -> Iterator[Violation]:
    for event, one, other in execution.unordered:
        names = _where(case, lists, one), _where(case, lists, other)
        message = (
            f"{names[0]} and {names[1]} use event {event} in an order that depends on delays, so "
            "that waits may get the wrong signals"
        )
        yield Violation("event_order", (f"event {event}", *names), message)
    for event, point in execution.overfull:
        who = _where(case, lists, point)
        limit = case.machine.event_maximum
        message = f"{who} may take event {event} above {limit}, which {case.machine.name} counts to"
        yield Violation("event_limits", (f"event {event}", who), message)


def _where(case: Case, lists: CommandLists, point: ProgramPoint) -> str:
    return f"command {point.position} of {list_name(case, lists.lists[point.list])}"
