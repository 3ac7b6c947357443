"""What solvers lose without one of their parts, at equal processor time.

Usage: python -m benchmarks.ablation {auto,cpsat} [--instances [LEAST MOST]] [--seconds S]
           [--seeds N] [--only NAME ...] [--without PART ...]

``auto`` without one of its members, whose time the others get; ``cpsat`` without one of its
switches, or several at once.

Rows are those of ``benchmarks/ablation.yaml``, or with ``--instances`` those in ``instances/``
of so many tasks, 20 to 80 unless told otherwise. Each run is a process of its own that begins with
all libraries loaded and counts its own processor seconds, so that what else the machine does has no
say.
"""

import argparse
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from math import exp, inf, log, sqrt
from pathlib import Path
from statistics import mean, stdev
from threading import Event, Thread
from time import process_time
from traceback import print_exc
from typing import TypeAlias
from unittest.mock import patch

from ortools.sat.python import cp_model

from benchmarks.bench.suite import load_suite, make_problem
from spmilp.checker.check import check
from spmilp.problem.file import read_problem
from spmilp.problem.problem import Problem
from spmilp.solvers import auto
from spmilp.solvers.auto import members_for
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.clock import Pace
from spmilp.solvers.exact.cpsat import inquiry
from spmilp.solvers.exact.cpsat.solver import CpSatOptions, CpSatSolver

HERE = Path(__file__).parent
INSTANCES = HERE.parent / "instances" / "problems"

ALL = "(all)"
EQUAL = 1e-4
"""Relative difference below which two objectives count as equal."""

LOOK = 0.02
"""Seconds between two looks at the clock while CP-SAT works."""

TASKS = (20, 80)
"""Of instances, unless told otherwise."""

LIMITS = {"auto": 16.0, "cpsat": 30.0}
"""Processor seconds of each run unless told otherwise."""

MEMBERS = ("search", "lns", "residency", "cpsat")
SWITCHES = {field.name: (field.name,) for field in fields(CpSatOptions) if field.default is True}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run has found; no value where the checker accepted no plan."""

    value: int | None
    bound: int
    is_optimal: bool


Outcomes: TypeAlias = dict[tuple[str, int], Outcome]
"""By the part that was left out, and the seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is run on each problem."""

    parts: tuple[str, ...]
    seconds: float
    seeds: tuple[int, ...]

    def runs(self) -> Iterator[tuple[str, int]]:
        """Yield the parts to leave out, with the seeds."""
        for seed in self.seeds:
            for part in self.parts:
                yield part, seed


def without_members_of_auto(problem: Problem, trial: Trial) -> Outcomes:
    """Return what the portfolio finds; one without any member left is left out."""
    found: Outcomes = {}
    for part, seed in trial.runs():
        members = tuple(member for member in members_for(problem) if member.name != part)
        pace = Pace(process_time)
        options = SolveOptions(time_limit=trial.seconds, seed=seed, pace=pace)

        def solved(options: SolveOptions = options, members: object = members) -> Outcome:
            with patch.object(auto, "members_for", lambda _: members):
                return outcome_of(problem, auto.Auto().solve(problem, options))

        if members and (part == ALL or len(members) < len(members_for(problem))):
            found[part, seed] = in_a_process(solved)
    return found


def without_switches_of_cpsat(problem: Problem, trial: Trial) -> Outcomes:
    """Return what CP-SAT finds from the list scheduler's plan."""
    found: Outcomes = {}
    for part, seed in trial.runs():
        off = dict.fromkeys(SWITCHES.get(part, ()), False)
        solver = CpSatSolver(replace(CpSatOptions(tie_breaks=0.0), **off))
        pace = Pace(process_time)
        options = SolveOptions(time_limit=trial.seconds, seed=seed, pace=pace)

        def solved(solver: CpSatSolver = solver, options: SolveOptions = options) -> Outcome:
            return outcome_of(problem, solver.solve(problem, options))

        found[part, seed] = in_a_process(solved)
    return found


SOLVERS: dict[str, tuple[tuple[str, ...], Callable[[Problem, Trial], Outcomes]]] = {
    "auto": ((ALL, *MEMBERS), without_members_of_auto),
    "cpsat": ((ALL, *SWITCHES), without_switches_of_cpsat),
}


