"""What each activity had to wait for, the critical chain, what binds it, and idle cores.

Activities are tasks and transfers under one numbering. The conflicts on bytes are those by which
command lists are made (:func:`spmilp.commands.order.predecessors`): a read waits for the write of
what it reads, a write for the last use of the bytes that it overwrites, in scratchpads and in DRAM
alike.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

from spmilp.commands.order import Activities, Activity, Before, activities_of, predecessors
from spmilp.explaining.text import Worded
from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan, Residency, Transfer
from spmilp.plan.turns import Turn, turns
from spmilp.problem.problem import Problem
from spmilp.units import BufferIdx, CoreIdx, Cycles, LinkIdx, ResidencyIdx


class Part(Worded):
    """What is done in a cycle of the critical chain; ``UNUSED``: it need not have passed."""

    COMPUTE = "compute", "computing"
    LOAD = "load", "loading from DRAM"
    STORE = "store", "storing to DRAM"
    MOVE = "move", "moving data on chip"
    UNUSED = "unused", "unused"


@dataclass(frozen=True, kw_only=True, eq=False)
class AnalysedPlan:
    """A valid plan and its problem; what several analyses need is found once."""

    problem: Problem
    plan: Plan

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The fused operator of each task, or its own name where it is of none."""
        return tuple(each.tile.of if each.tile else each.name for each in self.problem.tasks)

    @cached_property
    def activities(self) -> Activities:
        """Tasks and transfers in the lists of their cores and channels."""
        return activities_of(self.problem, self.plan)

    @cached_property
    def before(self) -> Before:
        """For each activity, others that must have ended, or only read, before it starts."""
        return predecessors(self.problem, self.plan, self.activities, own_readers=True)

    @cached_property
    def starts(self) -> tuple[Cycles, ...]:
        """The start of each activity."""
        return (*(e.start for e in self.plan.placements), *(e.start for e in self.plan.transfers))

    @cached_property
    def ends(self) -> tuple[Cycles, ...]:
        """The end of each activity."""
        return (*(e.end for e in self.plan.placements), *(e.end for e in self.plan.transfers))

    @cached_property
    def sends(self) -> tuple[tuple[Cycles, Cycles], ...]:
        """The cycles in which each transfer holds its links, from its set-up to its last byte."""
        engines = self.problem.machine.engines
        return tuple((e.start + engines[e.engine].setup, e.sent) for e in self.plan.transfers)

    @cached_property
    def causes(self) -> tuple[tuple["Cause", ...], ...]:
        """For each activity, the causes that ended last; the first of them is the binding one.

        An activity that starts later than its binding cause says could have started earlier; one
        without causes could have started at cycle 0. None is told of streams, whose inferences wait
        for each other.
        """
        if self.plan.stream is not None:
            return ((),) * len(self.starts)
        return tuple(_causes_of(self))

    @cached_property
    def chain(self) -> tuple["ChainLink", ...]:
        """The critical chain, which ends with what ends last, of several the least index.

        Links and unused cycles fill the makespan. To end earlier, a plan must break it: each link
        by shortening the activity or by removing what it waits for. A stream has none.
        """
        ends = self.ends if self.plan.stream is None else ()
        last = max(range(len(ends)), key=lambda each: (ends[each], -each), default=None)
        return () if last is None else chain_to(self, last)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What each activity does."""
        return (*[Part.COMPUTE] * len(self.plan.placements), *map(self._part, self.plan.transfers))

    @cached_property
    def held_rates(self) -> tuple[Fraction, ...]:
        """Bytes per cycle that each transfer holds of each link of its route."""
        machine = self.problem.machine
        return tuple(
            min([machine.engines[move.engine].rate, *(machine.links[i].rate for i in move.route)])
            for move in self.plan.transfers
        )

    @cached_property
    def pinned(self) -> frozenset[tuple[Activity, Cycles | None]]:
        """Tasks that are pinned not to start before a cycle, and that cycle."""
        return frozenset((pin.task, pin.not_before) for pin in self.problem.pins.tasks)

    @cached_property
    def use_of_links(self) -> dict[LinkIdx, Fraction]:
        """Bytes per cycle, times cycles, that all transfers together hold of each link."""
        found: defaultdict[LinkIdx, Fraction] = defaultdict(Fraction)
        every = zip(self.plan.transfers, self.held_rates, self.sends, strict=True)
        for move, held, (first, sent) in every:
            for link in move.route:
                found[link] += held * (sent - first)
        return found

    def turns(self, start: Cycles, end: Cycles) -> list[Turn]:
        """Return when something is shown: of a stream, in one period (:mod:`spmilp.plan.turns`)."""
        stream = self.plan.stream
        return [Turn(start, end, 0)] if stream is None else [*turns(stream, start, end)]

    def transfer(self, activity: Activity) -> Transfer | None:
        """Return the transfer that an activity is; ``None`` for a task."""
        behind = activity - len(self.plan.placements)
        return None if behind < 0 else self.plan.transfers[behind]

    def reads(self, activity: Activity) -> tuple[ResidencyIdx, ...]:
        """Return the residencies that an activity reads."""
        move = self.transfer(activity)
        return self.plan.placements[activity].reads if move is None else (move.source,)

    def writes(self, activity: Activity) -> tuple[ResidencyIdx, ...]:
        """Return the residencies that an activity writes, scratch included."""
        move = self.transfer(activity)
        if move is not None:
            return move.destinations
        placement = self.plan.placements[activity]
        scratch = () if placement.scratch is None else (placement.scratch,)
        return (*placement.writes, *scratch)

    def filler(self, residency: ResidencyIdx) -> Activity | None:
        """Return the activity that fills a residency, if any does."""
        filled = self.plan.residencies[residency]
        if filled.filled_by_transfer is not None:
            return len(self.plan.placements) + filled.filled_by_transfer
        return filled.filled_by_task

    def is_dram(self, residency: ResidencyIdx) -> bool:
        """Say whether a residency lies in a DRAM."""
        memory = self.plan.residencies[residency].memory
        return self.problem.machine.memories[memory].kind is MemoryKind.DRAM

    def tensor_name(self, buffer: BufferIdx) -> str:
        """Return the name of the tensor that a buffer is a part of, or its own."""
        each = self.problem.buffers[buffer]
        if each.place is not None:
            return self.problem.tensors[each.place.tensor].name
        return each.name if each.tile is None else each.tile.of

    def _part(self, move: Transfer) -> Part:
        if self.is_dram(move.source):
            return Part.LOAD
        return Part.STORE if any(map(self.is_dram, move.destinations)) else Part.MOVE


class Wait(Worded):
    """What an activity waited for; where several end together, the first of these is named."""

    CORE = "core", "its core ran {activity}"
    WRITER = "writer", "{activity} had not computed {residency}"
    ARRIVAL = "arrival", "{residency} was on its way by {activity}"
    STORED = "stored", "{residency} was not in DRAM before {activity}"
    CHANNEL = "channel", "all channels of its DMA engine were busy, until {activity} let one go"
    LINK = "link", "link {link} was taken for its bytes, until {activity} had sent its own"
    ROOM = "room", "{activity} used the bytes it writes to, those of {residency}"
    ORDER = "order", "it may only run after {activity}"


_RANK = {wait: rank for rank, wait in enumerate(Wait)}

MOST = 4
"""Causes that are kept for each activity, the last to end first."""


class Cause(NamedTuple):
    """What kept an activity from starting before ``until``: an ``activity`` that had to end.

    Of a transfer it may be enough that it had sent all, and its link is needed only behind the
    set-up of the one that waits. The ``residency`` is for operands the one that it fills, for
    ``ROOM`` the one whose bytes it used; ``None`` where no single one can be named.
    """

    wait: Wait
    until: Cycles
    activity: Activity
    residency: ResidencyIdx | None = None
    link: LinkIdx | None = None


_Uses: TypeAlias = list[tuple[Activity, Cycles, Cycles, Fraction | int]]
"""``(activity, start, end, amount)`` of everything that takes some of one resource."""


class _Load:
    """What is taken of one resource over time, as a step function."""

    def __init__(self, uses: _Uses) -> None:
        changes: defaultdict[Cycles, Fraction | int] = defaultdict(int)
        self._ended: dict[Cycles, Activity] = {}
        for activity, start, end, amount in uses:
            changes[start] += amount
            changes[end] -= amount
            self._ended.setdefault(end, activity)
        self._cycles = sorted(changes)
        self._levels = list(accumulate((changes[cycle] for cycle in self._cycles), initial=0))
        self._above: dict[Fraction | int, list[int]] = {}

    def free_since(self, start: Cycles, most: Fraction | int) -> tuple[Cycles, Activity] | None:
        """Return since when no more than ``most`` of it was taken, up to ``start``.

        With that cycle comes the activity that ended then; ``None`` if it has always been so.
        """
        if most not in self._above:
            # For each position, the last up to it before which more than that was taken; or 0.
            marks = (at if level > most else 0 for at, level in enumerate(self._levels))
            self._above[most] = list(accumulate(marks, max))
        position = bisect_left(self._cycles, start)
        latest = self._above[most][position] if position else 0
        if not latest:
            return None
        cycle = self._cycles[latest]
        return cycle, self._ended[cycle]


def _causes_of(subject: AnalysedPlan) -> Iterator[tuple[Cause, ...]]:
    activities, machine = subject.activities, subject.problem.machine
    first = len(subject.plan.placements)
    uses_of_engines: list[_Uses] = [[] for _ in machine.engines]
    uses_of_links: list[_Uses] = [[] for _ in machine.links]
    every = zip(subject.plan.transfers, subject.held_rates, subject.sends, strict=True)
    for move, held, sends in every:
        busy = machine.engines[move.engine].busy_until(move.sent, move.end)
        uses_of_engines[move.engine].append((first + move.index, move.start, busy, 1))
        for link in move.route:
            uses_of_links[link].append((first + move.index, *sends, held))
    engines, links = list(map(_Load, uses_of_engines)), list(map(_Load, uses_of_links))

    def on_its_way(move: Transfer) -> Iterator[Cause]:
        """Yield what a transfer waited for; of the links that another freed the first is named."""
        others, on_links = machine.engines[move.engine].channels - 1, subject.sends[move.index][0]
        freed = engines[move.engine].free_since(move.start, others)
        if freed is not None:
            yield Cause(Wait.CHANNEL, *freed)
        named = set()
        for link in move.route:
            most = machine.links[link].rate - subject.held_rates[move.index]
            freed = links[link].free_since(on_links, most)
            if freed is not None and freed[1] not in named:
                named.add(freed[1])
                until = freed[0] - (on_links - move.start)
                yield Cause(Wait.LINK, until, freed[1], link=link)

    for activity, earlier in enumerate(subject.before):
        causes = [_of_bytes_or_order(subject, activity, each) for each in earlier]
        waiting, position = subject.transfer(activity), activities.position[activity]
        if waiting is not None:
            causes += on_its_way(waiting)
        elif position:
            previous = activities.lists[activities.list_of[activity]][position - 1]
            causes.append(Cause(Wait.CORE, subject.ends[previous], previous))
        causes.sort(key=lambda each: (-each.until, _RANK[each.wait], each.activity))
        yield tuple(causes[:MOST])


def _of_bytes_or_order(subject: AnalysedPlan, activity: Activity, earlier: Activity) -> Cause:
    """Say why an activity must come after an earlier one with which it has a conflict."""
    end, is_task = subject.ends[earlier], subject.transfer(activity) is None
    for read in subject.reads(activity):
        if subject.filler(read) == earlier:
            by_task = subject.transfer(earlier) is None
            wait = Wait.WRITER if by_task else Wait.ARRIVAL
            return Cause(Wait.STORED if subject.is_dram(read) else wait, end, earlier, read)
    if is_task and earlier in subject.problem.tasks[activity].after:
        return Cause(Wait.ORDER, end, earlier)
    residencies = subject.plan.residencies
    taken = [residencies[index] for index in subject.writes(activity)]
    freed, overwritten = (
        [each for each in used if any(_share_bytes(residencies[each], other) for other in taken)]
        for used in (subject.reads(earlier), subject.writes(earlier))
    )
    move = subject.transfer(earlier)
    until = move.sent if move is not None and freed and not overwritten else end
    return Cause(Wait.ROOM, until, earlier, next(iter(freed + overwritten), None))


def _share_bytes(one: Residency, other: Residency) -> bool:
    return (
        one.memory == other.memory
        and one.offset < other.offset + other.bytes
        and other.offset < one.offset + one.bytes
    )


class ChainLink(NamedTuple):
    """The cycles ``[start, end)`` of an activity in a chain: not what goes on beside the next link.

    The ``cause`` is that of the link before, ``None`` for the first. Between that and its start
    nothing kept it waiting for ``unused`` cycles: a plan that starts it earlier is valid as far as
    this activity goes.
    """

    activity: Activity
    start: Cycles
    end: Cycles
    part: Part
    cause: Cause | None
    unused: Cycles


def chain_to(subject: AnalysedPlan, activity: Activity, since: Cycles = 0) -> tuple[ChainLink, ...]:
    """Return an activity and, before it, what it had to wait for after a cycle, one by one."""
    links = list[ChainLink]()
    following: Activity | None = activity
    end = subject.ends[activity]
    while following is not None:
        causes, start = subject.causes[following], subject.starts[following]
        cause = causes[0] if causes and causes[0].until > since else None
        until, move, ahead = since if cause is None else cause.until, subject.transfer(following), 0
        if cause is not None and cause.wait is Wait.LINK and move is not None:
            ahead = subject.sends[move.index][0] - start
        unused, part = max(0, start - until), subject.parts[following]
        links.append(ChainLink(following, start + ahead, end, part, cause, unused))
        following, end = None if cause is None else cause.activity, until + ahead
    return tuple(reversed(links))


def cycles_by_part(links: Sequence[ChainLink]) -> dict[Part, Cycles]:
    """Return the cycles that a chain spends on each part; they add up to all of it."""
    found: Counter[Part] = Counter()
    for link in links:
        found[link.part] += link.end - link.start
        found[Part.UNUSED] += link.unused
    return {part: found[part] for part in Part}


class Holder(Worded):
    """What kind of thing holds the chain up; indices are the machine's."""

    CORE = "core", "core"
    ENGINE = "engine", "DMA engine"
    LINK = "link", "link"
    MEMORY = "memory", "memory"
    NOTHING = "nothing"


