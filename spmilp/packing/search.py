"""From an instance to the arrays of the search, and one run of it; it can be paused and resumed."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.packing import arrays
from spmilp.packing.arrays import Agenda, Arrays, Frames, Ints, Memo, Shorts, State, Tables
from spmilp.packing.instance import Instance, conflicts_of, obstacles_by_section
from spmilp.packing.kernel import move_states, search
from spmilp.packing.outlines import lowest_offsets
from spmilp.packing.result import LIMITS
from spmilp.units import align_up

SLOTS_PER_NODE = 8
"""Slots of the table of failed states for each node, at least, until it may not grow any more."""


class Outcome(Enum):
    """How a run has ended, or that it has not."""

    PACKED = arrays.PACKED
    EXHAUSTED = arrays.EXHAUSTED
    PAUSED = arrays.PAUSED


def tables_of(instance: Instance) -> Tables | None:
    """Return the search's arrays, or ``None`` when the instance has too many conflicts for it."""
    conflicts = conflicts_of(instance, LIMITS.conflicts)
    if conflicts is None:
        return None
    outline = instance.outline
    lengths = outline.run_until - outline.run_from
    member_start, member, member_incidence, incidence_position = _members(instance, lengths)
    obstacle_start, obstacle_from, obstacle_until = obstacles_by_section(instance)
    # The least by which each item raises one that lies on it.
    lift = outline.units.copy()
    if conflicts.extent.size:
        owner = np.repeat(np.arange(instance.count), np.diff(conflicts.start))
        np.minimum.at(lift, owner, conflicts.extent)
    free = (np.diff(outline.blocked_start) == 0) & (np.diff(outline.run_start) == 1)
    return Tables(
        outline=outline,
        is_uniform=conflicts.extent.size == 0,
        pair_start=conflicts.start,
        pair_item=conflicts.item,
        pair_extent=conflicts.extent,
        member_start=member_start,
        member=member,
        member_incidence=member_incidence,
        incidence_position=incidence_position,
        incidence_start=np.cumsum(lengths) - lengths,
        hull_from=outline.run_from[outline.run_start[:-1]],
        hull_until=outline.run_until[outline.run_start[1:] - 1],
        lift=lift,
        lowest=lowest_offsets(outline),
        obstacle_start=obstacle_start,
        obstacle_from=obstacle_from,
        obstacle_until=obstacle_until,
        exchange_class=_classes(instance, free & (outline.alignment == 1), ()),
        twin_class=_classes(instance, free, (instance.bytes, instance.alignment_bytes)),
    )


def _members(instance: Instance, lengths: Ints) -> tuple[Ints, Shorts, Shorts, Shorts]:
    """Return all (item, section) incidences by section: pointers, items, incidences, and back."""
    item = np.repeat(instance.owner, lengths)
    starts = np.cumsum(lengths) - lengths
    section = np.arange(item.size) - np.repeat(starts - instance.outline.run_from, lengths)
    order = np.argsort(section, kind="stable")
    position = np.empty(order.size, dtype=np.int32)
    position[order] = np.arange(order.size)
    pointer = np.zeros(instance.sections + 1, dtype=np.int64)
    np.cumsum(np.bincount(section, minlength=instance.sections), out=pointer[1:])
    return pointer, item[order].astype(np.int32), order.astype(np.int32), position


def _classes(instance: Instance, eligible: NDArray[np.bool_], also: tuple[Ints, ...]) -> Ints:
    """Number the classes of eligible items alike in their sections and in ``also``; else -1."""
    outline = instance.outline
    first = outline.run_start[:-1]
    columns = (outline.run_from[first], outline.run_until[first], *also)
    number = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1]
    return np.where(eligible, number.reshape(-1), -1).astype(np.int64)


class FailedStates:
    """States that are known to fail at one capacity, in a table that grows with them.

    To clear a table of full size takes longer than many a search.
    """

    def __init__(self) -> None:
        self._nodes = 0
        self.memo = _empty_memo(2)

    def with_room(self, nodes: int) -> Memo:
        """Return the table, in which the states that so many more nodes leave have room.

        Once it is as large as it may be, some states are forgotten.
        """
        # A run leaves at most one state that failed for each node, and one where it began.
        self._nodes += nodes + 1
        enough = 2 ** (SLOTS_PER_NODE * self._nodes).bit_length()
        if self.memo.size < min(enough, LIMITS.memo_states):
            larger = _empty_memo(min(2 * enough, LIMITS.memo_states))
            move_states(self.memo, larger)
            self.memo = larger
        return self.memo


