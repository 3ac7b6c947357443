"""A plan from before, as a hint or as a lock, be it of another machine.

A plan can be used for a problem with the same tiles: on another machine of the same parts, and for
another objective. Of a network its tiles can be used, whatever the machine.

A lock keeps addresses as they are in an earlier plan, wherever they can be: it is pins that are
read from a plan, and a hint. Of the plan found without the lock, of one found with each task pinned
to cores of the scratchpad where it ran, and of the earlier one itself where it still holds, that is
taken in which most addresses can be as they were.
"""

from collections.abc import Callable, Iterable
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
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tilings
from spmilp.machine.read import MachineFile
from spmilp.machine.routes import multicast_route, routes_of, transfer_cycles
from spmilp.plan.file import PLAN_FILE, PROBLEM_FILE, open_pair, read_plan
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.file import problem_sha256
from spmilp.problem.named_pins import Known, NamedPins, TaskRow, name_and_origin, with_pins
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem
from spmilp.report.address_stability import AddressStability, Moved
from spmilp.result import Result
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.addresses import Placeable
from spmilp.solvers.justify.context import context_of, plan_of
from spmilp.solvers.justify.passes import forward_pass
from spmilp.solvers.wanted_addresses import with_addresses
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.given_tiles import tilings_of
from spmilp.tile_selection.tiled_problem import TiledProblem
from spmilp.units import Bytes, Corner

PARTS = ("memories", "kinds", "cores", "links", "engines")
"""Parts of a machine that plans refer to by position."""

MAY_DIFFER = ("name", "machine", "objective", "sources", "pins")
"""Fields of two problems of which one may use the plans of the other."""


def on_machine(problem: Problem, file: MachineFile) -> Problem:
    """Return a problem with the same tiles on another machine of the same parts."""
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
        first = [mine == its for mine, its in zip(one, other, strict=True)].index(False)
        return f"it is for a problem whose {field.name}[{first}] is another"
    return ""


def handed_on(problem: Problem, plan: Plan, bound: Bound) -> Plan:
    """Return a plan of another machine as one of this problem, each start as it was.

    Transfers last as long as this machine takes for them. Whether the plan is valid, the checker
    decides: of a machine with more memory or channels it is; where transfers are faster, more of
    them may come together on a link than it carries.
    """
    machine, routes = problem.machine, routes_of(problem.machine)
    transfers = []
    for move in plan.transfers:
        source, *ends = (plan.residencies[e].memory for e in (move.source, *move.destinations))
        route = multicast_route(routes, source, ends)
        if route is not None:  # where there is none, the checker says so
            size = problem.slices[move.slice].bytes
            takes = transfer_cycles(machine.engines[move.engine], route, size)
            sent, end = move.start + takes.sent, move.start + takes.arrived
            move = replace(move, sent=sent, end=end)
        transfers.append(move)
    moved = replace(plan, transfers=tuple(transfers), problem_sha256="")
    found = measure(problem, moved.placements, moved.residencies, moved.transfers)
    return replace(moved, claim=claim_of(found, bound.value, bound.name))


def carried_over(target: Problem, plan: Plan, bound: Bound) -> Plan | None:
    """Return a plan of another machine as one of this, if there is one that the checker accepts.

    Where it does not hold with the times that it has, its order is kept and each start found anew.
    """
    moved = handed_on(target, plan, bound)
    if not check(target, moved):
        return moved
    with suppress(DoesNotFitError):
        context, first = context_of(target, moved, keeps_transfers=True, changes_cores=False)
        timed = forward_pass(first, context.with_addresses_of(first))
        moved = handed_on(target, plan_of(context, timed), bound)
        return None if check(target, moved) else moved
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hint:
    """A plan that is known from before, perhaps with the problem that it was made for."""

    name: str
    plan: Plan
    problem: Problem | None = None

    def __post_init__(self) -> None:
        if self.plan.stream is not None:
            raise FileError(
                f"{self.name}: the plan is a stream of period {self.plan.stream.period:,}, which "
                "no solver begins with; give a plan for one inference"
            )

    def plan_of(self, problem: Problem) -> Plan:
        """Return it as a plan of this problem, of which only machine and objective may differ.

        Raises a :class:`FileError` if it is not one that the checker accepts.
        """
        own, expected = self.problem, self.plan.problem_sha256
        if own is None:
            own = problem
            if expected and expected != problem_sha256(problem):
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

    def own_problem(self) -> Problem:
        """Return the problem that it was made for, or raise an error if that is not there."""
        if self.problem is None:
            raise FileError(
                f"{self.name}: the names and tiles of a plan are in its problem: put problem.json "
                "beside it"
            )
        return self.problem


