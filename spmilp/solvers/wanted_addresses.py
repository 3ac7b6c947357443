"""A plan's addresses changed to wanted ones, as far as its times allow it.

Nothing but addresses changes. Each memory is packed anew around what is wanted in it; what cannot
be had is left out, until the rest of the memory fits beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spmilp.bounds.best import Bound
from spmilp.checker.check import check
from spmilp.packing import PackingOptions, check_packing, pack
from spmilp.packing.instance import first_of_each_set
from spmilp.plan.memory import pairs_in_place
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.exact.formulation.addresses import (
    Contents,
    Placeable,
    contents_of,
    with_offsets,
)
from spmilp.solvers.exact.formulation.extraction import TimedPlan
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.units import Bytes

MOST_TRIES = 40
"""How often a memory is packed anew."""

LIMITS = PackingOptions(node_limit=30_000, conflict=False)
"""Of one packing: a fraction of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithAddresses:
    """A plan with wanted addresses.

    ``why_not`` says it for each thing whose wanted address it does not have.
    """

    plan: Plan
    why_not: Mapping[Placeable, str]


def with_addresses(
    problem: Problem, plan: Plan, wanted: Mapping[Placeable, Bytes]
) -> WithAddresses:
    """Return a valid plan with as many of the wanted addresses as are found at its times.

    Of those ``wanted`` the ones that matter most come first.
    """
    tables = ProblemTables(problem)
    timed = TimedPlan(
        placements=plan.placements,
        residencies=plan.residencies,
        transfers=plan.transfers,
        items=tuple(range(len(plan.residencies))),
        pairs=tuple(pairs_in_place(problem, plan)),
    )
    now: dict[Placeable, Bytes] = {("residency", one.index): one.offset for one in plan.residencies}
    now |= {("tensor", index): address for index, address in enumerate(plan.tensors)}
    found, reasons = dict(now), dict[Placeable, str]()
    for memory in problem.machine.memories:
        contents = contents_of(tables, timed, memory)
        here = {thing: at for thing, at in wanted.items() if thing in contents.things}
        placed, why_not = _packed(contents, now, here, memory.name)
        found |= placed
        reasons |= why_not
    addresses = with_offsets(tables, plan.residencies, found)
    bound = Bound(plan.claim.bound_source, problem.objective.first, plan.claim.bound)
    changed = addresses.plan(tables, timed, bound, plan.solver)
    changed = replace(changed, options=plan.options)
    if check(problem, changed):
        # Engines that ask something of both addresses of a transfer; the checker knows all of it.
        reason = "an engine cannot reach the addresses of both ends then"
        moved = {thing: reason for thing, at in wanted.items() if now[thing] != at}
        return WithAddresses(plan=plan, why_not=moved)
    missed = (thing for thing, at in wanted.items() if found[thing] != at)
    other = "it shares bytes with another"
    return WithAddresses(
        plan=changed, why_not={thing: reasons.get(thing, other) for thing in missed}
    )


def _packed(
    contents: Contents,
    now: Mapping[Placeable, Bytes],
    wanted: Mapping[Placeable, Bytes],
    memory: str,
) -> tuple[Mapping[Placeable, Bytes], dict[Placeable, str]]:
    """Return an address for each thing in a memory, and why some do not have the wanted one.

    All that is wanted is tried at first, then ever shorter runs of it.
    """
    pinned = {
        thing: item.offset
        for thing, item in zip(contents.things, contents.problem.items, strict=True)
        if item.offset is not None
    }
    reasons = _impossible(contents, pinned, wanted, memory)
    left = [(thing, at) for thing, at in wanted.items() if thing not in reasons]
    kept, found, size, tries = pinned, now, len(left), MOST_TRIES
    while left:
        size = min(size, len(left))
        some, tries = dict(left[:size]), tries - 1
        placed = _around(contents, now, kept | some)
        if placed is None and size > 1 and tries > 0:
            size //= 2
            continue
        if placed is None:
            reasons |= dict.fromkeys(some, f"the rest of {memory} does not fit beside it")
        else:
            kept, found = kept | some, placed
        left = left[size:]
    return {thing: found[thing] for thing in contents.things}, reasons


def _impossible(
    contents: Contents,
    pinned: Mapping[Placeable, Bytes],
    wanted: Mapping[Placeable, Bytes],
    memory: str,
) -> dict[Placeable, str]:
    """Return why wanted addresses are none of the memory, or meet each other."""
    order = [*pinned, *(thing for thing in wanted if thing not in pinned)]
    offsets = [{**pinned, **wanted}[thing] for thing in order]
    problem = contents.problem.part([contents.things.index(thing) for thing in order])
    reasons: dict[Placeable, str] = {}
    for broken in check_packing(problem, offsets):
        found = sorted(broken.items)
        item, thing, at = problem.items[found[-1]], order[found[-1]], offsets[found[-1]]
        if any(order[one] in reasons for one in found):
            continue
        reasons[thing] = "something else that is locked has bytes of it at the same time"
        if broken.rule == "inside":
            end = at + item.size
            reasons[thing] = f"it would end at {end} B of {memory}, which has {problem.capacity} B"
        elif len(found) == 1:
            reasons[thing] = f"the alignment, reserved bytes or a pin of {memory} forbid it"
    return reasons


def _around(
    contents: Contents, now: Mapping[Placeable, Bytes], fixed: Mapping[Placeable, Bytes]
) -> dict[Placeable, Bytes] | None:
    """Return addresses around fixed ones: others stay where they can, or all move."""
    problem, things = contents.problem, contents.things
    broken = check_packing(problem, [fixed.get(thing, now[thing]) for thing in things])
    first = first_of_each_set(len(things), problem.together)
    in_the_way = {first[item] for violation in broken for item in violation.items}
    stay = {
        thing: now[thing] for thing, own in zip(things, first, strict=True) if own not in in_the_way
    }
    for held in ({**stay, **fixed}, fixed):
        items = (
            replace(item, offset=held.get(thing))
            for thing, item in zip(things, problem.items, strict=True)
        )
        found = pack(replace(problem, items=tuple(items)), LIMITS)
        if found.offsets is not None:
            return dict(zip(things, found.offsets, strict=True))
    return None
