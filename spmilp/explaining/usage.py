"""How a plan uses cores, memories and DRAM: phases, idle cycles, live bytes, traffic."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from spmilp.commands.order import Activity
from spmilp.explaining.chain import AnalysedPlan, Cause, Part, Wait
from spmilp.explaining.text import Worded
from spmilp.machine.machine import MemoryKind
from spmilp.plan.measures import compulsory_loads_and_stores
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Residency, Transfer
from spmilp.problem.problem import BufferKind, Task
from spmilp.units import BufferIdx, Bytes, CoreIdx, Cycles, MemoryIdx, ResidencyIdx, SliceIdx


class Idle(Worded):
    """What a core waits for in an idle cycle, on the way back from the task that it runs next.

    While something is done for that task, it is named; before that, what this had to wait for:
    a channel, a link, room, or what comes before it on its core or by the problem's order.
    """

    LOAD = "load", "for a load from DRAM"
    STORE = "store", "for a store before its reload"
    MOVE = "move", "for a move on chip"
    WRITER = "writer", "for tasks on other cores"
    CHANNEL = "channel", "for a DMA channel"
    LINK = "link", "for a link"
    ROOM = "room", "for room in a memory"
    ORDER = "order", "for tasks whose turn is before"
    UNUSED = "unused", "for nothing"
    DONE = "done", "no task left"


class IdleSpan(NamedTuple):
    """The cycles ``[start, end)`` in which a core waits for one thing."""

    start: Cycles
    end: Cycles
    idle: Idle


class CoreTime(NamedTuple):
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
            spans += reversed(list(_waits(subject, causes, task, free)))
            free = subject.ends[task]
            busy += free - subject.starts[task]
        if free < makespan:
            spans.append(IdleSpan(free, makespan, Idle.DONE))
        found.append(CoreTime(core.index, len(mine), busy, tuple(spans)))
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
            yield IdleSpan(until, end, Idle.UNUSED)
        if cause is None:
            return
        # Of a task that is both before on the core and a writer, the data is waited for.
        of_data = any(
            each.wait is Wait.WRITER and each.activity == cause.activity for each in mine[1:]
        )
        named = named or _NAMED.get(
            Wait.WRITER if cause.wait is Wait.CORE and of_data else cause.wait
        )
        activity, end = cause.activity, max(since, subject.starts[cause.activity])
        yield IdleSpan(end, until, named or _DOING[subject.parts[activity]])


class Space(NamedTuple):
    """How one memory is used.

    Parameters
    ----------
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
    cycles: tuple[Cycles, ...]
    live: tuple[Bytes, ...]
    tops: tuple[Bytes, ...]
    peak: Bytes
    peak_at: Cycles
    live_peak: Bytes


def spaces_of(subject: AnalysedPlan) -> tuple[Space, ...]:
    """Return the use of each memory but the DRAMs, in order."""
    here: defaultdict[MemoryIdx, list[Residency]] = defaultdict(list)
    for residency in sorted(subject.plan.residencies, key=lambda each: each.start):
        here[residency.memory].append(residency)
    return tuple(
        _space(memory.index, here[memory.index])
        for memory in subject.problem.machine.memories
        if memory.kind is not MemoryKind.DRAM
    )


def _space(memory: MemoryIdx, residencies: Sequence[Residency]) -> Space:
    """Return the use of a memory by its residencies, in order of start."""
    cycles, live = live_bytes(residencies)
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
    peak = max(tops, default=0)
    peak_at = cycles[tops.index(peak)] if peak else 0
    most = max(live, default=0)
    return Space(memory, tuple(cycles), tuple(live), tuple(tops), peak, peak_at, most)


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


class TensorTraffic(NamedTuple):
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
    names = [subject.tensor_name(buffer.index) for buffer in problem.buffers]
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
        TensorTraffic(name, kind, loaded[name], stored[name], compulsory[name])
        for name, kind in kinds.items()
        if loaded[name] or stored[name] or compulsory[name]
    ]
    return tuple(sorted(rows, key=lambda row: (row.compulsory - row.bytes, -row.bytes, row.tensor)))


class Beyond(Worded):
    """Why bytes beyond the compulsory ones go to DRAM or come from there; ``docs/explain.md``."""

    SPILL = "spill", "stored and loaded back"
    STORE = "store", "stored, and not loaded again"
    RELOAD = "reload", "loaded again where it has been"
    COPY = "copy", "loaded again, into another memory"
    OVERLAP = "overlap", "loaded twice where slices overlap"


class Excess(NamedTuple):
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
    problem, residencies = subject.problem, subject.plan.residencies
    writers = {written: task for task in problem.tasks for written in task.writes}
    readers, arrivals = _readers(subject), _arrivals(subject)
    moves: defaultdict[BufferIdx, list[Transfer]] = defaultdict(list)
    for move in sorted(subject.plan.transfers, key=lambda each: (each.start, each.index)):
        if subject.parts[len(subject.plan.placements) + move.index] is not Part.MOVE:
            moves[problem.slices[move.slice].buffer].append(move)
    least = compulsory_loads_and_stores(problem)
    found: Counter[tuple[Beyond, BufferKind, str]] = Counter()
    for index, mine in moves.items():
        buffer, (loads, stores) = problem.buffers[index], least[index]
        loading = [move for move in mine if subject.is_dram(move.source)]
        last_load = max((move.start for move in loading), default=-1)
        seen: set[SliceIdx] = set()
        for move in loading:
            size, spared = problem.slices[move.slice].bytes, 0
            if move.slice in seen or index in seen:
                has_been = all(
                    any(
                        arrivals.get((residencies[end].memory, part), move.start) < move.start
                        for part in (move.slice, index)
                    )
                    for end in move.destinations
                )
                kind = Beyond.RELOAD if has_been else Beyond.COPY
            else:
                kind = Beyond.SPILL if buffer.starts_in is None else Beyond.OVERLAP
                spared = min(size, loads)
            seen.add(move.slice)
            loads -= spared
            reader = _operator(readers.get(move.destinations[0]))
            found[kind, buffer.kind, reader] += size - spared
        for move in mine:
            size = problem.slices[move.slice].bytes * sum(map(subject.is_dram, move.destinations))
            spared = min(size, stores)
            stores -= spared
            kind = Beyond.SPILL if last_load >= move.end else Beyond.STORE
            found[kind, buffer.kind, _operator(writers.get(index))] += size - spared
    rows = [Excess(*key, size) for key, size in found.items() if size]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.kind, row.data, row.operator)))


def _operator(task: Task | None) -> str:
    if task is None:
        return ""
    return task.name if task.tile is None else task.tile.of


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


def _arrivals(subject: AnalysedPlan) -> dict[tuple[MemoryIdx, SliceIdx | None], Cycles]:
    """For each memory, and each slice that has been in it, when that was first."""
    found: dict[tuple[MemoryIdx, SliceIdx | None], Cycles] = {}
    for each in sorted(subject.plan.residencies, key=lambda each: -each.start):
        found[each.memory, each.slice] = each.start
    return found