def _empty_memo(size: int) -> Memo:
    return Memo(
        size=size,
        key=np.zeros(size, dtype=np.uint64),
        check=np.zeros(size, dtype=np.uint64),
        bound=np.zeros(size, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Whether a part of an instance, which time separates from the rest, fits at one capacity.

    ``items``, ``section_from`` and ``section_until`` are the items of the part and its sections;
    ``latest`` and ``capacity`` each highest offset of the instance, and the capacity, in units. The
    parts of one instance at one capacity share the ``failed`` states.
    """

    tables: Tables
    items: Ints
    section_from: int
    section_until: int
    latest: Ints
    capacity: int
    failed: FailedStates


def questions_of(instance: Instance, tables: Tables, capacity: int) -> Iterator[Question]:
    """Cut an instance where no item ties the two sides together; the capacity is in bytes."""
    sections = tables.member_start.size - 1
    spanning = np.zeros(sections + 1, dtype=np.int64)
    np.add.at(spanning, tables.hull_from + 1, 1)
    np.subtract.at(spanning, tables.hull_until, 1)
    cuts = np.flatnonzero(np.cumsum(spanning) == 0)
    cuts = cuts[(cuts > 0) & (cuts < sections)]
    number = np.searchsorted(cuts, tables.hull_from, side="right")
    bounds = [0, *cuts.tolist(), sections]
    failed = FailedStates()
    latest = instance.latest(capacity)
    # Rounded so that the topmost item's padding fits.
    units = align_up(capacity, instance.grain) // instance.unit
    # Exchanging two items could leave the upper one above its latest offset.
    is_short = latest != units - tables.outline.units
    kept_as_they_are = tables._replace(exchange_class=np.full(instance.count, -1, dtype=np.int64))
    for k in np.unique(number).tolist():
        items = np.flatnonzero(number == k)
        yield Question(
            tables=kept_as_they_are if is_short[items].any() else tables,
            items=items,
            section_from=bounds[k],
            section_until=bounds[k + 1],
            latest=latest,
            capacity=units,
            failed=failed,
        )


class Run:
    """A search with one order of preference that can be continued.

    ``order`` has the items of the part, the most preferred first; ``weight`` how often each item of
    the instance was in a section that did not fit; the run adds to it.
    """

    def __init__(self, question: Question, order: Ints, weight: Ints) -> None:
        items = question.items
        self._question = question
        self._state = _first_state(question, order, weight)
        self._frames = _first_frames(question)
        self._agenda = Agenda(*(np.zeros(items.size + 2, np.int64) for _ in Agenda._fields))
        fits = (self._state.low <= question.latest)[items].all()
        self._outcome = Outcome.PAUSED if fits else Outcome.EXHAUSTED

    @property
    def nodes(self) -> int:
        """Items placed so far, all branches counted."""
        return int(self._state.counters[arrays.NODES])

    @property
    def offsets(self) -> Ints:
        """Offset in units of each item of the instance; -1 outside the part."""
        return self._state.offset

    def advance(self, nodes: int) -> Outcome:
        """Search on for at most ``nodes`` more nodes, unless it is decided."""
        if self._outcome is not Outcome.PAUSED:
            return self._outcome
        question = self._question
        given = Arrays(
            tables=question.tables,
            state=self._state,
            frames=self._frames,
            agenda=self._agenda,
            memo=question.failed.with_room(nodes),
            capacity=question.capacity,
        )
        self._outcome = Outcome(search(given, self.nodes + nodes))
        return self._outcome


def _first_state(question: Question, order: Ints, weight: Ints) -> State:
    tables, part = question.tables, question.items
    items, sections = tables.outline.units.size, tables.member_start.size - 1
    conflicts = tables.pair_start[part + 1] - tables.pair_start[part]
    trail = int(conflicts.sum()) + items + 1

    def zeros(size: int) -> Ints:
        return np.zeros(size, dtype=np.int64)

    state = State(
        rank=zeros(items),
        weight=weight,
        latest=question.latest,
        low=tables.lowest.copy(),
        barred=zeros(items),
        offset=np.full(items, -1, dtype=np.int64),
        order=part.copy(),
        position=zeros(items),
        remaining=zeros(sections),
        alive=np.diff(tables.member_start),
        witness=zeros(sections),
        member=tables.member.copy(),
        member_incidence=tables.member_incidence.copy(),
        incidence_position=tables.incidence_position.copy(),
        spanning=zeros(sections + 1),
        trail_item=zeros(trail),
        trail_low=zeros(trail),
        counters=zeros(arrays.COUNTERS),
    )
    state.rank[order] = np.arange(order.size)
    state.position[part] = np.arange(part.size)
    state.counters[arrays.AGENDA_HEAD] = -1
    return state


def _first_frames(question: Question) -> Frames:
    size = question.items.size + 2
    types = {name: np.uint64 if name in ("key", "check") else np.int64 for name in Frames._fields}
    columns: dict[str, Any] = {name: np.zeros(size, dtype) for name, dtype in types.items()}
    frames = Frames(**columns)
    frames.last[0] = question.items.size
    frames.section_from[0] = question.section_from
    frames.section_until[0] = question.section_until
    frames.back_to[0] = -1
    return frames
