"""Everything that a schedule in the making knows; created in Python, changed by compiled code."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from spmilp.solvers.list_scheduler.arrays import MachineArrays, ProblemArrays
from spmilp.solvers.list_scheduler.records import NONE, Ints, Table, table
from spmilp.solvers.list_scheduler.space import Space
from spmilp.solvers.list_scheduler.timeline import Timeline


class Stop(IntEnum):
    """Why compiled code came back."""

    DONE = 0
    RESIDENCIES_FULL = 1
    TRANSFERS_FULL = 2
    TIMELINE_FULL = 3
    BLOCKS_FULL = 4
    DOES_NOT_FIT = 5
    NO_WAY = 6


class Weights(NamedTuple):
    """What a choice costs, in cycles; the portfolio tries several.

    Parameters
    ----------
    evict
        Part of the time to bring a slice back that evicting it costs now.
    horizon
        Tasks of one core after which an evicted slice's next use counts half.
    early
        Cost of each cycle by which bytes for a load are free later than its source is ready.
    idle
        Cost of each cycle for which bytes lie idle before a task writes to them.
    dram
        Part of its duration that a load from DRAM costs more than one from another scratchpad.
    """

    evict: float = 0.5
    horizon: float = 4.0
    early: float = 0.05
    idle: float = 0.01
    dram: float = 0.5


class State(NamedTuple):
    """A partial schedule.

    ``residencies``
        ``slice`` held (-1 for scratch), ``memory``, ``offset``, ``bytes``, ``start``, the cycle
        from which it is ``valid``, the ``end`` of its last use so far, ``filled_by_task`` or
        ``filled_by_transfer``, whether it is ``alive``, the ``following`` residency of the same
        slice, and the task by which it is ``pinned``.
    ``transfers``
        ``slice``, ``source``, ``destination``, ``pair`` of memories, ``engine``, ``start`` and
        ``end``.
    ``slices``
        ``first`` residency, ``next_reader`` (entry of ``readers``).
    ``buffers``
        ``home``, the residency that must not be lost while somebody needs the buffer and DRAM has
        no copy; ``in_dram``, its residency there.
    ``tasks``
        ``position`` in the order, ``core``, ``start``, ``end``, whether ``placed``, ``scratch``
        residency.
    ``cores``
        the cycle from which each is ``free``.
    ``memories``
        the cycle before which nothing will be placed any more (``settled``).
    ``serves``, ``holds``
        the residency of each entry of the problem's ``reads`` and ``writes``.
    ``readers``
        the problem's readers, each slice's in the order in which they are placed.
    ``counts``
        of residencies and transfers, and who failed; see ``COUNT_...``.
    """

    residencies: Table
    transfers: Table
    slices: Table
    buffers: Table
    tasks: Table
    cores: Table
    memories: Table
    serves: Ints
    holds: Ints
    readers: Ints
    counts: Ints


COUNT_RESIDENCIES = 0
COUNT_TRANSFERS = 1
COUNT_FAILED_TASK = 2
COUNT_FAILED_SLICE = 3
COUNT_FAILED_MEMORY = 4


class Board(NamedTuple):
    """What the compiled functions play on."""

    problem: ProblemArrays
    machine: MachineArrays
    state: State
    space: Space
    line: Timeline
    weights: Weights


def new_state(
    problem: ProblemArrays, machine: MachineArrays, order: Ints, cores: Ints, room: int
) -> State:
    """Return an empty schedule with room for ``room`` residencies and transfers.

    Parameters
    ----------
    order
        Every task once, each after all that it follows.
    cores
        For each task its core, or -1 to let the scheduler choose.
    """
    tasks = table(len(order), "position", "core", "start", "end", "placed", "scratch")
    tasks["position"][order] = np.arange(len(order))
    tasks["core"] = cores
    tasks["scratch"] = NONE
    slices = table(problem.slices.size, "first", "next_reader")
    slices["first"] = NONE
    slices["next_reader"] = problem.readers_from[:-1]
    buffers = table(problem.buffers.size, "home", "in_dram")
    buffers["home"] = NONE
    buffers["in_dram"] = NONE
    return State(
        residencies=_residencies(room),
        transfers=table(room, "slice", "source", "destination", "pair", "engine", "start", "end"),
        slices=slices,
        buffers=buffers,
        tasks=tasks,
        cores=table(machine.core_kind.size, "free"),
        memories=table(machine.memories.size, "settled"),
        serves=np.full(problem.reads.size, NONE, np.int64),
        holds=np.full(problem.writes.size, NONE, np.int64),
        readers=_readers_by_position(problem, tasks["position"]),
        counts=np.array([0, 0, NONE, NONE, NONE], np.int64),
    )


def _residencies(room: int) -> Table:
    where = ("slice", "memory", "offset", "bytes")
    when = ("start", "valid", "end")
    links = ("filled_by_task", "filled_by_transfer", "alive", "following", "pinned")
    rows = table(room, *where, *when, *links)
    for field in ("filled_by_task", "filled_by_transfer", "following", "pinned"):
        rows[field] = NONE
    return rows


def _readers_by_position(problem: ProblemArrays, position: Ints) -> Ints:
    lengths = np.diff(problem.readers_from)
    slice_of_entry = np.repeat(np.arange(lengths.size), lengths)
    return problem.readers[np.lexsort((position[problem.readers], slice_of_entry))]
