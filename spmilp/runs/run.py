"""One solve as a row of a table: watched, timed and checked."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any

from spmilp.errors import SpmilpError
from spmilp.machine.machine import Core, CoreKind, Machine, Memory, MemoryKind
from spmilp.pipeline import solve_problem
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem, Task
from spmilp.result import Result
from spmilp.solvers.base import Progress, SolveOptions, SolveStatus
from spmilp.watch import SILENT, Observer, Stage

REJECTED = "rejected"
"""The status of a run whose plan the checker does not accept."""

FINAL = frozenset(map(str, SolveStatus))
"""Statuses of runs that took place; others are tried again when work is resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Objective of the best plan (``None`` before the first) and bound after some wall seconds."""

    seconds: float
    objective: int | None
    bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One solver's run on one problem or network with one seed.

    Parameters
    ----------
    key
        Of the job that it is of; empty for one that was not stored.
    status
        The solver's; ``rejected`` when the checker does not accept its plan; or how its process
        ended: see :class:`~spmilp.processes.ChildError`.
    quantity, objective
        What is made small, and its value in the plan; ``None`` without an accepted plan, as the
        other figures of the plan.
    bound
        The best that the solver proved, in the same unit; ``roofline``: cycles that no plan with
        any tiles is below.
    seconds, cpu_seconds
        Of the solver alone, without reading and checking: on the wall, and of all its threads.
    history
        Every improvement that the solver reported, in order of time; its answer comes last.
    busy
        Part of the makespan for which a core computes, on average over all cores.
    dram_ratio
        Bytes to and from DRAM over those that no plan can avoid; ``None`` where these are none.
    warm_start
        The key of the run whose plan this one began with; empty for none.
    reason
        Why there is no accepted plan.
    """

    key: str = ""
    instance: str
    solver: str
    seed: int
    status: str
    reason: str = ""
    quantity: str = ""
    objective: int | None = None
    bound: int | None = None
    bound_source: str = ""
    roofline: int | None = None
    makespan: int | None = None
    dram_traffic: int | None = None
    energy: int | None = None
    peak_spm: int | None = None
    tasks: int | None = None
    cores: int | None = None
    transfers: int | None = None
    busy: float | None = None
    dram_ratio: float | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    history: tuple[Moment, ...] = ()
    warm_start: str = ""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "Run":
        """Return the run that a line of a store holds, whatever else it holds.

        Raises
        ------
        ValueError, TypeError, KeyError, AttributeError
            If it holds none.
        """
        known = {each.name: given[each.name] for each in fields(cls) if each.name in given}
        history = tuple(Moment(**moment) for moment in known.pop("history", ()))
        return cls(**known, history=history)

    @property
    def is_final(self) -> bool:
        """Whether the solver has come to its end, with a plan or without."""
        return self.status in FINAL

    @property
    def seconds_to_best(self) -> float | None:
        """Seconds until the answer's objective was first reported; ``None`` without a plan."""
        if self.objective is None:
            return None
        return next(moment.seconds for moment in self.history if moment.objective == self.objective)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The result of a solve, its seconds until the check, and what it reported until then."""

    result: Result
    seconds: float
    cpu_seconds: float
    history: tuple[Moment, ...]


def watch(solve: Callable[..., Result], observer: Observer = SILENT) -> Watched:
    """Let a solve run under a clock, and note what it reports.

    Parameters
    ----------
    solve
        Called with an ``observer`` that it must report to.
    observer
        Hears all of that too.
    """
    history: list[Moment] = []
    clocks = [(0.0, 0.0)]
    cpu_before, started = _cpu_seconds(), perf_counter()

    def note(objective: int | None, bound: int) -> None:
        seconds = perf_counter() - started
        history.append(Moment(seconds=seconds, objective=objective, bound=bound))

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


def run_of(watched: Watched, *, instance: str, seed: int, key: str = "") -> Run:
    """Return the row of a solve."""
    result, problem, plan = watched.result, watched.result.problem, watched.result.plan
    answer = Moment(seconds=watched.seconds, objective=result.objective, bound=result.bound)
    return Run(
        key=key,
        instance=instance,
        solver=result.asked,
        seed=seed,
        status=REJECTED if result.violations else str(result.status),
        reason=result.reason,
        quantity=str(problem.objective.first),
        objective=result.objective,
        bound=result.bound,
        bound_source=result.bound_source,
        makespan=result.makespan,
        dram_traffic=result.dram_traffic,
        energy=result.energy,
        peak_spm=result.peak_spm,
        tasks=len(problem.tasks),
        cores=len(problem.machine.cores),
        transfers=None if plan is None else len(plan.transfers),
        busy=None if plan is None else _busy(problem, plan),
        dram_ratio=None if plan is None else _dram_ratio(problem, plan),
        seconds=watched.seconds,
        cpu_seconds=watched.cpu_seconds,
        history=(*watched.history, answer),
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


def warm_up(solver: str) -> None:
    """Load libraries and compiled code before a clock starts: solve a problem of one task.

    Raises
    ------
    SpmilpError
        If no solver has that name.
    """
    problem = smallest_problem()
    solve_problem(problem, "list", SolveOptions(time_limit=1.0))
    # A solver may refuse so small a problem; on the real one its error is reported.
    with suppress(SpmilpError):
        solve_problem(problem, solver, SolveOptions(time_limit=1.0))


def smallest_problem() -> Problem:
    """Return a problem with one task and no data."""
    machine = Machine(
        name="smallest",
        memories=(Memory(index=0, name="spm", kind=MemoryKind.SPM, size=64),),
        kinds=(CoreKind(index=0, name="core"),),
        cores=(Core(index=0, name="core", kind=0, memory=0),),
        links=(),
        engines=(),
    )
    return Problem(
        name="smallest", machine=machine, tasks=(Task(index=0, name="task", cycles=(1,)),)
    )
