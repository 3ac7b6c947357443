"""How a plan uses cores, memories and DRAM: phases, idle cycles, live bytes, traffic."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import heappop, heappush
from itertools import pairwise
from typing import TypeVar

from spmilp.commands.order import Activity
from spmilp.explaining.chain import Cause, Chain, Wait
from spmilp.explaining.subject import AnalysedPlan, Part, tensor_name
from spmilp.machine.machine import MemoryKind
from spmilp.plan.measures import compulsory_loads_and_stores
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Residency, Transfer
from spmilp.problem.problem import Buffer, BufferKind, Task
from spmilp.units import (
    BufferIdx,
    Bytes,
    CoreIdx,
    Cycles,
    EngineIdx,
    LinkIdx,
    MemoryIdx,
    ResidencyIdx,
    SliceIdx,
)

MOST = 16
"""Windows that the makespan is cut into; neighbours that the same part bounds are one phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The cycles ``[start, end)``, in which one part takes most of the critical chain.

    Parameters
    ----------
    chain
        Cycles of the critical chain in the phase by what is done in them; they add up to its
        length.
    cores
        Mean share of the cycles in which the cores are busy, 0 to 1.
    core, engine, link
        The busiest one, ``None`` where none is busy, and ``core_use``, ``engine_use``, ``link_use``
        the share: of the cycles, of the cycles of all channels, of the rate.
    """

    start: Cycles
    end: Cycles
    part: Part
    chain: dict[Part, Cycles]
    cores: float
    core: CoreIdx | None
    core_use: float
    engine: EngineIdx | None
    engine_use: float
    link: LinkIdx | None
    link_use: float


def phases_of(subject: AnalysedPlan, chain: Chain) -> tuple[Phase, ...]:
    """Return the phases of a plan, which fill its makespan."""
    machine, plan = subject.problem.machine, subject.plan
    makespan = max(subject.ends, default=0)
    count = min(MOST, makespan)
    if not count:
        return ()
    done = [(link.part, link.start, link.end, 1) for link in chain.links]
    done += [(Part.UNUSED, link.start - link.unused, link.start, 1) for link in chain.links]
    edges = [makespan * window // count for window in range(count + 1)]
    most = [max(Part, key=lambda part: each[part]) for each in _sums(edges, done)]
    edges = [edges[at] for at in range(count) if not at or most[at] is not most[at - 1]]
    edges.append(makespan)
    moves = list(zip(plan.transfers, subject.held_rates, strict=True))
    parts = _sums(edges, done)
    of_cores = _sums(edges, ((each.core, each.start, each.end, 1) for each in plan.placements))
    of_engines = _sums(edges, ((move.engine, move.start, move.end, 1) for move, _ in moves))
    of_links = _sums(
        edges, ((link, move.start, move.end, held) for move, held in moves for link in move.route)
    )
    phases = []
    for at, (start, end) in enumerate(pairwise(edges)):
        core, core_use = _busiest(of_cores[at], [1] * len(machine.cores), end - start)
        channels = [each.channels for each in machine.engines]
        engine, engine_use = _busiest(of_engines[at], channels, end - start)
        link, link_use = _busiest(of_links[at], subject.link_rates, end - start)
        phases.append(
            Phase(
                start=start,
                end=end,
                part=max(Part, key=lambda part: parts[at][part]),
                chain={each: parts[at][each] for each in Part},
                cores=of_cores[at].total() / (len(machine.cores) * (end - start)),
                core=core,
                core_use=core_use,
                engine=engine,
                engine_use=engine_use,
                link=link,
                link_use=link_use,
            )
        )
    return tuple(phases)


_Key = TypeVar("_Key", bound=int | str)


def _sums(
    edges: Sequence[Cycles], uses: Iterable[tuple[_Key, Cycles, Cycles, int]]
) -> list[Counter[_Key]]:
    """Return what is used between edges: amount times cycles by what uses it.

    Parameters
    ----------
    uses
        ``(key, start, end, amount)`` of everything that is used.
    """
    found: list[Counter[_Key]] = [Counter() for _ in edges[1:]]
    for key, start, end, amount in uses:
        at = bisect_right(edges, start) - 1
        while start < end:
            until = min(end, edges[at + 1])
            found[at][key] += (until - start) * amount
            start, at = until, at + 1
    return found


def _busiest(used: Counter[int], full: Sequence[int], length: Cycles) -> tuple[int | None, float]:
    """Return the resource of which the largest share is used, and the share."""
    if not used:
        return None, 0.0
    most = max(sorted(used), key=lambda index: used[index] / (full[index] * length))
    return most, used[most] / (full[most] * length)


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


def times_of_cores(
    subject: AnalysedPlan, causes: Sequence[Sequence[Cause]]
) -> tuple[CoreTime, ...]:
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
    subject: AnalysedPlan, causes: Sequence[Sequence[Cause]], task: Activity, since: Cycles
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """How one memory is used.

    Parameters
    ----------
    residencies
        What lies in it, in order of start.
    cycles
        When the bytes in use change; from each one on, ``live`` are in use, and ``tops`` is the end
        of the highest residency. What of ``tops`` is not live is lost to fragmentation and to
        reserved ranges below.
    peak, peak_at
        The highest end of a residency, and the first cycle at which it is reached.
    live_peak
        The most live bytes: no packing of these lifetimes has a lower peak.
    """

    memory: MemoryIdx
    residencies: tuple[ResidencyIdx, ...]
    cycles: tuple[Cycles, ...]
    live: tuple[Bytes, ...]
    tops: tuple[Bytes, ...]
    peak: Bytes
    peak_at: Cycles
    live_peak: Bytes


def spaces_of(subject: AnalysedPlan) -> tuple[Space, ...]:
    """Return the use of each memory but the DRAMs, in order."""
    here: defaultdict[MemoryIdx, list[Residency]] = defaultdict(list)
    for residency in subject.plan.residencies:
        here[residency.memory].append(residency)
    return tuple(
        _space(memory.index, sorted(here[memory.index], key=lambda each: (each.start, each.index)))
        for memory in subject.problem.machine.memories
        if memory.kind is not MemoryKind.DRAM
    )


def _space(memory: MemoryIdx, residencies: list[Residency]) -> Space:
    cycles, live = live_bytes(residencies)
    tops = _tops(residencies, cycles)
    peak = max(tops, default=0)
    return Space(
        memory=memory,
        residencies=tuple(each.index for each in residencies),
        cycles=tuple(cycles),
        live=tuple(live),
        tops=tuple(tops),
        peak=peak,
        peak_at=cycles[tops.index(peak)] if peak else 0,
        live_peak=max(live, default=0),
    )


def _tops(residencies: Sequence[Residency], cycles: Sequence[Cycles]) -> list[Bytes]:
    """Return the end of the highest residency from each of the cycles on."""
    alive: list[tuple[int, Cycles]] = []
    tops, following = [], 0
    for cycle in cycles:
        while following < len(residencies) and residencies[following].start <= cycle:
            each = residencies[following]
            heappush(alive, (-(each.offset + each.bytes), each.end))
            following += 1
        while alive and alive[0][1] <= cycle:
            heappop(alive)
        tops.append(-alive[0][0] if alive else 0)
    return tops


def in_place_pairs(subject: AnalysedPlan) -> tuple[tuple[ResidencyIdx, ResidencyIdx], ...]:
    """Return ``(operand, result)`` where a task has written a result over an operand's bytes."""
    found = []
    residencies = subject.plan.residencies
    for placement in subject.plan.placements:
        task = subject.problem.tasks[placement.task]
        for read, written in task.in_place:
            old = residencies[placement.reads[task.reads.index(read)]]
            new = residencies[placement.writes[task.writes.index(written)]]
            if old.memory == new.memory and old.offset == new.offset and new.start < old.end:
                found.append((old.index, new.index))
    return tuple(found)


