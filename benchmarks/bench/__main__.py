"""Suites of problems, every solver on every row, each run in a process of its own.

    python -m benchmarks.bench tiny -o out/tiny
    python -m benchmarks.bench networks --only squeezenet --time-limit 30s
    python -m benchmarks.bench networks --list                     # its rows and what they are
    python -m benchmarks.bench --report out/after --against out/before

What has been measured is on the disk after each run; the same command goes on where it was cut
off. A crash, an invalid plan or one below a proven bound ends with code 70.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from math import isinf
from pathlib import Path

import pandas as pd

from benchmarks.bench.run import (
    about,
    against,
    defects,
    described,
    jobs_of,
    keep_best,
    runs_frame,
    summary_frame,
    with_best_greedy,
)
from benchmarks.bench.suite import Row, list_suites, load_suite, solvers_named
from spmilp.errors import ExitCode, SpmilpError
from spmilp.files import write_atomically
from spmilp.quantities import duration
from spmilp.runs.frames import csv_of
from spmilp.runs.jobs import FINAL, Store, processes


def main() -> int:
    """Run a suite, or print what a folder has; return the exit code."""
    given = arguments()
    if given.report is not None:
        frame = runs_frame(Store(given.report).lines())
        if given.against is not None:
            print(shown(against(frame, runs_frame(Store(given.against).lines()))))
            return ExitCode.OK
        return report(frame, given)
    if given.suite is None:
        for name in list_suites():
            suite = load_suite(name)
            print(f"{name:12} {len(suite.rows):3} rows  {suite.description}")
        return ExitCode.OK
    rows = list(wanted(given))
    if given.list:
        print(shown(pd.DataFrame([described(row, given.data) for row in rows])))
        return ExitCode.OK
    folder = given.output or Path("out") / f"bench-{Path(given.suite).stem}"
    store, jobs = Store(folder), {job.key: job for job in jobs_of(rows, given.data)}
    missing = [job for key, job in jobs.items() if given.again or store.find(key) is None]
    with processes(given.jobs) as answers:
        for count, answer in enumerate(answers(missing), start=1):
            run, job = answer.run, jobs[answer.run.key]
            store.keep(replace(answer, files={}), about(job))
            figure = f"{run.objective:,}" if run.objective is not None else run.reason
            print(f"{count} of {len(missing)}: {job.name}: {run.status} {figure}", file=sys.stderr)
    frame = runs_frame(line for line in store.lines() if line["key"] in jobs)
    write_atomically(folder / "runs.csv", csv_of(frame))
    if not set(frame["status"]) & FINAL:
        print(f"no row could be run; the first: {frame['reason'].iloc[0]}", file=sys.stderr)
        return ExitCode.INVALID_INPUT
    return report(frame, given)


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", nargs="?", help="of benchmarks/suites, or a file")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--list", action="store_true", help="only say what the rows are")
    parser.add_argument("--report", type=Path, metavar="FOLDER", help="only print its summary")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="compare --report with it")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--solvers", type=lambda text: text.split(","), metavar="A,B")
    parser.add_argument("--seeds", type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--time-limit", type=duration)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--jobs", type=int, default=1, help="runs at one time")
    parser.add_argument("--again", action="store_true", help="also what has been run")
    parser.add_argument("--data", type=Path, help="for rows that are made from data")
    parser.add_argument("--keep-best", type=Path, metavar="FILE.csv", help="of makespans")
    return parser.parse_args()


def wanted(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of the suite that are to be run, with the options in place of its settings."""
    for row in load_suite(given.suite).rows:
        if given.only and not any(
            one in row.name or fnmatchcase(row.name, one) for one in given.only
        ):
            continue
        if given.solvers:
            named = solvers_named(given.solvers)
            row = replace(row, solvers=tuple(filter(row.runs_of, named)))
        if given.time_limit is not None:
            limit = None if isinf(given.time_limit) else given.time_limit
            row = replace(row, time_limit=limit)
        yield replace(row, seeds=given.seeds or row.seeds, workers=given.workers or row.workers)


def report(frame: pd.DataFrame, given: argparse.Namespace) -> int:
    """Print the summary of runs; their defects are errors."""
    columns = ["instance", "solver", "status", "objective", "bound", "gap", "roofline_gap"]
    named = frame[~frame["solver"].str.startswith("greedy:")]
    print(shown(summary_frame(with_best_greedy(frame))), end="\n\n")
    print(shown(named[[*columns, "seconds_to_first"]]))
    if given.keep_best is not None:
        keep_best(given.keep_best, frame)
    wrong = defects(frame)
    for defect in wrong:
        print(f"error: {defect}", file=sys.stderr)
    return ExitCode.INTERNAL if wrong else ExitCode.OK


def shown(frame: pd.DataFrame) -> str:
    """Return a table as text."""
    return frame.to_string(index=False, na_rep="–", float_format=lambda value: f"{value:.3f}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SpmilpError as error:
        sys.exit(f"error: {error}")