def main() -> None:
    """Print a line for each problem, then a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("solver", choices=SOLVERS)
    parser.add_argument("--instances", nargs="*", type=int, help="instead of whole networks")
    parser.add_argument("--seconds", type=float, help="processor seconds of each run")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[""], help="rows whose names begin so")
    parser.add_argument("--without", nargs="*", help="parts, by default each in turn")
    given = parser.parse_args()
    parts, run = SOLVERS[given.solver]
    wanted = parts if given.without is None else (ALL, *given.without)
    if not set(wanted) <= set(parts):
        parser.error(f"parts of {given.solver} are {', '.join(parts[1:])}")
    trial = Trial(
        parts=wanted,
        seconds=given.seconds or LIMITS[given.solver],
        seeds=tuple(range(given.seeds)),
    )
    count_processor_time()
    found: dict[str, Outcomes] = {}
    for name, problem in problems(tuple(given.only), given.instances):
        found[name] = run(problem, trial)
        values = (f"{part} {one.value} >= {one.bound}" for (part, _), one in found[name].items())
        print(f"{name}: {', '.join(values)}", file=sys.stderr, flush=True)
    print_table(found, trial)


def problems(begins: tuple[str, ...], instances: list[int] | None) -> Iterator[tuple[str, Problem]]:
    """Yield the networks, or the instances of so many tasks, whose names begin so."""
    if instances is None:
        for row in load_suite(str(HERE / "ablation.yaml")).rows:
            if row.name.startswith(begins):
                yield row.name, make_problem(row.source, row.objective, None)[0]
        return
    least, most = instances or TASKS
    for path in sorted(INSTANCES.glob("*.json")):
        problem = read_problem(path)
        if path.stem.startswith(begins) and least <= len(problem.tasks) <= most:
            yield path.stem, problem


def print_table(found: dict[str, Outcomes], trial: Trial) -> None:
    """Print the geometric mean of each part's ratios, with its standard error."""
    print("| without | rows | objective | ± | worse | better | equal | bound | proven |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for part in trial.parts:
        ratios, bounds, proven = [], [], 0
        for outcomes in found.values():
            own = [outcomes[part, seed] for seed in trial.seeds if (part, seed) in outcomes]
            usual = [outcomes[ALL, seed] for seed in trial.seeds]
            if own and all(one.value is not None for one in (*own, *usual)):
                ratios.append(mean(map(log_value, own)) - mean(map(log_value, usual)))
                bounds.append(mean(map(log_bound, own)) - mean(map(log_bound, usual)))
                proven += own[0].is_optimal
        if len(ratios) > 1:
            error = stdev(ratios) / sqrt(len(ratios))
            worse, better = sum(r > EQUAL for r in ratios), sum(r < -EQUAL for r in ratios)
            counts = f"{worse} | {better} | {len(ratios) - worse - better}"
            print(
                f"| {part} | {len(ratios)} | {exp(mean(ratios)):.4f} | {error:.4f} | {counts} "
                f"| {exp(mean(bounds)):.4f} | {proven} |"
            )


def log_value(outcome: Outcome) -> float:
    """Return the logarithm of the objective."""
    return log(max(1, outcome.value or 0))


def log_bound(outcome: Outcome) -> float:
    """Return the logarithm of the bound."""
    return log(max(1, outcome.bound))


def outcome_of(problem: Problem, result: SolverResult) -> Outcome:
    """Return what a result is worth by the checker's judgement."""
    plan = result.plan
    value = None
    if plan is not None and not check(problem, plan):
        value = plan.claim.of(problem.objective.first)
    return Outcome(value, result.bound, result.status is SolveStatus.OPTIMAL)


def in_a_process(work: Callable[[], Outcome]) -> Outcome:
    """Do some work in a fork of this process, whose processor time begins at 0."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, pickle.dumps(work()))
            os._exit(0)
        except BaseException:
            print_exc()
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit("a run has failed")
    outcome: Outcome = pickle.loads(answer)
    return outcome


def count_processor_time() -> None:
    """Have CP-SAT's limits count processor seconds; it knows only wall time."""
    solve = cp_model.CpSolver.solve

    def limited(
        solver: cp_model.CpSolver,
        model: cp_model.CpModel,
        callback: cp_model.CpSolverSolutionCallback | None = None,
    ) -> cp_model.CpSolverStatus:
        seconds = solver.parameters.max_time_in_seconds
        solver.parameters.max_time_in_seconds = inf
        end, done = process_time() + seconds, Event()

        def watch() -> None:
            while not done.wait(LOOK):
                if process_time() >= end:
                    solver.stop_search()

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            return solve(solver, model, callback)
        finally:
            done.set()
            watcher.join()

    patch.object(inquiry, "monotonic", process_time).start()
    patch.object(cp_model.CpSolver, "solve", limited).start()


if __name__ == "__main__":
    main()
