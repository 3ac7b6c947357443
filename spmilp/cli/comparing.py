"""What ``spmilp compare`` does once its options are read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import typer
from rich.table import Table

from spmilp.cli import output as out
from spmilp.cli.interrupts import Interrupts, interrupts_noted
from spmilp.cli.progress import ProgressLine, progress_line
from spmilp.cli.sources import read_source
from spmilp.comparison.run import REJECTED, Run, compare
from spmilp.comparison.table import contradictions, run_frame, summary_frame
from spmilp.errors import ExitCode
from spmilp.files import write_atomically
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.registry import solver_names

TEXT, COUNT, RATIO, SHARE, SECONDS = "", ",.0f", ".3f", ".1%", ".2f"
"""How the columns of a table are written."""

RUN_COLUMNS = {
    "instance": ("instance", TEXT),
    "tasks": ("tasks", COUNT),
    "solver": ("solver", TEXT),
    "status": ("status", TEXT),
    "objective": ("objective", COUNT),
    "bound": ("bound", COUNT),
    "gap": ("gap", SHARE),
    "ratio_to_best": ("× best", RATIO),
    "seconds": ("s", SECONDS),
}
SUMMARY_COLUMNS = {
    "solver": ("solver", TEXT),
    "runs": ("runs", COUNT),
    "plans": ("plans", COUNT),
    "proven": ("proven", COUNT),
    "ratio_to_bound": ("× bound", RATIO),
    "ratio_to_best": ("× best", RATIO),
    "worst_ratio_to_best": ("worst × best", RATIO),
    "median_gap": ("median gap", SHARE),
    "seconds": ("s", SECONDS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of the command, read; ``None`` where the user said nothing."""

    sources: tuple[str, ...]
    machine: str | None
    dims: Mapping[str, int]
    solvers: tuple[str, ...]
    objective: Quantity | None
    time_limit: float
    gap: float
    seed: int
    workers: int
    output: Path | None
    as_json: bool


def run(request: Request) -> ExitCode:
    """Run every solver on every problem; write and print the tables; return the exit code.

    What has been measured is written and printed even when a signal cuts the rest short.
    """
    _solvers_exist(request.solvers)
    with interrupts_noted() as interrupts, progress_line() as progress:
        problems = _problems(request, progress)
        runs = _runs(problems, request, interrupts, progress)
    frame = run_frame(runs)
    if request.output is not None:
        write_atomically(request.output, frame.to_csv(index=False, lineterminator="\n"))
    defects = contradictions(frame)
    if request.as_json:
        out.print_json({"runs": out.records(frame), "summary": out.records(summary_frame(frame))})
    else:
        _print_tables(frame, request.output)
    for defect in defects:
        out.print_error(f"{defect}. This is a defect of spmilp, please report it")
    if defects or any(run.status == REJECTED for run in runs):
        return ExitCode.INTERNAL
    return interrupts.code or ExitCode.OK


def _solvers_exist(names: tuple[str, ...]) -> None:
    """Refuse an unknown solver before any model is read."""
    for name in names:
        if name not in solver_names():
            raise typer.BadParameter(f"--solvers {name}: there are {', '.join(solver_names())}")


def _problems(request: Request, progress: ProgressLine) -> dict[str, Problem]:
    """Return the problems by name: that of the problem file, or the network's and the machine's."""
    problems: dict[str, Problem] = {}
    for source in request.sources:
        problem = read_source(
            source, request.machine, request.dims, request.objective, progress.say
        ).draft.problem
        name = Path(source).stem if source.endswith(".json") else problem.name
        if name in problems:
            raise typer.BadParameter(f"{source}: another source holds {name!r} as well")
        problems[name] = problem
    return problems


def _runs(
    problems: Mapping[str, Problem],
    request: Request,
    interrupts: Interrupts,
    progress: ProgressLine,
) -> list[Run]:
    options = SolveOptions(
        time_limit=None if math.isinf(request.time_limit) else request.time_limit,
        gap=request.gap,
        seed=request.seed,
        workers=request.workers,
        on_progress=progress.improved,
    )
    runs: list[Run] = []
    try:
        for run in compare(problems, request.solvers, options, progress.starts):
            runs.append(run)
            if interrupts.code is not None:
                break
    except KeyboardInterrupt:
        if not runs:
            raise
    return runs


def _print_tables(frame: pd.DataFrame, written: Path | None) -> None:
    to = out.console()
    to.print(_table(frame, RUN_COLUMNS))
    to.print()
    to.print(_table(summary_frame(frame), SUMMARY_COLUMNS))
    if written is not None:
        to.print(f"written: {written}", markup=False)


def _table(frame: pd.DataFrame, columns: Mapping[str, tuple[str, str]]) -> Table:
    """Return the named columns under their headings; what is missing is a dash."""
    rows = [
        [
            "–" if row[name] is None else format(row[name], form)
            for name, (_, form) in columns.items()
        ]
        for row in out.records(frame)
    ]
    numbers = [at for at, (_, form) in enumerate(columns.values()) if form != TEXT]
    return out.table([heading for heading, _ in columns.values()], rows, numbers=numbers)
