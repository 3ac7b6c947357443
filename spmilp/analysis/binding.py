"""What holds the critical chain up: the resource that each of its cycles is spent on, and how."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from spmilp.analysis.causes import Cause, Wait
from spmilp.analysis.chain import Chain, ChainLink
from spmilp.analysis.subject import Part, Subject
from spmilp.commands.order import Activity
from spmilp.machine.routes import multicast_route, routes_of
from spmilp.plan.plan import Transfer
from spmilp.units import Cycles, LinkIdx, MemoryIdx


class Holder(StrEnum):
    """What kind of thing holds the chain up; indices are the machine's."""

    CORE = "core"
    ENGINE = "engine"
    LINK = "link"
    MEMORY = "memory"
    NOTHING = "nothing"


class Reason(StrEnum):
    """How a resource holds the chain up."""

    BUSY = "busy"
    """The core computes, and what comes next on the chain waits for the core, or is the end."""
    WRITER = "writer"
    """The core computes an operand of what comes next."""
    ORDER = "order"
    """The core runs a task that the problem puts before the next one."""
    RATE = "rate"
    """Bytes that are needed next arrive at the rate of the link or engine, the slowest on the way.
    """
    SETUP = "setup"
    """The engine sets a transfer up, or its first byte is on the way."""
    CHANNELS = "channels"
    """All channels of the engine are busy, and what comes next needs one."""
    TAKEN = "taken"
    """The link carries other transfers, and what comes next needs its rate."""
    ROOM = "room"
    """The bytes in the memory to which what comes next is to be written are in use."""
    PINNED = "pinned"
    """The task that comes next is pinned not to start before."""
    UNUSED = "unused"
    """Nothing does."""


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """A resource and how it holds the chain up; ``index`` is that of the machine's part."""

    holder: Holder
    index: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The cycles ``[start, end)`` of the critical chain, and what they are spent on."""

    start: Cycles
    end: Cycles
    part: Part
    activity: Activity
    binding: Binding


NOTHING = Binding(Holder.NOTHING, 0, Reason.UNUSED)
PINNED = Binding(Holder.NOTHING, 0, Reason.PINNED)


def steps_of(subject: Subject, chain: Chain) -> tuple[Step, ...]:
    """Return the critical chain as steps; they fill the makespan, first to last.

    An activity counts for what the next one waits for: the same load is the engine's where the next
    one needs its channel, the memory's where it needs its bytes, and else that of the slowest link
    or engine on its way.
    """
    rates = _Rates(subject)
    pinned = {(pin.task, pin.not_before) for pin in subject.problem.pins.tasks}
    steps: list[Step] = []
    for link, following in pairwise((*chain.links, None)):
        if link is None:
            continue
        if link.unused:
            steps.append(
                Step(
                    start=link.start - link.unused,
                    end=link.start,
                    part=Part.UNUSED,
                    activity=link.activity,
                    binding=PINNED if (link.activity, link.start) in pinned else NOTHING,
                )
            )
        steps += rates.steps(link, following)
    return tuple(steps)


def cycles_by_binding(
    steps: Sequence[Step], start: Cycles, end: Cycles
) -> tuple[tuple[Binding, Cycles], ...]:
    """Return the cycles of ``[start, end)`` by what they are spent on, the most first."""
    found: Counter[Binding] = Counter()
    for step in steps:
        inside = min(end, step.end) - max(start, step.start)
        if inside > 0:
            found[step.binding] += inside
    return tuple(sorted(found.items(), key=lambda each: (-each[1], each[0])))


class _Rates:
    """What is asked of a plan for each link of its chain."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._routes = routes_of(subject.problem.machine)
        self._use: Counter[LinkIdx] = Counter()
        for move, held in zip(subject.plan.transfers, subject.held_rates, strict=True):
            for link in move.route:
                self._use[link] += held * (move.end - move.start)

    def steps(self, link: ChainLink, following: ChainLink | None) -> list[Step]:
        """Return the steps of one activity, given the one that had to wait for it."""
        cause = None if following is None else following.cause
        move = self._subject.transfer(link.activity)
        named = None if cause is None or following is None else self._waited(cause, following)
        if named is not None:
            return [self._step(link, link.start, link.end, named)]
        if move is None:
            core = self._subject.plan.placements[link.activity].core
            reason = _OF_TASKS.get(cause.wait if cause else Wait.CORE, Reason.BUSY)
            return [self._step(link, link.start, link.end, Binding(Holder.CORE, core, reason))]
        flowing = min(link.end, link.start + self._before_the_first_byte(move))
        found = [
            (link.start, flowing, Binding(Holder.ENGINE, move.engine, Reason.SETUP)),
            (flowing, link.end, self._slowest(move)),
        ]
        return [self._step(link, start, end, why) for start, end, why in found if start < end]

    def _step(self, link: ChainLink, start: Cycles, end: Cycles, binding: Binding) -> Step:
        return Step(start=start, end=end, part=link.part, activity=link.activity, binding=binding)

    def _waited(self, cause: Cause, following: ChainLink) -> Binding | None:
        """Return the resource that the following activity waited for; ``None`` for its data."""
        if cause.wait is Wait.LINK and cause.link is not None:
            return Binding(Holder.LINK, cause.link, Reason.TAKEN)
        if cause.wait is Wait.CHANNEL:
            move = self._subject.transfer(following.activity)
            before = self._subject.transfer(cause.activity)
            if move is None or before is None:
                return None
            full = self._full_for_both(before, move)
            if full is not None:
                return Binding(Holder.LINK, full, Reason.TAKEN)
            return Binding(Holder.ENGINE, move.engine, Reason.CHANNELS)
        if cause.wait is Wait.ROOM:
            return Binding(Holder.MEMORY, self._memory(cause, following), Reason.ROOM)
        return None

    def _full_for_both(self, before: Transfer, move: Transfer) -> LinkIdx | None:
        """Return a link that cannot carry both, so that one more channel would be of no use."""
        held, rates = self._subject.held_rates, self._subject.link_rates
        both = held[before.index] + held[move.index]
        shared = [link for link in move.route if link in before.route and both > rates[link]]
        return min(shared, key=lambda link: (rates[link], -self._use[link], link), default=None)

    def _memory(self, cause: Cause, following: ChainLink) -> MemoryIdx:
        written = self._subject.writes(following.activity)[0]
        freed = written if cause.residency is None else cause.residency
        return self._subject.plan.residencies[freed].memory

    def _before_the_first_byte(self, move: Transfer) -> Cycles:
        residencies = self._subject.plan.residencies
        ends = [residencies[end].memory for end in move.destinations]
        route = multicast_route(self._routes, residencies[move.source].memory, ends)
        setup = self._subject.problem.machine.engines[move.engine].setup
        return setup + (0 if route is None else route.latency)

    def _slowest(self, move: Transfer) -> Binding:
        """Return the slowest link of a transfer's route, the most used one of several; or its
        engine, where that is slower than all.
        """
        machine, rates = self._subject.problem.machine, self._subject.link_rates
        slowest = min(
            move.route, key=lambda link: (rates[link], -self._use[link], link), default=None
        )
        if slowest is None or machine.engines[move.engine].rate < machine.links[slowest].rate:
            return Binding(Holder.ENGINE, move.engine, Reason.RATE)
        return Binding(Holder.LINK, slowest, Reason.RATE)


_OF_TASKS = {Wait.WRITER: Reason.WRITER, Wait.ORDER: Reason.ORDER, Wait.CORE: Reason.BUSY}
