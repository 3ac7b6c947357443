"""``spmilp compare``: solvers side by side on the same problems."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.interrupts import interrupts_noted, writing
from spmilp.cli.output import print_stacked, progress_line
from spmilp.errors import ExitCode
from spmilp.options import with_options

if TYPE_CHECKING:
    import pandas as pd

    from spmilp.runs.compare import Comparison

TEXT, COUNT, RATIO, SHARE, SECONDS = "", ",.0f", ".3f", ".1%", ".2f"
"""Formats of the columns of a table."""

RUN_COLUMNS = {
    "instance": ("instance", TEXT),
    "solver": ("solver", TEXT),
    "tasks": ("tasks", COUNT),
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


@with_options(
    *("dim", "objective", "time_limit", "gap", "seed", "workers"), annotation=arguments.of_solve
)
def compare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL.onnx|PROBLEM.json...",
            help="ONNX models, onnx:NAME for graphs of the onnx package, or problem files.",
            show_default=False,
        ),
    ],
    machine: arguments.Machine = None,
    solvers: Annotated[
        str, typer.Option(metavar="A,B,...", help="Names of solvers, as for solve --solver.")
    ] = "greedy:contiguous/layer_by_layer,list,cpsat",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.csv", dir_okay=False, help="Write one row per run."
        ),
    ] = None,
    as_json: arguments.AsJson = False,
    **options: Any,
) -> None:
    """Run solvers on the same problems, check every plan, and compare.

    Each run starts anew and has the same limits. The bound of an instance is
    the best that any of the solvers proved.
    """
    from spmilp.files import require_room, write_atomically
    from spmilp.runs.compare import compare as compared
    from spmilp.runs.frames import csv_of
    from spmilp.watch import Observer

    if output is not None:
        require_room(output.parent, [output.name])
    with interrupts_noted() as interrupts, progress_line() as progress:
        found = compared(
            sources,
            machine,
            solvers=arguments.names(solvers),
            observer=Observer(on_stage=progress.say, on_progress=progress.improved),
            on_start=progress.starts,
            **options,
        )
    if output is not None:
        with writing(output):
            write_atomically(output, csv_of(found.runs))
    if as_json:
        tables = {"runs": out.records(found.runs), "summary": out.records(found.summary)}
        out.print_json(tables)
    else:
        _print_tables(found, output)
    for defect in found.defects:
        out.print_error(f"{defect}. This is a defect of spmilp, please report it")
    if not found.is_sound:
        raise typer.Exit(ExitCode.INTERNAL)
    raise typer.Exit(interrupts.code or ExitCode.OK)


def _print_tables(found: "Comparison", written: Path | None) -> None:
    to = out.console()
    _print_table(to, found.runs, RUN_COLUMNS, keys=2)
    to.print()
    _print_table(to, found.summary, SUMMARY_COLUMNS, keys=1)
    if written is not None:
        to.print(f"written: {written}", markup=False)


def _print_table(
    to: Console, frame: "pd.DataFrame", columns: Mapping[str, tuple[str, str]], *, keys: int
) -> None:
    """Print the named columns under their headings; what is missing is a dash."""
    rows = [
        [
            "–" if row[name] is None else format(row[name], form)
            for name, (_, form) in columns.items()
        ]
        for row in out.records(frame)
    ]
    numbers = [at for at, (_, form) in enumerate(columns.values()) if form != TEXT]
    headings = [heading for heading, _ in columns.values()]
    print_stacked(to, headings, rows, numbers=numbers, keys=keys)
