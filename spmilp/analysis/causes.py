"""What each task and transfer had to wait for.

The conflicts on bytes are those by which command lists are made
(:func:`spmilp.commands.order.predecessors`): a read waits for the write of what it reads, a write
for the last use of the bytes that it overwrites, in scratchpads and in DRAM alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from spmilp.analysis.resources import Resources
from spmilp.analysis.subject import Subject
from spmilp.commands.order import Activity
from spmilp.plan.plan import Residency
from spmilp.units import Cycles, LinkIdx, ResidencyIdx


class Wait(StrEnum):
    """What an activity waited for; where several end together, the first of these is named."""

    CORE = "core"
    """The core ran another task."""
    WRITER = "writer"
    """The task that computes an operand had not ended."""
    ARRIVAL = "arrival"
    """The transfer that brings an operand had not ended."""
    STORED = "stored"
    """What is to come from DRAM had not been stored there."""
    CHANNEL = "channel"
    """All channels of the DMA engine were busy."""
    LINK = "link"
    """A link of the route had not enough of its rate left."""
    ROOM = "room"
    """The bytes that it writes were still in use."""
    ORDER = "order"
    """The problem lets it run only after another task."""


_RANK = {wait: rank for rank, wait in enumerate(Wait)}

MOST = 4
"""Causes that are kept for each activity, the last to end first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something that kept an activity from starting earlier.

    Parameters
    ----------
    until
        The cycle at which it was over: the end of ``activity``.
    activity
        The task or transfer that had to end.
    residency
        For operands the one that it fills; for ``ROOM`` the one whose bytes it used. ``None`` where
        no single one can be named.
    link
        For ``LINK``: which one.
    """

    wait: Wait
    until: Cycles
    activity: Activity
    residency: ResidencyIdx | None = None
    link: LinkIdx | None = None


def causes_of(subject: Subject) -> tuple[tuple[Cause, ...], ...]:
    """For each activity, the causes that ended last; the first of them is the binding one.

    An activity that starts later than its binding cause ends could have started earlier; one
    without causes could have started at cycle 0.
    """
    resources = Resources(subject)
    found = []
    for activity, earlier in enumerate(subject.before):
        last = sorted(earlier, key=lambda each: (-subject.ends[each], each))[:MOST]
        causes = [_of_bytes_or_order(subject, activity, each) for each in last]
        causes += _of_resources(subject, resources, activity, _until(causes))
        found.append(tuple(sorted(causes, key=_precedence)[:MOST]))
    return tuple(found)


def _precedence(cause: Cause) -> tuple[Cycles, int, Activity]:
    return -cause.until, _RANK[cause.wait], cause.activity


def _until(causes: list[Cause]) -> Cycles:
    return max((cause.until for cause in causes), default=0)


def _of_bytes_or_order(subject: Subject, activity: Activity, earlier: Activity) -> Cause:
    """Say why an activity must come after an earlier one with which it has a conflict."""
    end = subject.ends[earlier]
    for read in subject.reads(activity):
        if subject.filler(read) == earlier:
            return Cause(
                wait=_for_operand(subject, read, earlier),
                until=end,
                activity=earlier,
                residency=read,
            )
    is_task = subject.transfer(activity) is None
    if is_task and earlier in subject.problem.tasks[activity].after:
        return Cause(wait=Wait.ORDER, until=end, activity=earlier)
    freed = _freed(subject, activity, earlier)
    return Cause(wait=Wait.ROOM, until=end, activity=earlier, residency=freed)


def _for_operand(subject: Subject, read: ResidencyIdx, filler: Activity) -> Wait:
    if subject.is_dram(read):
        return Wait.STORED
    return Wait.WRITER if subject.transfer(filler) is None else Wait.ARRIVAL


def _freed(subject: Subject, activity: Activity, earlier: Activity) -> ResidencyIdx | None:
    """Return the residency that the earlier activity used, and whose bytes the later one takes."""
    residencies = subject.plan.residencies
    taken = [residencies[index] for index in subject.writes(activity)]
    for index in (*subject.reads(earlier), *subject.writes(earlier)):
        if any(_shares_bytes(residencies[index], other) for other in taken):
            return index
    return None


def _shares_bytes(one: Residency, other: Residency) -> bool:
    return (
        one.memory == other.memory
        and one.offset < other.offset + other.bytes
        and other.offset < one.offset + one.bytes
    )


def _of_resources(
    subject: Subject, resources: Resources, activity: Activity, not_before: Cycles
) -> Iterator[Cause]:
    """Yield what it had to wait for on its core, or on its engine and links since ``not_before``.

    Of the links that one transfer freed only the first is named.
    """
    move = subject.transfer(activity)
    if move is None:
        position = subject.activities.position[activity]
        if position:
            previous = subject.activities.lists[subject.activities.list_of[activity]][position - 1]
            yield Cause(wait=Wait.CORE, until=subject.ends[previous], activity=previous)
        return
    floor = max(0, not_before - 1)
    named = set()
    freed = resources.channel_free(move, floor)
    if freed is not None:
        yield Cause(wait=Wait.CHANNEL, until=freed.at, activity=freed.by)
    for link in move.route:
        freed = resources.link_free(move, link, floor)
        if freed is not None and freed.by not in named:
            named.add(freed.by)
            yield Cause(wait=Wait.LINK, until=freed.at, activity=freed.by, link=link)
