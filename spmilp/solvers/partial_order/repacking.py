"""Double justification: with addresses as they are, or open; then new addresses are packed."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from spmilp.machine.machine import Machine, Memory
from spmilp.packing import Item, PackingOptions, PackingProblem, PackingStatus, pack
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import NEVER, NONE, Ints
from spmilp.solvers.kernels.tables import alignment_of
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.dram_bypass import with_dram_bypassed
from spmilp.solvers.partial_order.early_loads import with_loads_early
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.late_transfers import with_transfers_late
from spmilp.solvers.partial_order.redundant_transfers import without_redundant_transfers
from spmilp.solvers.partial_order.schedule import Memories, TimedSchedule
from spmilp.units import Cycles, MemoryIdx

ROUNDS_WITH_ADDRESSES = 4
ROUNDS = 6
"""Double justifications at most; most of the gain is in the first."""

LEAST_OF_A_ROUND = 0.001
"""Share of the makespan that a round with addresses gains, or else it is the last one."""

TRIES_AT_FIRST, TRIES_WITHOUT_GAIN = 8, 3
"""Packings in a row at most without a shorter schedule: until there is the first one, and then."""

TRIES_AT_ONCE = 4
"""Packings of the same times, pressed together a little less tightly each time."""

FIRST_SHARE = 0.9
"""Of each memory, at most, is filled at first. Most memories that are filled whole can be packed:
bytes are counted with those up to the next offset, and transfers come late where addresses are
looked for. But where items are large a search that begins there packs in vain for long."""

ROOMY = 0.8
"""Of each memory, at most, where packings have failed: what is less full is packed at once as a
rule, and fuller from there on."""

MORE, LESS = 1.05, 0.96
"""How much fuller, or less full, a memory becomes after a packing that was found, or was not."""

MOST = 1.5
"""Of each memory, is filled while transfers are as early as they can be: offsets are looked for
with transfers as late as they can be, which then take much less."""

NODES, NODES_AND_ITEMS = 30_000, 30_000_000
"""Of the search for one memory, and at most so many times its items: a fraction of a second. A
limit on nodes gives the same answer everywhere."""

FEW, TIMES_AS_MANY = 0.25, 5
"""Part of the memories, and the nodes of their search where only they are not packed yet."""


class FillLimits:
    """How full each memory may become where something moves.

    The fuller, the better the times, and the rarer a packing.

    Attributes
    ----------
    share
        Of each memory.
    """

    def __init__(self, context: ScheduleContext, share: float = FIRST_SHARE) -> None:
        self._context = context
        self.share = np.full(context.usable.size, share)

    def memories(self) -> Memories:
        """Return what memories allow now, with open addresses."""
        usable = self._context.usable
        bytes_ = (np.minimum(usable, 2**52) * self.share).astype(np.int64)
        return self._context.with_capacity(np.where(usable == NEVER, NEVER, bytes_))

    def lower(self, memories: tuple[int, ...]) -> None:
        """Fill some memories less."""
        self.share[list(memories)] *= LESS

    def make_room(self) -> None:
        """Fill all memories so little that they can be packed, as a rule."""
        self.share = np.minimum(self.share, ROOMY)

    def raise_all(self) -> None:
        """Fill all memories more."""
        self.share = np.minimum(MOST, self.share * MORE)


def justified(context: ScheduleContext, before: TimedSchedule) -> TimedSchedule:
    """Return a schedule that ends no later, with its decisions and addresses as they are."""
    memories = context.with_addresses_of(before)
    found = forward_pass(before, memories)
    for _ in range(ROUNDS_WITH_ADDRESSES):
        last = found.makespan
        found = forward_pass(backward_pass(found, memories), memories)
        if found.makespan >= (1 - LEAST_OF_A_ROUND) * last:
            break
    return found


def justified_by_capacity(
    context: ScheduleContext,
    before: TimedSchedule,
    memories: Memories,
    clock: Clock,
    rounds: int = ROUNDS,
) -> TimedSchedule:
    """Return a schedule that ends no later, for whose times there may be no addresses.

    Where all is as late as it can be, transfers that have become redundant are dropped, and others
    bypass DRAM. From the second round on loads come first to bytes before.
    """
    found = before
    for number in range(rounds):
        last = found.makespan
        if number > 0:
            found = with_loads_early(context, found, memories)
        late = backward_pass(found, memories)
        late = without_redundant_transfers(context, late, memories.limit)
        late = with_dram_bypassed(context, late, memories.limit)
        found = forward_pass(late, memories)
        if found.makespan == last or clock.is_over():
            break
    return found


def repacked(
    context: ScheduleContext,
    before: TimedSchedule,
    fill: FillLimits,
    clock: Clock,
    first: TimedSchedule | None = None,
    least: Cycles | None = None,
) -> Iterator[TimedSchedule | None]:
    """Yield better and better schedules with new addresses; ``None`` after each failed attempt.

    Parameters
    ----------
    first
        A schedule that ends no later than ``before``, perhaps without addresses, to try first.
    least
        A makespan, by default that of ``before``, below which schedules are better.
    """
    idle, is_packed = 0, False
    least = before.makespan if least is None else least
    while idle < (TRIES_WITHOUT_GAIN if is_packed else TRIES_AT_FIRST) and not clock.is_over():
        opened = justified_by_capacity(context, first or before, fill.memories(), clock)
        if is_packed and opened.makespan >= least:
            idle, first = idle + 1, None
            fill.raise_all()
            continue
        found = with_addresses(context, opened, fill, clock)
        yield found
        if found is not None and found.makespan < least:
            idle, is_packed = 0, True
            least, before, first = found.makespan, found, None
            fill.raise_all()
        else:
            # The same times again, with memories less full: what need not be early stays late.
            idle, first = idle + 1, opened
            if not is_packed and idle == TRIES_AT_ONCE:
                fill.make_room()
                first = None


def with_addresses(
    context: ScheduleContext, before: TimedSchedule, fill: FillLimits, clock: Clock
) -> TimedSchedule | None:
    """Return a schedule with addresses; ``None`` if none were found.

    They are looked for with transfers as late as they can be, where memories hold the least. It
    ends no later than before.
    """
    late = with_transfers_late(context, before)
    offset, without = pack_all(context, late, clock)
    if without:
        fill.lower(without)
        return None
    return justified(context, replace(late, schedule=late.schedule._replace(offset=offset)))


def pack_all(
    context: ScheduleContext, before: TimedSchedule, clock: Clock
) -> tuple[Ints, tuple[MemoryIdx, ...]]:
    """Return an offset for each residency, and the memories for which none were found.

    Where all that is missing are few memories for which it is open whether there are any, the
    search for these is a longer one.
    """
    offset = before.schedule.offset.copy()
    packer = _Packer(context, before, clock)
    without, undecided = packer.pack(offset, context.packed)
    if without == undecided and len(without) <= FEW * len(context.packed):
        without, _ = packer.pack(offset, without, TIMES_AS_MANY)
    return offset, without


class _Packer:
    """Packs the memories of a schedule.

    Parameters
    ----------
    clock
        When it is over, memories are left.
    """

    def __init__(self, context: ScheduleContext, before: TimedSchedule, clock: Clock) -> None:
        self._machine = context.problem.machine
        self._before, self._lifetimes = before, before.lifetimes()
        self._clock = clock

    def pack(
        self, offset: Ints, memories: tuple[MemoryIdx, ...], times_as_many: int = 1
    ) -> tuple[tuple[MemoryIdx, ...], tuple[MemoryIdx, ...]]:
        """Set offsets; return the memories without, and those where it is open if there are any.

        Parameters
        ----------
        times_as_many
            Nodes of each search as there are at first.
        """
        without: list[MemoryIdx] = []
        undecided: list[MemoryIdx] = []
        for position, index in enumerate(memories):
            if self._clock.is_over():
                return (*without, *memories[position:]), tuple(undecided)
            memory = self._machine.memories[index]
            residencies, problem = _problem_of(self._machine, memory, self._before, self._lifetimes)
            found = pack(problem, self._limits(residencies.size, times_as_many))
            if found.offsets is not None:
                offset[residencies] = found.offsets
                continue
            without.append(index)
            if found.status is PackingStatus.UNKNOWN:
                undecided.append(index)
        return tuple(without), tuple(undecided)

    def _limits(self, items: int, times_as_many: int) -> PackingOptions:
        nodes = times_as_many * min(NODES, NODES_AND_ITEMS // max(1, items))
        seconds = self._clock.seconds_left()
        return PackingOptions(time_limit=seconds, node_limit=nodes, cliques=False, conflict=False)


def _problem_of(
    machine: Machine, memory: Memory, before: TimedSchedule, lifetimes: tuple[Ints, Ints]
) -> tuple[Ints, PackingProblem]:
    """Return the residencies in a memory, and the problem of their offsets.

    What is there at cycle 0 keeps its offset.
    """
    schedule, (begins, ends) = before.schedule, lifetimes
    residencies = np.flatnonzero((schedule.memory == memory.index) & (begins < ends))
    position = {one: i for i, one in enumerate(residencies.tolist())}
    alignment = alignment_of(machine, memory.index)
    columns = (schedule.bytes, begins, ends, schedule.filler, schedule.offset)
    rows = zip(*(column[residencies].tolist() for column in columns), strict=True)
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
            (position[overwritten], i)
            for i, overwritten in enumerate(schedule.overwrites[residencies].tolist())
            if overwritten != NONE
        ),
    )
    return residencies, problem
