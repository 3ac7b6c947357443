"""``spmilp bench``: suites of problems, solvers side by side, tables that can be resumed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spmilp.cli import arguments
from spmilp.cli import options as read
from spmilp.cli import output as out
from spmilp.cli.bench_answer import keep, print_comparison, print_records, print_report
from spmilp.cli.interrupts import interrupts_noted
from spmilp.cli.progress import progress_line
from spmilp.errors import ExitCode

if TYPE_CHECKING:
    import pandas as pd

    from spmilp.bench.run import BenchSettings
    from spmilp.bench.suite import Row


def bench(
    suite: Annotated[
        str | None,
        typer.Argument(
            metavar="SUITE|FILE.yaml",
            help="A suite of the package (see --list) or a suite file.",
            show_default=False,
        ),
    ] = None,
    outdir: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUTDIR",
            file_okay=False,
            help="Folder for runs.csv, progress.csv and summary.md.",
            show_default="out/bench-SUITE",
        ),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the suites; with a suite, list its rows.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="OUTDIR", help="Run nothing; print the summary of a folder."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="With --report: compare with what another folder has."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN", help="Rows whose name contains this, or matches it (* and ?)."
        ),
    ] = None,
    solvers: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Solvers instead of the suite's: names as for solve --solver, patterns "
            "(greedy:*), and solve for the whole command with its search for tile sizes.",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Seeds instead of the suite's.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            parser=read.duration,
            metavar="DURATION",
            help="Limit on each run instead of the suite's: 60s, 5m, 1h, none.",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads of each run instead of the suite's.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(min=1, help="Rows that run at one time; they disturb each other's clocks."),
    ] = 1,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--again", help="Leave out what has been run already, or run it again."
        ),
    ] = True,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", file_okay=False, help="Data for the rows that are made from some."
        ),
    ] = None,
    keep_problems: Annotated[
        bool, typer.Option("--keep-problems", help="Write OUTDIR/problems/ROW.json as well.")
    ] = False,
    attribute: Annotated[
        bool,
        typer.Option(
            "--attribute",
            help="Say where time and traffic of each plan go: attribution.csv and excess.csv.",
        ),
    ] = False,
    best_known: Annotated[
        Path | None,
        typer.Option(
            "--best-known",
            metavar="FILE.csv",
            dir_okay=False,
            help="Split gaps by the best makespans in this file: gaps.csv.",
        ),
    ] = None,
    keep_best: Annotated[
        Path | None,
        typer.Option(
            "--keep-best",
            metavar="FILE.csv",
            dir_okay=False,
            help="Put makespans that are better than those in this file into it.",
        ),
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Run a suite of problems: every solver on every row, each in a process of its own.

    What has been measured is on the disk after each run; the same command
    goes on where it was cut off. docs/benchmarks.md explains suites and tables.
    """
    from spmilp.bench.run import BenchSettings

    if against is not None and report is None:
        raise typer.BadParameter("--against goes with --report OUTDIR")
    if against is not None and (best_known or keep_best):
        raise typer.BadParameter("--best-known and --keep-best do not go with --against")
    if attribute and report is not None:
        raise typer.BadParameter("--attribute is for runs; leave --report out")
    if report is not None:
        if suite is not None:
            raise typer.BadParameter(f"--report prints a folder; leave the suite {suite} out")
        if against is not None:
            raise typer.Exit(print_comparison(report, against, as_json=as_json))
        raise typer.Exit(print_report(report, best_known, keep_best, as_json=as_json))
    if suite is None:
        if not show_list:
            raise typer.BadParameter("name a suite (--list shows them), or --report OUTDIR")
        raise typer.Exit(_list_all(as_json=as_json))
    changes = {
        "solvers": None if solvers is None else read.names(solvers),
        "seeds": None if seeds is None else read.seeds(seeds),
        "time_limit": time_limit,
        "workers": workers,
    }
    rows = tuple(_changed(row, changes) for row in _rows(suite, tuple(only or ())))
    if show_list:
        raise typer.Exit(_list_rows(rows, as_json=as_json))
    settings = BenchSettings(
        folder=outdir or Path("out") / f"bench-{Path(suite).stem}",
        data=data,
        jobs=jobs,
        again=not resume,
        keep_problems=keep_problems,
        attribute=attribute,
        best_known=best_known,
        keep_best=keep_best,
    )
    raise typer.Exit(_run(rows, settings, as_json=as_json))


