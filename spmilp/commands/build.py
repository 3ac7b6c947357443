"""From a plan with times to command lists without."""

from spmilp.commands.activities import activities_of
from spmilp.commands.commands import (
    CommandLists,
    EventScheme,
)
from spmilp.commands.events import with_counters, with_semaphores
from spmilp.commands.order import (
    Before,
    predecessors,
    transitive_reduction,
    with_fewer_signals,
)
from spmilp.errors import ExitCode, SpmilpError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem


class TooManyEventsError(SpmilpError):
    """A plan needs more events than its machine has, or higher counts."""

    exit_code = ExitCode.EXPORT_IMPOSSIBLE


def build_commands(problem: Problem, plan: Plan, before: Before | None = None) -> CommandLists:
    """Return the command lists of a valid plan, with as few waits as its order allows.

    The waits, together with the order inside each list, order whatever conflicts in the plan, in
    the plan's order, and nothing else. Events are counters if the machine has enough of them. If
    not, fewer ends are signalled, and who waits may wait for a little more, which has ended in the
    plan by then; if that is still too much, events are semaphores.

    Parameters
    ----------
    before
        Its :func:`predecessors`, where they are known.

    Raises
    ------
    TooManyEventsError
        If none of these keeps within the machine's events.
    """
    machine = problem.machine
    activities = activities_of(problem, plan)
    if before is None:
        before = predecessors(problem, plan, activities)
    least = transitive_reduction(activities, before)
    counters = with_counters(machine, activities, least, machine.event_maximum)
    if machine.events is None or counters.events <= machine.events:
        return counters
    joined = with_fewer_signals(plan, activities, least)
    fewer = with_counters(machine, activities, joined, machine.event_maximum)
    if fewer.events <= machine.events:
        return fewer
    semaphores = with_semaphores(
        machine, activities, least, machine.event_maximum, enough=machine.events
    )
    if semaphores.events <= machine.events:
        return semaphores
    limit = "" if machine.event_maximum is None else f" that count to {machine.event_maximum}"
    raise TooManyEventsError(
        f"the plan needs {counters.events} events as counters{limit}, {fewer.events} with fewer "
        f"signals, or {semaphores.events} as semaphores; {machine.name} has {machine.events}: use "
        "fewer cores or larger tiles, or, if its firmware can wait for words of memory, remove the "
        "machine's limits on events"
    )


def commands_as(scheme: EventScheme, problem: Problem, plan: Plan) -> CommandLists:
    """Return the command lists of a valid plan in one scheme, however many events it takes."""
    machine = problem.machine
    activities = activities_of(problem, plan)
    before = transitive_reduction(activities, predecessors(problem, plan, activities))
    if scheme is EventScheme.COUNTERS:
        return with_counters(machine, activities, before, machine.event_maximum)
    return with_semaphores(machine, activities, before, machine.event_maximum)
