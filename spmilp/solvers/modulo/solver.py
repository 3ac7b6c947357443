"""From a plan for one inference to the best stream: of that plan, and of others quickly made."""

from collections.abc import Iterator
from dataclasses import replace

from spmilp.errors import SpmilpError
from spmilp.plan.latencies import shortfall
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.clock import Step
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.modulo.stream import streams_of
from spmilp.solvers.schedule.portfolio import FIRST_RULES, OF_STREAMS
from spmilp.solvers.schedule.solver import ListScheduler
from spmilp.units import Cycles

MOST_TASKS = 12
"""Tasks of a problem that is decided as a whole."""


def of_period(problem: Problem) -> Problem:
    """Return a problem whose first objective is the period, and the latency the second."""
    return replace(problem, objective=Objective.of(Quantity.PERIOD))


def stream_answer(
    problem: Problem,
    known: SolverResult,
    options: SolveOptions,
    period: Cycles | None = None,
    *,
    stream: Plan | None = None,
    also_quick_plans: bool = True,
    decides_whole: bool = True,
) -> SolverResult:
    """Return the best stream that is found from a known plan of one inference.

    Parameters
    ----------
    problem
        With the period as its first objective.
    known
        The answer for one inference. It stays the answer, with a warning, where it has a plan of
        which no stream can be made.
    period
        No shorter one is needed, but the least latency; ``None`` for the least period.
    stream
        A stream that is known.
    also_quick_plans
        Whether plans of the list scheduler by single rules are tried as well: makespans say little
        about periods.
    decides_whole
        Whether CP-SAT decides small problems as a whole behind that.
    """
    context = SearchContext(problem, options)
    if known.interrupted:
        context.clock.stop()
    if known.plan is None:
        bound = context.fast_bound
        return replace(known, bound=bound.value, bound_source=bound.name)
    best, interrupted = stream or known.plan, known.interrupted
    context.reserve_for(best)
    plans = _plans(context, known.plan) if also_quick_plans else iter((known.plan,))
    streams = streams_of(problem, plans, context.clock, period or 1, stream)
    if decides_whole and len(problem.tasks) <= MOST_TASKS and not problem.pins:
        streams = _with_whole(context, streams, period or 1)
    try:
        for best in streams:
            value, least = best.claim.of(Quantity.PERIOD), context.bound.value
            context.report(value, least, "stream")
            is_late = shortfall(problem, best) > 0
            if options.gap and not is_late and context.is_enough(value, least):
                break
    except (KeyboardInterrupt, MemoryError):
        interrupted = True
    except SpmilpError as error:
        options.on_warning(f"{error}. The answer is a plan for one inference")
    bound, found = context.fast_bound, best.claim.of(Quantity.PERIOD)
    if period is not None and found > period:
        options.on_warning(
            f"period {period:,}: the shortest found is {found:,} cycles, and none is below "
            f"{bound.value:,} with these tiles ({bound.name})"
        )
    return replace(context.found(best, bound), interrupted=interrupted)


def _with_whole(context: SearchContext, streams: Iterator[Plan], enough: Cycles) -> Iterator[Plan]:
    """Yield streams, and then those that CP-SAT finds, which miss deadlines by no more."""
    best = None
    for best in streams:
        yield best
    if best is not None and not context.clock.is_over():
        from spmilp.solvers.modulo.exact import PeriodSearch

        least = max(enough, context.bound.value)
        for found in PeriodSearch(context, best).better(least):
            if shortfall(context.problem, found) <= shortfall(context.problem, best):
                yield found


def _plans(context: SearchContext, known: Plan) -> Iterator[Plan]:
    """Yield the known plan, and what the list scheduler makes by its rules.

    Where the known one misses deadlines, first one that has operators as they stand: what is due
    first stands first.
    """
    one = replace(context.problem, objective=Objective())
    is_late = shortfall(context.problem, known) > 0
    rules = (OF_STREAMS[0], *FIRST_RULES[is_late:], *OF_STREAMS[1:])
    for rule in (*FIRST_RULES[:is_late], None, *rules):
        if rule is None:
            yield known
            continue
        if not context.clock.has_seconds(context.clock.pace.seconds(Step.SCHEDULE, context.reads)):
            continue
        at_once = replace(context.options, time_limit=0.0, on_progress=None)
        plan = ListScheduler(greedy=rule).solve(one, at_once).plan
        if plan is not None:
            yield plan
