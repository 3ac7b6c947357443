"""From a plan with times to command lists without."""

from spmilp.commands.activities import activities_of
from spmilp.commands.commands import CommandLists, EventScheme
from spmilp.commands.conflicts import predecessors
from spmilp.commands.counters import with_counters
from spmilp.commands.reduction import transitive_reduction
from spmilp.commands.semaphores import with_semaphores
from spmilp.commands.summary import summary_of
from spmilp.errors import ExitCode, SpmilpError
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem


class TooManyEventsError(SpmilpError):
    """A plan needs more events than its machine has, or higher counts."""

    exit_code = ExitCode.EXPORT_IMPOSSIBLE


def build_commands(problem: Problem, plan: Plan) -> CommandLists:
    """Return the command lists of a valid plan, with as few waits as its order allows.

    The waits, together with the order inside each list, order whatever conflicts in the plan, in
    the plan's order, and nothing else. Events are counters if the machine's events are enough for
    that, else semaphores.

    Raises
    ------
    TooManyEventsError
        If neither keeps within the machine's events.
    """
    machine = problem.machine
    activities = activities_of(problem, plan)
    before = transitive_reduction(activities, predecessors(problem, plan, activities))
    counters = with_counters(machine, activities, before)
    highest = summary_of(counters).highest
    if _within(machine, counters.events, highest):
        return counters
    semaphores = with_semaphores(machine, activities, before, machine.event_maximum)
    if _within(machine, semaphores.events, 1):
        return semaphores
    raise TooManyEventsError(
        f"the plan needs {counters.events} events that count to {highest}, or "
        f"{semaphores.events} semaphores; {machine.name} has {_limits(machine)}: use fewer cores "
        "or larger tiles, or give the machine counters in memory (no limit on events)"
    )


def commands_as(scheme: EventScheme, problem: Problem, plan: Plan) -> CommandLists:
    """Return the command lists of a valid plan in one scheme, whatever the machine's events."""
    activities = activities_of(problem, plan)
    before = transitive_reduction(activities, predecessors(problem, plan, activities))
    if scheme is EventScheme.COUNTERS:
        return with_counters(problem.machine, activities, before)
    return with_semaphores(problem.machine, activities, before, problem.machine.event_maximum)


def _within(machine: Machine, events: int, count: int) -> bool:
    enough = machine.events is None or events <= machine.events
    return enough and (machine.event_maximum is None or count <= machine.event_maximum)


def _limits(machine: Machine) -> str:
    events = "events" if machine.events is None else f"{machine.events} events"
    if machine.event_maximum is None:
        return events
    return f"{events} that count to {machine.event_maximum}"
