"""The process that solves points of a sweep: ``python -m spmilp.sizing.worker``.

It gets its requests and answers as :mod:`spmilp.bench.worker` does.
"""

import json
from dataclasses import asdict

from spmilp.bench.worker import Send, serve
from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError, NoPlanError, SpmilpError
from spmilp.files import sha256_of, write_together
from spmilp.frontend.find import find_model
from spmilp.handing_on import carried_over, handed_on, on_machine
from spmilp.pipeline import has_time_for_roofline, solve, solve_problem
from spmilp.plan.plan import Plan
from spmilp.plan.read import open_pair
from spmilp.plan.write import write_pair
from spmilp.problem.problem import Problem
from spmilp.result import Result, checked
from spmilp.sizing.grid import Point, code_version
from spmilp.sizing.process import PointRequest
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.watch import Observer, Stage


def main() -> None:
    """Solve the points of requests."""
    serve(solve_point)


def solve_point(request: PointRequest, send: Send) -> None:
    """Solve a point, leave its plan in the request's folder, and send the figures."""
    point = request.point
    if request.version != code_version():
        raise SpmilpError(
            f"the sweep is of spmilp {request.version}, and this worker has {code_version()}; "
            "install the same version on all workers"
        )
    send("started")
    observer = Observer(on_stage=lambda stage: send("solved") if stage is Stage.CHECKING else None)
    try:
        result = _result(request, observer)
    except DoesNotFitError as error:
        shown = SolveStatus.INFEASIBLE if error.is_proven else SolveStatus.UNKNOWN
        send("ended", status=str(shown), reason=str(error))
        return
    except NoPlanError as error:
        send("ended", status=str(SolveStatus.UNKNOWN), reason=str(error))
        return
    if result.plan is not None:
        write_pair(result.problem, result.plan, request.folder)
    names = ("objective", "bound", "bound_source", "makespan", "dram_traffic", "energy")
    figures = {name: getattr(result, name) for name in (*names, "peak_spm", "seconds")}
    limit = point.options.time_limit
    if has_time_for_roofline(result.origin, float("inf") if limit is None else limit):
        figures["roofline"] = None if result.roofline is None else result.roofline.cycles
    status = "rejected" if result.violations else str(result.status)
    figures |= {"tasks": len(result.problem.tasks), "cores": len(result.problem.machine.cores)}
    send("ended", status=status, reason=result.reason, **figures)


def _result(request: PointRequest, observer: Observer) -> Result:
    point = request.point
    if request.start is not None:
        start = request.folder / "start"
        write_together(start, request.start)
        return improved(*open_pair(start), point, search=request.improve)
    here = sha256_of(find_model(point.model))
    if here != point.model_sha256:
        raise SpmilpError(
            f"{point.model}: the sweep has the file {point.model_sha256[:12]}, and this worker "
            f"{here[:12]}; a cluster needs the same files at the same paths"
        )
    options = asdict(point.options)
    options["memory_limit"] = options["memory_limit"] or request.memory
    options["pins"] = None if options["pins"] is None else json.loads(options["pins"])
    return solve(point.model, point.machine, dim=dict(point.dim), observer=observer, **options)


def improved(problem: Problem, plan: Plan, point: Point, *, search: bool) -> Result:
    """Return the best plan of a point's machine that a search finds from a plan of another.

    Where the plan does not hold with the times that it has, its order does with other ones.

    Parameters
    ----------
    problem, plan
        Of the other machine; the result has the same tiles.
    search
        Search for a better one; else the plan itself is the result.

    Raises
    ------
    NoPlanError
        If the checker does not accept the plan on this machine, with whatever times.
    """
    target, options = on_machine(problem, point.machine), point.options
    bound = best_bound(target)
    start = carried_over(target, plan, bound)
    if start is None:
        first = check(target, handed_on(target, plan, bound))[0]
        raise NoPlanError(f"{problem.machine.name}'s plan does not hold here: {first.message}")
    limits = SolveOptions(
        time_limit=options.time_limit,
        gap=options.gap,
        seed=options.seed,
        workers=options.workers,
    )
    context = SearchContext(target, limits)
    answer = context.found(start, bound)
    if search and answer.status is not SolveStatus.OPTIMAL:
        answer = context.better(solve_problem(target, options.solver, limits, start), answer)
    return checked(target, answer, asked=options.solver)


if __name__ == "__main__":
    main()