class Reason(Worded):
    """How a resource holds a chain up, by what comes next on it; ``docs/explain.md``.

    ``DONE`` is of a core behind its last task.
    """

    BUSY = "busy", "{name} computes one task after another"
    WRITER = "writer", "{name} computes operands that others wait for"
    ORDER = "order", "{name} runs tasks that must come before others"
    RATE = "rate", "bytes wait for the rate of {name}"
    SETUP = "setup", "transfers of {name} are set up"
    LATENCY = "latency", "what {name} has sent is on its way: latency"
    CHANNELS = "channels", "{name} has no channel free"
    TAKEN = "taken", "{name} is taken by other transfers"
    ROOM = "room", "{name} has no room: bytes are in use"
    PINNED = "pinned", "a task is pinned not to start any earlier"
    UNUSED = "unused", "nothing is waited for: the plan could go on"
    DONE = "done", "no task is left"

    def of_any(self) -> str:
        """Return it in words that name no resource."""
        return self.words.format(name=_ANY.get(self, "another core"))


_ANY = {
    Reason.RATE: "a link or DMA engine",
    Reason.SETUP: "a DMA engine",
    Reason.LATENCY: "a DMA engine",
    Reason.CHANNELS: "a DMA engine",
    Reason.TAKEN: "a link",
    Reason.ROOM: "a memory",
}


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """A resource and how it holds the chain up; ``index`` is that of the machine's part."""

    holder: Holder
    index: int
    reason: Reason


