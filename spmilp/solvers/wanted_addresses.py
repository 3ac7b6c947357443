"""A plan's addresses changed to wanted ones, as far as its times allow it.

Nothing but addresses changes. Each memory is packed anew around what is wanted in it; what cannot
be had is left out, until the rest of the memory fits beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from spmilp.checker.check import check
from spmilp.machine.machine import Memory
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.exact.formulation.addresses import Group, Placed, groups_in, lowest_offset
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.settling import timed_plan
from spmilp.units import Bytes

MOST_PAIRS = 2_000_000_000
"""Most pairs of groups that are compared for a memory; this limits how often it is packed anew."""

FEWEST_TRIES = 4
"""A memory is packed anew at least so often, however many groups it has."""

Placeable: TypeAlias = tuple[str, int]
"""What has an address: ``("residency", index)`` or ``("tensor", index)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithAddresses:
    """A plan with wanted addresses.

    Parameters
    ----------
    why_not
        For each thing whose wanted address it does not have: why.
    """

    plan: Plan
    why_not: Mapping[Placeable, str]


def with_addresses(
    problem: Problem, plan: Plan, wanted: Mapping[Placeable, Bytes]
) -> WithAddresses:
    """Return a valid plan with as many of the wanted addresses as are found at its times.

    Parameters
    ----------
    wanted
        The ones that matter most come first.
    """
    tables, timed = ProblemTables(problem), timed_plan(problem, plan)
    offsets = [one.offset for one in plan.residencies]
    tensors, why_not = [*plan.tensors], dict[Placeable, str]()
    for memory in problem.machine.memories:
        groups = groups_in(tables, timed, memory)
        owner = {
            thing: number
            for number, group in enumerate(groups)
            for thing in (*(("residency", one) for one in group.members), ("tensor", group.tensor))
        }
        here = {thing: at for thing, at in wanted.items() if thing in owner}
        now = [
            plan.residencies[group.members[0]].offset
            if group.tensor is None
            else plan.tensors[group.tensor]
            for group in groups
        ]
        found, reasons = _packed(memory, groups, now, {owner[one]: at for one, at in here.items()})
        for group, offset in zip(groups, found, strict=True):
            for member in group.members:
                offsets[member] = offset
            if group.tensor is not None:
                tensors[group.tensor] = offset
        for thing, at in here.items():
            if found[owner[thing]] != at:
                why_not[thing] = reasons.get(owner[thing], "it shares bytes with another")
    for one in plan.residencies:
        if one.slice is not None and tables.at_place(one.slice, one.memory):
            place = problem.buffers[problem.slices[one.slice].buffer].place
            if place is not None:
                offsets[one.index] += tensors[place.tensor] - plan.tensors[place.tensor]
    residencies = tuple(replace(each, offset=offsets[each.index]) for each in plan.residencies)
    measures = measure(problem, plan.placements, residencies, plan.transfers)
    claim = claim_of(measures, plan.claim.bound, plan.claim.bound_source)
    found_plan = replace(plan, residencies=residencies, tensors=tuple(tensors), claim=claim)
    if not check(problem, found_plan):
        return WithAddresses(plan=found_plan, why_not=why_not)
    # Engines that ask something of both addresses of a transfer; the checker knows all of it.
    reason = "an engine cannot reach the addresses of both ends then"
    at_now = {("residency", one.index): one.offset for one in plan.residencies}
    at_now |= {("tensor", index): address for index, address in enumerate(plan.tensors)}
    moved = {thing: reason for thing, address in wanted.items() if at_now[thing] != address}
    return WithAddresses(plan=plan, why_not=moved)


def _packed(
    memory: Memory, groups: Sequence[Group], now: Sequence[Bytes], wanted: Mapping[int, Bytes]
) -> tuple[Sequence[Bytes], dict[int, str]]:
    """Return an address for each group, and why some do not have the wanted one."""
    kept = {number: one.fixed for number, one in enumerate(groups) if one.fixed is not None}
    reasons = _impossible(memory, groups, wanted, kept)
    left = [(number, at) for number, at in wanted.items() if number not in reasons]
    tries = max(FEWEST_TRIES, MOST_PAIRS // (len(groups) ** 2 + 1))
    found, size = now, len(left)
    while left:
        size = min(size, len(left))
        some, tries = dict(left[:size]), tries - 1
        offsets = _fitted(memory, groups, now, kept | some)
        if offsets is None and size > 1 and tries > 0:
            size //= 2
            continue
        if offsets is None:
            reasons |= dict.fromkeys(some, f"the rest of {memory.name} does not fit beside it")
        else:
            kept, found = kept | some, offsets
        left = left[size:]
    return found, reasons


def _impossible(
    memory: Memory,
    groups: Sequence[Group],
    wanted: Mapping[int, Bytes],
    fixed: Mapping[int, Bytes],
) -> dict[int, str]:
    """Return why wanted addresses are none of the memory, or meet each other."""
    placed, reasons = Placed([*groups]), dict[int, str]()
    for number, at in fixed.items():
        placed.add(groups[number], at)
    for number, at in wanted.items():
        group, pinned = groups[number], fixed.get(number)
        reason = "" if pinned is None else f"it is pinned to {pinned} now"
        reason = reason or _outside(memory, group, at)
        if not reason and lowest_offset(memory, group._replace(fixed=at), placed) is None:
            reason = "something else that is locked has bytes of it at the same time"
        if reason:
            reasons[number] = reason
        else:
            placed.add(group, at)
    return reasons


def _outside(memory: Memory, group: Group, at: Bytes) -> str:
    end = at + group.size
    if at % memory.alignment:
        return f"{memory.name} is aligned to {memory.alignment} B now"
    if memory.size is not None and end > memory.size:
        return f"it would end at {end} B of {memory.name}, which has {memory.size} B"
    for taken in memory.reserved:
        if at < taken.end and taken.start < end:
            return f"bytes {taken.start} to {taken.end} of {memory.name} are reserved"
    return ""


def _fitted(
    memory: Memory, groups: Sequence[Group], now: Sequence[Bytes], fixed: Mapping[int, Bytes]
) -> list[Bytes] | None:
    """Return addresses around fixed ones: others stay where they can, or all move."""
    order = sorted(range(len(groups)), key=lambda n: (-groups[n].size * groups[n].span, n))
    for others_stay in (True, False):
        placed, offsets = Placed([*groups]), dict(fixed)
        for number, at in fixed.items():
            placed.add(groups[number], at)
        for number in order if others_stay else ():
            at = now[number]
            stays = lowest_offset(memory, groups[number]._replace(fixed=at), placed) is not None
            if number not in fixed and stays:
                offsets[number] = at
                placed.add(groups[number], at)
        for number in order:
            if number in offsets:
                continue
            lowest = lowest_offset(memory, groups[number], placed)
            if lowest is None:
                break
            offsets[number] = lowest
            placed.add(groups[number], lowest)
        else:
            return [offsets[number] for number in range(len(groups))]
    return None
