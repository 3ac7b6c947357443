"""A plan as pandas frames, one row for each task, residency, transfer and core.

Bytes and cycles are integers; intervals are half-open. Columns of names stand beside those of
indices.
"""

from typing import TYPE_CHECKING, Any

from spmilp.plan import derived
from spmilp.plan.ends import End, Ends
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


def task_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the tasks: where and when they run, and what the model calls them."""
    return _frame([_task(problem, placement) for placement in plan.placements], TASKS)


def residency_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the residencies; ``slice`` and ``filled_by`` are missing where there is none."""
    rows = [_residency(problem, residency) for residency in plan.residencies]
    return _frame(rows, RESIDENCIES).astype({"slice": "Int64"})


def transfer_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the transfers; ``destinations`` counts them, and names join those of a multicast."""
    ends = Ends(problem, plan)
    rows = [_transfer(problem, move, ends.of(move)) for move in plan.transfers]
    return _frame(rows, TRANSFERS)


def core_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the cores: tasks, busy cycles, share of the makespan, bytes of their memory.

    ``peak`` ends the highest residency; ``live_peak`` is the most occupied at one time, a lower
    bound on it. Cores that share a memory have the same. ``capacity`` is missing without limit.
    """
    makespan = plan.claim.makespan
    rows = []
    for core in derived.of_cores(problem, plan):
        share = core["busy"] / makespan if makespan else 0.0
        fields = {**core, "core": core["index"], "utilisation": share}
        rows.append(tuple(fields.get(name) for name in CORES))
    return _frame(rows, CORES).astype({"capacity": "Int64"})


def memory_frame(problem: Problem, plan: Plan) -> "pd.DataFrame":
    """Return the memories: residencies, and bytes as in :func:`core_frame`.

    ``utilisation`` is ``peak / capacity``, 0 to 1; missing without limit, as ``capacity`` is.
    """
    rows = []
    for use in derived.of_memories(problem, plan):
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


def _residency(problem: Problem, residency: Residency) -> tuple[Any, ...]:
    names = derived.of_content(problem, residency.slice)
    filler = None
    if residency.filled_by_task is not None:
        filler = f"task {residency.filled_by_task}"
    elif residency.filled_by_transfer is not None:
        filler = f"transfer {residency.filled_by_transfer}"
    return (
        residency.index,
        residency.slice,
        names.get("name"),
        names["kind"],
        residency.memory,
        derived.of_memory(problem, residency.memory)["memory_name"],
        residency.offset,
        residency.bytes,
        residency.start,
        residency.end,
        filler,
    )


def _transfer(problem: Problem, move: Transfer, ends: tuple[End, ...]) -> tuple[Any, ...]:
    memories = problem.machine.memories
    source, *others = [memories[end.memory].name for end in ends]
    moved = derived.of_content(problem, move.slice)
    return (
        move.index,
        move.slice,
        moved["name"],
        derived.direction(problem, ends[0].memory, ends[1].memory),
        move.engine,
        derived.of_engine(problem, move.engine)["engine_name"],
        move.channel,
        source,
        "+".join(others),
        len(others),
        moved["bytes"],
        move.start,
        move.end,
        move.end - move.start,
        len(move.route),
    )


def _frame(rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> "pd.DataFrame":
    """Return a frame whose index is the first column; pandas takes a second to load."""
    import pandas as pd

    return pd.DataFrame.from_records(rows, columns=list(columns)).set_index(columns[0])
