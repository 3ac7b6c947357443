"""The portfolio behind ``--solver auto``: which solvers a problem gets, in turn, for how long."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from spmilp.bounds.best import Bound
from spmilp.errors import SpmilpError
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import PinKind
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.clock import Step
from spmilp.solvers.common.context import SearchContext, rows_of
from spmilp.solvers.common.solver import NARROWING, Solver
from spmilp.solvers.improve.solver import LnsSolver
from spmilp.solvers.justify.shortening import bending_well, seconds_to_bend
from spmilp.solvers.peak import PeakBisection
from spmilp.solvers.schedule.kernels.extract import can_be_open
from spmilp.solvers.schedule.restarts import PerturbedRestarts


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """Thresholds of the portfolio, in tasks, seconds and shares of the time limit.

    They come from runs on the instances (``benchmarks/notes/ablation.md``), unless another reason
    is given.

    Parameters
    ----------
    small_for_makespan, small_for_others
        Tasks up to which the exact solver is worth most of the time; where bytes count, its models
        of more tasks still end.
    without_limit
        Deterministic time of each solver that uses it, where no time limit ends it: some seconds.
    least_seconds
        For a member, besides what it needs before it can search; with less CP-SAT finds nothing.
    passes
        Of the list scheduler: about as long a member takes before it can search.
    """

    small_for_makespan: int = 150
    small_for_others: int = 400
    without_limit: float = 5.0
    least_seconds: float = 0.5
    passes: int = 3


STRATEGY = Strategy()

SHARES = {
    "pinned": (("search", 0.3), ("cpsat", 1.0)),
    "small, short": (("search", 0.15), ("lns", 0.3), ("cpsat", 1.0), ("lns", 1.0)),
    "small, few bytes": (("search", 0.1), ("residency", 0.6), ("cpsat", 1.0)),
    "small, low peak": (("search", 0.15), ("peak", 0.5), ("cpsat", 1.0)),
    "large, short, open addresses": (("lns", 1.0),),
    "large, short": (("search", 0.1), ("lns", 1.0)),
    "large, few bytes": (("search", 0.5), ("residency", 1.0)),
    "large, low peak": (("search", 0.3), ("peak", 1.0)),
}
"""The members for each class of problems, with the shares of the time limit by which they end.

On nine whole networks plans were 0.5 % shorter, in the mean, with a tenth of the time for the
search than with 0.3. The second ``lns`` gets what the exact solver leaves where its models are too
large.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A solver of the portfolio.

    It has ended by the share ``until`` of the time limit; ``make`` makes it for some options.
    """

    name: str
    until: float
    make: Callable[[SolveOptions], Solver]


def members_for(problem: Problem) -> tuple[Member, ...]:
    """Return the solvers of a problem: each begins with the best plan of those before it.

    Small problems are searched for a while, and then decided exactly; where their models are too
    large for the time, the neighbourhoods get what is left. In large ones restarts find the
    assignment and the order of tasks, and neighbourhoods of that plan are then searched; for bytes
    those of what stays where are solved exactly. For the peak, scratchpads are cut shorter.
    Pins that those which improve plans do not take are left to restarts and the exact solver.
    """
    return tuple(
        Member(name=name, until=until, make=_MAKERS[name])
        for name, until in SHARES[_class(problem)]
    )


def _class(problem: Problem) -> str:
    """Return which of the classes in ``SHARES`` a problem belongs to."""
    if not problem.pins.kinds() <= NARROWING:
        return "pinned"
    first = problem.objective.first
    is_short = first is Quantity.MAKESPAN
    small = STRATEGY.small_for_makespan if is_short else STRATEGY.small_for_others
    size = "small" if len(problem.tasks) <= small else "large"
    if is_short and size == "large" and can_be_open(problem):
        return "large, short, open addresses"
    if is_short:
        return f"{size}, short"
    return f"{size}, low peak" if first is Quantity.PEAK_SPM else f"{size}, few bytes"


def _residency(options: SolveOptions) -> Solver:
    # CP-SAT takes time to load.
    from spmilp.solvers.traffic.solver import Residency

    return Residency(patience=STRATEGY.without_limit)


def _cpsat(options: SolveOptions) -> Solver:
    from spmilp.solvers.exact.cpsat.solver import CpSatOptions, CpSatSolver

    limit = STRATEGY.without_limit if options.time_limit is None else None
    return CpSatSolver(CpSatOptions(deterministic_limit=limit))


_MAKERS: dict[str, Callable[[SolveOptions], Solver]] = {
    "search": lambda options: PerturbedRestarts(),
    "lns": lambda options: LnsSolver(),
    "residency": _residency,
    "peak": lambda options: PeakBisection(),
    "cpsat": _cpsat,
}


class Auto(Solver):
    """Lets several solvers work on one problem, each from the best plan of those before it.

    It returns the best of their plans, and the best of their bounds, so it is never worse than any
    of them, nor than a valid hint. A time limit is shared out (:func:`members_for`); what a member
    leaves of its share goes to the next ones. Without one each works to its own end. All share one
    context, so that none computes again what another has found out about the problem. The others go
    on without a member that fails; a warning says so in the end.
    """

    name = "auto"
    keeps = frozenset(PinKind)

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found.

        Raises what the first member raised if all have failed and no valid hint is the answer, and
        a ``RuntimeError`` without members.
        """
        hint = context.hint
        if hint is not None and not _has_time(context, hint) and context.valid_hint is hint:
            return context.found(hint, context.fast_bound)
        result: SolverResult | None = None
        failures: list[tuple[Member, Exception]] = []
        context.reserve_for(hint, seconds_to_bend(context, hint))
        for member in members_for(context.problem):
            own = _context_of(member, context, result)
            if own is None:
                break
            try:
                found = member.make(own.options).search_within_pins(own)
            except (KeyboardInterrupt, MemoryError):
                if result is None:
                    raise
                result = replace(result, interrupted=True)
                break
            except Exception as error:
                if context.reports.listener_failed:
                    raise
                failures.append((member, error))
                continue
            result = found if result is None else context.better(result, found)
            context.reserve_for(result.plan, seconds_to_bend(context, result.plan))
            if is_over(context, result):
                break
        if result is None and failures and context.valid_hint is not None:
            result = context.found(context.valid_hint, context.fast_bound)
        if result is None:
            raise failures[0][1] if failures else RuntimeError("a portfolio without members")
        for member, failure in failures:
            context.options.on_warning(_without(member, failure))
        return _bending_well(context, _or_the_hint(context, result))


