"""Derived fields of ``plan.json``, for its readers: names, addresses, strides, use of cores.

Rows whose references lead nowhere have none, so that an invalid plan can be written and
read, and the checker can say what is wrong with it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Placement, Plan, Residency
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, EngineIdx, MemoryIdx, SliceIdx

_LEVEL = {MemoryKind.DRAM: 0, MemoryKind.SHARED: 1, MemoryKind.SPM: 2}


def of_task(problem: Problem, placement: Placement) -> dict[str, Any]:
    """Return the names of a task and its core."""
    fields: dict[str, Any] = {}
    if _is_in(placement.task, problem.tasks):
        fields["name"] = problem.tasks[placement.task].name
    if _is_in(placement.core, problem.machine.cores):
        fields["core_name"] = problem.machine.cores[placement.core].name
    return fields


def of_content(problem: Problem, held: SliceIdx | None) -> dict[str, Any]:
    """Return the name, the kind and the bytes of what is held or moved; of scratch its kind."""
    if held is None:
        return {"kind": "scratch"}
    if not _is_in(held, problem.slices):
        return {}
    part = problem.slices[held]
    buffer = problem.buffers[part.buffer]
    return {"name": buffer.name, "kind": buffer.kind.value, "bytes": part.bytes}


def of_memory(problem: Problem, memory: MemoryIdx) -> dict[str, Any]:
    """Return the name of a memory."""
    if not _is_in(memory, problem.machine.memories):
        return {}
    return {"memory_name": problem.machine.memories[memory].name}


def of_engine(problem: Problem, engine: EngineIdx) -> dict[str, Any]:
    """Return the name of an engine."""
    if not _is_in(engine, problem.machine.engines):
        return {}
    return {"engine_name": problem.machine.engines[engine].name}


def direction(problem: Problem, source: MemoryIdx, destination: MemoryIdx) -> str:
    """Say whether data comes nearer to the cores, goes away from them or stays on its level."""
    memories = problem.machine.memories
    nearer = _LEVEL[memories[destination].kind] - _LEVEL[memories[source].kind]
    return "move" if nearer == 0 else "load" if nearer > 0 else "store"


def of_memories(problem: Problem, plan: Plan) -> list[dict[str, Any]]:
    """Return how each memory is used; ``capacity`` is ``None`` without limit."""
    machine = problem.machine
    residencies: list[list[Residency]] = [[] for _ in machine.memories]
    for residency in plan.residencies:
        if _is_in(residency.memory, machine.memories):
            residencies[residency.memory].append(residency)
    return [
        {
            "memory": memory.index,
            "name": memory.name,
            "kind": memory.kind.value,
            "residencies": len(here),
            "peak": max((residency.offset + residency.bytes for residency in here), default=0),
            "live_peak": _most_live_bytes(here),
            "reserved": sum(taken.end - taken.start for taken in memory.reserved),
            "capacity": memory.size,
        }
        for memory, here in zip(machine.memories, residencies, strict=True)
    ]


def of_cores(problem: Problem, plan: Plan) -> list[dict[str, Any]]:
    """Return how each core and its memory are used."""
    machine = problem.machine
    memories = of_memories(problem, plan)
    tasks, busy = [0] * len(machine.cores), [0] * len(machine.cores)
    for placement in plan.placements:
        if _is_in(placement.core, machine.cores):
            tasks[placement.core] += 1
            busy[placement.core] += placement.end - placement.start
    rows = []
    for core in machine.cores:
        memory = memories[core.memory]
        row: dict[str, Any] = {
            "index": core.index,
            "name": core.name,
            "memory": core.memory,
            "memory_name": memory["name"],
            "tasks": tasks[core.index],
            "busy": busy[core.index],
            "peak": memory["peak"],
            "live_peak": memory["live_peak"],
            "reserved": memory["reserved"],
        }
        if memory["capacity"] is not None:
            row["capacity"] = memory["capacity"]
        rows.append(row)
    return rows


def _is_in(index: int, owner: Sequence[object]) -> bool:
    return 0 <= index < len(owner)


def _most_live_bytes(residencies: Iterable[Residency]) -> Bytes:
    """Return the most bytes occupied at one cycle; a pair in place, at one offset, counts once."""
    events = []
    for residency in residencies:
        if residency.start < residency.end:
            events.append((residency.start, 1, residency.offset, residency.bytes))
            events.append((residency.end, 0, residency.offset, residency.bytes))
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
