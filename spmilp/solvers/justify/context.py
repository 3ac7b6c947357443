"""From a plan to its partial-order schedule, and back.

What stays the same while times and addresses change is a :class:`ScheduleContext`.
"""

from dataclasses import dataclass, replace

import numpy as np

from spmilp.machine.machine import MemoryKind
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.memory import box_at_place
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.justify.profiles import successions
from spmilp.solvers.justify.schedule import (
    Demands,
    Flags,
    Memories,
    PartialOrderSchedule,
    ReuseOrder,
    TimedSchedule,
    demands_of_transfers,
    is_alive,
    pools_of,
    timed,
)
from spmilp.solvers.justify.transfer_options import OptionTables, option_tables_of
from spmilp.solvers.schedule.kernels.addresses import dram_addresses
from spmilp.solvers.schedule.kernels.plan_columns import (
    PlanColumns,
    buffer_columns,
    columns_of_plan,
    least_free_numbers,
    placements_of,
    residencies_of,
    transfers_of,
)
from spmilp.solvers.schedule.kernels.records import (
    NEVER,
    NONE,
    Ints,
    Rows,
    inverted,
    numbers,
    owners_of,
    ranges_of,
    rows_from_pairs,
    rows_of,
)
from spmilp.solvers.schedule.kernels.tables import alignment_of

