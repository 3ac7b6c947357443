"""Open, justified, packed: shorter times with open addresses, and new addresses for them.

Open addresses, as in ``opened``: memories are a capacity, times are justified, transfers dropped or
taken past DRAM. Offsets are packed for the times that come of it, and then all is justified once
more with these addresses. The fuller memories may become, the better the times, and the rarer a
packing; :class:`Repacking` looks for a middle.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from spmilp.machine.machine import Machine, Memory
from spmilp.packing import Item, PackingOptions, PackingProblem, PackingStatus, pack
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.justify.context import ScheduleContext
from spmilp.solvers.justify.early_and_late import with_loads_early, with_transfers_late
from spmilp.solvers.justify.fewer_transfers import (
    with_dram_bypassed,
    without_redundant_transfers,
)
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
        Of each memory, at most, is filled at first. Most memories that are filled whole can be
        packed: bytes are counted with those up to the next offset, and transfers come late where
        addresses are looked for. But where items are large a search that begins there packs in
        vain for long.
    room
        Of each memory, at most, where packings have failed: what is less full is packed at once as
        a rule, and fuller from there on.
    rounds
        Double justifications at most; most of the gain is in the first.
    tries
        Packings of the same times, pressed together a little less tightly each time.
    tries_without_gain
        Openings and packings in a row at most without a shorter schedule, once there is one.
    rounds_with_addresses, least_of_a_round
        Double justifications at most with addresses as they are, and the share of the makespan that
        one gains, or else it is the last one.
    more, less
        How much fuller, or less full, a memory becomes after a packing that was found, or was not.
    most
        Of each memory, is filled while transfers are as early as they can be: offsets are looked
        for with transfers as late as they can be, which then take much less.
    nodes, nodes_and_items
        Of the search for one memory, and at most so many times its items: a fraction of a second. A
        limit on nodes gives the same answer everywhere.
    few, times_as_many
        Part of the memories, and the nodes of their search where only they are not packed yet.
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


SEARCHED = Effort()
"""Where the best plan is looked for."""

AT_ONCE = Effort(share=1.0, room=0.9, rounds=2, tries=1)
"""Where one plan of many is evaluated: addresses are nearly always found in whole memories."""


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


class Repacking:
    """Makes schedules of one plan shorter with open addresses, and packs them.

    Parameters
    ----------
    clock
        When it is over, what was found by then is the answer.

    Attributes
    ----------
    share
        Of each memory, to be filled at most where something moves. It falls where a memory cannot
        be packed.
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

        Where all is as late as it can be, transfers that have become redundant are dropped, and
        others bypass DRAM. From the second round on loads come first to bytes before.

        Parameters
        ----------
        rounds
            By default as many as the effort has.
        """
        context, memories, found = self.context, self.memories(), before
        for number in range(rounds or self.effort.rounds):
            last = found.makespan
            if number > 0:
                found = with_loads_early(context, found, memories)
            late = backward_pass(found, memories)
            late = without_redundant_transfers(context, late, memories.limit)
            late = with_dram_bypassed(context, late, memories.limit)
            found = forward_pass(late, memories)
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

        With memories less full, what need not be early comes late.
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

        Parameters
        ----------
        before
            What ``opened`` was made from.
        """
        found = self.settled(opened, below)
        if found is None and not self._clock.is_over():
            self.share = np.minimum(self.share, self.effort.room)
            found = self.settled(self.opened(before), below)
        return found

    def repacked(
        self, before: TimedSchedule, opened: TimedSchedule, below: Cycles
    ) -> Iterator[TimedSchedule]:
        """Yield shorter and shorter schedules with addresses, from one that ends before ``below``.

        Parameters
        ----------
        opened
            The same as ``before``, or what was made from it, perhaps without addresses.
        """
        best = self.first_packed(before, self.opened(opened), below)
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

    Where all that is missing are few memories for which it is open whether there are any, the
    search for these is a longer one.
    """
    offset, lifetimes = before.schedule.offset.copy(), before.lifetimes()
    machine = context.problem.machine

    def pack_some(
        memories: tuple[MemoryIdx, ...], times_as_many: int
    ) -> tuple[tuple[MemoryIdx, ...], bool]:
        """Set offsets; return the memories without, and whether all of these may have some."""
        without, is_open = list[MemoryIdx](), True
        for index in memories:
            if clock.is_over():
                return (*without, index), False
            residencies, problem = _problem_of(machine, machine.memories[index], before, lifetimes)
            nodes = min(effort.nodes, effort.nodes_and_items // max(1, residencies.size))
            options = PackingOptions(
                time_limit=clock.seconds_left(),
                node_limit=times_as_many * nodes,
                cliques=False,
                conflict=False,
            )
            found = pack(problem, options)
            if found.offsets is not None:
                offset[residencies] = found.offsets
                continue
            without.append(index)
            is_open = is_open and found.status is PackingStatus.UNKNOWN
        return tuple(without), is_open

    without, is_open = pack_some(context.packed, 1)
    if is_open and 0 < len(without) <= effort.few * len(context.packed):
        without, _ = pack_some(without, effort.times_as_many)
    return offset, without


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
