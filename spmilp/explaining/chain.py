"""What each activity had to wait for, the critical chain, and what binds each of its cycles.

The conflicts on bytes are those by which command lists are made
(:func:`spmilp.commands.order.predecessors`): a read waits for the write of what it reads, a write
for the last use of the bytes that it overwrites, in scratchpads and in DRAM alike.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise

from spmilp.commands.order import Activity
from spmilp.explaining.subject import AnalysedPlan, Part
from spmilp.machine.routes import multicast_route, routes_of
from spmilp.plan.plan import Residency, Transfer
from spmilp.units import Cycles, LinkIdx, MemoryIdx, ResidencyIdx


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


class _Load:
    """What is taken of one resource over time, as a step function.

    Parameters
    ----------
    uses
        ``(activity, start, end, amount)`` of everything that takes some of it.
    """

    def __init__(self, uses: Iterable[tuple[Activity, Cycles, Cycles, int]]) -> None:
        changes: defaultdict[Cycles, int] = defaultdict(int)
        self._ended: dict[Cycles, Activity] = {}
        for activity, start, end, amount in uses:
            changes[start] += amount
            changes[end] -= amount
            self._ended.setdefault(end, activity)
        self._cycles = sorted(changes)
        self._levels = list(accumulate((changes[cycle] for cycle in self._cycles), initial=0))
        self._above: dict[int, list[int]] = {}

    def free_since(
        self, start: Cycles, most: int, not_before: Cycles
    ) -> tuple[Cycles, Activity] | None:
        """Find since when no more than ``most`` of it was taken, up to ``start``.

        Returns
        -------
        tuple or None
            That cycle and the activity that ended then; ``None`` if it has been so since
            ``not_before``.
        """
        if most not in self._above:
            # For each position, the last up to it before which more than that was taken; or 0.
            marks = (at if level > most else 0 for at, level in enumerate(self._levels))
            self._above[most] = list(accumulate(marks, max))
        position = bisect_left(self._cycles, start)
        latest = self._above[most][position] if position else 0
        if not latest or self._cycles[latest] <= not_before:
            return None
        cycle = self._cycles[latest]
        return cycle, self._ended[cycle]


class _Loads:
    """The loads of all engines and links under one plan."""

    def __init__(self, subject: AnalysedPlan) -> None:
        self._subject = subject
        machine, first = subject.problem.machine, len(subject.plan.placements)
        engines: list[list[tuple[Activity, Cycles, Cycles, int]]] = [[] for _ in machine.engines]
        links: list[list[tuple[Activity, Cycles, Cycles, int]]] = [[] for _ in machine.links]
        for move, held in zip(subject.plan.transfers, subject.held_rates, strict=True):
            engines[move.engine].append((first + move.index, move.start, move.end, 1))
            for link in move.route:
                links[link].append((first + move.index, move.start, move.end, held))
        self._engines = [_Load(uses) for uses in engines]
        self._links = [_Load(uses) for uses in links]

    def causes(self, move: Transfer, not_before: Cycles) -> Iterator[Cause]:
        """Yield what a transfer waited for on its engine and links since ``not_before``.

        Of the links that one transfer freed only the first is named.
        """
        floor = max(0, not_before - 1)
        others = self._subject.problem.machine.engines[move.engine].channels - 1
        freed = self._engines[move.engine].free_since(move.start, others, floor)
        if freed is not None:
            yield Cause(wait=Wait.CHANNEL, until=freed[0], activity=freed[1])
        named = set()
        for link in move.route:
            most = self._subject.link_rates[link] - self._subject.held_rates[move.index]
            freed = self._links[link].free_since(move.start, most, floor)
            if freed is not None and freed[1] not in named:
                named.add(freed[1])
                yield Cause(wait=Wait.LINK, until=freed[0], activity=freed[1], link=link)


def causes_of(subject: AnalysedPlan) -> tuple[tuple[Cause, ...], ...]:
    """For each activity, the causes that ended last; the first of them is the binding one.

    An activity that starts later than its binding cause ends could have started earlier; one
    without causes could have started at cycle 0.
    """
    loads = _Loads(subject)
    found = []
    for activity, earlier in enumerate(subject.before):
        last = sorted(earlier, key=lambda each: (-subject.ends[each], each))[:MOST]
        causes = [_of_bytes_or_order(subject, activity, each) for each in last]
        move = subject.transfer(activity)
        if move is None:
            causes += _on_its_core(subject, activity)
        else:
            causes += loads.causes(move, max((cause.until for cause in causes), default=0))
        causes.sort(key=lambda each: (-each.until, _RANK[each.wait], each.activity))
        found.append(tuple(causes[:MOST]))
    return tuple(found)


def _of_bytes_or_order(subject: AnalysedPlan, activity: Activity, earlier: Activity) -> Cause:
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


def _for_operand(subject: AnalysedPlan, read: ResidencyIdx, filler: Activity) -> Wait:
    if subject.is_dram(read):
        return Wait.STORED
    return Wait.WRITER if subject.transfer(filler) is None else Wait.ARRIVAL


def _freed(subject: AnalysedPlan, activity: Activity, earlier: Activity) -> ResidencyIdx | None:
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


def _on_its_core(subject: AnalysedPlan, task: Activity) -> Iterator[Cause]:
    """Yield the task before it on its core."""
    position = subject.activities.position[task]
    if position:
        previous = subject.activities.lists[subject.activities.list_of[task]][position - 1]
        yield Cause(wait=Wait.CORE, until=subject.ends[previous], activity=previous)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """An activity of the critical chain.

    Parameters
    ----------
    cause
        What it waited for, which is the activity of the link before; ``None`` for the first.
    unused
        Cycles between the end of that and its start, in which nothing kept it waiting: a plan that
        starts it earlier is valid as far as this activity goes.
    """

    activity: Activity
    start: Cycles
    end: Cycles
    part: Part
    cause: Cause | None
    unused: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The critical chain, first activity first; links and unused cycles fill the makespan.

    To end earlier, a plan must break it: each link by shortening the activity or by removing what
    it waits for.
    """

    links: tuple[ChainLink, ...]

    def cycles(self) -> dict[Part, Cycles]:
        """Return the cycles of the makespan that each part takes; they add up to it."""
        found: Counter[Part] = Counter()
        for link in self.links:
            found[link.part] += link.end - link.start
            found[Part.UNUSED] += link.unused
        return {part: found[part] for part in Part}