MOST_FREE_SLOTS = 1000
"""Most free slots of a schedule; slots whose transfer was dropped are used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleContext:
    """A problem and a plan of it, and what all schedules made from that plan have in common.

    Parameters
    ----------
    origin
        The plan; ``None`` for one that is known by its columns alone.
    activities
        Number of tasks and transfers of the plan; the free slots of schedules come behind them.
    usable
        Bytes of each memory in which offsets are chosen anew; ``NEVER`` for DRAMs.
    is_dram
        Of each memory.
    homes
        The tensor in which each residency lies at its buffer's place; -1 for the others.
    options
        How slices can be sent between scratchpads.
    placed
        Residencies whose places in a tensor overlap with those of others, and these: they begin
        after the first have ended.
    kept_reuse
        The order of residencies on the same bytes where addresses are never chosen anew.
    dram_is_free
        Whether no DRAM has a limit.
    keeps_transfers
        Whether transfers stay that could bypass DRAM.
    """

    problem: Problem
    origin: Plan | None
    activities: int
    usable: Ints
    is_dram: Flags
    homes: Ints
    options: OptionTables
    placed: tuple[Ints, Ints]
    kept_reuse: ReuseOrder
    dram_is_free: bool
    keeps_transfers: bool

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


def context_of(
    problem: Problem,
    plan: Plan | PlanColumns,
    options: OptionTables | None = None,
    *,
    keeps_transfers: bool = False,
    changes_cores: bool = True,
) -> tuple[ScheduleContext, TimedSchedule]:
    """Return the context and the schedule of a valid plan.

    Of the ``plan`` its columns suffice if only times are asked for and no DRAM has a limit. If it
    ``changes_cores``, the schedule has free slots for more transfers.
    """
    columns = plan if isinstance(plan, PlanColumns) else columns_of_plan(plan)
    memories = problem.machine.memories
    changes_cores &= bool(problem.machine.engines)
    slots = min(MOST_FREE_SLOTS, len(problem.tasks)) if changes_cores else 0
    if options is None:
        options = option_tables_of(problem, columns)
    activities, columns = columns.start.size, _with_free_slots(columns, slots)
    schedule = partial_order_of(problem, columns, options)
    first = timed(schedule, columns.start)
    dram_is_free = all(memory.size is None for memory in problem.machine.drams)
    is_dram = np.array([memory.kind is MemoryKind.DRAM for memory in memories])
    # The tensor at whose place each residency lies.
    tensor = buffer_columns(problem).tensor[buffer_columns(problem).of_slices[schedule.slice]]
    memory_of = numbers([*(tensor.memory for tensor in problem.tensors), NONE])
    homes = np.where(memory_of[tensor] == schedule.memory, tensor, NONE)
    placed = _followers_at_places(problem, schedule, homes, *first.lifetimes())
    kept = is_dram[schedule.memory] & (homes == NONE) & (not dram_is_free)
    context = ScheduleContext(
        problem=problem,
        origin=plan if isinstance(plan, Plan) else None,
        activities=activities,
        usable=numbers(
            NEVER if memory.kind is MemoryKind.DRAM else memory.usable or 0 for memory in memories
        ),
        is_dram=is_dram,
        homes=homes,
        options=options,
        placed=placed,
        kept_reuse=reuse_order_of(schedule, columns.start, kept, placed),
        dram_is_free=dram_is_free,
        keeps_transfers=keeps_transfers,
    )
    return context, first


def _with_free_slots(columns: PlanColumns, count: int) -> PlanColumns:
    """Return a plan's columns with free slots, for copies that become necessary.

    A free slot is a transfer that was dropped from the beginning: it takes no time and fills a
    residency that is never there.
    """

    def longer(column: Ints, value: int) -> Ints:
        return np.append(column, np.full(count, value, np.int64))

    def with_empty(rows: Rows) -> Rows:
        return Rows(longer(rows.begin, rows.begin[-1]), rows.items)

    filled, slots = columns.fills, np.arange(count)
    return columns._replace(
        start=longer(columns.start, 0),
        end=longer(columns.end, 0),
        sent=longer(columns.sent, 0),
        reads=with_empty(columns.reads),
        fills=Rows(
            np.append(filled.begin, filled.items.size + 1 + slots),
            np.append(filled.items, columns.slice.size + slots),
        ),
        moved=longer(columns.moved, NONE),
        engine=longer(columns.engine, 0),
        routes=with_empty(columns.routes),
        slice=longer(columns.slice, NONE),
        memory=longer(columns.memory, 0),
        offset=longer(columns.offset, 0),
        bytes=longer(columns.bytes, 1),
        first=longer(columns.first, 0),
        last=longer(columns.last, 0),
    )


def partial_order_of(
    problem: Problem, columns: PlanColumns, options: OptionTables
) -> PartialOrderSchedule:
    """Return the decisions of a valid plan."""
    activities, residencies = columns.start.size, columns.slice.size
    pools, transfers = pools_of(problem.machine), columns.moved.size
    before = rows_of([*(task.after for task in problem.tasks), *((),) * transfers])
    memory, offset, size = columns.memory, columns.offset, columns.bytes
    overwrites, overwritten_by = _in_place(columns.reads, columns.fills, memory, offset, size)
    return PartialOrderSchedule(
        cycles=columns.end - columns.start,
        latency=np.append(np.zeros(columns.tasks, np.int64), _latency(columns)),
        demands=_demands(problem, columns, options),
        capacity=np.append([len(cores) for cores in pools], options.limits["capacity"]),
        reads=columns.reads,
        fills=columns.fills,
        before=before,
        after=inverted(before, activities),
        readers=inverted(columns.reads, residencies),
        filler=columns.fillers(),
        memory=memory,
        offset=offset,
        bytes=size,
        alignment=numbers(
            alignment_of(problem.machine, memory.index) for memory in problem.machine.memories
        ),
        lasting=_lasting(problem, columns),
        slice=columns.slice,
        moved_slice=np.concatenate((np.full(columns.tasks, NONE), columns.moved)),
        overwrites=overwrites,
        overwritten_by=overwritten_by,
    )


def _lasting(problem: Problem, columns: PlanColumns) -> Ints:
    """Say of each residency whether it is an output, or lies in a DRAM from the start, to the end.

    A copy that happens to be there at the end need not stay.
    """
    buffers, is_slice = buffer_columns(problem), columns.slice != NONE
    buffer = buffers.of_slices[columns.slice]
    is_output = (columns.slice == buffer) & (buffers.ends_in[buffer] == columns.memory)
    is_initial = (columns.fillers() == NONE) & (buffers.tensor[buffer] != NONE)
    to_the_end = columns.last >= columns.end.max(initial=0)
    found: Ints = (is_slice & to_the_end & (is_output | is_initial)).astype(np.int64)
    return found


def _demands(problem: Problem, columns: PlanColumns, options: OptionTables) -> Demands:
    """Return what each activity holds: a core of a pool, or a channel and its rate on links."""
    machine, tasks = problem.machine, columns.tasks
    pool_of = np.zeros(len(machine.cores), np.int64)
    for pool, cores in enumerate(pools_of(machine)):
        pool_of[[*cores]] = pool
    rate = numbers(int(engine.rate * options.scale) for engine in machine.engines)
    crossing, links = owners_of(columns.routes), len(machine.engines) + columns.routes.items
    held = rate[columns.engine]
    np.minimum.at(held, crossing, options.limits["capacity"][links])
    resources = (
        pool_of[columns.core],
        options.first_engine + columns.engine,
        options.first_engine + links,
    )
    owners = np.concatenate((np.arange(columns.start.size), tasks + crossing))
    amounts = np.append(np.ones(columns.start.size, np.int64), held[crossing])
    order = np.argsort(owners, kind="stable")
    begin = np.append(0, np.cumsum(np.bincount(owners, minlength=columns.start.size)))
    of_tasks = np.zeros(tasks, np.int64)
    setup = numbers(engine.setup for engine in machine.engines)[columns.engine]
    return demands_of_transfers(
        Rows(begin, np.concatenate(resources)[order]),
        amounts[order],
        np.append(of_tasks, setup),
        np.append(of_tasks, _latency(columns)),
        np.append(of_tasks, options.limits["pipelined"][columns.engine]) != 0,
    )


def _latency(columns: PlanColumns) -> Ints:
    """Return how long each transfer takes after all is sent."""
    latency: Ints = columns.end[columns.tasks :] - columns.sent
    return latency


def _in_place(
    reads: Rows, fills: Rows, memory: Ints, offset: Ints, size: Ints
) -> tuple[Ints, Ints]:
    """Return the in-place predecessor and successor of each residency.

    A task that writes over an operand is the only case in which a valid plan lets two share bytes.
    """
    readers = owners_of(reads)
    filled = np.diff(fills.begin)[readers]
    old = np.repeat(reads.items, filled)
    new = ranges_of(fills.items, fills.begin[readers], filled).items
    share = (offset[old] < offset[new] + size[new]) & (offset[new] < offset[old] + size[old])
    share &= memory[old] == memory[new]
    overwrites, overwritten_by = np.full(size.size, NONE), np.full(size.size, NONE)
    overwritten_by[old[share]], overwrites[new[share]] = new[share], old[share]
    return overwrites, overwritten_by


def reuse_order_of(
    schedule: PartialOrderSchedule, start: Ints, where: Flags, extra: tuple[Ints, Ints]
) -> ReuseOrder:
    """Return which residencies have the same bytes one after the other, in a valid plan's times.

    Only residencies ``where`` addresses count follow others. ``extra`` are further ones, and for
    each another one that comes after it.
    """
    count = schedule.filler.size
    begins = np.where(schedule.filler == NONE, -1, start[schedule.filler])
    counted = np.flatnonzero(where)
    counted = counted[np.argsort(begins[counted], kind="stable")]
    # Between neighbouring edges lie cells of memory that are in use by the same residencies.
    first = schedule.memory * (1 + (schedule.offset + schedule.bytes).max(initial=0))
    first += schedule.offset
    past = first + schedule.bytes
    edges = np.unique(np.append(first[counted], past[counted]))
    cells = np.searchsorted(edges, first), np.searchsorted(edges, past)
    before, after = successions(counted, *cells, edges.size)
    earlier = rows_from_pairs(np.append(after, extra[1]), np.append(before, extra[0]), count)
    return ReuseOrder(earlier=earlier, later=inverted(earlier, count))


def _followers_at_places(
    problem: Problem, schedule: PartialOrderSchedule, homes: Ints, begins: Ints, ends: Ints
) -> tuple[Ints, Ints]:
    """Return residencies at places in tensors, and others there that are written after them."""
    before, after = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    is_filled = schedule.filler != NONE
    for tensor in np.unique(homes[is_filled & (homes != NONE)]).tolist():
        there = np.flatnonzero(homes == tensor)
        # The last axis makes a box of a single element, too.
        boxes = [(*box_at_place(problem, what), (0, 1)) for what in schedule.slice[there].tolist()]
        low, high = np.moveaxis(np.array(boxes).reshape(there.size, -1, 2), 2, 0)
        for one in np.flatnonzero(is_filled[there]).tolist():
            meets = ((low < high[one]) & (low[one] < high)).all(axis=1)
            ended = there[meets & (ends[there] <= begins[there[one]])]
            before.append(ended)
            after.append(np.full(ended.size, there[one]))
    return np.concatenate(before), np.concatenate(after)


def plan_of(context: ScheduleContext, timed: TimedSchedule) -> Plan:
    """Return the plan of a schedule; addresses in DRAMs without limit are given out anew.

    Its solver, options and bound are those of the context's plan. Raises a ``DoesNotFitError`` if a
    DRAM with a limit is too small.
    """
    problem, plan = context.problem, context.plan
    columns = columns_at(problem, timed)
    tensors, residencies = plan.tensors, residencies_of(columns)
    if context.dram_is_free:
        tensors, residencies = dram_addresses(problem, residencies)
    placements, transfers = placements_of(columns), transfers_of(problem.machine, columns)
    measures = measure(problem, placements, residencies, transfers)
    return replace(
        plan,
        placements=placements,
        residencies=tuple(residencies),
        transfers=transfers,
        tensors=tensors,
        claim=claim_of(measures, plan.claim.bound, plan.claim.bound_source),
    )


def columns_at(problem: Problem, timed: TimedSchedule) -> PlanColumns:
    """Return what is left of a schedule: without what was dropped, and numbered anew."""
    schedule, tasks = timed.schedule, len(problem.tasks)
    moves = tasks + np.flatnonzero(schedule.cycles[tasks:] > 0)
    activities = np.concatenate((np.arange(tasks), moves))
    alive = np.flatnonzero(is_alive(schedule))
    number = np.full(schedule.filler.size, NONE, np.int64)
    number[alive] = np.arange(alive.size)
    is_scratch = alive[schedule.slice[alive] == NONE]
    scratch = np.full(tasks, NONE, np.int64)
    scratch[schedule.filler[is_scratch]] = number[is_scratch]
    begin, length = schedule.demands.begin[moves], np.diff(schedule.demands.begin)[moves]
    engines = len(pools_of(problem.machine))
    links = engines + len(problem.machine.engines)
    first, last = timed.lifetimes()
    return PlanColumns(
        core=_cores(problem, timed),
        scratch=scratch,
        start=timed.start[activities],
        end=(timed.start + schedule.cycles)[activities],
        sent=(timed.start + schedule.cycles - schedule.latency)[moves],
        reads=_numbered(schedule.reads, activities, number),
        fills=_numbered(schedule.fills, activities, number),
        moved=schedule.moved_slice[moves],
        engine=schedule.demands.items[begin] - engines,
        routes=ranges_of(schedule.demands.items - links, begin + 1, length - 1),
        slice=schedule.slice[alive],
        memory=schedule.memory[alive],
        offset=schedule.offset[alive],
        bytes=schedule.bytes[alive],
        first=first[alive],
        last=last[alive],
    )


def _numbered(rows: Rows, chosen: Ints, number: Ints) -> Rows:
    """Return some of the rows with other numbers."""
    return ranges_of(number[rows.items], rows.begin[chosen], np.diff(rows.begin)[chosen])


def _cores(problem: Problem, timed: TimedSchedule) -> Ints:
    """Return the core of each task; those of a pool get its cores in turn."""
    pools, tasks = pools_of(problem.machine), len(problem.tasks)
    demands = timed.schedule.demands
    of_task = demands.items[demands.begin[:tasks]].tolist()
    start, end = timed.start[:tasks], (timed.start + timed.schedule.cycles)[:tasks]
    turns = least_free_numbers(zip(of_task, start.tolist(), end.tolist(), strict=True))
    return numbers(pools[pool][turn] for pool, turn in zip(of_task, turns, strict=True))
