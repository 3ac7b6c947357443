"""What stays the same while a plan's times and offsets change."""

from dataclasses import dataclass

import numpy as np

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NEVER, NONE, Ints, Rows, numbers
from spmilp.solvers.partial_order.from_plan import partial_order_of, starts_of
from spmilp.solvers.partial_order.reuse_order import (
    followers_at_places,
    home_tensors,
    reuse_order_of,
)
from spmilp.solvers.partial_order.schedule import (
    Flags,
    PartialOrderSchedule,
    ReuseOrder,
    is_alive,
    lifetimes,
    makespan_of,
)
from spmilp.solvers.partial_order.transfer_options import OptionTables
from spmilp.units import MemoryIdx, ResidencyIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleContext:
    """The memories of a machine, and the order of what lies in its DRAMs.

    Parameters
    ----------
    packed
        Memories in which offsets are chosen anew: all but DRAMs.
    usable
        Bytes of each of them; ``NEVER`` for the others.
    is_dram
        Of each memory.
    homes
        The tensor at a place of which each residency lies; -1 for the others.
    options
        The ways between scratchpads.
    placed
        Pairs of residencies at their places in tensors, one before the other.
    kept_reuse
        The order of reuse_order where addresses are never chosen anew.
    dram_is_free
        Whether no DRAM has a limit.
    drops_transfers
        Whether transfers may be dropped.
    bypasses_dram
        Whether transfers of DRAMs may become copies between scratchpads.
    """

    problem: Problem
    plan: Plan
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

    def reuse_order(self, schedule: PartialOrderSchedule, start: Ints) -> ReuseOrder:
        """Return who follows whom on the same bytes.

        In DRAMs without limit, addresses are given out at the end and say nothing before.
        """
        counted = ~self.is_dram[schedule.memory]
        if not self.dram_is_free:
            counted |= self.homes == NONE
        return reuse_order_of(schedule, start, counted & is_alive(schedule), self.placed)


def context_of(
    problem: Problem,
    plan: Plan,
    options: OptionTables,
    *,
    drops_transfers: bool = True,
    bypasses_dram: bool = True,
    changes_cores: bool = True,
) -> tuple[ScheduleContext, PartialOrderSchedule, Ints]:
    """Return what stays, and the schedule and the start cycles of a valid plan.

    Parameters
    ----------
    changes_cores
        Whether tasks may change cores; the schedule then has room for more transfers than the plan.
    """
    free_slots = min(MOST_FREE_SLOTS, len(problem.tasks)) if changes_cores else 0
    schedule, start = with_free_slots(partial_order_of(problem, plan), starts_of(plan), free_slots)
    memories = problem.machine.memories
    dram_is_free = all(memory.size is None for memory in problem.machine.drams)
    is_dram = np.array([memory.kind is MemoryKind.DRAM for memory in memories])
    begins, ends = lifetimes(schedule, start, makespan_of(schedule, start))
    homes = home_tensors(problem, schedule)
    placed = tuple(followers_at_places(problem, schedule, homes, begins, ends))
    kept = is_dram[schedule.memory] & (homes == NONE) & (not dram_is_free)
    context = ScheduleContext(
        problem=problem,
        plan=plan,
        packed=tuple(np.flatnonzero(~is_dram).tolist()),
        usable=numbers(
            NEVER if memory.kind is MemoryKind.DRAM else memory.usable or 0 for memory in memories
        ),
        is_dram=is_dram,
        homes=homes,
        options=options,
        placed=placed,
        kept_reuse=reuse_order_of(schedule, start, kept, placed),
        dram_is_free=dram_is_free,
        drops_transfers=drops_transfers,
        bypasses_dram=bypasses_dram,
    )
    return context, schedule, start


MOST_FREE_SLOTS = 1000
"""In a schedule; free_slots that were used and dropped again are used again."""


def with_free_slots(
    schedule: PartialOrderSchedule, start: Ints, count: int
) -> tuple[PartialOrderSchedule, Ints]:
    """Return a schedule with so many free_slots behind its transfers, and its start cycles."""
    nothing, none, one = (np.full(count, value, np.int64) for value in (0, NONE, 1))
    activities, residencies = schedule.cycles.size, schedule.filler.size
    fills = Rows(
        np.concatenate((schedule.fills.begin, schedule.fills.items.size + 1 + np.arange(count))),
        np.concatenate((schedule.fills.items, residencies + np.arange(count))),
    )
    longer = schedule._replace(
        cycles=np.concatenate((schedule.cycles, nothing)),
        moved_slice=np.concatenate((schedule.moved_slice, none)),
        demands=_with_empty(schedule.demands, count),
        reads=_with_empty(schedule.reads, count),
        fills=fills,
        before=_with_empty(schedule.before, count),
        after=_with_empty(schedule.after, count),
        readers=_with_empty(schedule.readers, count),
        filler=np.concatenate((schedule.filler, activities + np.arange(count))),
        memory=np.concatenate((schedule.memory, nothing)),
        offset=np.concatenate((schedule.offset, nothing)),
        bytes=np.concatenate((schedule.bytes, one)),
        lasting=np.concatenate((schedule.lasting, nothing)),
        slice=np.concatenate((schedule.slice, none)),
        overwrites=np.concatenate((schedule.overwrites, none)),
        overwritten_by=np.concatenate((schedule.overwritten_by, none)),
    )
    return longer, np.concatenate((start, nothing))


def _with_empty(rows: Rows, count: int) -> Rows:
    return Rows(np.concatenate((rows.begin, np.full(count, rows.begin[-1]))), rows.items)
