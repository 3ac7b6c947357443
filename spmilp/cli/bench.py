"""``spmilp bench``: suites of problems, solvers side by side, tables that can be resumed."""

from pathlib import Path
from typing import Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import options as read


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
    as_json: arguments.AsJson = False,
) -> None:
    """Run a suite of problems: every solver on every row, each in a process of its own.

    What has been measured is on the disk after each run; the same command
    goes on where it was cut off. docs/benchmarks.md explains suites and tables.
    """
    from spmilp.cli import benching

    if against is not None and report is None:
        raise typer.BadParameter("--against goes with --report OUTDIR")
    if report is not None:
        if suite is not None:
            raise typer.BadParameter(f"--report prints a folder; leave the suite {suite} out")
        raise typer.Exit(benching.print_report(report, against, as_json=as_json))
    if suite is None:
        if not show_list:
            raise typer.BadParameter("name a suite (--list shows them), or --report OUTDIR")
        raise typer.Exit(benching.list_all(as_json=as_json))
    request = benching.Request(
        suite=suite,
        outdir=outdir,
        only=tuple(only or ()),
        solvers=None if solvers is None else read.names(solvers),
        seeds=None if seeds is None else read.seeds(seeds),
        time_limit=time_limit,
        workers=workers,
        jobs=jobs,
        resume=resume,
        data=data,
        keep_problems=keep_problems,
        as_json=as_json,
    )
    if show_list:
        raise typer.Exit(benching.list_rows(request))
    raise typer.Exit(benching.run(request))
