"""A plan's addresses changed to wanted ones, as far as its times allow it.

Nothing but addresses changes. Each memory is packed anew around what is wanted in it; what cannot
be had is left out, one by one, until the rest of the memory fits beside it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.check import check
from spmilp.machine.machine import Memory
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.addresses import Group, groups_in
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.settling import timed_plan
from spmilp.units import Bytes, ResidencyIdx, TensorIdx, align_up

MOST_PAIRS = 2_000_000_000
"""Of groups of a memory that are compared at most: as often as that allows, it is packed anew."""

FEWEST_TRIES = 4

Thing: TypeAlias = tuple[str, int]
"""What has an address: ``("residency", index)`` or ``("tensor", index)``."""


def residency(index: ResidencyIdx) -> Thing:
    """Return a residency as something that has an address."""
    return "residency", index


def tensor(index: TensorIdx) -> Thing:
    """Return a tensor in DRAM as something that has an address."""
    return "tensor", index


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A plan with wanted addresses.

    Parameters
    ----------
    why_not
        For each thing whose wanted address it does not have: why.
    """

    plan: Plan
    why_not: Mapping[Thing, str]


def with_addresses(problem: Problem, plan: Plan, wanted: Mapping[Thing, Bytes]) -> Kept:
    """Return a valid plan with as many of the wanted addresses as are found at its times.

    Parameters
    ----------
    wanted
        The ones that matter most come first.
    """
    tables, timed = ProblemTables(problem), timed_plan(problem, plan)
    offsets = [one.offset for one in plan.residencies]
    tensors, why_not = [*plan.tensors], dict[Thing, str]()
    for memory in problem.machine.memories:
        groups = groups_in(tables, timed, memory)
        packing = _Packing(memory, groups, [_address(plan, group) for group in groups])
        of_thing = {thing: number for number, each in enumerate(groups) for thing in _things(each)}
        here = {thing: at for thing, at in wanted.items() if thing in of_thing}
        found, reasons = packing.around({of_thing[thing]: at for thing, at in here.items()})
        for group, offset in zip(groups, found, strict=True):
            for member in group.members:
                offsets[member] = offset
            if group.tensor is not None:
                tensors[group.tensor] = offset
        for thing, at in here.items():
            if found[of_thing[thing]] != at:
                why_not[thing] = reasons.get(of_thing[thing], "it shares bytes with another")
    for one in plan.residencies:
        if one.slice is not None and tables.at_place(one.slice, one.memory):
            place = problem.buffers[problem.slices[one.slice].buffer].place
            if place is not None:
                offsets[one.index] += tensors[place.tensor] - plan.tensors[place.tensor]
    residencies = tuple(replace(each, offset=offsets[each.index]) for each in plan.residencies)
    measures = measure(problem, plan.placements, residencies, plan.transfers)
    claim = claim_of(measures, plan.claim.bound, plan.claim.bound_source)
    kept = replace(plan, residencies=residencies, tensors=tuple(tensors), claim=claim)
    if check(problem, kept):
        # Engines that ask something of both addresses of a transfer; the checker knows all of it.
        reason = "an engine cannot reach the addresses of both ends then"
        return Kept(plan=plan, why_not=_not_there(plan, wanted, reason))
    return Kept(plan=kept, why_not=why_not)


def _not_there(plan: Plan, wanted: Mapping[Thing, Bytes], reason: str) -> dict[Thing, str]:
    at = {residency(one.index): one.offset for one in plan.residencies}
    at |= {tensor(index): address for index, address in enumerate(plan.tensors)}
    return {thing: reason for thing, address in wanted.items() if at[thing] != address}


def _things(group: Group) -> Iterable[Thing]:
    if group.tensor is not None:
        yield tensor(group.tensor)
    yield from map(residency, group.members)


def _address(plan: Plan, group: Group) -> Bytes:
    if group.tensor is not None:
        return plan.tensors[group.tensor]
    return plan.residencies[group.members[0]].offset


