"""How a plan uses DRAM: the traffic of each tensor, and what is beyond the compulsory."""

from collections import Counter, defaultdict
from typing import Any, NamedTuple

from spmilp.explaining.chain import AnalysedPlan, Part
from spmilp.explaining.text import Worded
from spmilp.plan.measures import compulsory_loads_and_stores
from spmilp.plan.plan import Transfer
from spmilp.problem.problem import BufferKind
from spmilp.units import BufferIdx, Bytes, ResidencyIdx, SliceIdx


def traffic_of(subject: AnalysedPlan) -> list[dict[str, Any]]:
    """Return the traffic of each tensor that has some, the most beyond the compulsory first.

    In bytes: what leaves DRAM, what enters it, and what no plan can avoid of that, an input or
    weight read once and an output written once. Of a stream, for each inference: without prologue,
    and weights need not be read.
    """
    problem, plan = subject.problem, subject.plan
    loaded, stored, compulsory = Counter[str](), Counter[str](), Counter[str]()
    names = [subject.tensor_name(buffer.index) for buffer in problem.buffers]
    kinds: dict[str, BufferKind] = {}
    for buffer, (loads, stores) in zip(
        problem.buffers, compulsory_loads_and_stores(problem), strict=True
    ):
        if plan.stream is None or not buffer.is_constant:
            compulsory[names[buffer.index]] += loads + stores
        kinds.setdefault(names[buffer.index], buffer.kind)
    for move in plan.transfers:
        if plan.stream is not None and move.start < plan.stream.begins:
            continue
        part = problem.slices[move.slice]
        loaded[names[part.buffer]] += part.bytes * subject.is_dram(move.source)
        stored[names[part.buffer]] += part.bytes * sum(map(subject.is_dram, move.destinations))
    rows = [
        {"tensor": name, "kind": kind, "loaded": loaded[name], "stored": stored[name]}
        | {"compulsory": compulsory[name]}
        for name, kind in kinds.items()
        if loaded[name] or stored[name] or compulsory[name]
    ]

    def order(row: dict[str, Any]) -> tuple[Bytes, Bytes, str]:
        moved = row["loaded"] + row["stored"]
        return row["compulsory"] - moved, -moved, row["tensor"]

    return sorted(rows, key=order)


class Beyond(Worded):
    """Why bytes beyond the compulsory ones go to DRAM or come from there; ``docs/explain.md``."""

    SPILL = "spill", "stored and loaded back"
    STORE = "store", "stored, and not loaded again"
    RELOAD = "reload", "loaded again where it has been"
    COPY = "copy", "loaded again, into another memory"
    OVERLAP = "overlap", "loaded twice where slices overlap"


class Excess(NamedTuple):
    """Bytes between DRAM and chip beyond the compulsory ones.

    The ``operator`` is the one that reads what is loaded, or computes what is stored (of tasks
    without a tile, the task); empty where no task does.
    """

    kind: Beyond
    data: BufferKind
    operator: str
    bytes: Bytes


def excess_of(subject: AnalysedPlan) -> tuple[Excess, ...]:
    """Return what a plan moves beyond the compulsory bytes, the most first; it adds up to them."""
    problem, residencies = subject.problem, subject.plan.residencies
    operators = zip(problem.tasks, subject.operators, strict=True)
    writers = {written: name for task, name in operators for written in task.writes}
    readers = _readers(subject)
    latest_first = sorted(residencies, key=lambda each: -each.start)
    arrivals = {(each.memory, each.slice): each.start for each in latest_first}
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
            reader = readers.get(move.destinations[0], "")
            found[kind, buffer.kind, reader] += size - spared
        for move in mine:
            size = problem.slices[move.slice].bytes * sum(map(subject.is_dram, move.destinations))
            spared = min(size, stores)
            stores -= spared
            kind = Beyond.SPILL if last_load >= move.end else Beyond.STORE
            found[kind, buffer.kind, writers.get(index, "")] += size - spared
    rows = [Excess(*key, size) for key, size in found.items() if size]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.kind, row.data, row.operator)))


def _readers(subject: AnalysedPlan) -> dict[ResidencyIdx, str]:
    """For each residency, the operator that first reads it, or what is moved on from it."""
    found: dict[ResidencyIdx, str] = {}
    for placement in sorted(subject.plan.placements, key=lambda each: -each.start):
        found |= dict.fromkeys(placement.reads, subject.operators[placement.task])
    for move in sorted(subject.plan.transfers, key=lambda each: -each.start):
        for end in move.destinations:
            if end in found:
                found.setdefault(move.source, found[end])
    return found