class ChainStep(NamedTuple):
    """The cycles ``[start, end)`` of a chain, and what they are spent on."""

    start: Cycles
    end: Cycles
    binding: Binding


def steps_of(subject: AnalysedPlan, links: Sequence[ChainLink]) -> tuple[ChainStep, ...]:
    """Return a chain as steps; they fill its cycles, first to last.

    An activity counts for what the next one waits for: the same load is the engine's where the next
    one needs its channel, the memory's where it needs its bytes, and else that of the slowest link
    or engine on its way.
    """
    steps: list[ChainStep] = []
    for each, following in pairwise((*links, None)):
        if each is None:
            continue
        is_pinned = (each.activity, each.start) in subject.pinned
        nothing = Binding(Holder.NOTHING, 0, Reason.PINNED if is_pinned else Reason.UNUSED)
        steps.append(ChainStep(each.start - each.unused, each.start, nothing))
        steps += _steps(subject, each, following)
    return tuple(step for step in steps if step.start < step.end)


class CoreTime(NamedTuple):
    """The cycles of one core: ``busy`` and, by what holds it up, idle; they fill the makespan.

    That is found back from the task that it runs next, as in the critical chain.
    """

    core: CoreIdx
    tasks: int
    busy: Cycles
    idle: tuple[ChainStep, ...]

    def by_reason(self) -> dict[Reason, Cycles]:
        """Return the idle cycles of each reason."""
        found: Counter[Reason] = Counter()
        for step in self.idle:
            found[step.binding.reason] += step.end - step.start
        return {reason: found[reason] for reason in Reason}


