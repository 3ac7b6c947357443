"""One solver on one problem, watched and checked."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.result import Result
from spmilp.solvers.base import Progress
from spmilp.watch import SILENT, Observer, Stage

REJECTED = "rejected"
"""The status of a run whose plan the checker does not accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Incumbent and bound of a solve after some wall seconds.

    Parameters
    ----------
    seconds
        Since the solver was called.
    objective
        Of its best plan; ``None`` before the first.
    bound
        The best that it had proven, in the unit of the problem's first quantity.
    """

    seconds: float
    objective: int | None
    bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The result of a solve, and how it came about.

    Parameters
    ----------
    seconds
        Wall time until the solver's answer, before the check.
    cpu_seconds
        Of this process and of those that it started and that ended within this time.
    history
        Every improvement that was reported, in order of time.
    """

    result: Result
    seconds: float
    cpu_seconds: float
    history: tuple[Moment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One solver's run on one problem with one seed.

    Parameters
    ----------
    status
        The solver's, or ``rejected`` when the checker does not accept its plan.
    objective
        The problem's first quantity in the plan; ``None`` without an accepted plan.
    bound
        The best bound that the solver names, in the same unit.
    seconds, cpu_seconds
        Of the solver alone, without reading and checking: on the wall, and of all its threads.
    history
        Every improvement that the solver reported, in order of time; its answer comes last.
    transfers
        In the accepted plan; ``None`` without one.
    busy
        Part of the makespan for which a core computes, on average over all cores.
    dram_ratio
        Bytes to and from DRAM over those that no plan can avoid; ``None`` where these are none.
    violations
        What the checker found wrong with the plan.
    reason
        Why there is no accepted plan; empty when there is one.
    """

    instance: str
    tasks: int
    cores: int
    solver: str
    seed: int
    status: str
    quantity: Quantity
    objective: int | None
    bound: int
    bound_source: str
    seconds: float
    cpu_seconds: float
    history: tuple[Moment, ...]
    transfers: int | None
    busy: float | None
    dram_ratio: float | None
    violations: int
    reason: str

    @property
    def seconds_to_best(self) -> float | None:
        """Seconds until the answer's objective was first reported; ``None`` without a plan."""
        if self.objective is None:
            return None
        return next(moment.seconds for moment in self.history if moment.objective == self.objective)


def watch(
    solve: Callable[..., Result],
    observer: Observer = SILENT,
    on_moment: Callable[[Moment], None] = lambda moment: None,
) -> Watched:
    """Let a solve run under a clock, and note what it reports.

    Parameters
    ----------
    solve
        Called with an ``observer`` that it must report to.
    observer
        Hears all of that too.
    on_moment
        Called with each moment as it comes.
    """
    history: list[Moment] = []
    clocks = [(0.0, 0.0)]
    cpu_before, started = _cpu_seconds(), perf_counter()

    def note(incumbent: int | None, bound: int) -> None:
        seconds = perf_counter() - started
        history.append(Moment(seconds=seconds, objective=incumbent, bound=bound))
        on_moment(history[-1])

    def on_tiles(value: int, tasks: int) -> None:
        note(value, 0)
        observer.on_tiles(value, tasks)

    def on_progress(progress: Progress) -> None:
        note(progress.incumbent, progress.bound)
        if observer.on_progress is not None:
            observer.on_progress(progress)

    def on_stage(stage: Stage) -> None:
        if stage is Stage.CHECKING:
            clocks.append((perf_counter() - started, _cpu_seconds() - cpu_before))
        observer.on_stage(stage)

    noting = replace(observer, on_stage=on_stage, on_tiles=on_tiles, on_progress=on_progress)
    result = solve(observer=noting)
    seconds, cpu_seconds = clocks[-1]
    return Watched(result=result, seconds=seconds, cpu_seconds=cpu_seconds, history=tuple(history))


def run_of(instance: str, seed: int, watched: Watched) -> Run:
    """Return the run that a result is from."""
    result, problem, plan = watched.result, watched.result.problem, watched.result.plan
    answer = Moment(seconds=watched.seconds, objective=result.objective, bound=result.bound)
    broken = next((f"{each.rule}: {each.message}" for each in result.violations), "")
    return Run(
        instance=instance,
        tasks=len(problem.tasks),
        cores=len(problem.machine.cores),
        solver=result.asked,
        seed=seed,
        status=REJECTED if broken else str(result.status),
        quantity=problem.objective.first,
        objective=result.objective,
        bound=result.bound,
        bound_source=result.bound_source,
        seconds=watched.seconds,
        cpu_seconds=watched.cpu_seconds,
        history=(*watched.history, answer),
        transfers=None if plan is None else len(plan.transfers),
        busy=None if plan is None else _busy(problem, plan),
        dram_ratio=None if plan is None else _dram_ratio(problem, plan),
        violations=len(result.violations),
        reason=broken or result.answer.reason,
    )


def _busy(problem: Problem, plan: Plan) -> float | None:
    computing = sum(placement.end - placement.start for placement in plan.placements)
    there = len(problem.machine.cores) * plan.claim.makespan
    return computing / there if there else None


def _dram_ratio(problem: Problem, plan: Plan) -> float | None:
    compulsory = compulsory_dram_traffic(problem)
    return plan.claim.dram_traffic / compulsory if compulsory else None


def _cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])