def double_buffered(subject: AnalysedPlan) -> tuple[ResidencyIdx, ...]:
    """Return what arrives while a task works on another part of the same tensor in that memory."""

    def place(index: ResidencyIdx) -> tuple[MemoryIdx, str]:
        each = subject.plan.residencies[index]
        if each.slice is None:
            return each.memory, ""
        return each.memory, tensor_name(subject, subject.problem.slices[each.slice].buffer)

    reads: defaultdict[tuple[MemoryIdx, str], list[tuple[Cycles, Cycles, ResidencyIdx]]]
    reads = defaultdict(list)
    for placement in sorted(subject.plan.placements, key=lambda each: each.start):
        for read in placement.reads:
            reads[place(read)].append((placement.start, placement.end, read))
    longest = {key: max(end - start for start, end, _ in runs) for key, runs in reads.items()}
    found = []
    for move in subject.plan.transfers:
        for end in move.destinations:
            runs = reads.get(key := place(end), [])
            first = bisect_left(runs, (move.start - longest.get(key, 0),))
            during = runs[first : bisect_left(runs, (move.end,))]
            if any(read != end and ended > move.start for _, ended, read in during):
                found.append(end)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorTraffic:
    """Bytes of one tensor that leave DRAM (``loaded``) and enter it (``stored``).

    Parameters
    ----------
    compulsory
        The part that no plan can avoid: bytes read of an input or weight once, an output once.
    """

    tensor: str
    kind: BufferKind
    loaded: Bytes
    stored: Bytes
    compulsory: Bytes

    @property
    def bytes(self) -> Bytes:
        """All of it."""
        return self.loaded + self.stored