def times_of_cores(subject: AnalysedPlan) -> tuple[CoreTime, ...]:
    """Return how each core spends the makespan."""
    makespan = max(subject.ends, default=0)
    found = []
    for core in subject.problem.machine.cores:
        idle: list[ChainStep] = []
        free = busy = 0
        mine = subject.activities.lists[core.index]
        for task in mine:
            start, end = subject.starts[task], subject.ends[task]
            if free < start:
                for step in steps_of(subject, chain_to(subject, task, free)):
                    first, last = max(free, step.start), min(start, step.end)
                    if first < last:
                        idle.append(ChainStep(first, last, step.binding))
            free = end
            busy += end - start
        if free < makespan:
            idle.append(ChainStep(free, makespan, Binding(Holder.NOTHING, 0, Reason.DONE)))
        found.append(CoreTime(core.index, len(mine), busy, tuple(idle)))
    return tuple(found)


def _steps(
    subject: AnalysedPlan, link: ChainLink, following: ChainLink | None
) -> Iterator[ChainStep]:
    """Yield the steps of one activity, given the one that had to wait for it."""
    cause, move = following and following.cause, subject.transfer(link.activity)
    binding = None if following is None else _waited_for(subject, following)
    if move is None:
        if binding is None:
            core = subject.plan.placements[link.activity].core
            reasons = {Wait.WRITER: Reason.WRITER, Wait.ORDER: Reason.ORDER}
            reason = reasons.get(cause.wait, Reason.BUSY) if cause else Reason.BUSY
            binding = Binding(Holder.CORE, core, reason)
        yield ChainStep(link.start, link.end, binding)
        return
    machine, engine = subject.problem.machine, (Holder.ENGINE, move.engine)
    slowest, (on_links, sent) = _slowest(subject, move.route), subject.sends[move.index]
    rate = Binding(*engine, Reason.RATE)
    if slowest is not None and machine.engines[move.engine].rate >= machine.links[slowest].rate:
        rate = Binding(Holder.LINK, slowest, Reason.RATE)
    setup, latency = Binding(*engine, Reason.SETUP), Binding(*engine, Reason.LATENCY)
    if binding is not None:
        rate = binding
        if binding.reason is not Reason.TAKEN:
            setup = latency = binding
        elif cause is not None and cause.wait is Wait.CHANNEL:  # the link is taken for bytes alone
            setup = latency = Binding(*engine, Reason.CHANNELS)
    spans = (move.start, on_links, setup), (on_links, sent, rate), (sent, move.end, latency)
    for start, end, of in spans:
        yield ChainStep(max(start, link.start), min(end, link.end), of)


