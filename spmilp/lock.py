"""Addresses that stay as they are in an earlier plan, wherever they can.

A lock is pins that are read from a plan, plus a hint. Tiles of groups that are still there are
kept, so that buffers keep their names and sizes. Of the plan found without the lock, of one found
with each task pinned to cores of the scratchpad where it ran, and of the earlier one itself where
it still holds, that is taken in which most addresses can be as they were.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import NamedTuple, TypeAlias

from spmilp.bounds.best import Bound
from spmilp.checker.check import check
from spmilp.errors import ArgumentError, FileError, PinError
from spmilp.frontend.graph import Network
from spmilp.lowering.tiling import Tilings
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.pins import TaskPin
from spmilp.problem.problem import Problem
from spmilp.report.address_stability import AddressStability, Moved
from spmilp.result import Result
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.wanted_addresses import Placeable, with_addresses
from spmilp.tile_selection.given_tiles import tilings_still_there
from spmilp.units import Bytes, Extents
from spmilp.warm_start import Hint, read_hint

Place: TypeAlias = tuple[str, Extents, Extents, str]
"""Names of a buffer and of a memory, and between them start and extent of a slice.

Of a tensor in DRAM these two are empty.
"""

Solve: TypeAlias = Callable[[Problem, Plan | None], SolverResult]
"""Finds a plan of a problem, perhaps from one that is known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lock:
    """An earlier plan whose addresses are to be kept.

    Parameters
    ----------
    problem
        The one that it was made for.
    patterns
        Names of the buffers and tensors that are locked; ``*`` in one stands for anything.
    cost
        Share of the first quantity that it may cost at most, beside the plan without the lock.
    """

    name: str
    problem: Problem
    plan: Plan
    patterns: tuple[str, ...]
    cost: float = inf

    def tilings(self, network: Network) -> Tilings:
        """Return the tilings of groups that the network still has with the same output."""
        return tilings_still_there(self.problem, network)

    def plan_of(self, problem: Problem) -> Plan | None:
        """Return the earlier plan where it still is one of a problem."""
        hint = Hint(name=self.name, plan=self.plan, problem=self.problem)
        try:
            return hint.plan_of(problem)
        except FileError:
            return None

    def pinned(self, problem: Problem) -> Problem | None:
        """Return a problem in which tasks that touch what is locked run beside the same memory.

        ``None`` where that says nothing, or where other pins say otherwise.
        """
        memory_of, own = self._memories_of_tasks(), {pin.task for pin in problem.pins.tasks}
        machine, forbidden = problem.machine, problem.pins.forbidden
        beside = {core.index: machine.memories[core.memory].name for core in machine.cores}
        if len(set(beside.values())) == 1:
            return None
        pins = [*problem.pins.tasks]
        for task in problem.tasks:
            able = tuple(
                core.index
                for core in machine.cores
                if beside[core.index] == memory_of.get(task.name)
                and task.cycles[core.kind] is not None
                and core.index not in forbidden
            )
            if able and task.index not in own:
                pins.append(TaskPin(task=task.index, cores=able))
        rows = tuple(sorted(pins, key=lambda pin: pin.task))
        pinned = replace(problem, pins=replace(problem.pins, tasks=rows))
        try:
            refuse_contradictions(pinned)
        except PinError:
            return None
        return pinned if len(rows) > len(own) else None

    def _memories_of_tasks(self) -> dict[str, str]:
        """Return the name of the memory in which each task worked that touched what is locked."""
        problem, machine = self.problem, self.problem.machine
        locked = {
            buffer.index
            for buffer in problem.buffers
            if self._is_locked(buffer.name, buffer.tile.of if buffer.tile else "")
        }
        found = {}
        for task, placement in zip(problem.tasks, self.plan.placements, strict=True):
            touched = {problem.slices[read].buffer for read in task.reads} | {*task.writes}
            if touched & locked:
                found[task.name] = machine.memories[machine.cores[placement.core].memory].name
        return found

    def applied(self, problem: Problem, plan: Plan) -> tuple[Plan, AddressStability]:
        """Return a plan with as many of the earlier addresses as it can have, and what it has."""
        before, after = _Addresses(self.problem, self.plan), _Addresses(problem, plan)
        locked = [key for key in before.rows if self._is_locked(key[0], before.owners[key[0]])]
        single = {key: before.rows[key][0] for key in locked if len(before.rows[key]) == 1}
        order = sorted(single, key=lambda key: (bool(key[1]), -single[key].bytes))
        why_not = {key: after.why_unlike(key, before) for key in order}
        still = {key: after.rows[key][0].thing for key in order if not why_not[key]}
        found = with_addresses(
            problem, plan, {thing: single[key].address for key, thing in still.items()}
        )
        why_not |= {key: found.why_not.get(thing, "") for key, thing in still.items()}
        now = _Addresses(problem, found.plan).rows
        moved = tuple(
            Moved(
                name=key[0],
                memory=key[-1],
                before=single[key].address,
                now=now[key][0].address if len(now.get(key, ())) == 1 else None,
                why=reason,
            )
            for key, reason in why_not.items()
            if reason
        )
        return found.plan, AddressStability(
            origin=self.name,
            kept=len(single) - len(moved),
            tensors=sum(1 for key, reason in why_not.items() if not (key[1] or reason)),
            moved=moved,
            left_free=len(locked) - len(single),
            measures=claimed(found.plan.claim),
            unlocked=None,
            earlier=claimed(self.plan.claim),
        )

    def _is_locked(self, name: str, owner: str) -> bool:
        return any(_matches(pattern, each) for pattern in self.patterns for each in (name, owner))


