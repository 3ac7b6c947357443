"""Plans of one problem as plans of another with the same tiles: other machine, other objective."""

from dataclasses import fields, replace

from spmilp.bounds.best import Bound
from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile
from spmilp.machine.routes import multicast_route, routes_of, transfer_cycles
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan, Transfer
from spmilp.problem.problem import Problem
from spmilp.report.summary import network_name
from spmilp.solvers.partial_order.context import context_of, plan_of
from spmilp.solvers.partial_order.passes import forward_pass

PARTS = ("memories", "kinds", "cores", "links", "engines")
"""Of a machine; plans refer to them by their positions."""

MAY_DIFFER = ("name", "machine", "objective", "sources", "pins")
"""Fields of problems whose plans are handed on."""


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
    """Say why plans of a problem are none of another; empty where they may be."""
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