def _without(member: Member, error: Exception) -> str:
    """Say that a member has failed, and why."""
    said = str(error).partition("\n")[0]
    if not isinstance(error, SpmilpError):
        said = f"{type(error).__name__}: {said}; please report it with the problem"
    return f"auto went on without {member.name}, which failed: {said}"


def _context_of(
    member: Member, context: SearchContext, result: SolverResult | None
) -> SearchContext | None:
    """Return the context of a member, with the best plan so far as its hint.

    ``None`` when there is a plan and no time to improve it.
    """
    plan = None if result is None else result.plan
    if plan is not None and not _has_time(context, plan):
        return None
    limit = context.clock.seconds_left(member.until)
    if limit is not None:
        limit = max(STRATEGY.least_seconds, limit)
    return context.member(limit, plan or context.hint)


def _has_time(context: SearchContext, plan: Plan) -> bool:
    """Say whether a member can do anything about a plan: check it, schedule anew, and search."""
    pace = context.clock.pace
    needed = STRATEGY.passes * pace.seconds(Step.SCHEDULE, context.reads)
    needed += pace.seconds(Step.CHECK, rows_of(plan)) + pace.seconds(Step.PLAN, rows_of(plan))
    return context.clock.has_seconds(STRATEGY.least_seconds + needed)


def is_over(context: SearchContext, result: SolverResult) -> bool:
    """Say whether nothing is left to do."""
    if result.interrupted or result.status is SolveStatus.INFEASIBLE:
        return True
    return result.plan is not None and context.is_enough(
        context.values(result.plan)[0], result.bound
    )


def _bending_well(context: SearchContext, result: SolverResult) -> SolverResult:
    """Return the plan with the times that hardware keeps best."""
    if result.plan is None or context.problem.objective.first is not Quantity.MAKESPAN:
        return result
    context.reserve_for(result.plan)
    plan = bending_well(context, result.plan)
    if plan is result.plan:
        return result
    return _with_plan(context, result, plan)


def _or_the_hint(context: SearchContext, result: SolverResult) -> SolverResult:
    """Return the hint where it beats all members; only then is it worth checking."""
    hint = context.hint
    if hint is None or (
        result.plan is not None and context.values(result.plan) <= context.values(hint)
    ):
        return result
    return result if context.valid_hint is None else _with_plan(context, result, hint)


def _with_plan(context: SearchContext, result: SolverResult, plan: Plan) -> SolverResult:
    """Return a result with another plan."""
    bound = Bound(result.bound_source, context.problem.objective.first, result.bound)
    return replace(context.found(plan, bound), interrupted=result.interrupted)
