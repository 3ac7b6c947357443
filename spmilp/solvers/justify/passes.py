"""Serial schedule generation: new times from the order of the old ones, forward and backward.

Activities are placed one after another in the order of a valid schedule's times: by a *forward
pass* each as early as it can start next to those placed before, by a *backward pass* each as late
as it can end. A backward pass and then a forward pass are a double justification, which never
lengthens a schedule (Valls, Ballestín and Quintanilla, European Journal of Operational Research
165, 2005).

Cores, channels and links are renewable resources and treated as usual. Memories are not: bytes are
held from one activity to another. They are respected in one of two ways, see :class:`Memories`:

- Addresses stay: each residency waits until those have ended that had its bytes before.
- With capacity only, addresses are open: all bytes fit at the old times, and an activity moves only
  as far as there is capacity for what it opens all the way. Offset packing may find addresses for
  the new times, or not.

Both passes are the same kernel: a backward pass is a forward pass in mirrored time, in which the
makespan comes first. Only what activities do to residencies is exchanged, see :class:`_Direction`.

No pass lengthens a schedule, because each activity still finds its old cycles free: those placed
before it had what it needs before it, and only move away from it. Where activities hold a resource
from unequal times after that by which they are in order (engines of unequal setup on a link, routes
of unequal latency on a channel), that is not so: such a resource stays held at the old cycles until
an activity has its new ones.
"""

from typing import NamedTuple

import cython
import numpy as np

from spmilp.compiled import address, in_c
from spmilp.solvers.justify.profiles import profiles_of_memories, profiles_of_resources
from spmilp.solvers.justify.schedule import (
    Flags,
    Memories,
    PartialOrderSchedule,
    TimedSchedule,
    timed,
)
from spmilp.solvers.schedule.kernels.records import Ints, Rows, owners_of
from spmilp.solvers.schedule.kernels.timeline import Timeline

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import longs_at, whole
    from spmilp.solvers.justify.profiles import earliest_start, hold, taken
    from spmilp.solvers.schedule.kernels.records import NEVER, NONE
    from spmilp.solvers.schedule.kernels.timeline import occupy, step_at

    pass_at = schedule_in = direction_in = timeline_in = whole


def forward_pass(before: TimedSchedule, memories: Memories) -> TimedSchedule:
    """Return a schedule in which each activity starts as early as it can, placed in turn.

    None starts later than before: at its old cycle there is room, for those placed before it began
    no later than it, and now end no later than they did.
    """
    return forward_pass_by(before, memories, np.full(before.start.size, NEVER)) or before


def forward_pass_by(before: TimedSchedule, memories: Memories, due: Ints) -> TimedSchedule | None:
    """Return the same, or ``None`` once an activity starts later than at its cycle of ``due``.

    Most attempts to change a plan show soon after the change that they do not pay.
    """
    schedule = before.schedule
    closes, early = _with_unread(schedule)
    direction = _Direction(
        opens=schedule.fills,
        late=np.zeros(schedule.fills.items.size, np.int64),
        closes=closes,
        early=early,
        before=schedule.before,
        earlier=memories.reuse.earlier,
        overwrites=schedule.overwrites,
        is_open=schedule.filler == NONE,
        stays=schedule.lasting != 0,
    )
    earliest, start = np.zeros(due.size, np.int64), before.start
    state = _state(schedule, direction, memories, start, before.lifetimes()[1], earliest, earliest)
    is_in_time = _place_all(state, np.argsort(start, kind="stable"), due)
    return timed(schedule, state.found) if is_in_time else None


def backward_pass(
    before: TimedSchedule, memories: Memories, due: Ints | None = None
) -> TimedSchedule:
    """Return a schedule in which each activity ends as late as it can, all by the makespan.

    None starts earlier than before. Each has to end by its cycle of ``due``, which is no earlier
    than it ended before; by default the makespan.
    """
    schedule, last = before.schedule, before.makespan
    opens, late = _with_unread(schedule)
    direction = _Direction(
        opens=opens,
        late=late,
        closes=schedule.fills,
        early=np.zeros(schedule.fills.items.size, np.int64),
        before=schedule.after,
        earlier=memories.reuse.later,
        overwrites=schedule.overwritten_by,
        is_open=schedule.lasting != 0,
        stays=schedule.filler == NONE,
    )
    end = before.start + schedule.cycles
    begins, _ = before.lifetimes()
    earliest = np.zeros(end.size, np.int64) if due is None else last - due
    mirrored = schedule._replace(demands=schedule.demands.mirrored())
    sent, until = end - schedule.latency, last - begins
    state = _state(mirrored, direction, memories, last - end, until, earliest, schedule.latency)
    _place_all(state, np.argsort(-sent, kind="stable"), np.full(end.size, NEVER))
    return TimedSchedule(schedule, last - state.found - schedule.cycles, last)