def critical_chain(subject: AnalysedPlan, causes: Sequence[Sequence[Cause]]) -> Chain:
    """Return the critical chain of a plan; of several that end last, that of the least index."""
    if not subject.ends:
        return Chain(links=())
    activity: Activity | None = max(
        range(len(subject.ends)), key=lambda each: (subject.ends[each], -each)
    )
    links = []
    while activity is not None:
        cause = causes[activity][0] if causes[activity] else None
        start = subject.starts[activity]
        links.append(
            ChainLink(
                activity=activity,
                start=start,
                end=subject.ends[activity],
                part=subject.parts[activity],
                cause=cause,
                unused=start if cause is None else start - cause.until,
            )
        )
        activity = None if cause is None else cause.activity
    return Chain(links=tuple(reversed(links)))


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
class ChainStep:
    """The cycles ``[start, end)`` of the critical chain, and what they are spent on."""

    start: Cycles
    end: Cycles
    part: Part
    activity: Activity
    binding: Binding


NOTHING = Binding(Holder.NOTHING, 0, Reason.UNUSED)
PINNED = Binding(Holder.NOTHING, 0, Reason.PINNED)


def steps_of(subject: AnalysedPlan, chain: Chain) -> tuple[ChainStep, ...]:
    """Return the critical chain as steps; they fill the makespan, first to last.

    An activity counts for what the next one waits for: the same load is the engine's where the next
    one needs its channel, the memory's where it needs its bytes, and else that of the slowest link
    or engine on its way.
    """
    rates = _Rates(subject)
    pinned = {(pin.task, pin.not_before) for pin in subject.problem.pins.tasks}
    steps: list[ChainStep] = []
    for link, following in pairwise((*chain.links, None)):
        if link is None:
            continue
        if link.unused:
            steps.append(
                ChainStep(
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
    steps: Sequence[ChainStep], start: Cycles, end: Cycles
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

    def __init__(self, subject: AnalysedPlan) -> None:
        self._subject = subject
        self._routes = routes_of(subject.problem.machine)
        self._use: Counter[LinkIdx] = Counter()
        for move, held in zip(subject.plan.transfers, subject.held_rates, strict=True):
            for link in move.route:
                self._use[link] += held * (move.end - move.start)

    def steps(self, link: ChainLink, following: ChainLink | None) -> list[ChainStep]:
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

    def _step(self, link: ChainLink, start: Cycles, end: Cycles, binding: Binding) -> ChainStep:
        return ChainStep(
            start=start, end=end, part=link.part, activity=link.activity, binding=binding
        )

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
