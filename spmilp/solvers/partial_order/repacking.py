"""New times with all addresses open, then new addresses."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from spmilp.machine.machine import Machine, Memory
from spmilp.packing import Item, PackingOptions, PackingProblem, pack
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.machine_tables import alignment_of
from spmilp.solvers.kernels.records import NEVER, NONE, Ints
from spmilp.solvers.partial_order.capacity_passes import (
    capacity_backward_pass,
    capacity_forward_pass,
)
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.dram_bypass import with_dram_bypassed
from spmilp.solvers.partial_order.justification import double_justified
from spmilp.solvers.partial_order.redundant_transfers import without_redundant_transfers
from spmilp.solvers.partial_order.schedule import (
    PartialOrderSchedule,
    TimedSchedule,
    lifetimes,
    makespan_of,
)
from spmilp.units import MemoryIdx

ROUNDS = 6
"""Passes to the right and back at most."""

TRIES = 12
"""Packings at most in a row."""

TRIES_AT_ONCE = 4
"""Packings of the same times, pressed together a little less tightly each time."""

FIRST_SHARE = 0.9
"""Of each memory, at most, is filled at first: what is fuller is often not packed."""

MORE, LESS = 1.03, 0.96
"""How much fuller, or less full, a memory becomes after a packing that was found, or was not."""


class FillLimits:
    """How full each memory may become where something moves.

    The fuller, the better the times, and the rarer a packing.
    """

    def __init__(self, context: ScheduleContext) -> None:
        self._usable = context.usable
        self._share = np.full(context.usable.size, FIRST_SHARE)

    def limit(self) -> Ints:
        """Return the bytes of each memory that may be used; ``NEVER`` for no limit."""
        bytes_ = (np.minimum(self._usable, 2**52) * self._share).astype(np.int64)
        return np.where(self._usable == NEVER, NEVER, bytes_)

    def lower(self, memories: tuple[int, ...]) -> None:
        """Fill some memories less."""
        self._share[list(memories)] *= LESS

    def raise_all(self) -> None:
        """Fill all memories more."""
        self._share = np.minimum(1.0, self._share * MORE)


def justified_by_capacity(
    context: ScheduleContext,
    incumbent: TimedSchedule,
    limit: Ints,
    clock: Clock,
    rounds: int = ROUNDS,
) -> TimedSchedule:
    """Return a incumbent that ends no later, for whose times there may be no addresses.

    Times are improved by passes to the right and to the left, in which memories are full or not
    wherever the bytes lie; where all is as late as it can be, reloads that have become needless
    are dropped.
    """
    schedule, early, makespan = incumbent.schedule, incumbent.start, incumbent.makespan
    for _ in range(rounds):
        later = capacity_backward_pass(schedule, context.kept_reuse, limit, early, makespan)
        schedule = without_redundant_transfers(context, schedule, later, makespan, limit)
        schedule, later = with_dram_bypassed(context, schedule, later, makespan, limit)
        early = capacity_forward_pass(schedule, context.kept_reuse, limit, later, makespan)
        before, makespan = makespan, makespan_of(schedule, early)
        if makespan == before or clock.is_over():
            break
    return TimedSchedule(schedule, early, makespan)


def repacked(
    context: ScheduleContext,
    incumbent: TimedSchedule,
    fill: FillLimits,
    clock: Clock,
    current: TimedSchedule | None = None,
) -> Iterator[TimedSchedule | None]:
    """Yield better and better timed schedules; ``None`` after each attempt that led to none.

    Parameters
    ----------
    current
        Times that end no later than those of ``incumbent``, perhaps without addresses: tried first.
    """
    failed = 0
    for _ in range(TRIES):
        current = justified_by_capacity(context, current or incumbent, fill.limit(), clock)
        found = with_addresses(context, current, fill, clock)
        yield found
        if found is None:
            failed += 1
            if failed == TRIES_AT_ONCE:
                current, failed = None, 0
            continue
        fill.raise_all()
        if found.makespan >= incumbent.makespan:
            return
        incumbent, current, failed = found, None, 0


def with_addresses(
    context: ScheduleContext, current: TimedSchedule, fill: FillLimits, clock: Clock
) -> TimedSchedule | None:
    """Return a incumbent with those times or better ones; ``None`` if no addresses were found."""
    schedule = current.schedule
    begins, ends = lifetimes(schedule, current.start, current.makespan)
    machine = context.problem.machine
    offset, without = pack_all(machine, context.packed, schedule, begins, ends, clock)
    if without:
        fill.lower(without)
        return None
    return double_justified(context, replace(current, schedule=schedule._replace(offset=offset)))


NODES = 30_000
"""A fraction of a second for one memory; a limit on nodes gives the same answer everywhere."""


def pack_memory(
    machine: Machine,
    memory: Memory,
    schedule: PartialOrderSchedule,
    begins: Ints,
    ends: Ints,
    seconds: float | None,
) -> tuple[Ints, Ints] | None:
    """Return the residencies in a memory and an offset for each; ``None`` if none were found.

    What is there at cycle 0 keeps its offset.
    """
    residency = np.flatnonzero((schedule.memory == memory.index) & (begins < ends))
    position = {one: i for i, one in enumerate(residency.tolist())}
    alignment = alignment_of(machine, memory.index)
    rows = zip(
        *(column[residency].tolist() for column in (schedule.bytes, begins, ends, schedule.filler)),
        schedule.offset[residency].tolist(),
        strict=True,
    )
    problem = PackingProblem(
        items=tuple(
            Item(
                size=size,
                lifetimes=((start, end),),
                alignment=1 if filler == NONE else alignment,
                offset=offset if filler == NONE else None,
            )
            for size, start, end, filler, offset in rows
        ),
        capacity=memory.size,
        reserved=tuple((taken.start, taken.end) for taken in memory.reserved),
        together=tuple(
            (position[overwrites], i)
            for i, overwrites in enumerate(schedule.overwrites[residency].tolist())
            if overwrites != NONE
        ),
    )
    limits = PackingOptions(time_limit=seconds, node_limit=NODES, cliques=False, conflict=False)
    found = pack(problem, limits)
    return None if found.offsets is None else (residency, np.array(found.offsets, np.int64))


def pack_all(
    machine: Machine,
    memories: tuple[MemoryIdx, ...],
    schedule: PartialOrderSchedule,
    begins: Ints,
    ends: Ints,
    clock: Clock,
) -> tuple[Ints, tuple[MemoryIdx, ...]]:
    """Return an offset for each residency, and the memories for which none were found."""
    offset = schedule.offset.copy()
    without: list[MemoryIdx] = []
    for position, index in enumerate(memories):
        if clock.is_over():
            return offset, memories[position:]
        found = pack_memory(
            machine, machine.memories[index], schedule, begins, ends, clock.seconds_left()
        )
        if found is None:
            without.append(index)
        else:
            residency, offsets = found
            offset[residency] = offsets
    return offset, tuple(without)