def read_hint(given: str | Path | Plan | Result) -> Hint:
    """Read a plan, with the ``problem.json`` beside it if there is one.

    Raises a :class:`FileError` if the two do not belong together, a :class:`NoPlanError` if a
    result has no plan.
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

    If it is of another model, or not valid for its own problem, that is a :class:`FileError`. A
    file with the same graph and other weights will do.
    """
    problem = hint.own_problem()
    model = dict(problem.sources).get("model", "")
    is_same = model == subject.network.sha256
    other = FileError(
        f"{hint.name}: the plan was made for another model: its problem names {model[:12]}, "
        f"and this one is {subject.network.sha256[:12]}"
    )
    hint.require_valid(problem)
    try:
        tilings = tilings_of(problem, subject.network)
    except SpmilpError as error:
        if not is_same:
            raise other from error
        sizes = "give the sizes that it was made for (--dim), or " if subject.network.dim else ""
        raise FileError(
            f"{hint.name}: not of this model with these sizes: {error}; {sizes}leave it out if a "
            "version made it, or for other memories, that fused operators otherwise"
        ) from error
    here = None if groups_that_do_not_fit(subject.lower(tilings)) else tilings
    own = replace(subject, machine=problem.machine).lower(tilings)
    if not is_same and why_unlike(own, problem):
        raise other
    if problem.machine.kinds != target.machine.kinds:
        reason = f"{hint.name}: its cores are not those of {target.machine.name}"
    elif unlike := why_unlike(own, problem):
        reason = f"{hint.name}: not what this version makes of its tiles: {unlike}"
    else:
        try:
            same = on_machine(problem, target)
            same = replace(same, objective=subject.objective, pins=NO_PINS, sources=subject.sources)
            return here, TiledProblem(problem=same, known=hint.plan_of(same))
        except (FileError, ValueError) as error:
            reason = str(error)
    warn(f"{reason}; its tiles alone are tried")
    return here, None


Solve: TypeAlias = Callable[[Problem, Plan | None], SolverResult]
"""Finds a plan of a problem, perhaps from one that is known."""


class Place(NamedTuple):
    """A buffer or a slice of it, by its first element, in a memory; or a tensor in DRAM."""

    name: str
    start: Corner
    memory: str


class Lying(NamedTuple):
    """Where something lies at a place."""

    thing: Placeable
    address: Bytes
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lock:
    """An earlier plan that is to keep the addresses of the buffers and tensors of these names.

    That may cost at most this share of the first quantity, beside the plan without the lock.
    """

    hint: Hint
    problem: Problem
    names: frozenset[str]
    cost: float = inf

    def pinned(self, problem: Problem) -> Problem | None:
        """Return a problem in which tasks that touch what is locked run beside the same memory.

        ``None`` where that says nothing, or where other pins say otherwise.
        """
        beside: dict[str, list[str]] = {}
        for core in problem.machine.cores:
            beside.setdefault(problem.machine.memories[core.memory].name, []).append(core.name)
        if len(beside) == 1:
            return None
        own, machine, known = self.problem, self.problem.machine, {t.name for t in problem.tasks}
        rows = []
        for task, placement in zip(own.tasks, self.hint.plan.placements, strict=True):
            touched = {own.slices[read].buffer for read in task.reads} | {*task.writes}
            memory = machine.memories[machine.cores[placement.core].memory].name
            locked = any(own.buffers[each].name in self.names for each in touched)
            if locked and memory in beside and task.name in known:
                rows.append(TaskRow(task=(task.name,), cores=tuple(beside[memory])))
        with suppress(PinError):
            return with_pins(problem, NamedPins(tasks=tuple(rows))) if rows else None
        return None

    def applied(self, problem: Problem, plan: Plan) -> tuple[Plan, AddressStability]:
        """Return a plan with as many of the earlier addresses as it can have, and what it has."""
        before, after = _lying(self.problem, self.hint.plan), _lying(problem, plan)
        locked = [place for place in before if place.name in self.names]
        single = {place: before[place][0] for place in locked if len(before[place]) == 1}
        wanted: dict[Placeable, Bytes] = {}
        why_not: dict[Place, str] = {}
        # Tensors first, then the largest.
        for place, was in sorted(single.items(), key=lambda it: (bool(it[0].start), -it[1].bytes)):
            here = after.get(place, [])
            why_not[place] = _why_not(was, here)
            if not why_not[place]:
                wanted[here[0].thing] = was.address
        found = with_addresses(problem, plan, wanted)
        now = _lying(problem, found.plan)
        lost: dict[Place, Moved] = {}
        for place, why in why_not.items():
            here, was = now.get(place, []), single[place]
            reason = why or found.why_not.get(here[0].thing, "")
            if reason:
                lost[place] = Moved(
                    name=place.name,
                    memory=place.memory,
                    before=was.address,
                    now=here[0].address if len(here) == 1 else None,
                    why=reason,
                )
        return found.plan, AddressStability(
            origin=self.hint.name,
            kept=len(single) - len(lost),
            tensors=sum(not place.start for place in single.keys() - lost),
            moved=tuple(lost.values()),
            left_free=len(locked) - len(single),
            measures=found.plan.claim,
            unlocked=None,
            earlier=self.hint.plan.claim,
        )


