"""The state of serial schedule generation: problem, machine and a partial schedule, in tables.

What a table says of the problem and the machine stays; what it says of the schedule changes from
task to task. A field ``x_from`` comes with ``x_to``: a range of the table or array that the field's
description names.
"""

from enum import IntEnum
from typing import NamedTuple

from spmilp.solvers.schedule.kernels.records import Ints, Table
from spmilp.solvers.schedule.kernels.timeline import Timeline
from spmilp.units import Cycles


class Stop(IntEnum):
    """Why compiled code came back."""

    DONE = 0
    RESIDENCIES_FULL = 1
    TRANSFERS_FULL = 2
    TIMELINE_FULL = 3
    BLOCKS_FULL = 4
    DOES_NOT_FIT = 5
    UNREACHABLE = 6
    TOO_LATE = 7


(
    DONE,
    RESIDENCIES_FULL,
    TRANSFERS_FULL,
    TIMELINE_FULL,
    BLOCKS_FULL,
    DOES_NOT_FIT,
    UNREACHABLE,
    TOO_LATE,
) = map(int, Stop)
# The .pxd has the numbers of these, and of those below, for C.


# What stands in place of a holder where a block of a memory has none.
FREE = -1
RESERVED = -2


class AddressSpace(NamedTuple):
    """The blocks of all memories, one row each, in order of address.

    Each row has room for ``most`` blocks. A block, ``blocks[memory * most + i]``, reaches from
    ``start`` to the next block's; ``length`` is the number of blocks of each memory, and the block
    after the last one begins at the memory's end. ``holder`` is a residency, ``FREE`` or
    ``RESERVED``; ``free_from`` matters for free blocks only.
    """

    blocks: Table
    length: Ints
    most: int


