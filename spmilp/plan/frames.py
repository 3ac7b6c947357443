"""A plan as pandas frames, one row for each task, residency, transfer and core.

Bytes and cycles are integers; intervals are half-open. Columns of names stand beside those of
indices.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

from spmilp.machine.machine import MemoryKind
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Placement, Plan, Residency, Transfer
from spmilp.problem.problem import Problem

if TYPE_CHECKING:
    import pandas as pd

TASKS = (
    *("task", "name", "operator", "core", "core_name", "start", "end", "cycles"),
    *("bytes_read", "bytes_written", "scratch"),
)
RESIDENCIES = (
    *("residency", "slice", "name", "kind", "memory", "memory_name", "offset", "bytes"),
    *("start", "end", "filled_by"),
)
TRANSFERS = (
    *("transfer", "slice", "name", "direction", "engine", "engine_name", "channel", "source"),
    *("destination", "destinations", "bytes", "start", "end", "cycles", "hops"),
)
CORES = (
    *("core", "name", "memory", "memory_name", "tasks", "busy", "utilisation"),
    *("peak", "live_peak", "reserved", "capacity"),
)

MEMORIES = (
    *("memory", "name", "kind", "residencies", "peak", "live_peak", "reserved", "capacity"),
    "utilisation",
)

_LEVEL = {MemoryKind.DRAM: 0, MemoryKind.SHARED: 1, MemoryKind.SPM: 2}
"""How near to the cores: data that comes nearer is loaded, data that goes away stored."""


def task_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the tasks: where and when they run, and what the model calls them."""
    return _frame([_task(problem, placement) for placement in plan.placements], TASKS)


def residency_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the residencies; ``slice`` and ``filled_by`` are missing where there is none."""
    rows = [_residency(problem, residency) for residency in plan.residencies]
    return _frame(rows, RESIDENCIES).astype({"slice": "Int64"})


def transfer_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the transfers; ``destinations`` counts them, and names join those of a multicast."""
    rows = [_transfer(problem, plan, move) for move in plan.transfers]
    return _frame(rows, TRANSFERS)


def core_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the cores: tasks, busy cycles, share of the makespan, bytes of their memory.

    ``peak`` ends the highest residency; ``live_peak`` is the most occupied at one time, a lower
    bound on it. Cores that share a memory have the same. ``capacity`` is missing without limit.
    """
    makespan = plan.claim.makespan
    memories = _memories(problem, plan)
    tasks: Counter[int] = Counter()
    busy: Counter[int] = Counter()
    for placement in plan.placements:
        tasks[placement.core] += 1
        busy[placement.core] += placement.end - placement.start
    rows = []
    for core in problem.machine.cores:
        own = {
            "core": core.index,
            "name": core.name,
            "memory_name": memories[core.memory]["name"],
            "tasks": tasks[core.index],
            "busy": busy[core.index],
            "utilisation": busy[core.index] / makespan if makespan else 0.0,
        }
        fields = memories[core.memory] | own
        rows.append(tuple(fields[name] for name in CORES))
    return _frame(rows, CORES).astype({"capacity": "Int64"})


def memory_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the memories: residencies, and bytes as in :func:`core_frame`.

    ``utilisation`` is ``peak / capacity``, 0 to 1; missing without limit, as ``capacity`` is.
    """
    rows = []
    for use in _memories(problem, plan):
        size = use["capacity"]
        fields = {**use, "utilisation": use["peak"] / size if size else None}
        rows.append(tuple(fields[name] for name in MEMORIES))
    return _frame(rows, MEMORIES).astype({"capacity": "Int64", "utilisation": "Float64"})


def _task(problem: Problem, placement: Placement) -> tuple[Any, ...]:
    task = problem.tasks[placement.task]
    return (
        task.index,
        task.name,
        None if task.tile is None else task.tile.of,
        placement.core,
        problem.machine.cores[placement.core].name,
        placement.start,
        placement.end,
        placement.end - placement.start,
        sum(problem.slices[read].bytes for read in task.reads),
        sum(problem.buffers[buffer].bytes for buffer in task.writes),
        task.scratch,
    )


def _memories(problem: Problem, plan: Plan) -> list[dict[str, Any]]:
    """Return how each memory is used; ``capacity`` is ``None`` without limit."""
    machine = problem.machine
    residencies: list[list[Residency]] = [[] for _ in machine.memories]
    for residency in plan.residencies:
        residencies[residency.memory].append(residency)
    return [
        {
            "memory": memory.index,
            "name": memory.name,
            "kind": memory.kind.value,
            "residencies": len(here),
            "peak": max((residency.offset + residency.bytes for residency in here), default=0),
            "live_peak": max(live_bytes(here)[1], default=0),
            "reserved": sum(taken.end - taken.start for taken in memory.reserved),
            "capacity": memory.size,
        }
        for memory, here in zip(machine.memories, residencies, strict=True)
    ]


def _residency(problem: Problem, residency: Residency) -> tuple[Any, ...]:
    name, kind = None, "scratch"
    if residency.slice is not None:
        buffer = problem.buffers[problem.slices[residency.slice].buffer]
        name, kind = buffer.name, buffer.kind.value
    filler = None
    if residency.filled_by_task is not None:
        filler = f"task {residency.filled_by_task}"
    elif residency.filled_by_transfer is not None:
        filler = f"transfer {residency.filled_by_transfer}"
    return (
        residency.index,
        residency.slice,
        name,
        kind,
        residency.memory,
        problem.machine.memories[residency.memory].name,
        residency.offset,
        residency.bytes,
        residency.start,
        residency.end,
        filler,
    )


def _transfer(problem: Problem, plan: Plan, move: Transfer) -> tuple[Any, ...]:
    machine = problem.machine
    ends = (move.source, *move.destinations)
    source, *others = (machine.memories[plan.residencies[end].memory] for end in ends)
    part = problem.slices[move.slice]
    nearer = _LEVEL[others[0].kind] - _LEVEL[source.kind]
    return (
        move.index,
        move.slice,
        problem.buffers[part.buffer].name,
        "move" if nearer == 0 else "load" if nearer > 0 else "store",
        move.engine,
        machine.engines[move.engine].name,
        move.channel,
        source.name,
        "+".join(memory.name for memory in others),
        len(others),
        part.bytes,
        move.start,
        move.end,
        move.end - move.start,
        len(move.route),
    )


def _frame(rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> "pd.DataFrame":
    """Return a frame whose index is the first column; pandas takes a second to load."""
    import pandas as pd

    return pd.DataFrame.from_records(rows, columns=list(columns)).set_index(columns[0])