def traffic_of(subject: AnalysedPlan) -> tuple[TensorTraffic, ...]:
    """Return the traffic of each tensor that has some, the most beyond the compulsory first."""
    problem = subject.problem
    loaded, stored, compulsory = Counter[str](), Counter[str](), Counter[str]()
    names = [tensor_name(subject, buffer.index) for buffer in problem.buffers]
    kinds: dict[str, BufferKind] = {}
    for buffer, (loads, stores) in zip(
        problem.buffers, compulsory_loads_and_stores(problem), strict=True
    ):
        compulsory[names[buffer.index]] += loads + stores
        kinds.setdefault(names[buffer.index], buffer.kind)
    for move in subject.plan.transfers:
        part = problem.slices[move.slice]
        loaded[names[part.buffer]] += part.bytes * subject.is_dram(move.source)
        stored[names[part.buffer]] += part.bytes * sum(map(subject.is_dram, move.destinations))
    rows = [
        TensorTraffic(
            tensor=name,
            kind=kind,
            loaded=loaded[name],
            stored=stored[name],
            compulsory=compulsory[name],
        )
        for name, kind in kinds.items()
        if loaded[name] or stored[name] or compulsory[name]
    ]
    return tuple(sorted(rows, key=lambda row: (row.compulsory - row.bytes, -row.bytes, row.tensor)))