class Weights(NamedTuple):
    """Costs of the scheduler's choices, in cycles; the portfolio tries several.

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


class TableRows(NamedTuple):
    """Rows of tables, and the kinds of cores."""

    buffers: int
    cores: int
    kinds: int
    memories: int
    residencies: int
    transfers: int


COUNT_RESIDENCIES = 0
COUNT_TRANSFERS = 1
COUNT_FAILED_TASK = 2
COUNT_FAILED_SLICE = 3
COUNT_FAILED_MEMORY = 4
COUNT_LATEST = 5


class ScheduleState(NamedTuple):
    """The problem, the machine and a partial schedule.

    ``tasks``
        ``reads_from`` of ``reads``, ``writes_from`` of ``writes``, ``before_from`` of ``lists``
        (the tasks it follows), ``scratch_bytes``, the ``tail`` (cycles of the longest chain of
        tasks behind it). Schedule: ``position`` in the order, ``core``, ``start``, ``end``,
        whether ``placed``, its ``scratch`` residency.
    ``cycles``
        of each task on each kind of core, or -1: ``cycles[task * kinds + kind]``.
    ``reads``
        one row for each slice that a task reads: ``slice``, ``reader``; the residency it is
        ``served_by``, or -1.
    ``writes``
        one row for each buffer that a task writes: ``buffer``; ``overwrites_from`` of ``lists``
        (positions among the task's reads of the slices whose bytes it may take over); the residency
        it is ``held_by``.
    ``slices``
        ``buffer``, ``bytes``; of copies the
        :func:`~spmilp.machine.controllers.shape_number`: between residencies of the slice
        (``packed``), out of its parent's residency (``from_parent``), and to or from its place in
        DRAM (``at_place``); the bytes by which it lies behind the begin of either of these
        (``offset_in_parent``, ``offset_at_place``),
        ``readers_from`` of ``readers``. Schedule: ``first`` residency, ``next_reader``.
    ``readers``
        the tasks that read each slice, in the order in which they are placed.
    ``buffers``
        the memory where it ``begins`` and the one that must hold it when all ``ends``, or -1;
        ``parts_from`` of ``lists`` (its slices). Schedule: ``home``, the residency that must not be
        lost while some task needs the buffer and DRAM has no copy; ``in_dram``, its residency
        there.
    ``cores``
        ``kind``, ``memory``; the cycle from which it is ``free``.
    ``memories``
        ``alignment``, ``is_dram``, ``parent`` (the next memory towards DRAM, or -1), ``aside`` (the
        shared memory to which its contents are rather spilled, or -1); the cycle before which
        nothing will be placed any more (``settled``). While a core is sought for a task: the cycles
        of loads that the memory's contents save (``loads_saved``), and the last read for which that
        was counted (``counted_for``).
    ``pair_at``
        for a source and a destination memory, the row in ``pairs``, or -1:
        ``pair_at[source * memories + destination]``.
    ``pairs``
        ``options_from`` of ``options``, ``links_from`` of ``links``.
    ``options``
        transfer options: an ``engine`` with its ``setup``, the ``latency``, and a scaled ``rate``.
    ``links``
        the links of each pair's route, as rows of ``resources``.
    ``resources``
        the engines, then the links: ``capacity`` in channels or scaled bytes per cycle; for engines
        the ``longest`` transfer, ``dimensions`` and the bits of ``shapes`` that matter to it, the
        ``congruence``, and whether they can ``multicast`` and are ``pipelined``.
    ``residencies``
        ``slice`` held (-1 for scratch), ``memory``, ``offset``, ``bytes``,
        ``start``, the cycle from which it is ``valid``, the ``end`` of its last use so far,
        ``filled_by_task`` or ``filled_by_transfer``, the residency whose bytes it ``overwrites`` in
        place, whether it is ``alive``, the ``following``
        residency of the same slice, and the task by which it is ``pinned``.
    ``transfers``
        ``slice``, ``source``, ``destination``, ``engine``, ``start``, ``sent``, ``end``.
    ``prices``
        of the blocks of the memory in which bytes are wanted: from when each could be free
        (``free_from``, ``NEVER`` if it must stay), what evicting its holder costs (``cost``), and
        the end of the ``store`` that has to come before, once it was asked for, and whether it
        ``is_chosen`` to be cleared. Row i also says which block that can be cleared is the i-th to
        be free (``in_turn``).
    ``counts``
        of residencies and transfers, the task, slice and memory that failed, and the latest
        makespan wanted; see ``COUNT_...``.
    ``scale``
        Bytes per cycle times this are the scaled rates: all are whole numbers, nothing is rounded.
    ``reach``
        Tasks in the order behind the next reader of a slice whose memories a transfer of it may
        fill, too; 0 where no engine can.
    ``cast_links``
        room for the links of such a transfer.
    ``is_open``
        Whether addresses are open: bytes are taken in pieces, wherever they are free, and the
        addresses of residencies mean nothing.
    ``chosen``
        room for the residencies that are to be evicted then.
    ``rows``
        how many rows some of the tables have.
    """

    tasks: Table
    cycles: Ints
    reads: Table
    writes: Table
    slices: Table
    readers: Ints
    buffers: Table
    lists: Ints
    cores: Table
    memories: Table
    pair_at: Ints
    pairs: Table
    options: Table
    links: Ints
    resources: Table
    residencies: Table
    transfers: Table
    prices: Table
    counts: Ints
    space: AddressSpace
    timeline: Timeline
    scale: int
    reach: int
    cast_links: Ints
    is_open: bool
    chosen: Ints
    weights: Weights
    rows: TableRows

    def made_residencies(self) -> Table:
        """Return the rows of ``residencies`` that are in use."""
        return self.residencies[: self.counts[COUNT_RESIDENCIES]]

    def made_transfers(self) -> Table:
        """Return the rows of ``transfers`` that are in use."""
        return self.transfers[: self.counts[COUNT_TRANSFERS]]

    def makespan(self) -> Cycles:
        """Return the end of the last task or transfer."""
        ends = (self.tasks["end"], self.made_transfers()["end"])
        return int(max(end.max(initial=0) for end in ends))