def read_lock(given: str | Path | Result, patterns: Iterable[str] = (), cost: float = inf) -> Lock:
    """Read an earlier plan, with the ``problem.json`` beside it.

    ``patterns`` are names of the buffers and tensors that are locked, or of what buffers are tiles;
    ``*`` in one stands for anything. Without them all is locked.
    """
    hint, wanted = read_hint(given), tuple(patterns)
    problem = hint.own_problem()
    hint.require_valid(problem)
    named = [(one.name, "") for one in problem.tensors]
    named += [name_and_origin(one) for one in problem.buffers]
    known, locked = Known("buffer or tensor", named), set[str]()
    for pattern in wanted or ("*",):
        found = known.matching(pattern)
        if not found:
            raise ArgumentError(
                f"lock-buffers: {hint.name} has no buffer or tensor {pattern}", is_option=True
            )
        locked |= {named[index][0] for index in found}
    return Lock(hint=hint, problem=problem, names=frozenset(locked), cost=cost)


def locked_answer(
    problem: Problem, free: SolverResult, lock: Lock, solve: Solve
) -> tuple[SolverResult, AddressStability | None]:
    """Return the plan that keeps most of the locked addresses, and what it keeps.

    ``free`` was found without the lock; ``solve`` takes what is left of the time.
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
    unlocked = None
    if free.plan is not None:
        unlocked = free.plan.claim
        most = context.values(free.plan)[0] * (1 + lock.cost)
        found = [each for each in found if context.values(each[0])[0] <= most] or found[:1]
    plan, kept = min(found, key=lambda each: (len(each[1].moved), context.values(each[0])))
    bound = Bound(free.bound_source, problem.objective.first, free.bound)
    answer = replace(context.found(plan, bound), interrupted=interrupted)
    return answer, replace(kept, unlocked=unlocked)


def _why_not(was: Lying, here: list[Lying]) -> str:
    """Return why what lay at a place cannot lie there as it did; empty where it can."""
    if not here:
        return "it does not lie in that memory now"
    if len(here) > 1:
        return "it lies there several times now"
    return "" if here[0].bytes == was.bytes else "its size is another"


def _lying(problem: Problem, plan: Plan) -> dict[Place, list[Lying]]:
    """Return where the tensors in DRAM and the parts of buffers of a plan lie."""
    memories = [memory.name for memory in problem.machine.memories]
    found = {
        Place(one.name, (), memories[one.memory]): [
            Lying(("tensor", one.index), plan.tensors[one.index], one.bytes)
        ]
        for one in problem.tensors
    }
    for each in plan.residencies:
        if each.slice is None:
            continue
        part = problem.slices[each.slice]
        buffer = problem.buffers[part.buffer]
        home = None if buffer.place is None else problem.tensors[buffer.place.tensor].memory
        if each.memory != home:
            place = Place(buffer.name, part.start, memories[each.memory])
            lying = Lying(("residency", each.index), each.offset, each.bytes)
            found.setdefault(place, []).append(lying)
    return found
