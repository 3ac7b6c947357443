"""Shorter schedules by giving up their addresses and finding new ones.

With *open* addresses a memory is a mere capacity in bytes. In a first step (``opened``) times are
justified with open addresses: forward and backward passes, between which transfers are made to
bypass DRAM. The second step (``packed``) looks for offsets for these times, and justifies once more
with them. The fuller memories may become in the first step, the shorter is the schedule, and the
less often offsets are found; :class:`Repacking` looks for a middle.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from spmilp.machine.machine import Machine, Memory
from spmilp.packing import Item, PackingOptions, PackingProblem, PackingStatus, pack
from spmilp.solvers.common.clock import Clock, Step
from spmilp.solvers.justify.context import ScheduleContext
from spmilp.solvers.justify.dram_bypass import with_dram_bypassed
from spmilp.solvers.justify.passes import backward_pass, forward_pass
from spmilp.solvers.justify.schedule import Memories, TimedSchedule
from spmilp.solvers.schedule.kernels.records import NEVER, NONE, Ints
from spmilp.solvers.schedule.kernels.tables import alignment_of
from spmilp.units import Cycles, MemoryIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How hard shorter times and addresses for them are looked for.

    Parameters
    ----------
    share
        Largest share of each memory that may be filled at first. Most memories can be packed even
        if they are filled whole, for sizes are rounded up to the alignment, and offsets are looked
        for with transfers as late as possible. But with large items a search that begins at 1 often
        fails for long.
    room
        Largest share of each memory after packings have failed: memories that are less full are
        nearly always packed at once. From there on they may become fuller again.
    rounds
        Most double justifications with open addresses; most of the gain is in the first.
    tries
        Most packings of one opened schedule; after each failure memories are filled less.
    tries_without_gain
        Most attempts in a row that do not shorten the schedule, once some packing was found.
    rounds_with_addresses, least_of_a_round
        Most double justifications with fixed addresses, and the share of the makespan that one has
        to gain for another one to follow.
    more, less
        Factors on the share of a memory after a packing that was found, or was not.
    most
        Largest share that ``more`` leads to. It may be above 1, for the share counts transfers as
        early as possible, and offsets are looked for with transfers as late as possible, when
        memories hold much less.
    nodes, nodes_and_items
        Limits on the nodes of the search for one memory's offsets, and on nodes times items: a
        fraction of a second. A limit on nodes gives the same answer on every computer.
    few, times_as_many
        If at most the share ``few`` of the memories is not packed, these are searched again with
        ``times_as_many`` times the nodes.
    """

    share: float = 0.9
    room: float = 0.8
    rounds: int = 6
    tries: int = 4
    tries_without_gain: int = 3
    rounds_with_addresses: int = 4
    least_of_a_round: float = 0.001
    more: float = 1.05
    less: float = 0.96
    most: float = 1.5
    nodes: int = 30_000
    nodes_and_items: int = 30_000_000
    few: float = 0.25
    times_as_many: int = 5

    def roomier(self) -> "Effort | None":
        """Return the same with less in each memory: 0.9, 0.85, 0.8; ``None`` below its ``room``."""
        share = min(0.9, round(self.share - 0.05, 2))
        return None if share < self.room else replace(self, share=share)


SEARCHED = Effort()
"""For the search for the best plan."""

AT_ONCE = Effort(share=1.0, room=0.8, rounds=2, tries=1)
"""For evaluating one plan of many: addresses are nearly always found in memories filled whole."""


def justified(
    context: ScheduleContext, before: TimedSchedule, effort: Effort = SEARCHED
) -> TimedSchedule:
    """Return a schedule that ends no later, with its decisions and addresses as they are."""
    memories = context.with_addresses_of(before)
    found = forward_pass(before, memories)
    for _ in range(effort.rounds_with_addresses):
        last = found.makespan
        found = forward_pass(backward_pass(found, memories), memories)
        if found.makespan >= (1 - effort.least_of_a_round) * last:
            break
    return found


def with_transfers_late(context: ScheduleContext, before: TimedSchedule) -> TimedSchedule:
    """Return a schedule in which what comes to scratchpads comes as late as it can.

    All else keeps its times: tasks, and what is stored in a DRAM. A copy of what another scratchpad
    holds is sent no later than that is held anyway. So nothing is in a scratchpad for longer than
    before, and offsets are found more often.
    """
    schedule = before.schedule
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    target = schedule.fills.items[schedule.fills.begin[moves]]
    moves = moves[~context.is_dram[schedule.memory[target]]]
    source = schedule.reads.items[schedule.reads.begin[moves]]
    due = before.start + schedule.cycles
    is_load = context.is_dram[schedule.memory[source]]
    held_until = before.lifetimes()[1][source] + schedule.latency[moves]
    due[moves] = np.where(is_load, before.makespan, held_until)
    due = np.minimum(due, before.makespan)
    # As nothing takes more bytes at any time, the capacity is no matter of times.
    unlimited = context.with_capacity(np.full(context.usable.size, NEVER))
    return backward_pass(before, unlimited, due)