def _with_unread(schedule: PartialOrderSchedule) -> tuple[Rows, Ints]:
    """Return what activities read, and with it what they fill and nobody reads.

    And for how long they need each of these no more before their end.
    """
    reads = schedule.reads
    unread = np.flatnonzero(np.diff(schedule.readers.begin)[schedule.fills.items] == 0)
    owners = owners_of(schedule.fills)[unread]
    added = np.cumsum(np.bincount(owners, minlength=schedule.cycles.size))
    places = reads.begin[owners + 1]
    items = np.insert(reads.items, places, schedule.fills.items[unread])
    early = np.insert(schedule.latency[owners_of(reads)], places, 0)
    return Rows(reads.begin + np.concatenate(([0], added)), items), early


class _Direction(NamedTuple):
    """What activities do to residencies, and what they follow, in the time of a pass.

    Attributes
    ----------
    opens, closes
        The residencies that each activity is the first to need, or one of the first, and those that
        it is one of the last to need: forward what it fills and what it reads, backward what it
        reads and what it fills. What nobody reads is opened and closed by the one that fills it.
    late, early
        By how many cycles an activity opens each later than at its start, and closes each before
        its end.
    before
        Tasks that each activity follows without data.
    earlier, overwrites
        The residencies that had the bytes of each before, and the one whose bytes it takes over in
        place; -1 for none.
    is_open, stays
        Whether each is there from the beginning, and until all ends.
    """

    opens: Rows
    late: Ints
    closes: Rows
    early: Ints
    before: Rows
    earlier: Rows
    overwrites: Ints
    is_open: Flags
    stays: Flags


class _State(NamedTuple):
    """A pass: the activities placed so far, and what they use. All times are those of the pass.

    Attributes
    ----------
    limit
        Of each memory, see :class:`Memories`.
    usage, occupancy
        What resources carry, and the bytes in use.
    stays_held
        The resources that activities hold at their old cycles until they are placed.
    old, earliest, found
        Of each activity the start before, the earliest start allowed, and the new one.
    opened, released
        Of each residency, when all have ended that open it, and all that touch it.
    unclosed
        How many have still to close it.
    since, until
        From when until when it is counted in its memory; ``NEVER`` until something opens it.
    residencies
        How many there are.
    """

    schedule: PartialOrderSchedule
    direction: _Direction
    limit: Ints
    usage: Timeline
    occupancy: Timeline
    stays_held: Flags
    old: Ints
    earliest: Ints
    found: Ints
    opened: Ints
    released: Ints
    unclosed: Ints
    since: Ints
    until: Ints
    residencies: int


def _state(
    schedule: PartialOrderSchedule,
    direction: _Direction,
    memories: Memories,
    old: Ints,
    until: Ints,
    earliest: Ints,
    behind: Ints,
) -> _State:
    """Return a pass before its first activity; their order is by ``behind`` after their start."""
    count, demands = schedule.filler.size, schedule.demands
    after = demands.late - behind[owners_of(demands.rows)]
    least = np.full(schedule.capacity.size, NEVER)
    np.minimum.at(least, demands.items, after)
    stays_held = np.zeros(least.size, np.bool_)
    stays_held[demands.items[after > least[demands.items]]] = True
    return _State(
        schedule=schedule,
        direction=direction,
        limit=memories.limit,
        usage=profiles_of_resources(schedule),
        occupancy=profiles_of_memories(schedule, memories.limit.size),
        stays_held=stays_held,
        old=old,
        earliest=earliest,
        found=np.zeros(old.size, np.int64),
        opened=np.zeros(count, np.int64),
        released=np.zeros(count, np.int64),
        unclosed=np.bincount(direction.closes.items, minlength=count),
        since=np.full(count, NEVER),
        until=until.copy(),
        residencies=count,
    )


def _place_all(state: _State, sequence: Ints, due: Ints) -> bool:
    """Place activities in a sequence; return False once one starts later than it is due."""
    kept = in_c(state)
    placed, acts = pass_at(address(kept)), longs_at(address(sequence))
    count, latest = whole(sequence.size), longs_at(address(due))
    with cython.nogil:
        is_in_time = _place(placed, acts, count, latest)
    return bool(is_in_time)


def _place(state: _State, sequence: Ints, count: int, due: Ints) -> bool:
    """Place ``count`` activities; return False once one starts later than it is due."""
    schedule, direction = schedule_in(state.schedule), direction_in(state.direction)
    for residency in range(state.residencies):
        if direction.is_open[residency]:
            state.since[residency] = 0
            _count(state, residency, 0, state.until[residency], 1)
    for place in range(count):
        _hold_as_before(state, sequence[place], 1)
    for place in range(count):
        act = sequence[place]
        cycles = schedule.cycles[act]
        if cycles == 0:
            continue
        _hold_as_before(state, act, -1)
        ready = _capacity_ready(state, act, _precedence_ready(state, act))
        usage = timeline_in(state.usage)
        start = earliest_start(schedule.demands, schedule.capacity, usage, act, cycles, ready)
        if start > due[act]:
            return False
        hold(schedule.demands, usage, act, start, start + cycles, 1)
        state.found[act] = start
        end = start + cycles
        for i in range(direction.opens.begin[act], direction.opens.begin[act + 1]):
            _open(state, direction.opens.items[i], start + direction.late[i], end)
        for i in range(direction.closes.begin[act], direction.closes.begin[act + 1]):
            _close(state, direction.closes.items[i], end - direction.early[i])
    return True


