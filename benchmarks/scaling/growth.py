"""Measure how time and memory of each step grow with tasks and with cores; fit exponents.

Usage: python benchmarks/scaling/growth.py FOLDER [--tasks N ...] [--cores N ...]

Writes ``growth.csv``, ``growth.md`` and ``growth.png`` into FOLDER. Problems are generated
(``benchmarks.generated``). Tasks grow at a fixed number of cores, cores at a fixed number of
tasks, each size in a process of its own; the largest of both together is measured as well. Times
are seconds of the processor of one thread, so that other work on the machine does not count.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import TypeVar

import numpy as np
import pandas as pd

T = TypeVar("T")

TASKS = (1_000, 3_000, 10_000, 30_000, 100_000)
CORES = (4, 16, 64, 256, 1024)
FIXED_CORES, FIXED_TASKS = 64, 30_000
ONE_PASS = ("tables", "assignment", "order", "pass", "score")


class Clock:
    """Notes how long each step takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def measure(self, step: str, work: Callable[[], T]) -> T:
        """Do some work and note its seconds."""
        begin = process_time()
        result = work()
        self.seconds[step] = process_time() - begin
        return result


def measured(tasks: int, cores: int) -> dict[str, float]:
    """Return seconds of each step on one problem, and the process's largest memory in GiB."""
    from benchmarks.generated import generated_problem
    from spmilp.bounds.best import best_bound
    from spmilp.checker.check import check
    from spmilp.plan.file import plan_bytes, read_plan
    from spmilp.solvers.schedule.assignments import ASSIGNMENTS
    from spmilp.solvers.schedule.kernels.extract import Scorer, columns_of, plan_of
    from spmilp.solvers.schedule.kernels.run import Runner, why_it_stopped
    from spmilp.solvers.schedule.kernels.schedule_state import Stop
    from spmilp.solvers.schedule.portfolio import FIRST_RULES, FIRST_WEIGHTS, ORDERS

    assignment, order = FIRST_RULES[0]
    clock = Clock()
    problem = clock.measure("problem", lambda: generated_problem(tasks, cores))
    weights = FIRST_WEIGHTS[problem.objective.first]
    runner = clock.measure("tables", lambda: Runner(problem))
    chosen = clock.measure("assignment", lambda: ASSIGNMENTS[assignment](problem))
    placed = clock.measure("order", lambda: ORDERS[order](problem, chosen))
    stop, state = clock.measure("pass", lambda: runner.run(placed, chosen, weights))
    if stop is not Stop.DONE:
        raise SystemExit(f"{problem.name}: {why_it_stopped(problem, stop, state)}")
    columns = clock.measure("columns", lambda: columns_of(problem, state))
    clock.measure("score", lambda: Scorer(problem)(columns, has_addresses=True))
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    bound = clock.measure("bounds", lambda: best_bound(problem))
    plan = clock.measure("plan", lambda: plan_of(problem, columns, bound, "list", ()))
    violations = clock.measure("check", lambda: check(problem, plan))
    if violations:
        raise SystemExit(f"{problem.name}: {violations[0].message}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "plan.json")
        clock.measure("write", lambda: file.write_bytes(plan_bytes(plan, problem)))
        clock.measure("read", lambda: read_plan(file, problem))
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    one_pass = sum(clock.seconds[step] for step in ONE_PASS)
    return {
        **clock.seconds,
        "one pass with tables": one_pass,
        "GiB after one pass": first,
        "GiB after all": largest,
    }


def in_a_process(tasks: int, cores: int) -> dict[str, float]:
    """Return what a new process measures."""
    command = [sys.executable, __file__, "--one", str(tasks), str(cores)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def exponent(sizes: "pd.Series[int]", values: "pd.Series[float]") -> float:
    """Return the slope of a straight line through the logarithms, by least squares."""
    if len(sizes) < 2 or (values <= 0).any():
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def table(frame: pd.DataFrame, varied: str) -> str:
    """Return a Markdown table: a row for each step, a column for each size, and the exponent.

    The exponent is of the sizes from the middle one on: below, what is done once weighs most.
    """
    sizes = frame[varied]
    later = frame[sizes >= sorted(sizes)[len(sizes) // 2]]
    lines = [
        f"| {varied} | {' | '.join(f'{size:,}' for size in sizes)} | exponent |",
        f"|---|{'--:|' * (len(sizes) + 1)}",
    ]
    for step in frame.columns.drop(["tasks", "cores"]):
        cells = " | ".join(f"{value:.2f}" for value in frame[step])
        lines.append(f"| {step} | {cells} | {exponent(later[varied], later[step]):.2f} |")
    return "\n".join(lines)


def plot(by_tasks: pd.DataFrame, by_cores: pd.DataFrame, file: Path) -> None:
    """Draw time against size, both on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for axes, frame, varied in zip(
        figure.subplots(1, 2, sharey=True), (by_tasks, by_cores), ("tasks", "cores"), strict=True
    ):
        for step in ("pass", "one pass with tables", "bounds", "check", "write"):
            axes.loglog(frame[varied], frame[step], marker="o", label=step)
        other = "cores" if varied == "tasks" else "tasks"
        axes.set_xlabel(f"{varied} ({frame[other].iloc[0]:,} {other})")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("seconds")
    figure.axes[0].legend()
    figure.savefig(file, dpi=120)


def main() -> None:
    """Measure, and write table and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--tasks", type=int, nargs="+", default=TASKS)
    parser.add_argument("--cores", type=int, nargs="+", default=CORES)
    parser.add_argument("--one", type=int, nargs=2, metavar=("TASKS", "CORES"))
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(*given.one)))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    pairs = {(tasks, FIXED_CORES) for tasks in given.tasks}
    pairs |= {(FIXED_TASKS, cores) for cores in given.cores}
    pairs |= {(max(given.tasks), max(given.cores))}
    rows = []
    for tasks, cores in sorted(pairs):
        rows.append({"tasks": tasks, "cores": cores, **in_a_process(tasks, cores)})
        print(f"{tasks} tasks, {cores} cores: {rows[-1]}", file=sys.stderr, flush=True)
    frame = pd.DataFrame(rows)
    frame.to_csv(given.folder / "growth.csv", index=False)
    by_tasks = frame[(frame.cores == FIXED_CORES) & frame.tasks.isin(given.tasks)]
    by_cores = frame[(frame.tasks == FIXED_TASKS) & frame.cores.isin(given.cores)]
    largest = frame[(frame.tasks == max(given.tasks)) & (frame.cores == max(given.cores))]
    text = "\n\n".join(
        [
            f"{platform.machine()}, {os.cpu_count()} processors, Python {sys.version.split()[0]}",
            table(by_tasks, "tasks"),
            table(by_cores, "cores"),
            largest.T.to_string(header=False, float_format="{:.2f}".format),
        ]
    )
    (given.folder / "growth.md").write_text(f"{text}\n")
    print(text)
    plot(by_tasks, by_cores, given.folder / "growth.png")


if __name__ == "__main__":
    main()
