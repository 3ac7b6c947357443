"""What ``plan.json`` repeats for its consumers: names, addresses, strides, the use of cores.

Nothing is said of a row whose references lead nowhere, so that an invalid plan can be written and
read, and the checker can say what is wrong with it.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from spmilp.machine.machine import MemoryKind
from spmilp.plan.addresses import layout_in_memory
from spmilp.plan.plan import Placement, Plan, Residency, Transfer
from spmilp.problem.problem import Problem
from spmilp.problem.strides import SHAPES_KEPT, StridedCopy, strided_copy
from spmilp.units import Bytes, MemoryIdx, ResidencyIdx, SliceIdx

_LEVEL = {MemoryKind.DRAM: 0, MemoryKind.SHARED: 1, MemoryKind.SPM: 2}


def of_task(problem: Problem, placement: Placement) -> dict[str, Any]:
    """Return the names of a task and its core."""
    fields: dict[str, Any] = {}
    if _is_in(placement.task, problem.tasks):
        fields["name"] = problem.tasks[placement.task].name
    if _is_in(placement.core, problem.machine.cores):
        fields["core_name"] = problem.machine.cores[placement.core].name
    return fields


def of_residency(problem: Problem, stay: Residency) -> dict[str, Any]:
    """Return the names and the kind of what lies in a memory."""
    fields: dict[str, Any] = {}
    if stay.slice is None:
        fields["kind"] = "scratch"
    elif _is_in(stay.slice, problem.slices):
        buffer = problem.buffers[problem.slices[stay.slice].buffer]
        fields |= {"name": buffer.name, "kind": buffer.kind.value}
    if _is_in(stay.memory, problem.machine.memories):
        fields["memory_name"] = problem.machine.memories[stay.memory].name
    return fields


def of_transfer(problem: Problem, plan: Plan, move: Transfer) -> dict[str, Any]:
    """Return names, bytes, addresses and strides of a transfer."""
    fields: dict[str, Any] = {}
    if _is_in(move.engine, problem.machine.engines):
        fields["engine_name"] = problem.machine.engines[move.engine].name
    if not _is_in(move.slice, problem.slices):
        return fields
    part = problem.slices[move.slice]
    buffer = problem.buffers[part.buffer]
    fields |= {"name": buffer.name, "bytes": part.bytes}
    ends = (move.source, *move.destinations)
    if not move.destinations or not all(_holds(problem, plan, end, move.slice) for end in ends):
        return fields
    memories = [plan.residencies[end].memory for end in ends]
    layouts = [layout_in_memory(problem, plan, move.slice, end) for end in ends]
    fields["dir"] = _direction(problem, memories[0], memories[1])
    fields["src"] = {"memory": memories[0], "address": layouts[0].offset}
    fields["dst"] = [
        {
            "memory": memory,
            "address": layout.offset,
            "dims": _dimensions(strided_copy(part.extent, buffer.item, layouts[0], layout)),
        }
        for memory, layout in zip(memories[1:], layouts[1:], strict=True)
    ]
    return fields


def of_cores(problem: Problem, plan: Plan) -> list[dict[str, Any]]:
    """Return how each core and its memory are used."""
    machine = problem.machine
    stays: list[list[Residency]] = [[] for _ in machine.memories]
    for stay in plan.residencies:
        if _is_in(stay.memory, machine.memories):
            stays[stay.memory].append(stay)
    peaks = [max((s.offset + s.bytes for s in here), default=0) for here in stays]
    live = [_most_live_bytes(here) for here in stays]
    tasks, busy = [0] * len(machine.cores), [0] * len(machine.cores)
    for placement in plan.placements:
        if _is_in(placement.core, machine.cores):
            tasks[placement.core] += 1
            busy[placement.core] += placement.end - placement.start
    rows = []
    for core in machine.cores:
        memory = machine.memories[core.memory]
        row: dict[str, Any] = {
            "index": core.index,
            "name": core.name,
            "memory": core.memory,
            "memory_name": memory.name,
            "tasks": tasks[core.index],
            "busy": busy[core.index],
            "peak": peaks[core.memory],
            "live_peak": live[core.memory],
            "reserved": sum(taken.end - taken.start for taken in memory.reserved),
        }
        if memory.size is not None:
            row["capacity"] = memory.size
        rows.append(row)
    return rows


def _is_in(index: int, owner: Sequence[object]) -> bool:
    return 0 <= index < len(owner)


def _holds(problem: Problem, plan: Plan, residency: ResidencyIdx, slice_: SliceIdx) -> bool:
    """Say whether addresses of a slice in a residency can be told."""
    if not _is_in(residency, plan.residencies):
        return False
    stay = plan.residencies[residency]
    buffer = problem.slices[slice_].buffer
    place = problem.buffers[buffer].place
    return (
        stay.slice in (slice_, buffer)
        and _is_in(stay.memory, problem.machine.memories)
        and (place is None or _is_in(place.tensor, plan.tensors))
    )


def _direction(problem: Problem, source: MemoryIdx, destination: MemoryIdx) -> str:
    """Say whether data comes nearer to the cores, goes away from them or stays on its level."""
    memories = problem.machine.memories
    nearer = _LEVEL[memories[destination].kind] - _LEVEL[memories[source].kind]
    return "move" if nearer == 0 else "load" if nearer > 0 else "store"


@lru_cache(maxsize=SHAPES_KEPT)
def _dimensions(copy: StridedCopy) -> list[dict[str, Any]]:
    loops = [*copy.loops, (copy.run, 1, 1)]
    return [{"count": n, "src_stride": source, "dst_stride": end} for n, source, end in loops]


def _most_live_bytes(stays: Iterable[Residency]) -> Bytes:
    """Return the most bytes occupied at one cycle; a pair in place, at one offset, counts once."""
    events = []
    for stay in stays:
        if stay.start < stay.end:
            events.append((stay.start, 1, stay.offset, stay.bytes))
            events.append((stay.end, 0, stay.offset, stay.bytes))
    alive: dict[Bytes, list[Bytes]] = {}
    total = most = 0
    for _, begins, offset, size in sorted(events):
        here = alive.setdefault(offset, [])
        total -= max(here, default=0)
        if begins:
            here.append(size)
        else:
            here.remove(size)
        total += max(here, default=0)
        most = max(most, total)
    return most