def _waited_for(subject: AnalysedPlan, following: ChainLink) -> Binding | None:
    """Return the resource that an activity waited for; ``None`` for its data.

    Where a link cannot carry both the transfer and the one before it, one more channel would be of
    no use: the link is waited for.
    """
    cause = following.cause
    if cause is None:
        return None
    if cause.wait is Wait.LINK and cause.link is not None:
        return Binding(Holder.LINK, cause.link, Reason.TAKEN)
    if cause.wait is Wait.ROOM:
        written = subject.writes(following.activity)[0]
        freed = written if cause.residency is None else cause.residency
        return Binding(Holder.MEMORY, subject.plan.residencies[freed].memory, Reason.ROOM)
    move, before = subject.transfer(following.activity), subject.transfer(cause.activity)
    if cause.wait is not Wait.CHANNEL or move is None or before is None:
        return None
    links = subject.problem.machine.links
    both = subject.held_rates[before.index] + subject.held_rates[move.index]
    shared = [each for each in move.route if each in before.route and both > links[each].rate]
    full = _slowest(subject, shared)
    if full is not None:
        return Binding(Holder.LINK, full, Reason.TAKEN)
    return Binding(Holder.ENGINE, move.engine, Reason.CHANNELS)


def _slowest(subject: AnalysedPlan, links: Sequence[LinkIdx]) -> LinkIdx | None:
    """Return the slowest of some links, of several the most used one."""
    every, use = subject.problem.machine.links, subject.use_of_links
    return min(links, key=lambda link: (every[link].rate, -use[link], link), default=None)


def cycles_by_binding(steps: Iterable[ChainStep]) -> tuple[tuple[Binding, Cycles], ...]:
    """Return the cycles of steps by what they are spent on, the most first."""
    found: Counter[Binding] = Counter()
    for step in steps:
        found[step.binding] += step.end - step.start
    return tuple(sorted(found.items(), key=lambda each: (-each[1], each[0])))