class Beyond(StrEnum):
    """Why bytes beyond the compulsory ones go to DRAM or come from there."""

    SPILL = "spill"
    """A result is stored and comes back: the store, and the first load of each slice."""
    STORE = "store"
    """A result is stored that nobody loads, or an output is stored again."""
    RELOAD = "reload"
    """It is loaded, again, into a memory in which it has been."""
    COPY = "copy"
    """It is loaded again, into another memory."""
    OVERLAP = "overlap"
    """Slices share it, and it is loaded with each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """Bytes between DRAM and chip beyond the compulsory ones.

    Parameters
    ----------
    data
        What is loaded or stored.
    operator
        Of what is loaded the one that reads it, of what is stored the one that computes it (of
        tasks without a tile, the task); empty where no task does.
    """

    kind: Beyond
    data: BufferKind
    operator: str
    bytes: Bytes


def excess_of(subject: AnalysedPlan) -> tuple[Excess, ...]:
    """Return what a plan moves beyond the compulsory bytes, the most first; it adds up to them."""
    problem = subject.problem
    writers = {written: task for task in problem.tasks for written in task.writes}
    readers, arrivals = _readers(subject), _arrivals(subject)
    moves: defaultdict[BufferIdx, list[Transfer]] = defaultdict(list)
    for move in sorted(subject.plan.transfers, key=lambda each: (each.start, each.index)):
        if subject.parts[len(subject.plan.placements) + move.index] is not Part.MOVE:
            moves[problem.slices[move.slice].buffer].append(move)
    found: Counter[tuple[Beyond, BufferKind, str]] = Counter()
    least = compulsory_loads_and_stores(problem)
    for index, mine in moves.items():
        buffer, (loads, stores) = problem.buffers[index], least[index]
        for move, kind, size in _loaded(subject, arrivals, buffer, mine, loads):
            found[kind, buffer.kind, _operator(readers.get(move.destinations[0]))] += size
        for kind, size in _stored(subject, mine, stores):
            found[kind, buffer.kind, _operator(writers.get(index))] += size
    rows = [
        Excess(kind=kind, data=data, operator=operator, bytes=size)
        for (kind, data, operator), size in found.items()
        if size
    ]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.kind, row.data, row.operator)))


def _operator(task: Task | None) -> str:
    if task is None:
        return ""
    return task.name if task.tile is None else task.tile.of


def _loaded(
    subject: AnalysedPlan,
    arrivals: dict[tuple[MemoryIdx, SliceIdx], Cycles],
    buffer: Buffer,
    moves: Sequence[Transfer],
    compulsory: Bytes,
) -> Iterator[tuple[Transfer, Beyond, Bytes]]:
    """Yield the loads of a buffer in order of time, each with its bytes beyond the compulsory."""
    whole, residencies = buffer.index, subject.plan.residencies
    seen: set[SliceIdx] = set()
    for move in moves:
        if not subject.is_dram(move.source):
            continue
        size = subject.problem.slices[move.slice].bytes
        if move.slice not in seen and whole not in seen:
            spared = min(size, compulsory)
            compulsory -= spared
            kind = Beyond.SPILL if buffer.starts_in is None else Beyond.OVERLAP
            yield move, kind, size - spared
        else:
            has_been = all(
                any(
                    arrivals.get((residencies[end].memory, part), move.start) < move.start
                    for part in (move.slice, whole)
                )
                for end in move.destinations
            )
            yield move, Beyond.RELOAD if has_been else Beyond.COPY, size
        seen.add(move.slice)


def _stored(
    subject: AnalysedPlan, moves: Sequence[Transfer], compulsory: Bytes
) -> Iterator[tuple[Beyond, Bytes]]:
    """Yield the stores of a buffer in order of time, each with its bytes beyond the compulsory."""
    last_load = max((each.start for each in moves if subject.is_dram(each.source)), default=-1)
    for move in moves:
        size = subject.problem.slices[move.slice].bytes
        size *= sum(map(subject.is_dram, move.destinations))
        spared = min(size, compulsory)
        compulsory -= spared
        yield Beyond.SPILL if last_load >= move.end else Beyond.STORE, size - spared


def _readers(subject: AnalysedPlan) -> dict[ResidencyIdx, Task]:
    """For each residency, the first task that reads it, or what is moved on from it."""
    found: dict[ResidencyIdx, Task] = {}
    for placement in sorted(subject.plan.placements, key=lambda each: -each.start):
        found |= dict.fromkeys(placement.reads, subject.problem.tasks[placement.task])
    for move in sorted(subject.plan.transfers, key=lambda each: -each.start):
        for end in move.destinations:
            if end in found:
                found.setdefault(move.source, found[end])
    return found


def _arrivals(subject: AnalysedPlan) -> dict[tuple[MemoryIdx, SliceIdx], Cycles]:
    """For each memory, and each slice that has been in it, when that was first."""
    found: dict[tuple[MemoryIdx, SliceIdx], Cycles] = {}
    for each in subject.plan.residencies:
        if each.slice is not None:
            key = each.memory, each.slice
            found[key] = min(each.start, found.get(key, each.start))
    return found