def _hold_as_before(state: _State, act: int, sign: int) -> None:
    """Take what stays held at an activity's old cycles, or give it back with ``sign`` -1."""
    schedule, demands = schedule_in(state.schedule), state.schedule.demands
    if schedule.cycles[act] > 0:
        for i in range(demands.begin[act], demands.begin[act + 1]):
            if state.stays_held[demands.items[i]]:
                first = state.old[act] + demands.late[i]
                until = state.old[act] + schedule.cycles[act] - demands.early[i]
                amount = sign * demands.amounts[i]
                occupy(timeline_in(state.usage), demands.items[i], first, until, amount)


def _count(state: _State, residency: int, first: int, until: int, sign: int) -> None:
    """Count a residency's bytes from ``first`` to ``until``, or no longer with ``sign`` -1."""
    memory = state.schedule.memory[residency]
    if state.limit[memory] != NEVER and until > first:
        size = taken(schedule_in(state.schedule), residency, memory)
        occupy(timeline_in(state.occupancy), memory, first, until, sign * size)


def _own_bytes(state: _State, residency: int) -> int:
    """Return the bytes that a residency takes beside those that it takes over in place."""
    schedule, overwritten = schedule_in(state.schedule), state.direction.overwrites[residency]
    memory = schedule.memory[residency]
    own = taken(schedule, residency, memory)
    if overwritten != NONE:
        own = max(0, own - taken(schedule, overwritten, memory))
    return own


def _open(state: _State, residency: int, start: int, end: int) -> None:
    """Count what an activity opens in its memory: from its new start until the old end."""
    state.opened[residency] = max(state.opened[residency], end)
    state.released[residency] = max(state.released[residency], end)
    since, memory = state.since[residency], state.schedule.memory[residency]
    if since == NEVER:
        # Bytes that are overwritten in place count twice only when the activity has ended.
        own = _own_bytes(state, residency)
        if state.limit[memory] != NEVER and own > 0:
            occupy(timeline_in(state.occupancy), memory, start, end, own)
        _count(state, residency, end, state.until[residency], 1)
    elif start < since:
        _count(state, residency, start, since, 1)
    state.since[residency] = min(since, start)


def _close(state: _State, residency: int, end: int) -> None:
    """Free what an activity closes from its end on, if it is the last one to do so."""
    state.released[residency] = max(state.released[residency], end)
    state.unclosed[residency] -= 1
    if state.unclosed[residency] == 0 and not state.direction.stays[residency]:
        _count(state, residency, state.released[residency], state.until[residency], -1)
        state.until[residency] = min(state.until[residency], state.released[residency])


def _precedence_ready(state: _State, act: int) -> int:
    """Return the cycle at which all has ended that an activity follows, as far as it is placed."""
    schedule, direction = schedule_in(state.schedule), direction_in(state.direction)
    ready: int = state.earliest[act]
    for i in range(direction.before.begin[act], direction.before.begin[act + 1]):
        other = direction.before.items[i]
        ready = max(ready, state.found[other] + schedule.cycles[other])
    for i in range(direction.closes.begin[act], direction.closes.begin[act + 1]):
        ready = max(ready, state.opened[direction.closes.items[i]])
    for i in range(direction.opens.begin[act], direction.opens.begin[act + 1]):
        residency, late = direction.opens.items[i], direction.late[i]
        # Others that need a value that is overwritten in place are placed, and end before.
        if direction.overwrites[residency] != NONE:
            ready = max(ready, state.released[direction.overwrites[residency]] - late)
        for j in range(direction.earlier.begin[residency], direction.earlier.begin[residency + 1]):
            ready = max(ready, state.released[direction.earlier.items[j]] - late)
    return ready


def _capacity_ready(state: _State, act: int, ready: int) -> int:
    """Return the first cycle from which memories have capacity for what an activity opens.

    They have it from there until its old start, or until others hold that already; from then on,
    wherever others are placed.
    """
    opens, late, memory_of = state.direction.opens, state.direction.late, state.schedule.memory
    occupancy = timeline_in(state.occupancy)
    steps = occupancy.steps
    for i in range(opens.begin[act], opens.begin[act + 1]):
        memory = memory_of[opens.items[i]]
        free_from = min(state.old[act] + late[i], state.since[opens.items[i]])
        if ready + late[i] >= free_from or state.limit[memory] == NEVER:
            continue
        need = 0
        for j in range(opens.begin[act], opens.begin[act + 1]):
            other = opens.items[j]
            is_held = min(state.old[act] + late[j], state.since[other]) < free_from
            if memory_of[other] == memory and not is_held:
                need += _own_bytes(state, other)
        step = step_at(occupancy, memory, free_from - 1)
        first = occupancy.resources[memory].begin
        while ready + late[i] < free_from and step >= first:
            if steps[step].load + need > state.limit[memory]:
                break
            free_from = steps[step].time
            step -= 1
        ready = max(ready, free_from - late[i])
    return ready