def _list_all(*, as_json: bool) -> ExitCode:
    """Print the suites of the package."""
    from spmilp.bench.read import list_suites, load_suite

    suites = [load_suite(name) for name in list_suites()]
    rows = [(suite.name, f"{len(suite.rows):,}", suite.description) for suite in suites]
    if as_json:
        names = ("name", "rows", "description")
        values = [(suite.name, len(suite.rows), suite.description) for suite in suites]
        out.print_json({"suites": [dict(zip(names, each, strict=True)) for each in values]})
    else:
        out.console().print(out.table(("suite", "rows", ""), rows, numbers={1}))
    return ExitCode.OK


def _list_rows(rows: "Sequence[Row]", *, as_json: bool) -> ExitCode:
    """Print the rows that would be run."""
    if as_json:
        listed = [{"instance": row.name, "solvers": list(row.solvers)} for row in rows]
        out.print_json({"rows": listed})
        return ExitCode.OK
    cells = [(row.name, _limit(row), _runs(row), _solvers(row)) for row in rows]
    out.console().print(out.table(("row", "limit", "runs", "solvers"), cells, numbers={1, 2}))
    return ExitCode.OK


def _run(rows: "Sequence[Row]", settings: "BenchSettings", *, as_json: bool) -> ExitCode:
    """Run what is missing; print the summary of the folder; return the exit code."""
    from spmilp.bench.folder import read_recorded
    from spmilp.bench.run import run_rows
    from spmilp.bench.tables import runs_frame

    with interrupts_noted() as interrupts, progress_line() as progress:
        try:
            run_rows(rows, settings, progress.say)
        except KeyboardInterrupt:
            if interrupts.code is None:
                raise
    records = read_recorded(settings.folder)
    keep(settings.keep_best, records)
    code = print_records(records, settings.best_known, as_json=as_json)
    if interrupts.code is not None:
        return interrupts.code
    return _nothing_ran(runs_frame(records), rows) or code


def _rows(name: str, only: Sequence[str]) -> "list[Row]":
    """Return the rows of a suite whose names are wanted."""
    from spmilp.bench.read import load_suite

    suite = load_suite(name)
    rows = [row for row in suite.rows if _is_wanted(row.name, only)]
    if not rows:
        patterns = ", ".join(only)
        raise typer.BadParameter(f"--only {patterns}: no row of {suite.name} has such a name")
    return rows


def _is_wanted(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(
        pattern in name or fnmatchcase(name, pattern) for pattern in patterns
    )


def _changed(row: "Row", changes: Mapping[str, Any]) -> "Row":
    """Return a row with the options in place of the settings of the suite."""
    from spmilp.bench.read import fitting, solvers_named

    changed = {name: value for name, value in changes.items() if value is not None}
    if "solvers" in changed:
        changed["solvers"] = solvers_named(changed["solvers"])
    if changed.get("time_limit") == math.inf:
        changed["time_limit"] = None
    return fitting(replace(row, **changed))


def _nothing_ran(runs: "pd.DataFrame", rows: "Iterable[Row]") -> ExitCode | None:
    """Say so, if of the rows that were wanted no problem could be made."""
    mine = runs[runs["instance"].isin([row.name for row in rows])]
    without = mine[mine["status"].isin(["skipped", "not made"])]
    if len(without) < len(mine):
        return None
    out.print_error(f"no row could be run; the first: {without['reason'].iloc[0]}")
    return ExitCode.INVALID_INPUT


def _runs(row: "Row") -> str:
    return f"{len(row.solvers) * len(row.seeds):,}"


def _solvers(row: "Row") -> str:
    """Return the names, with the one-pass rules only counted where there are several."""
    from spmilp.bench.suite import GREEDY

    greedy = [name for name in row.solvers if name.startswith(GREEDY)]
    if len(greedy) < 4:
        return ", ".join(row.solvers)
    others = [name for name in row.solvers if name not in greedy]
    return ", ".join([*others, f"{len(greedy)} of {GREEDY}*"])


def _limit(row: "Row") -> str:
    return "none" if row.time_limit is None else f"{row.time_limit:g} s"