def read_lock(given: str | Path | Result, patterns: Iterable[str] = (), cost: float = inf) -> Lock:
    """Read an earlier plan, with the ``problem.json`` beside it.

    Parameters
    ----------
    patterns, cost
        As :class:`Lock` has them; without patterns all is locked.

    Raises
    ------
    FileError
        If a file cannot be read, there is no problem, or the checker rejects the plan.
    ArgumentError
        If a pattern is the name of nothing that it has.
    """
    hint, wanted = read_hint(given), tuple(patterns)
    problem = hint.problem
    if problem is None:
        raise FileError(
            f"{hint.name}: the names of a plan's buffers are in its problem: put problem.json "
            "beside it"
        )
    hint.require_valid(problem)
    names = {buffer.name for buffer in problem.buffers} | {each.name for each in problem.tensors}
    names |= {buffer.tile.of for buffer in problem.buffers if buffer.tile}
    for pattern in wanted:
        if not any(_matches(pattern, name) for name in names):
            raise ArgumentError(
                f"lock-buffers: {hint.name} has no buffer or tensor {pattern}", is_option=True
            )
    return Lock(
        name=hint.name, problem=problem, plan=hint.plan, patterns=wanted or ("*",), cost=cost
    )


def locked_answer(
    problem: Problem, free: SolverResult, lock: Lock, solve: Solve
) -> tuple[SolverResult, AddressStability | None]:
    """Return the plan that keeps most of the locked addresses, and what it keeps.

    Parameters
    ----------
    free
        What was found without the lock.
    solve
        Takes what is left of the time.
    """
    context, interrupted = SearchContext(problem, SolveOptions()), free.interrupted
    known = [plan for plan in (free.plan, lock.plan_of(problem)) if plan is not None]
    found = [lock.applied(problem, plan) for plan in known]
    is_best = any(
        not kept.moved and (free.plan is None or context.values(plan) <= context.values(free.plan))
        for plan, kept in found
    )
    pinned = None if is_best or interrupted else lock.pinned(problem)
    if pinned is not None:
        starts = [plan for plan, _ in found if not check(pinned, plan)]
        answer = solve(pinned, min(starts, key=context.values, default=None))
        interrupted |= answer.interrupted
        if answer.plan is not None:
            found.append(lock.applied(problem, answer.plan))
    if not found:
        return free, None
    if free.plan is not None:
        most = context.values(free.plan)[0] * (1 + lock.cost)
        found = [each for each in found if context.values(each[0])[0] <= most] or found[:1]
    plan, kept = min(found, key=lambda each: (len(each[1].moved), context.values(each[0])))
    bound = Bound(free.bound_source, problem.objective.first, free.bound)
    unlocked = None if free.plan is None else claimed(free.plan.claim)
    answer = replace(context.found(plan, bound), interrupted=interrupted)
    return answer, replace(kept, unlocked=unlocked)


def _matches(pattern: str, name: str) -> bool:
    # Brackets are part of the names of tiles.
    plain = pattern.replace("[", "[[]").replace("?", "[?]")
    return bool(name) and re.match(fnmatch.translate(plain), name) is not None


class _Where(NamedTuple):
    """What has an address, and how many bytes lie there."""

    thing: Placeable
    address: Bytes
    bytes: Bytes


class _Addresses:
    """Where the tensors in DRAM and the parts of buffers of a plan lie, by their names."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        memories = [memory.name for memory in problem.machine.memories]
        self._memories = frozenset(memories)
        self._sizes = {(one.name, False): one.bytes for one in problem.buffers}
        self._sizes |= {(one.name, True): one.bytes for one in problem.tensors}
        self.owners = {one.name: "" for one in problem.tensors}
        self.owners |= {one.name: one.tile.of if one.tile else "" for one in problem.buffers}
        self.rows: dict[Place, list[_Where]] = {
            (one.name, (), (), memories[one.memory]): [
                _Where(("tensor", one.index), plan.tensors[one.index], one.bytes)
            ]
            for one in problem.tensors
        }
        for each in plan.residencies:
            if each.slice is None:
                continue
            part = problem.slices[each.slice]
            buffer = problem.buffers[part.buffer]
            place = buffer.place
            if place is None or problem.tensors[place.tensor].memory != each.memory:
                key = (buffer.name, part.start, part.extent, memories[each.memory])
                where = _Where(("residency", each.index), each.offset, each.bytes)
                self.rows.setdefault(key, []).append(where)

    def why_unlike(self, key: Place, before: "_Addresses") -> str:
        """Return why what lay at a place cannot lie there now; empty where it can."""
        name, start, _, memory = key
        size = self._sizes.get((name, not start))
        if size is None:
            return "it is no more"
        if size != before._sizes[name, not start]:
            return "its size is another"
        if memory not in self._memories:
            return "its memory is no more"
        rows = self.rows.get(key, ())
        if not rows:
            return "it does not lie in that memory now"
        return "it lies there several times now" if len(rows) > 1 else ""
