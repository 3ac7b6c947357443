"""Warm starts: a plan from before as one of the problem at hand, be it for another machine.

A plan can be used for a problem with the same tiles: on another machine of the same parts, and for
another objective. Of a network its tiles can be used, whatever the machine.
"""

from dataclasses import dataclass, fields, replace
from pathlib import Path

from spmilp.bounds.best import Bound, fast_bound
from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError, FileError, NoPlanError, SpmilpError
from spmilp.explaining.text import network_name
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tilings
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile
from spmilp.machine.routes import multicast_route, routes_of, transfer_cycles
from spmilp.plan.file import PLAN_FILE, PROBLEM_FILE, open_pair, read_plan
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan, Transfer
from spmilp.problem.file import problem_sha256
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem
from spmilp.result import Result
from spmilp.solvers.justify.context import context_of, plan_of
from spmilp.solvers.justify.passes import forward_pass
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.given_tiles import tilings_of
from spmilp.tile_selection.tiled_problem import TiledProblem

PARTS = ("memories", "kinds", "cores", "links", "engines")
"""Of a machine; plans refer to them by their positions."""

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HintedTiles:
    """What a hint says of a network.

    Parameters
    ----------
    tilings
        Those of its problem; ``None`` where they do not fit this machine.
    tiled
        Its problem and its plan; ``None`` where the plan cannot be used here, for this ``reason``.
    """

    tilings: Tilings | None
    tiled: TiledProblem | None
    reason: str = ""


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


def tiles_of(hint: Hint, subject: NetworkOnMachine, target: MachineFile) -> HintedTiles:
    """Return the tilings of a hint, and its plan where that holds on this machine, too.

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
    if problem.machine.kinds != target.machine.kinds:
        reason = f"its cores are not those of {target.machine.name}"
        return HintedTiles(tilings=here, tiled=None, reason=f"{hint.name}: {reason}")
    own = replace(subject, machine=problem.machine).lower(tilings)
    reason = why_unlike(own, problem)
    if reason:
        reason = f"not what this version makes of its tiles: {reason}"
        return HintedTiles(tilings=here, tiled=None, reason=f"{hint.name}: {reason}")
    try:
        moved = on_machine(problem, target)
        moved = replace(moved, objective=subject.objective, pins=NO_PINS)
        plan = hint.plan_of(moved)
    except (FileError, ValueError) as error:
        return HintedTiles(tilings=here, tiled=None, reason=str(error))
    return HintedTiles(tilings=here, tiled=TiledProblem(problem=moved, known=plan))
