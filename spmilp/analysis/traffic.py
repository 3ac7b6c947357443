"""DRAM traffic by tensor, and what of it is beyond what no plan can avoid."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spmilp.analysis.space import tensor_name
from spmilp.analysis.subject import Part, Subject
from spmilp.plan.measures import compulsory_loads_and_stores
from spmilp.plan.plan import Transfer
from spmilp.problem.problem import Buffer, BufferKind, Task
from spmilp.units import BufferIdx, Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx


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


def traffic_of(subject: Subject) -> tuple[TensorTraffic, ...]:
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


def excess_of(subject: Subject) -> tuple[Excess, ...]:
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
    subject: Subject,
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
    subject: Subject, moves: Sequence[Transfer], compulsory: Bytes
) -> Iterator[tuple[Beyond, Bytes]]:
    """Yield the stores of a buffer in order of time, each with its bytes beyond the compulsory."""
    last_load = max((each.start for each in moves if subject.is_dram(each.source)), default=-1)
    for move in moves:
        size = subject.problem.slices[move.slice].bytes
        size *= sum(map(subject.is_dram, move.destinations))
        spared = min(size, compulsory)
        compulsory -= spared
        yield Beyond.SPILL if last_load >= move.end else Beyond.STORE, size - spared


def _readers(subject: Subject) -> dict[ResidencyIdx, Task]:
    """For each residency, the first task that reads it, or what is moved on from it."""
    found: dict[ResidencyIdx, Task] = {}
    for placement in sorted(subject.plan.placements, key=lambda each: -each.start):
        found |= dict.fromkeys(placement.reads, subject.problem.tasks[placement.task])
    for move in sorted(subject.plan.transfers, key=lambda each: -each.start):
        for end in move.destinations:
            if end in found:
                found.setdefault(move.source, found[end])
    return found


def _arrivals(subject: Subject) -> dict[tuple[MemoryIdx, SliceIdx], Cycles]:
    """For each memory, and each slice that has been in it, when that was first."""
    found: dict[tuple[MemoryIdx, SliceIdx], Cycles] = {}
    for each in subject.plan.residencies:
        if each.slice is not None:
            key = each.memory, each.slice
            found[key] = min(each.start, found.get(key, each.start))
    return found
