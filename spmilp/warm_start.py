"""A plan from before, as a hint or as a lock, be it of another machine.

A plan can be used for a problem with the same tiles: on another machine of the same parts, and for
another objective. Of a network its tiles can be used, whatever the machine.

A lock keeps addresses as they are in an earlier plan, wherever they can be: pins that are read from
a plan, plus a hint. Tiles of groups that are still there are kept, so that buffers keep their names
and sizes. Of the plan found without the lock, of one found with each task pinned to cores of the
scratchpad where it ran, and of the earlier one itself where it still holds, that is taken in which
most addresses can be as they were.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import NamedTuple, TypeAlias

from spmilp.bounds.best import Bound, fast_bound
from spmilp.checker.check import check
from spmilp.errors import (
    ArgumentError,
    DoesNotFitError,
    FileError,
    NoPlanError,
    PinError,
    SpmilpError,
)
from spmilp.explaining.text import network_name
from spmilp.frontend.graph import Network
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tilings
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile
from spmilp.machine.routes import multicast_route, routes_of, transfer_cycles
from spmilp.plan.file import PLAN_FILE, PROBLEM_FILE, open_pair, read_plan
from spmilp.plan.measures import claim_of, claimed, measure
from spmilp.plan.plan import Plan, Transfer
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.file import problem_sha256
from spmilp.problem.pins import NO_PINS, TaskPin
from spmilp.problem.problem import Problem
from spmilp.report.address_stability import AddressStability, Moved
from spmilp.result import Result
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.justify.context import context_of, plan_of
from spmilp.solvers.justify.passes import forward_pass
from spmilp.solvers.wanted_addresses import Placeable, with_addresses
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.given_tiles import tilings_of, tilings_still_there
from spmilp.tile_selection.tiled_problem import TiledProblem
from spmilp.units import Bytes, Extents

PARTS = ("memories", "kinds", "cores", "links", "engines")
"""Parts of a machine that plans refer to by position."""

MAY_DIFFER = ("name", "machine", "objective", "sources", "pins")
"""Fields of two problems of which one may use the plans of the other."""


def on_machine(problem: Problem, file: MachineFile) -> Problem:
    """Return a problem with the same tiles on another machine of the same parts.

    Raises
    ------
    ValueError
        If the machine has not the memories and kinds of core that the problem speaks of.
    """
    sources = {**dict(problem.sources), "machine": file.sha256}
    return replace(
        problem,
        name=f"{network_name(problem)} on {file.machine.name}",
        machine=file.machine,
        sources=tuple(sources.items()),
    )


def why_unlike(problem: Problem, target: Problem) -> str:
    """Return why a plan of a problem cannot be used for another, or an empty text if it can."""
    for name in PARTS:
        counts = [len(getattr(each.machine, name)) for each in (problem, target)]
        if counts[0] != counts[1]:
            return f"it is for a machine of {counts[0]} {name}, not of {counts[1]}"
    for field in fields(Problem):
        one, other = (getattr(each, field.name) for each in (problem, target))
        if not field.compare or field.name in MAY_DIFFER or one == other:
            continue
        if len(one) != len(other):
            return f"it is for a problem of {len(one):,} {field.name}, not of {len(other):,}"
        first = next(
            number for number, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]
        )
        return f"it is for a problem whose {field.name}[{first}] is another"
    return ""


def handed_on(problem: Problem, plan: Plan, bound: Bound) -> Plan:
    """Return a plan of another machine as one of this problem, each start as it was.

    Transfers last as long as this machine takes for them. Whether the plan is valid, the checker
    decides: of a machine with more memory or channels it is; where transfers are faster, more of
    them may come together on a link than it carries.
    """
    memory = [residency.memory for residency in plan.residencies]
    transfers = _timed(problem, plan.transfers, memory)
    found = measure(problem, plan.placements, plan.residencies, transfers)
    claim = claim_of(found, bound.value, bound.name)
    return replace(plan, transfers=transfers, claim=claim, problem_sha256="")


def carried_over(target: Problem, plan: Plan, bound: Bound) -> Plan | None:
    """Return a plan of another machine as one of this, if there is one that the checker accepts.

    Where it does not hold with the times that it has, its order is kept and each start found anew.
    """
    moved = handed_on(target, plan, bound)
    if not check(target, moved):
        return moved
    context, first = context_of(
        target, moved, drops_transfers=False, bypasses_dram=False, changes_cores=False
    )
    try:
        timed = forward_pass(first, context.with_addresses_of(first))
        moved = handed_on(target, plan_of(context, timed), bound)
    except DoesNotFitError:
        return None
    return None if check(target, moved) else moved


def is_valid_on(problem: Problem, plan: Plan, file: MachineFile) -> bool:
    """Whether a plan is valid on another machine of the same parts, as the checker judges."""
    target = on_machine(problem, file)
    bound = Bound("none", target.objective.first, 0)
    return not check(target, handed_on(target, plan, bound))


def _timed(
    problem: Problem, transfers: tuple[Transfer, ...], memory: list[int]
) -> tuple[Transfer, ...]:
    machine: Machine = problem.machine
    routes = routes_of(machine)
    timed = []
    for move in transfers:
        ends = [memory[end] for end in move.destinations]
        route = multicast_route(routes, memory[move.source], ends)
        if route is None:
            timed.append(move)  # which the checker says
            continue
        size = problem.slices[move.slice].bytes
        cycles = transfer_cycles(machine.engines[move.engine], route, size)
        timed.append(replace(move, end=move.start + cycles))
    return tuple(timed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hint:
    """A plan that is known from before.

    Parameters
    ----------
    name
        What errors call it.
    problem
        The one that it was made for; ``None`` where it comes without one.
    """

    name: str
    plan: Plan
    problem: Problem | None = None

    def plan_of(self, problem: Problem) -> Plan:
        """Return it as a plan of this problem, of which only machine and objective may differ.

        Raises
        ------
        FileError
            If it is not one that the checker accepts.
        """
        own = problem if self.problem is None else self.problem
        expected = self.plan.problem_sha256
        if self.problem is None and expected and expected != problem_sha256(problem):
            raise FileError(
                f"{self.name}: the plan was made for another problem than {problem.name}"
            )
        reason = why_unlike(own, problem)
        if reason:
            raise FileError(f"{self.name}: no plan of {problem.name}: {reason}")
        self.require_valid(own)
        found = carried_over(problem, self.plan, fast_bound(problem))
        if found is None:
            raise FileError(
                f"{self.name}: the plan does not hold on {problem.machine.name}, nor does its "
                "order with other times"
            )
        return found

    def require_valid(self, problem: Problem) -> None:
        """Raise an error if the checker rejects the plan."""
        for broken in check(problem, self.plan)[:1]:
            raise FileError(
                f"{self.name}: the checker rejects this plan: {broken.rule}: {broken.message}"
            )


def read_hint(given: str | Path | Plan | Result) -> Hint:
    """Read a plan, with the ``problem.json`` beside it if there is one.

    Raises
    ------
    FileError
        If a file cannot be read, or the two do not belong together.
    NoPlanError
        If a result has no plan.
    """
    if isinstance(given, Plan):
        return Hint(name="hint", plan=given)
    if isinstance(given, Result):
        if given.plan is None:
            raise NoPlanError(f"hint: {given.reason}")
        return Hint(name="hint", plan=given.plan, problem=given.problem)
    path = Path(given)
    file = path / PLAN_FILE if path.is_dir() else path
    if file.with_name(PROBLEM_FILE).exists() or path.is_dir():
        problem, plan = open_pair(path)
        return Hint(name=str(file), plan=plan, problem=problem)
    return Hint(name=str(file), plan=read_plan(file))


def tiles_of(
    hint: Hint, subject: NetworkOnMachine, target: MachineFile, warn: Callable[[str], None]
) -> tuple[Tilings | None, TiledProblem | None]:
    """Return the tilings of a hint if they fit, and its plan where that holds here, too.

    Parameters
    ----------
    warn
        Is told why the plan cannot be used here.

    Raises
    ------
    FileError
        If it is of another model, or the checker rejects the plan for its own problem.
    """
    problem = hint.problem
    if problem is None:
        raise FileError(
            f"{hint.name}: the tiles of a plan are in its problem: put problem.json beside it"
        )
    model = dict(problem.sources).get("model", "")
    if model != subject.network.sha256:
        raise FileError(
            f"{hint.name}: the plan was made for another model: its problem names {model[:12]}, "
            f"and this one is {subject.network.sha256[:12]}"
        )
    hint.plan_of(problem)
    try:
        tilings = tilings_of(problem, subject.network)
    except SpmilpError as error:
        raise FileError(
            f"{hint.name}: not of this model with these sizes: {error}; give the sizes that it was "
            "made for (--dim), or leave it out if a version made it that fused operators otherwise"
        ) from error
    here = None if groups_that_do_not_fit(subject.lower(tilings)) else tilings
    own = replace(subject, machine=problem.machine).lower(tilings)
    if problem.machine.kinds != target.machine.kinds:
        reason = f"{hint.name}: its cores are not those of {target.machine.name}"
    elif reason := why_unlike(own, problem):
        reason = f"{hint.name}: not what this version makes of its tiles: {reason}"
    else:
        try:
            moved = on_machine(problem, target)
            moved = replace(moved, objective=subject.objective, pins=NO_PINS)
            return here, TiledProblem(problem=moved, known=hint.plan_of(moved))
        except (FileError, ValueError) as error:
            reason = str(error)
    warn(f"{reason}; its tiles alone are tried")
    return here, None


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

    hint: Hint
    problem: Problem
    patterns: tuple[str, ...]
    cost: float = inf

    def tilings(self, network: Network) -> Tilings:
        """Return the tilings of groups that the network still has with the same output."""
        return tilings_still_there(self.problem, network)

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
        for task, placement in zip(problem.tasks, self.hint.plan.placements, strict=True):
            touched = {problem.slices[read].buffer for read in task.reads} | {*task.writes}
            if touched & locked:
                found[task.name] = machine.memories[machine.cores[placement.core].memory].name
        return found

    def applied(self, problem: Problem, plan: Plan) -> tuple[Plan, AddressStability]:
        """Return a plan with as many of the earlier addresses as it can have, and what it has."""
        earlier = self.hint.plan
        before, after = _addresses(self.problem, earlier), _addresses(problem, plan)
        owners = _owners(self.problem)
        locked = [key for key in before if self._is_locked(key[0], owners[key[0]])]
        single = {key: before[key][0] for key in locked if len(before[key]) == 1}
        order = sorted(single, key=lambda key: (bool(key[1]), -single[key].bytes))
        sizes, memories = (_sizes(self.problem), _sizes(problem)), _memories(problem)
        why_not = {
            key: _why_unlike(key, *sizes, memories, len(after.get(key, ()))) for key in order
        }
        still = {key: after[key][0].thing for key in order if not why_not[key]}
        found = with_addresses(
            problem, plan, {thing: single[key].address for key, thing in still.items()}
        )
        why_not |= {key: found.why_not.get(thing, "") for key, thing in still.items()}
        now = _addresses(problem, found.plan)
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
            origin=self.hint.name,
            kept=len(single) - len(moved),
            tensors=sum(1 for key, reason in why_not.items() if not (key[1] or reason)),
            moved=moved,
            left_free=len(locked) - len(single),
            measures=claimed(found.plan.claim),
            unlocked=None,
            earlier=claimed(earlier.claim),
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
    owners = _owners(problem)
    names = {*owners, *owners.values()}
    for pattern in wanted:
        if not any(_matches(pattern, name) for name in names):
            raise ArgumentError(
                f"lock-buffers: {hint.name} has no buffer or tensor {pattern}", is_option=True
            )
    return Lock(hint=hint, problem=problem, patterns=wanted or ("*",), cost=cost)


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
    known = [] if free.plan is None else [free.plan]
    with suppress(FileError):  # where the earlier plan is none of this problem
        known.append(lock.hint.plan_of(problem))
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


def _why_unlike(
    key: Place,
    before: Mapping[tuple[str, bool], Bytes],
    now: Mapping[tuple[str, bool], Bytes],
    memories: Sequence[str],
    times: int,
) -> str:
    """Return why what lay at a place cannot lie there now; empty where it can.

    Parameters
    ----------
    before, now
        Sizes of buffers and tensors.
    times
        How often it lies there now.
    """
    name, start, _, memory = key
    kind = name, bool(start)
    if kind not in now:
        return "it is no more"
    if now[kind] != before[kind]:
        return "its size is another"
    if memory not in memories:
        return "its memory is no more"
    if not times:
        return "it does not lie in that memory now"
    return "it lies there several times now" if times > 1 else ""


def _sizes(problem: Problem) -> dict[tuple[str, bool], Bytes]:
    """Return the sizes of buffers, which have a start, and of tensors."""
    sizes = {(one.name, True): one.bytes for one in problem.buffers}
    return sizes | {(one.name, False): one.bytes for one in problem.tensors}


def _memories(problem: Problem) -> list[str]:
    return [memory.name for memory in problem.machine.memories]


def _owners(problem: Problem) -> dict[str, str]:
    """Return the names of tensors and buffers, and of what each buffer is a tile."""
    owners = {one.name: "" for one in problem.tensors}
    return owners | {one.name: one.tile.of if one.tile else "" for one in problem.buffers}


def _addresses(problem: Problem, plan: Plan) -> dict[Place, list[_Where]]:
    """Return where the tensors in DRAM and the parts of buffers of a plan lie, by their names."""
    memories = _memories(problem)
    rows: dict[Place, list[_Where]] = {
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
            rows.setdefault(key, []).append(where)
    return rows
