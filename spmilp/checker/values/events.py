"""The order in which the things of a plan happen."""

from dataclasses import dataclass
from enum import IntEnum

from spmilp.plan.plan import Plan
from spmilp.units import Cycles


class Step(IntEnum):
    """What happens; at one cycle in this order, so that what ends there precedes what starts."""

    FINISH = 0
    """A task or transfer has read its operands: they must still be what they were."""
    RELEASE = 1
    """A residency ends: its bytes are lost."""
    DELIVER = 2
    """The result of a task or transfer is written."""
    START = 3
    """A task or transfer begins: its operands must be there, its destinations are destroyed."""


class Actor(IntEnum):
    """Whom it happens to."""

    TASK = 0
    TRANSFER = 1
    RESIDENCY = 2


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Something that happens at a cycle; ``index`` is the task's, transfer's or residency's."""

    cycle: Cycles
    step: Step
    actor: Actor
    index: int


def timed_events(plan: Plan) -> list[Event]:
    """Return everything that happens, in the order of the plan's cycles."""
    events: list[Event] = []
    for placement in plan.placements:
        events += _run(Actor.TASK, placement.task, placement.start, placement.end)
    for transfer in plan.transfers:
        events += _run(Actor.TRANSFER, transfer.index, transfer.start, transfer.end)
    for residency in plan.residencies:
        events.append(Event(residency.end, Step.RELEASE, Actor.RESIDENCY, residency.index))
    return sorted(events)


def _run(actor: Actor, index: int, start: Cycles, end: Cycles) -> list[Event]:
    return [
        Event(start, Step.START, actor, index),
        Event(end, Step.FINISH, actor, index),
        Event(end, Step.DELIVER, actor, index),
    ]
