"""A plan as pandas frames, one row for each task, residency, transfer, core and memory.

Bytes and cycles are integers; intervals are half-open. Columns of names stand beside those of
indices. Pandas takes a second to load, and is imported when the first frame is made.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from spmilp.machine.machine import MemoryKind
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Plan, Residency
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

    def rows() -> Iterator[tuple[Any, ...]]:
        for place in plan.placements:
            task = problem.tasks[place.task]
            operator = None if task.tile is None else task.tile.of
            yield (
                *(task.index, task.name, operator),
                *(place.core, problem.machine.cores[place.core].name),
                *(place.start, place.end, place.end - place.start),
                sum(problem.slices[read].bytes for read in task.reads),
                sum(problem.buffers[buffer].bytes for buffer in task.writes),
                task.scratch,
            )

    return _frame(rows(), TASKS)


def residency_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the residencies; ``slice`` and ``filled_by`` are missing where there is none."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for each in plan.residencies:
            name, kind, filler = None, "scratch", None
            if each.slice is not None:
                buffer = problem.buffers[problem.slices[each.slice].buffer]
                name, kind = buffer.name, buffer.kind.value
            if each.filled_by_task is not None:
                filler = f"task {each.filled_by_task}"
            elif each.filled_by_transfer is not None:
                filler = f"transfer {each.filled_by_transfer}"
            yield (
                *(each.index, each.slice, name, kind),
                *(each.memory, problem.machine.memories[each.memory].name),
                *(each.offset, each.bytes, each.start, each.end, filler),
            )

    return _frame(rows(), RESIDENCIES).astype({"slice": "Int64"})


def transfer_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the transfers; ``destinations`` counts them, and names join those of a multicast."""
    machine = problem.machine

    def rows() -> Iterator[tuple[Any, ...]]:
        for move in plan.transfers:
            ends = (move.source, *move.destinations)
            source, *others = (machine.memories[plan.residencies[end].memory] for end in ends)
            part = problem.slices[move.slice]
            nearer = _LEVEL[others[0].kind] - _LEVEL[source.kind]
            yield (
                *(move.index, move.slice, problem.buffers[part.buffer].name),
                "move" if nearer == 0 else "load" if nearer > 0 else "store",
                *(move.engine, machine.engines[move.engine].name, move.channel),
                *(source.name, "+".join(memory.name for memory in others), len(others)),
                *(part.bytes, move.start, move.end, move.end - move.start, len(move.route)),
            )

    return _frame(rows(), TRANSFERS)


def core_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return :func:`core_rows` as a frame."""
    return _frame_of(core_rows(problem, plan), CORES).astype({"capacity": "Int64"})


def core_rows(problem: Problem, plan: Plan) -> list[dict[str, Any]]:
    """Return the cores: tasks, busy cycles, share of the makespan, bytes of their memory.

    ``peak`` ends the highest residency; ``live_peak`` is the most occupied at one time, a lower
    bound on it. Cores that share a memory have the same. ``capacity`` is missing without limit.
    """
    makespan = plan.claim.makespan
    memories = memory_rows(problem, plan)
    tasks = Counter(placement.core for placement in plan.placements)
    busy: Counter[int] = Counter()
    for placement in plan.placements:
        busy[placement.core] += placement.end - placement.start
    return [
        memories[core.memory]
        | {
            "core": core.index,
            "name": core.name,
            "memory_name": memories[core.memory]["name"],
            "tasks": tasks[core.index],
            "busy": busy[core.index],
            "utilisation": busy[core.index] / makespan if makespan else 0.0,
        }
        for core in problem.machine.cores
    ]


def memory_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the memories: residencies, and bytes as in :func:`core_rows`.

    ``utilisation`` is ``peak / capacity``, 0 to 1; missing without limit, as ``capacity`` is.
    """
    rows = memory_rows(problem, plan)
    for use in rows:
        use["utilisation"] = use["peak"] / use["capacity"] if use["capacity"] else None
    return _frame_of(rows, MEMORIES).astype({"capacity": "Int64", "utilisation": "Float64"})


def memory_rows(problem: Problem, plan: Plan) -> list[dict[str, Any]]:
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


def _frame_of(rows: Iterable[Mapping[str, Any]], columns: tuple[str, ...]) -> "pd.DataFrame":
    return _frame((tuple(row[name] for name in columns) for row in rows), columns)


def _frame(rows: Iterable[tuple[Any, ...]], columns: tuple[str, ...]) -> "pd.DataFrame":
    """Return a frame whose index is the first column."""
    import pandas as pd

    return pd.DataFrame.from_records(list(rows), columns=list(columns)).set_index(columns[0])
