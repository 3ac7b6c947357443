"""From a plan to its partial-order schedule, and back.

What stays the same while times and addresses change is a :class:`ScheduleContext`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import lcm
from operator import add
from typing import TypeAlias

import numpy as np

from spmilp.compiled import compiled
from spmilp.machine.machine import MemoryKind
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.justify.schedule import (
    Flags,
    Memories,
    PartialOrderSchedule,
    ReuseOrder,
    TimedSchedule,
    is_alive,
    pools_of,
    timed,
)
from spmilp.solvers.justify.transfer_options import OptionTables, option_tables_of
from spmilp.solvers.schedule.kernels.extract import dram_addresses
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
from spmilp.units import Box, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx

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
        Pairs of residencies whose places in a tensor overlap; the second begins after the first has
        ended.
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
    """Return the context and the schedule of a valid plan.

    Parameters
    ----------
    plan
        Or only its columns: they suffice if only times are asked for and no DRAM has a limit.
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
    )


def partial_order_of(problem: Problem, columns: PlanColumns) -> PartialOrderSchedule:
    """Return the decisions of a valid plan."""
    activities, residencies = columns.start.size, columns.slice.size
    transfers = columns.moved.size
    before = rows_of([*(task.after for task in problem.tasks), *((),) * transfers])
    memory, offset, size = columns.memory, columns.offset, columns.bytes
    overwrites, overwritten_by = _in_place(columns.reads, columns.fills, memory, offset, size)
    demands, amounts, capacity = _resources(problem, columns)
    return PartialOrderSchedule(
        cycles=columns.end - columns.start,
        demands=demands,
        amounts=amounts,
        capacity=capacity,
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


def _resources(problem: Problem, columns: PlanColumns) -> tuple[Rows, Ints, Ints]:
    """Return what each activity holds, how much of it, and the capacity of each resource."""
    machine = problem.machine
    rates = [*(engine.rate for engine in machine.engines), *(link.rate for link in machine.links)]
    scale = lcm(*(rate.denominator for rate in rates))
    whole = numbers(int(rate * scale) for rate in rates)
    of_engines, of_links = whole[: len(machine.engines)], whole[len(machine.engines) :]
    pools = pools_of(machine)
    pool_of = np.zeros(len(machine.cores), np.int64)
    for pool, cores in enumerate(pools):
        pool_of[[*cores]] = pool
    engines, links = len(pools), len(pools) + len(machine.engines)
    moves, tasks = np.arange(columns.moved.size), np.arange(columns.tasks)
    crossing = owners_of(columns.routes)
    held = of_engines[columns.engine]
    np.minimum.at(held, crossing, of_links[columns.routes.items])
    owners = np.concatenate((tasks, tasks.size + moves, tasks.size + crossing))
    resources = (pool_of[columns.core], engines + columns.engine, links + columns.routes.items)
    amounts = (np.ones(owners.size - crossing.size, np.int64), held[crossing])
    count = columns.start.size
    capacity = [
        *(len(cores) for cores in pools),
        *(engine.channels for engine in machine.engines),
        *of_links.tolist(),
    ]
    return (
        rows_from_pairs(owners, np.concatenate(resources), count),
        rows_from_pairs(owners, np.concatenate(amounts), count).items,
        numbers(capacity),
    )


@compiled
def _in_place(
    reads: Rows, fills: Rows, memory: Ints, offset: Ints, size: Ints
) -> tuple[Ints, Ints]:
    """Return the in-place predecessor and successor of each residency.

    A task that writes over an operand is the only case in which a valid plan lets two share bytes.
    """
    overwrites, overwritten_by = np.full(size.size, NONE), np.full(size.size, NONE)
    for act in range(reads.begin.size - 1):
        for i in range(reads.begin[act], reads.begin[act + 1]):
            old = reads.items[i]
            for j in range(fills.begin[act], fills.begin[act + 1]):
                new = fills.items[j]
                below = offset[old] < offset[new] + size[new]
                above = offset[new] < offset[old] + size[old]
                if memory[old] == memory[new] and below and above:
                    overwritten_by[old], overwrites[new] = new, old
    return overwrites, overwritten_by


Pairs: TypeAlias = Iterable[tuple[ResidencyIdx, ResidencyIdx]]


def reuse_order_of(
    schedule: PartialOrderSchedule, start: Ints, where: Flags, extra: Pairs = ()
) -> ReuseOrder:
    """Return which residencies have the same bytes one after the other, in a valid plan's times.

    Parameters
    ----------
    where
        The residencies whose addresses count; the others follow nothing.
    extra
        Further pairs of residencies, one before the other.
    """
    count = schedule.filler.size
    begins = np.where(schedule.filler == NONE, -1, start[schedule.filler])
    counted = np.flatnonzero(where)
    counted = counted[np.lexsort((counted, begins[counted], schedule.memory[counted]))]
    before, after = _follow(counted, schedule.memory, schedule.offset, schedule.bytes)
    before = np.concatenate((before, numbers(pair[0] for pair in extra)))
    after = np.concatenate((after, numbers(pair[1] for pair in extra)))
    earlier = rows_from_pairs(after, before, count)
    return ReuseOrder(earlier=earlier, later=inverted(earlier, count))


@compiled
def _follow(counted: Ints, memory: Ints, offset: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Return pairs of residencies that have bytes in common, the second next after the first.

    Sweeps each memory in time, and keeps the last owner of each run of bytes, by lowest address.
    """
    low = np.zeros(2 * counted.size + 2, np.int64)
    owner = np.zeros(2 * counted.size + 2, np.int64)
    runs = 0
    before = np.zeros(4 * counted.size + 16, np.int64)
    after = np.zeros(4 * counted.size + 16, np.int64)
    count = 0
    last_memory = NONE
    for one in counted:
        if memory[one] != last_memory:
            last_memory = memory[one]
            low[0], owner[0], runs = 0, NONE, 1
        first, last = offset[one], offset[one] + size[one]
        # The runs that meet [first, last) are those from i to j - 1.
        i = np.searchsorted(low[:runs], first, side="right") - 1
        j = i
        while j < runs and low[j] < last:
            if owner[j] != NONE:
                seen = False
                for k in range(i, j):
                    seen = seen or owner[k] == owner[j]
                if not seen:
                    if count == before.size:
                        before = np.concatenate((before, np.zeros_like(before)))
                        after = np.concatenate((after, np.zeros_like(after)))
                    before[count], after[count] = owner[j], one
                    count += 1
            j += 1
        tail = owner[j - 1]
        keeps_head = low[i] < first
        ends_inside = j == runs or low[j] > last
        new = i + (1 if keeps_head else 0)
        kept = new + 1 + (1 if ends_inside else 0)
        shift = kept - j
        if shift > 0:
            for k in range(runs - 1, j - 1, -1):
                low[k + shift], owner[k + shift] = low[k], owner[k]
        elif shift < 0:
            for k in range(j, runs):
                low[k + shift], owner[k + shift] = low[k], owner[k]
        runs += shift
        low[new], owner[new] = first, one
        if ends_inside:
            low[new + 1], owner[new + 1] = last, tail
    return before[:count].copy(), after[:count].copy()


def home_tensors(problem: Problem, schedule: PartialOrderSchedule) -> Ints:
    """Return the tensor in which each residency lies at its buffer's place; -1 for the others."""
    buffers = buffer_columns(problem)
    tensor = buffers.tensor[buffers.of_slices[schedule.slice]]
    memory_of = numbers([*(tensor.memory for tensor in problem.tensors), NONE])
    homes: Ints = np.where(memory_of[tensor] == schedule.memory, tensor, NONE)
    return homes


def followers_at_places(
    problem: Problem, schedule: PartialOrderSchedule, homes: Ints, begins: Ints, ends: Ints
) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield the pairs in one tensor of which the second may begin only when the first has ended."""
    written = set(homes[(schedule.filler != NONE) & (homes != NONE)].tolist())
    for tensor in sorted(written):
        there = np.flatnonzero(homes == tensor).tolist()
        for one, other in _that_share_elements(problem, schedule, tensor, there):
            first, second = (one, other) if begins[one] < begins[other] else (other, one)
            if ends[first] <= begins[second] and schedule.filler[second] != NONE:
                yield first, second


def _that_share_elements(
    problem: Problem,
    schedule: PartialOrderSchedule,
    tensor: TensorIdx,
    residencies: list[ResidencyIdx],
) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield the pairs with common elements, by a sweep along the most varied axis."""
    boxes = [(_box_of(problem, int(schedule.slice[one])), one) for one in residencies]
    axes = range(len(problem.tensors[tensor].shape))
    axis = max(axes, key=lambda a: len({box[a] for box, _ in boxes}), default=None)
    if axis is not None:
        boxes.sort(key=lambda item: item[0][axis])
    open_boxes: list[tuple[Box, ResidencyIdx]] = []
    for box, one in boxes:
        if axis is not None:
            open_boxes = [item for item in open_boxes if item[0][axis][1] > box[axis][0]]
        for other_box, other in open_boxes:
            if all(a < d and c < b for (a, b), (c, d) in zip(box, other_box, strict=True)):
                yield other, one
        open_boxes.append((box, one))


def _box_of(problem: Problem, what: SliceIdx) -> Box:
    slice_ = problem.slices[what]
    place = problem.buffers[slice_.buffer].place
    start = slice_.start if place is None else tuple(map(add, place.start, slice_.start))
    return tuple((a, a + n) for a, n in zip(start, slice_.extent, strict=True))


def plan_of(context: ScheduleContext, timed: TimedSchedule) -> Plan:
    """Return the plan of a schedule; addresses in DRAMs without limit are given out anew.

    Its solver, options and bound are those of the context's plan.

    Raises
    ------
    DoesNotFitError
        If a DRAM with a limit is too small.
    """
    problem, plan = context.problem, context.plan
    columns = columns_at(problem, timed)
    tensors, residencies = plan.tensors, residencies_of(columns)
    if context.dram_is_free:
        tensors, residencies = dram_addresses(problem, residencies)
    placements, transfers = placements_of(columns), transfers_of(columns)
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
