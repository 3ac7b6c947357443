"""Offsets for residencies next to others, or where others are at the same time. Compiled."""

from typing import NamedTuple

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NO, NONE, ONE, YES, ZERO, Ints, Rows
from spmilp.solvers.partial_order.schedule import Flags, PartialOrderSchedule

FORBIDDEN = NEVER
"""In place of a wait: neither of two may wait for the other."""


class Neighbours(NamedTuple):
    """The items of one memory: all residencies that are ever there.

    Attributes
    ----------
    residency
        Of each item.
    begins, ends, bytes, grain, area
        Its lifetime, its bytes, the number that divides its offset, bytes times cycles.
    filler
        What fills it; -1 where it is there at cycle 0.
    group, members
        Items that lie at one offset together: the group of each, and the items of each.
    first, last
        See :class:`~spmilp.solvers.partial_order.waiting.WaitingOrder`; ``last`` changes.
    reserved, until
        Bytes that nothing may have: ``[reserved[i], until[i])``.
    """

    schedule: PartialOrderSchedule
    residency: Ints
    begins: Ints
    ends: Ints
    bytes: Ints
    grain: Ints
    area: Ints
    filler: Ints
    group: Ints
    members: Rows
    first: Ints
    last: Ints
    reserved: Ints
    until: Ints
    capacity: int


class Attempt(NamedTuple):
    """Offsets on their way.

    Attributes
    ----------
    offset
        Of each item; -1 for none yet.
    stays
        Whether an item makes room for no other.
    queue
        Groups to be placed, in a ring; each is in it once at most.
    there, waits
        Room for the items that are there with a group, and for the waits of each of its members.
    placed
        How many groups have been placed, in all attempts.
    """

    offset: Ints
    stays: Flags
    queue: Ints
    there: Ints
    waits: Ints
    placed: Ints


@kernel
def place_in_turn(items: Neighbours, attempt: Attempt, count: int, most: int) -> int:
    """Place ``count`` groups one after another; return the first that finds no offset, or -1.

    Where an item may wait for nobody and let nobody wait, others make room and are placed
    after it; it then stays. No more than ``most`` groups are placed.
    """
    queue, offset = attempt.queue, attempt.offset
    head, length = ZERO, count
    while length > 0:
        group: int = queue[head]
        attempt.placed[0] += 1
        if attempt.placed[0] > most:
            return group
        head = (head + 1) % queue.size
        length -= 1
        present = _find_those_there(items, attempt, group)
        found = _best_offset(items, attempt, group, present)
        if found == NONE:
            return group
        makes_room = NO
        for i in range(present):
            other = attempt.there[i]
            if offset[other] >= 0 and _wait_at(items, attempt, group, present, i, found) < 0:
                makes_room = YES
                evicted = items.group[other]
                queue[(head + length) % queue.size] = evicted
                length += 1
                for j in range(items.members.begin[evicted], items.members.begin[evicted + 1]):
                    offset[items.members.items[j]] = NONE
        for i in range(items.members.begin[group], items.members.begin[group + 1]):
            one = items.members.items[i]
            offset[one] = found
            attempt.stays[one] = attempt.stays[one] or makes_room
        _note_waits(items, attempt, group, present)
    return NONE


@part
def _find_those_there(items: Neighbours, attempt: Attempt, group: int) -> int:
    """Note which items with offsets are there with a group, and their waits; return how many."""
    rows, count = items.members, ZERO
    for other in range(items.begins.size):
        if attempt.offset[other] < 0:
            continue
        for i in range(rows.begin[group], rows.begin[group + 1]):
            if _meet(items, rows.items[i], other):
                attempt.there[count] = other
                count += ONE
                break
    for i in range(rows.begin[group], rows.begin[group + 1]):
        row = (i - rows.begin[group]) * count
        for j in range(count):
            attempt.waits[row + j] = _wait(items, rows.items[i], attempt.there[j])
    return count


