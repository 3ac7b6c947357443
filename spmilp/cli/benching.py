"""What ``spmilp bench`` does once its options are read."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd
import typer

from spmilp.bench.against import against as compared
from spmilp.bench.output import defects, read_runs
from spmilp.bench.read import fitting, list_suites, load_suite, solvers_named
from spmilp.bench.run import Plan, run_rows
from spmilp.bench.sections import Section, sections_of, settings_of
from spmilp.bench.suite import GREEDY, Row
from spmilp.bench.summary import summary_frame, with_best_greedy
from spmilp.cli import output as out
from spmilp.cli.interrupts import interrupts_noted
from spmilp.cli.progress import progress_line
from spmilp.errors import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of the command, read; ``None`` where the user said nothing."""

    suite: str
    outdir: Path | None
    only: tuple[str, ...]
    solvers: tuple[str, ...] | None
    seeds: tuple[int, ...] | None
    time_limit: float | None
    workers: int | None
    jobs: int
    resume: bool
    data: Path | None
    keep_problems: bool
    as_json: bool


def list_all(*, as_json: bool) -> ExitCode:
    """Print the suites of the package."""
    suites = [load_suite(name) for name in list_suites()]
    rows = [(suite.name, f"{len(suite.rows):,}", suite.description) for suite in suites]
    if as_json:
        names = ("name", "rows", "description")
        values = [(suite.name, len(suite.rows), suite.description) for suite in suites]
        out.print_json({"suites": [dict(zip(names, each, strict=True)) for each in values]})
    else:
        out.console().print(out.table(("suite", "rows", ""), rows, numbers={1}))
    return ExitCode.OK


def list_rows(request: Request) -> ExitCode:
    """Print the rows that would be run."""
    rows = _rows(request)
    if request.as_json:
        listed = [{"instance": row.name, "solvers": list(row.solvers)} for row in rows]
        out.print_json({"rows": listed})
        return ExitCode.OK
    cells = [(row.name, _limit(row), _runs(row), _solvers(row)) for row in rows]
    out.console().print(out.table(("row", "limit", "runs", "solvers"), cells, numbers={1, 2}))
    return ExitCode.OK


def run(request: Request) -> ExitCode:
    """Run what is missing; print the summary of the folder; return the exit code."""
    rows = _rows(request)
    plan = Plan(
        folder=request.outdir or Path("out") / f"bench-{Path(request.suite).stem}",
        data=request.data,
        jobs=request.jobs,
        anew=not request.resume,
        keep_problems=request.keep_problems,
    )
    with interrupts_noted() as interrupts, progress_line() as progress:
        try:
            run_rows(rows, plan, progress.say)
        except KeyboardInterrupt:
            if interrupts.code is None:
                raise
    runs = read_runs(plan.folder)
    code = _print_runs(runs, plan.folder, as_json=request.as_json)
    if interrupts.code is not None:
        return interrupts.code
    return _nothing_ran(runs, rows) or code


def print_report(folder: Path, other: Path | None, *, as_json: bool) -> ExitCode:
    """Print the summary of a folder, or its comparison with another one."""
    runs = read_runs(folder)
    if other is None:
        return _print_runs(runs, folder, as_json=as_json)
    sections = list(compared(runs, read_runs(other)))
    if as_json:
        out.print_json({each.title: _objects(each) for each in sections})
    else:
        _print_sections(sections, (f"{folder} (now) against {other} (before).",))
    return ExitCode.OK


def _rows(request: Request) -> tuple[Row, ...]:
    """Return the rows that are wanted, changed as the options say."""
    suite = load_suite(request.suite)
    rows = [row for row in suite.rows if _is_wanted(row.name, request.only)]
    if not rows:
        patterns = ", ".join(request.only)
        raise typer.BadParameter(f"--only {patterns}: no row of {suite.name} has such a name")
    return tuple(_changed(row, request) for row in rows)


def _is_wanted(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(
        pattern in name or fnmatchcase(name, pattern) for pattern in patterns
    )


def _changed(row: Row, request: Request) -> Row:
    limit = request.time_limit
    return fitting(
        replace(
            row,
            solvers=solvers_named(request.solvers) if request.solvers else row.solvers,
            seeds=request.seeds or row.seeds,
            time_limit=row.time_limit if limit is None else None if math.isinf(limit) else limit,
            workers=request.workers or row.workers,
        )
    )


def _print_runs(runs: pd.DataFrame, folder: Path, *, as_json: bool) -> ExitCode:
    wrong = list(defects(runs))
    if as_json:
        summary = summary_frame(with_best_greedy(runs))
        out.print_json({"runs": out.records(runs), "summary": out.records(summary)})
    else:
        _print_sections(list(sections_of(runs)), settings_of(runs))
        out.console().print(f"tables: {folder}", markup=False, soft_wrap=True)
    for defect in wrong:
        out.print_error(f"{defect}. This is a defect of spmilp, please report it")
    return ExitCode.INTERNAL if wrong else ExitCode.OK


def _nothing_ran(runs: pd.DataFrame, rows: Iterable[Row]) -> ExitCode | None:
    """Say so, if of the rows that were wanted no problem could be made."""
    mine = runs[runs["instance"].isin([row.name for row in rows])]
    without = mine[mine["status"].isin(["skipped", "not made"])]
    if len(without) < len(mine):
        return None
    out.print_error(f"no row could be run; the first: {without['reason'].iloc[0]}")
    return ExitCode.INVALID_INPUT


def _print_sections(sections: Iterable[Section], facts: Iterable[str]) -> None:
    to = out.console()
    for fact in facts:
        to.print(fact.replace("**", ""), markup=False, soft_wrap=True)
    for section in sections:
        to.print()
        to.print(section.title, markup=False, style="bold")
        if section.note:
            to.print(section.note.replace("`", ""), markup=False, soft_wrap=True)
        to.print(out.table(section.headings, section.rows, numbers=section.numbers))


def _objects(section: Section) -> list[dict[str, str]]:
    return [dict(zip(section.headings, row, strict=True)) for row in section.rows]


def _runs(row: Row) -> str:
    return f"{len(row.solvers) * len(row.seeds):,}"


def _solvers(row: Row) -> str:
    """Return the names, with the one-pass rules only counted where there are several."""
    greedy = [name for name in row.solvers if name.startswith(GREEDY)]
    if len(greedy) < 4:
        return ", ".join(row.solvers)
    others = [name for name in row.solvers if name not in greedy]
    return ", ".join([*others, f"{len(greedy)} of {GREEDY}*"])


def _limit(row: Row) -> str:
    return "none" if row.time_limit is None else f"{row.time_limit:g} s"
