"""Plans of one machine as plans of another that has more, or has all that they use."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from spmilp.bounds.best import Bound, best_bound
from spmilp.checker.check import Verdict, check
from spmilp.errors import NoPlanError
from spmilp.files import write_together
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile
from spmilp.machine.routes import Routes, multicast_route, transfer_cycles
from spmilp.pipeline import solve_problem
from spmilp.plan.measures import claimed, measure
from spmilp.plan.plan import Claim, Plan, Transfer
from spmilp.plan.read import open_pair
from spmilp.problem.problem import Problem
from spmilp.report.summary import network_name
from spmilp.result import Result, checked
from spmilp.sizing.grid import Point
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus


def opened(pair: Mapping[str, bytes], folder: Path) -> tuple[Problem, Plan]:
    """Return the problem and the plan of two files, which are written into a folder to be read."""
    write_together(folder, pair)
    return open_pair(folder)


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


def handed_on(problem: Problem, plan: Plan, bound: Bound) -> Plan:
    """Return a plan of another machine as one of this problem, each start as it was.

    Transfers last as long as this machine takes for them. Whether the plan is valid, the checker
    decides: of a machine with more memory or channels it is; where transfers are faster, more of
    them may come together on a link than it carries.
    """
    memory = [residency.memory for residency in plan.residencies]
    transfers = _timed(problem, plan.transfers, memory)
    found = measure(problem, plan.placements, plan.residencies, transfers)
    claim = Claim(
        makespan=found.makespan,
        dram_traffic=found.dram_traffic,
        energy=found.energy,
        peak_spm=found.peak_spm,
        bound=bound.value,
        bound_source=bound.name,
    )
    return replace(plan, transfers=transfers, claim=claim, problem_sha256="")


def is_valid_on(problem: Problem, plan: Plan, file: MachineFile) -> bool:
    """Whether a plan is valid on another machine of the same parts, as the checker judges."""
    target = on_machine(problem, file)
    bound = Bound("none", target.objective.first, 0)
    return not check(target, handed_on(target, plan, bound))


def improved(problem: Problem, plan: Plan, point: Point, *, search: bool) -> Result:
    """Return the best plan of a point's machine that a search finds from a plan of another.

    Parameters
    ----------
    problem, plan
        Of the other machine; the result has the same tiles.
    search
        Search for a better one; else the plan itself is the result.

    Raises
    ------
    NoPlanError
        If the checker does not accept the plan on this machine.
    """
    target = on_machine(problem, point.machine)
    bound = best_bound(target)
    start = handed_on(target, plan, bound)
    verdict = Verdict.on(target, start)
    if verdict.violations:
        first = verdict.violations[0]
        raise NoPlanError(f"{problem.machine.name}'s plan does not hold here: {first.message}")
    value = claimed(start.claim).of(target.objective.first)
    answer = SolverResult(
        status=SolveStatus.OPTIMAL if value == bound.value else SolveStatus.FEASIBLE,
        plan=start,
        bound=bound.value,
        bound_source=bound.name,
        verdict=verdict,
    )
    if search and value > bound.value:
        options = point.options
        limits = SolveOptions(
            time_limit=options.time_limit,
            gap=options.gap,
            seed=options.seed,
            workers=options.workers,
        )
        found = solve_problem(target, options.solver, limits, start)
        answer = _better(answer, found, target)
    return checked(target, answer, asked=point.options.solver)


def _better(start: SolverResult, found: SolverResult, problem: Problem) -> SolverResult:
    """Return what a solver has found, or the plan that it began with where that is better."""
    if found.plan is None or start.plan is None:
        return start
    quantities = problem.objective.order
    values = [
        [claimed(plan.claim).of(quantity) for quantity in quantities]
        for plan in (start.plan, found.plan)
    ]
    return start if values[0] < values[1] else found


def _timed(
    problem: Problem, transfers: tuple[Transfer, ...], memory: list[int]
) -> tuple[Transfer, ...]:
    machine: Machine = problem.machine
    routes = Routes(machine)
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