@part
def _best_offset(items: Neighbours, attempt: Attempt, group: int, present: int) -> int:
    """Return where a group waits, and lets wait, the least, after making others go the least.

    The lowest of several; -1 if there is none.
    """
    rows, size, grain = items.members, ZERO, ONE
    for i in range(rows.begin[group], rows.begin[group + 1]):
        size = max(size, items.bytes[rows.items[i]])
        grain = max(grain, items.grain[rows.items[i]])
    best, least_room, least_wait = NONE, NEVER, NEVER
    for i in range(-1, present + items.until.size):
        above = ZERO
        if 0 <= i < present:
            above = attempt.offset[attempt.there[i]] + items.bytes[attempt.there[i]]
        elif i >= present:
            above = items.until[i - present]
        offset = -(-above // grain) * grain
        if offset + size > items.capacity or _is_reserved(items, offset, size):
            continue
        room = wait = ZERO
        for j in range(present):
            waits = _wait_at(items, attempt, group, present, j, offset)
            if waits >= 0:
                wait = max(wait, waits)
                continue
            room = NEVER if attempt.stays[attempt.there[j]] else room + items.area[attempt.there[j]]
            if room > least_room or room == NEVER:
                break
        if room == NEVER or room > least_room or (room == least_room and wait > least_wait):
            continue
        if room == least_room and wait == least_wait and offset > best:
            continue
        best, least_room, least_wait = offset, room, wait
    return best


@part
def _is_reserved(items: Neighbours, offset: int, size: int) -> bool:
    for i in range(items.until.size):
        if offset < items.until[i] and offset + size > items.reserved[i]:
            return YES
    return NO


@part
def _wait_at(
    items: Neighbours, attempt: Attempt, group: int, present: int, index: int, offset: int
) -> int:
    """Return the wait between a group at an offset and one that is there; -1 if it is forbidden."""
    rows, other = items.members, attempt.there[index]
    low = attempt.offset[other]
    wait = ZERO
    if offset >= low + items.bytes[other]:
        return wait
    for i in range(rows.begin[group], rows.begin[group + 1]):
        if offset + items.bytes[rows.items[i]] > low:
            found = attempt.waits[(i - rows.begin[group]) * present + index]
            if found == FORBIDDEN:
                return NONE
            wait = max(wait, found)
    return wait


@part
def _meet(items: Neighbours, one: int, other: int) -> bool:
    """Say whether two items are there at one time."""
    found: bool = items.begins[other] < items.ends[one] and items.ends[other] > items.begins[one]
    return found


@part
def _is_later(items: Neighbours, one: int, other: int) -> bool:
    """Say whether one item begins after another."""
    if items.begins[other] == items.begins[one]:
        return other < one
    later: bool = items.begins[other] < items.begins[one]
    return later


@part
def _wait(items: Neighbours, one: int, other: int) -> int:
    """Return how long the later of two items waits for the other's end."""
    if not _meet(items, one, other):
        return ZERO
    late, early = (one, other) if _is_later(items, one, other) else (other, one)
    filler = items.filler[late]
    if filler == NONE or items.last[items.residency[early]] >= items.first[filler]:
        return FORBIDDEN
    if _touches(items.schedule, filler, items.residency[early]):
        return FORBIDDEN
    wait: int = items.ends[early] - items.begins[late]
    return wait


@part
def _touches(schedule: PartialOrderSchedule, act: int, residency: int) -> bool:
    """Say whether an activity reads or fills a residency."""
    for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
        if schedule.reads.items[i] == residency:
            return YES
    for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
        if schedule.fills.items[i] == residency:
            return YES
    return NO


@part
def _note_waits(items: Neighbours, attempt: Attempt, group: int, present: int) -> None:
    """Let those that wait have later times."""
    rows, offset, schedule = items.members, attempt.offset, items.schedule
    for i in range(rows.begin[group], rows.begin[group + 1]):
        one = rows.items[i]
        for j in range(present):
            other = attempt.there[j]
            if offset[other] < 0 or not _meet(items, one, other):
                continue
            if (
                offset[other] >= offset[one] + items.bytes[one]
                or offset[other] + items.bytes[other] <= offset[one]
            ):
                continue
            late, early = (one, other) if _is_later(items, one, other) else (other, one)
            time, filler = items.last[items.residency[early]], items.filler[late]
            _let_wait(schedule.reads, items.last, filler, time)
            _let_wait(schedule.fills, items.last, filler, time)


@part
def _let_wait(touched: Rows, last: Ints, filler: int, time: int) -> None:
    """Let what an activity touches be touched at such a time, or later."""
    for i in range(touched.begin[filler], touched.begin[filler + 1]):
        residency = touched.items[i]
        last[residency] = max(last[residency], time)