class Repacking:
    """Makes schedules of one plan shorter with open addresses, and packs them.

    When the ``clock`` is over, what was found by then is the answer. At most a ``share`` of each
    memory may be filled with open addresses; it falls for a memory that cannot be packed.
    """

    def __init__(self, context: ScheduleContext, clock: Clock, effort: Effort = SEARCHED) -> None:
        self.context = context
        self.effort = effort
        self.share = np.full(context.usable.size, effort.share)
        self._clock = clock

    def memories(self) -> Memories:
        """Return what memories allow now, with open addresses."""
        usable = self.context.usable
        bytes_ = (np.minimum(usable, 2**52) * self.share).astype(np.int64)
        return self.context.with_capacity(np.where(usable == NEVER, NEVER, bytes_))

    def fill_more(self) -> None:
        """Let all memories become fuller."""
        self.share = np.minimum(self.effort.most, self.share * self.effort.more)

    def opened(self, before: TimedSchedule, rounds: int | None = None) -> TimedSchedule:
        """Return a schedule that ends no later, for whose times there may be no addresses.

        After each backward pass transfers bypass DRAM. There are at most so many ``rounds``, by
        default as many as the effort has.
        """
        context, memories, found = self.context, self.memories(), before
        for _ in range(rounds or self.effort.rounds):
            last = found.makespan
            late = backward_pass(found, memories)
            late = with_dram_bypassed(context, late, memories.limit)
            found = forward_pass(late, memories)
            self._clock.pace.count(Step.PASS, 2 * found.start.size)
            if found.makespan == last or self._clock.is_over():
                break
        return found

    def packed(self, opened: TimedSchedule) -> TimedSchedule | None:
        """Return a schedule with addresses that ends no later; ``None`` if none were found.

        They are looked for with transfers as late as they can be, where memories hold the least.
        Memories without addresses are filled less from now on.
        """
        late = with_transfers_late(self.context, opened)
        offset, without = pack_all(self.context, late, self._clock, self.effort)
        if without:
            self.share[list(without)] *= self.effort.less
            return None
        found = replace(late, schedule=late.schedule._replace(offset=offset))
        return justified(self.context, found, self.effort)

    def settled(
        self, opened: TimedSchedule, below: Cycles = NEVER, tries: int | None = None
    ) -> TimedSchedule | None:
        """Return a schedule with addresses that ends before cycle ``below``, if some try finds one.

        After a failure the schedule is opened again with memories that may be less full, which
        delays transfers that need not be early.
        """
        for left in reversed(range(tries or self.effort.tries)):
            found = self.packed(opened)
            if found is not None and found.makespan < below:
                return found
            if self._clock.is_over():
                break
            if left > 0:
                opened = self.opened(opened)
        return None

    def first_packed(
        self, before: TimedSchedule, opened: TimedSchedule, below: Cycles = NEVER
    ) -> TimedSchedule | None:
        """Return a schedule like :meth:`settled`; if there is none, begin again with more room.

        ``opened`` was made from ``before``.
        """
        found = self.settled(opened, below)
        if found is None and not self._clock.is_over():
            self.share = np.minimum(self.share, self.effort.room)
            found = self.settled(self.opened(before), below)
        return found

    def repacked(self, before: TimedSchedule, below: Cycles) -> Iterator[TimedSchedule]:
        """Yield shorter and shorter schedules with addresses, from one that ends before ``below``.

        ``before`` may have no addresses.
        """
        best = self.first_packed(before, self.opened(before), below)
        while best is not None:
            yield best
            best = self._shorter(best)

    def _shorter(self, best: TimedSchedule) -> TimedSchedule | None:
        """Fill memories more until that makes a schedule shorter, and pack it."""
        tries = self.effort.tries_without_gain
        for left in reversed(range(tries)):
            if self._clock.is_over():
                return None
            self.fill_more()
            opened = self.opened(best)
            if opened.makespan < best.makespan:
                return self.settled(opened, best.makespan, left + 1)
        return None


def pack_all(
    context: ScheduleContext, before: TimedSchedule, clock: Clock, effort: Effort = SEARCHED
) -> tuple[Ints, tuple[MemoryIdx, ...]]:
    """Return an offset for each residency, and the memories for which none were found.

    If only few memories have no offsets, and for each of them the search has proven nothing, these
    are searched for longer. If it is the only try, it ends once they are not few.
    """
    offset, lifetimes = before.schedule.offset.copy(), before.lifetimes()
    machine, packed = context.problem.machine, tuple(np.flatnonzero(~context.is_dram).tolist())

    def pack_some(
        memories: tuple[MemoryIdx, ...], times_as_many: int
    ) -> tuple[tuple[MemoryIdx, ...], bool]:
        """Set offsets; return the memories without, and whether none is proven to have none."""
        without, is_open = list[MemoryIdx](), True
        for index in memories:
            if clock.is_over():
                return (*without, index), False
            residencies, problem = problem_of(machine, machine.memories[index], before, lifetimes)
            nodes = min(effort.nodes, effort.nodes_and_items // max(1, residencies.size))
            options = PackingOptions(
                time_limit=clock.engine_seconds(),
                node_limit=times_as_many * nodes,
                conflict=False,
            )
            found = pack(problem, options)
            clock.pace.count(Step.ADDRESS, residencies.size + found.nodes)
            if found.offsets is not None:
                offset[residencies] = found.offsets
                continue
            without.append(index)
            if effort.tries == 1 and len(without) > effort.few * len(packed):
                break
            is_open = is_open and found.status is PackingStatus.UNKNOWN
        return tuple(without), is_open

    without, is_open = pack_some(packed, 1)
    if is_open and 0 < len(without) <= effort.few * len(packed):
        without, _ = pack_some(without, effort.times_as_many)
    return offset, without


def problem_of(
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