class _Packing:
    """Groups of a memory, the addresses that they have, and those that they are given."""

    def __init__(self, memory: Memory, groups: Sequence[Group], now: Sequence[Bytes]) -> None:
        self._memory = memory
        self._groups = groups
        self._now = now
        owners = [number for number, group in enumerate(groups) for _ in group.pieces]
        pieces = [piece for group in groups for piece in group.pieces]
        self._owners: NDArray[np.int64] = np.array(owners, dtype=np.int64)
        self._pieces: NDArray[np.int64] = np.array(pieces, dtype=np.int64).reshape(-1, 4)
        self._tries = max(FEWEST_TRIES, MOST_PAIRS // (len(groups) ** 2 + 1))
        area = [-group.size * group.span for group in groups]
        self._order = sorted(range(len(groups)), key=lambda number: (area[number], number))

    def around(self, wanted: Mapping[int, Bytes]) -> tuple[Sequence[Bytes], dict[int, str]]:
        """Return an address for each group, and why some do not have the wanted one."""
        reasons: dict[int, str] = {}
        kept = {
            number: group.fixed
            for number, group in enumerate(self._groups)
            if group.fixed is not None
        }
        left = self._without_conflicts(wanted, reasons)
        found = self._now
        while left:
            count, offsets = self._most(kept, left)
            kept |= dict(left[:count])
            found = offsets or found
            last = count + 1 if self._tries > 0 else len(left)
            for number, _ in left[count:last]:
                reasons[number] = f"the rest of {self._memory.name} does not fit beside it"
            left = left[last:]
        return found, reasons

    def _most(
        self, kept: dict[int, Bytes], left: list[tuple[int, Bytes]]
    ) -> tuple[int, list[Bytes] | None]:
        """Return how many of the first ones can be kept besides others, and the addresses."""
        best = self._fitted(kept | dict(left))
        if best is not None:
            return len(left), best
        low, high = 0, len(left)
        while low + 1 < high and self._tries > 0:
            middle = (low + high) // 2
            found = self._fitted(kept | dict(left[:middle]))
            low, high, best = (low, middle, best) if found is None else (middle, high, found)
        return low, best

    def _without_conflicts(
        self, wanted: Mapping[int, Bytes], reasons: dict[int, str]
    ) -> list[tuple[int, Bytes]]:
        """Return the wanted addresses that are possible and do not meet each other."""
        placed, left = _Placed(self._owners, self._pieces, len(self._groups)), []
        for number, group in enumerate(self._groups):
            if group.fixed is not None:
                placed.put(number, group.fixed)
        for number, at in wanted.items():
            fixed = self._groups[number].fixed
            if fixed is not None:
                reasons[number] = f"it is pinned to {fixed} now"
                continue
            reason = self._outside(self._groups[number], at)
            if not reason and not placed.is_free(number, at):
                reason = "something else that is locked has bytes of it at the same time"
            if reason:
                reasons[number] = reason
                continue
            placed.put(number, at)
            left.append((number, at))
        return left

    def _outside(self, group: Group, at: Bytes) -> str:
        memory, end = self._memory, at + group.size
        if at % memory.alignment:
            return f"{memory.name} is aligned to {memory.alignment} B now"
        if memory.size is not None and end > memory.size:
            return f"it would end at {end} B of {memory.name}, which has {memory.size} B"
        for taken in memory.reserved:
            if at < taken.end and taken.start < end:
                return f"bytes {taken.start} to {taken.end} of {memory.name} are reserved"
        return ""

    def _fitted(self, fixed: Mapping[int, Bytes]) -> list[Bytes] | None:
        """Return addresses around fixed ones: others stay where they can, or all move."""
        self._tries -= 1
        for others_stay in (True, False):
            found = self._fit(fixed, others_stay=others_stay)
            if found is not None:
                return found
        return None

    def _fit(self, fixed: Mapping[int, Bytes], *, others_stay: bool) -> list[Bytes] | None:
        placed = _Placed(self._owners, self._pieces, len(self._groups))
        for number, at in fixed.items():
            placed.put(number, at)
        moving = []
        for number in self._order:
            if number in fixed:
                continue
            if others_stay and placed.is_free(number, self._now[number]):
                placed.put(number, self._now[number])
            else:
                moving.append(number)
        for number in moving:
            lowest = placed.lowest(number, self._groups[number].size, self._memory)
            if lowest is None:
                return None
            placed.put(number, lowest)
        return [int(offset) for offset in placed.offsets]


class _Placed:
    """Pieces of groups in a memory: rows of start, end, low and high, the last two in bytes."""

    def __init__(self, owners: NDArray[np.int64], pieces: NDArray[np.int64], groups: int) -> None:
        self._owners = owners
        self._pieces = pieces
        self._is_placed = np.zeros(len(owners), dtype=np.bool_)
        self.offsets: NDArray[np.int64] = np.zeros(groups, dtype=np.int64)

    def put(self, group: int, at: Bytes) -> None:
        self.offsets[group] = at
        self._is_placed[self._owners == group] = True

    def is_free(self, group: int, at: Bytes) -> bool:
        """Say whether no byte that a group would have at an address is taken at the same time."""
        firsts, lasts = self._taken(group)
        return not bool(np.any((firsts <= at) & (at < lasts)))

    def lowest(self, group: int, size: Bytes, memory: Memory) -> Bytes | None:
        """Return the lowest address at which a group is free; ``None`` if there is none."""
        firsts, lasts = self._taken(group)
        taken = [*zip(firsts.tolist(), lasts.tolist(), strict=True)]
        taken += [(one.start - size + 1, one.end) for one in memory.reserved]
        at = 0
        for first, last in sorted(taken):
            if first <= at < last:
                at = align_up(last, memory.alignment)
        return None if memory.size is not None and at + size > memory.size else at

    def _taken(self, group: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the addresses ``[first, last)`` that others keep a group from having."""
        firsts, lasts = [], []
        for start, end, low, high in self._pieces[self._owners == group]:
            there = self._is_placed & (self._pieces[:, 0] < end) & (start < self._pieces[:, 1])
            at = self.offsets[self._owners[there]]
            firsts.append(at + self._pieces[there, 2] - high + 1)
            lasts.append(at + self._pieces[there, 3] - low)
        if not firsts:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.concatenate(firsts), np.concatenate(lasts)
