"""A plan as pandas frames, one row for each task, residency, transfer, core and memory.

Bytes and cycles are integers; intervals are half-open. Columns of names stand beside those of
indices. Pandas takes a second to load, and is imported when the first frame is made.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spmilp.machine.machine import MemoryKind
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Plan, Residency
from spmilp.plan.turns import residencies_of_period
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = {MemoryKind.DRAM: 0, MemoryKind.SHARED: 1, MemoryKind.SPM: 2}
"""How near to the cores: data that comes nearer is loaded, data that goes away stored."""

BYTES = ("peak", "live_peak", "reserved", "capacity")
"""What rows of cores say of their memories."""


def task_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the tasks: where and when they run, and what the model calls them."""
    rows = [(problem.tasks[place.task], place) for place in plan.placements]
    slices, buffers = problem.slices, problem.buffers
    return _frame(
        task=[task.index for task, _ in rows],
        name=[task.name for task, _ in rows],
        operator=[task.tile.of if task.tile else None for task, _ in rows],
        core=[place.core for _, place in rows],
        core_name=[problem.machine.cores[place.core].name for _, place in rows],
        start=[place.start for _, place in rows],
        end=[place.end for _, place in rows],
        cycles=[place.end - place.start for _, place in rows],
        bytes_read=[sum(slices[read].bytes for read in task.reads) for task, _ in rows],
        bytes_written=[sum(buffers[buffer].bytes for buffer in task.writes) for task, _ in rows],
        scratch=[task.scratch for task, _ in rows],
    )


def residency_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the residencies; ``slice`` and ``filled_by`` are missing where there is none."""
    rows = plan.residencies
    held = [None if one.slice is None else problem.slices[one.slice] for one in rows]
    buffers = [None if part is None else problem.buffers[part.buffer] for part in held]
    return _frame(
        residency=[one.index for one in rows],
        slice=[one.slice for one in rows],
        name=[buffer and buffer.name for buffer in buffers],
        kind=[buffer.kind.value if buffer else "scratch" for buffer in buffers],
        memory=[one.memory for one in rows],
        memory_name=[problem.machine.memories[one.memory].name for one in rows],
        offset=[one.offset for one in rows],
        bytes=[one.bytes for one in rows],
        start=[one.start for one in rows],
        end=[one.end for one in rows],
        filled_by=[_filler(one) for one in rows],
    ).astype({"slice": "Int64"})


def _filler(residency: Residency) -> str | None:
    if residency.filled_by_task is not None:
        return f"task {residency.filled_by_task}"
    filler = residency.filled_by_transfer
    return None if filler is None else f"transfer {filler}"


def transfer_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the transfers; ``destinations`` counts them, and names join those of a multicast."""
    machine, rows = problem.machine, plan.transfers
    parts = [problem.slices[move.slice] for move in rows]
    ends = [
        [machine.memories[plan.residencies[e].memory] for e in (move.source, *move.destinations)]
        for move in rows
    ]
    nearer = [_LEVEL[others[0].kind] - _LEVEL[source.kind] for source, *others in ends]
    return _frame(
        transfer=[move.index for move in rows],
        slice=[move.slice for move in rows],
        name=[problem.buffers[part.buffer].name for part in parts],
        direction=["move" if n == 0 else "load" if n > 0 else "store" for n in nearer],
        engine=[move.engine for move in rows],
        engine_name=[machine.engines[move.engine].name for move in rows],
        channel=[move.channel for move in rows],
        source=[source.name for source, *_ in ends],
        destination=["+".join(memory.name for memory in others) for _, *others in ends],
        destinations=[len(move.destinations) for move in rows],
        bytes=[part.bytes for part in parts],
        start=[move.start for move in rows],
        sent=[move.sent for move in rows],
        end=[move.end for move in rows],
        cycles=[move.end - move.start for move in rows],
        hops=[len(move.route) for move in rows],
    )


def core_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return :func:`core_rows` as a frame."""
    return _frame_of(core_rows(problem, plan)).astype({"capacity": "Int64"})


def core_rows(problem: Problem, plan: Plan) -> list[dict[str, Any]]:
    """Return the cores: tasks, busy cycles, share of the makespan, bytes of their memory.

    Of a stream, the share is that of the period.
    ``peak`` ends the highest residency; ``live_peak`` is the most occupied at one time, a lower
    bound on it. Cores that share a memory have the same. ``capacity`` is missing without limit.
    """
    length = plan.claim.of(Quantity.PERIOD)
    memories = memory_rows(problem, plan)
    tasks = Counter(placement.core for placement in plan.placements)
    busy: Counter[int] = Counter()
    for placement in plan.placements:
        busy[placement.core] += placement.end - placement.start
    return [
        {
            "core": core.index,
            "name": core.name,
            "memory": core.memory,
            "memory_name": memories[core.memory]["name"],
            "tasks": tasks[core.index],
            "busy": busy[core.index],
            "utilisation": busy[core.index] / length if length else 0.0,
            **{name: memories[core.memory][name] for name in BYTES},
        }
        for core in problem.machine.cores
    ]


def memory_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the memories: residencies, and bytes as in :func:`core_rows`.

    ``utilisation`` is ``peak / capacity``, 0 to 1; missing without limit, as ``capacity`` is.
    """
    frame = _frame_of(memory_rows(problem, plan)).astype({"capacity": "Int64"})
    return frame.assign(utilisation=(frame["peak"] / frame["capacity"]).astype("Float64"))


def memory_rows(problem: Problem, plan: Plan) -> list[dict[str, Any]]:
    """Return how each memory is used; ``capacity`` is ``None`` without limit."""
    machine = problem.machine
    residencies: list[list[Residency]] = [[] for _ in machine.memories]
    in_turns: list[list[Residency]] = [[] for _ in machine.memories]
    for residency in plan.residencies:
        residencies[residency.memory].append(residency)
    for residency, _ in residencies_of_period(plan):
        in_turns[residency.memory].append(residency)
    return [
        {
            "memory": memory.index,
            "name": memory.name,
            "kind": memory.kind.value,
            "residencies": len(here),
            "peak": max(
                (max(one.offset, *one.instances, 0) + one.bytes for one in here), default=0
            ),
            "live_peak": max(live_bytes(at_once)[1], default=0),
            "reserved": sum(taken.end - taken.start for taken in memory.reserved),
            "capacity": memory.size,
        }
        for memory, here, at_once in zip(machine.memories, residencies, in_turns, strict=True)
    ]


def _frame_of(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    return _frame(**{name: [row[name] for row in rows] for name in rows[0]})


def _frame(**columns: Sequence[object]) -> "pd.DataFrame":
    """Return a frame whose index is the first column."""
    import pandas as pd

    return pd.DataFrame(columns).set_index(next(iter(columns)))
