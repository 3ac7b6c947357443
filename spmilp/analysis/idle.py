"""The idle cycles of each core, attributed to what it waited for."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spmilp.analysis.causes import Cause, Wait
from spmilp.analysis.subject import Part, Subject
from spmilp.commands.order import Activity
from spmilp.units import CoreIdx, Cycles


class Idle(StrEnum):
    """What a core waits for in an idle cycle, on the way back from the task that it runs next.

    While something is done for that task, it is named; before that, what this had to wait for.
    """

    LOAD = "load"
    """A transfer from DRAM for it is under way."""
    STORE = "store"
    """A transfer to DRAM is, whose data is to come back."""
    MOVE = "move"
    """A transfer between on-chip memories is."""
    WRITER = "writer"
    """Tasks on other cores compute its operands."""
    CHANNEL = "channel"
    """A transfer for it waits for a channel."""
    LINK = "link"
    """A transfer for it waits for a link."""
    ROOM = "room"
    """It, or a transfer for it, waits for bytes that are in use."""
    ORDER = "order"
    """A task on another core for it waits until that core has run others; or the problem puts a
    task before it from which it needs no data."""
    UNUSED = "unused"
    """Nothing: the plan could have gone on."""
    DONE = "done"
    """It has no task left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSpan:
    """The cycles ``[start, end)`` in which a core waits for one thing."""

    start: Cycles
    end: Cycles
    idle: Idle


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTime:
    """The cycles of one core: ``busy`` and, by what it waited for, idle; they fill the makespan."""

    core: CoreIdx
    tasks: int
    busy: Cycles
    spans: tuple[IdleSpan, ...]

    def idle(self) -> dict[Idle, Cycles]:
        """Return the idle cycles by what the core waited for."""
        found: Counter[Idle] = Counter()
        for span in self.spans:
            found[span.idle] += span.end - span.start
        return {each: found[each] for each in Idle}


_NAMED = {
    Wait.CHANNEL: Idle.CHANNEL,
    Wait.LINK: Idle.LINK,
    Wait.ROOM: Idle.ROOM,
    Wait.CORE: Idle.ORDER,
    Wait.ORDER: Idle.ORDER,
}
_DOING = {
    Part.COMPUTE: Idle.WRITER,
    Part.LOAD: Idle.LOAD,
    Part.STORE: Idle.STORE,
    Part.MOVE: Idle.MOVE,
}


def times_of_cores(subject: Subject, causes: Sequence[Sequence[Cause]]) -> tuple[CoreTime, ...]:
    """Return how each core spends the makespan."""
    makespan = max(subject.ends, default=0)
    found = []
    for core in subject.problem.machine.cores:
        spans: list[IdleSpan] = []
        free = busy = 0
        mine = subject.activities.lists[core.index]
        for task in mine:
            start, end = subject.starts[task], subject.ends[task]
            if free < start:
                spans += reversed(list(_waits(subject, causes, task, free)))
            busy += end - start
            free = end
        if free < makespan:
            spans.append(IdleSpan(start=free, end=makespan, idle=Idle.DONE))
        found.append(CoreTime(core=core.index, tasks=len(mine), busy=busy, spans=tuple(spans)))
    return tuple(found)


def _waits(
    subject: Subject, causes: Sequence[Sequence[Cause]], task: Activity, since: Cycles
) -> Iterator[IdleSpan]:
    """Yield, last first, what a task waited for from ``since`` to its start, without gaps."""
    activity, end = task, subject.starts[task]
    named: Idle | None = None
    while end > since:
        mine = causes[activity]
        cause = mine[0] if mine and mine[0].until > since else None
        until = since if cause is None else cause.until
        if until < end:
            yield IdleSpan(start=until, end=end, idle=Idle.UNUSED)
        if cause is None:
            return
        named = named or _NAMED.get(_wait(mine))
        activity, end = cause.activity, max(since, subject.starts[cause.activity])
        what = named or _DOING[subject.parts[activity]]
        yield IdleSpan(start=end, end=until, idle=what)


def _wait(causes: Sequence[Cause]) -> Wait:
    """Return what is waited for: of a task that is both before and a writer, its data."""
    first = causes[0]
    writes = any(
        each.wait is Wait.WRITER and each.activity == first.activity for each in causes[1:]
    )
    return Wait.WRITER if first.wait is Wait.CORE and writes else first.wait
