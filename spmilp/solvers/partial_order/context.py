"""What stays the same while a plan's times and addresses change."""

from dataclasses import dataclass

import numpy as np

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.plan_columns import PlanColumns, columns_of_plan
from spmilp.solvers.kernels.records import NEVER, NONE, Ints, Rows, numbers
from spmilp.solvers.partial_order.from_plan import (
    followers_at_places,
    home_tensors,
    partial_order_of,
    reuse_order_of,
)
from spmilp.solvers.partial_order.schedule import (
    FREE,
    Flags,
    Memories,
    PartialOrderSchedule,
    ReuseOrder,
    TimedSchedule,
    is_alive,
    timed,
)
from spmilp.solvers.partial_order.transfer_options import OptionTables, option_tables_of
from spmilp.units import MemoryIdx, ResidencyIdx

MOST_FREE_SLOTS = 1000
"""In a schedule; those that were used and dropped again are used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleContext:
    """A problem and a plan of it, and what all schedules made from that plan have in common.

    Parameters
    ----------
    origin
        The plan; ``None`` for one that is known by its columns alone.
    activities
        Number of tasks and transfers of the plan; the free slots of schedules come behind them.
    packed
        Memories in which offsets are chosen anew: all but DRAMs.
    usable
        Bytes of each of them; ``NEVER`` for the others.
    is_dram
        Of each memory.
    homes
        The tensor in which each residency lies at its buffer's place; -1 for the others.
    options
        How slices can be sent between scratchpads.
    placed
        Pairs of residencies at their places in tensors, one before the other.
    kept_reuse
        The order of residencies on the same bytes where addresses are never chosen anew.
    dram_is_free
        Whether no DRAM has a limit.
    drops_transfers
        Whether transfers may be dropped.
    bypasses_dram
        Whether transfers of DRAMs may become copies between scratchpads.
    """

    problem: Problem
    origin: Plan | None
    activities: int
    packed: tuple[MemoryIdx, ...]
    usable: Ints
    is_dram: Flags
    homes: Ints
    options: OptionTables
    placed: tuple[tuple[ResidencyIdx, ResidencyIdx], ...]
    kept_reuse: ReuseOrder
    dram_is_free: bool
    drops_transfers: bool
    bypasses_dram: bool

    @property
    def plan(self) -> Plan:
        """The plan that all schedules are made from."""
        if self.origin is None:
            raise ValueError("only the columns of the plan are known")
        return self.origin

    def with_capacity(self, limit: Ints) -> Memories:
        """Return the memories with open addresses: so many bytes of each may be in use."""
        return Memories(limit, self.kept_reuse)

    def with_addresses_of(self, timed: TimedSchedule) -> Memories:
        """Return the memories with all addresses as they are.

        In DRAMs without limit, addresses are given out at the end and say nothing before.
        """
        schedule = timed.schedule
        counted = ~self.is_dram[schedule.memory]
        if not self.dram_is_free:
            counted |= self.homes == NONE
        counted &= is_alive(schedule)
        reuse = reuse_order_of(schedule, timed.start, counted, self.placed)
        return Memories(np.full(self.usable.size, NEVER), reuse)

    def arrivals(self, schedule: PartialOrderSchedule) -> tuple[Ints, Ints]:
        """Return the transfers into memories other than DRAMs, and what each of them reads."""
        moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
        target = schedule.fills.items[schedule.fills.begin[moves]]
        moves = moves[~self.is_dram[schedule.memory[target]]]
        return moves, schedule.reads.items[schedule.reads.begin[moves]]


def context_of(
    problem: Problem,
    plan: Plan | PlanColumns,
    options: OptionTables | None = None,
    *,
    drops_transfers: bool = True,
    bypasses_dram: bool = True,
    changes_cores: bool = True,
) -> tuple[ScheduleContext, TimedSchedule]:
    """Return what stays, and the schedule of a valid plan.

    Parameters
    ----------
    plan
        Its columns do where nothing is asked but times, and no DRAM has a limit.
    changes_cores
        Whether tasks may change cores; the schedule then has free slots for more transfers.
    """
    columns = plan if isinstance(plan, PlanColumns) else columns_of_plan(plan)
    slots = min(MOST_FREE_SLOTS, len(problem.tasks)) if changes_cores else 0
    schedule = _with_free_slots(partial_order_of(problem, columns), slots)
    start = np.concatenate((columns.start, np.zeros(slots, np.int64)))
    first = timed(schedule, start)
    memories = problem.machine.memories
    dram_is_free = all(memory.size is None for memory in problem.machine.drams)
    is_dram = np.array([memory.kind is MemoryKind.DRAM for memory in memories])
    homes = home_tensors(problem, schedule)
    placed = tuple(followers_at_places(problem, schedule, homes, *first.lifetimes()))
    kept = is_dram[schedule.memory] & (homes == NONE) & (not dram_is_free)
    context = ScheduleContext(
        problem=problem,
        origin=plan if isinstance(plan, Plan) else None,
        activities=columns.start.size,
        packed=tuple(np.flatnonzero(~is_dram).tolist()),
        usable=numbers(
            NEVER if memory.kind is MemoryKind.DRAM else memory.usable or 0 for memory in memories
        ),
        is_dram=is_dram,
        homes=homes,
        options=option_tables_of(problem, columns) if options is None else options,
        placed=placed,
        kept_reuse=reuse_order_of(schedule, start, kept, placed),
        dram_is_free=dram_is_free,
        drops_transfers=drops_transfers,
        bypasses_dram=bypasses_dram,
    )
    return context, first


def _with_free_slots(schedule: PartialOrderSchedule, count: int) -> PartialOrderSchedule:
    """Return a schedule with free slots behind its transfers, for copies that become necessary.

    A free slot is a transfer that was dropped from the beginning: it takes no time and fills a
    residency that is never there.
    """
    activities, residencies = schedule.cycles.size, schedule.filler.size
    fills = Rows(
        np.concatenate((schedule.fills.begin, schedule.fills.items.size + 1 + np.arange(count))),
        np.concatenate((schedule.fills.items, residencies + np.arange(count))),
    )

    def longer(column: Ints, value: int) -> Ints:
        return np.concatenate((column, np.full(count, value, np.int64)))

    def with_empty(rows: Rows) -> Rows:
        return Rows(longer(rows.begin, rows.begin[-1]), rows.items)

    return schedule._replace(
        cycles=longer(schedule.cycles, 0),
        moved_slice=longer(schedule.moved_slice, NONE),
        demands=with_empty(schedule.demands),
        reads=with_empty(schedule.reads),
        fills=fills,
        before=with_empty(schedule.before),
        after=with_empty(schedule.after),
        readers=with_empty(schedule.readers),
        filler=np.concatenate((schedule.filler, activities + np.arange(count))),
        memory=longer(schedule.memory, 0),
        offset=longer(schedule.offset, 0),
        bytes=longer(schedule.bytes, 1),
        lasting=longer(schedule.lasting, 0),
        slice=longer(schedule.slice, NONE),
        overwrites=longer(schedule.overwrites, NONE),
        overwritten_by=longer(schedule.overwritten_by, NONE),
        head=longer(schedule.head, 0),
        tail=longer(schedule.tail, 0),
        fixed=longer(schedule.fixed, FREE),
    )
