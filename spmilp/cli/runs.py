"""``spmilp compare`` and ``spmilp sweep``: many solves, as one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.arguments import argument, option, verb
from spmilp.cli.interrupts import interrupts_noted
from spmilp.errors import ExitCode

if TYPE_CHECKING:
    import pandas as pd

FORMATS = {
    **dict.fromkeys(("instance", "solver", "status"), ""),
    **dict.fromkeys(("ratio_to_bound", "ratio_to_best", "worst_ratio_to_best"), ".3f"),
    **dict.fromkeys(("gap", "median_gap"), ".1%"),
    "seconds": ".2f",
}
"""Formats of the columns of a table that are no counts."""


def _formats(*columns: str) -> dict[str, str]:
    return {name: FORMATS.get(name, ",d") for name in columns}


RUN_COLUMNS = _formats(
    *("instance", "solver", "tasks", "status", "objective", "bound", "gap", "ratio_to_best"),
    "seconds",
)
SUMMARY_COLUMNS = _formats(
    *("solver", "runs", "plans", "proven", "ratio_to_bound", "ratio_to_best"),
    *("worst_ratio_to_best", "median_gap", "seconds"),
)
SWEPT_COLUMNS = {
    **_formats("status", "objective", "bound", "gap", "dram_traffic", "peak_spm"),
    "seconds": ".1f",
}


@verb(
    *("dim", "input", "objective", "time_limit", "effort", "gap", "seed", "workers"),
    sources=argument("MODEL.onnx|PROBLEM.json..."),
    solvers=option(metavar="A,B,..."),
    output=option("-o", metavar="FILE.csv", dir_okay=False),
)
def compare(
    sources: list[str],
    machine: str | None = None,
    solvers: str = "greedy:contiguous/layer_by_layer,list,cpsat",
    output: Path | None = None,
    as_json: bool = False,
    **given: Any,
) -> None:
    """Run solvers on the same problems, check every plan, and compare.

    Each run starts anew and has the same limits. The bound of an instance is
    the best that any of the solvers proved.

    Parameters
    ----------
    sources
        ONNX models, onnx:NAME for graphs of the onnx package, or problem files.
    solvers
        Names of solvers, as for solve --solver.
    output
        Write one row per run.
    """
    from spmilp.files import require_room, write_atomically
    from spmilp.runs.compare import compare as compared
    from spmilp.runs.frames import csv_of

    if output is not None:
        require_room(output.parent, [output.name])
    with interrupts_noted() as interrupts:
        found = compared(
            sources,
            machine,
            solvers=arguments.names(solvers),
            on_start=lambda instance, solver: out.say(f"{instance}: {solver}"),
            **given,
        )
    if output is not None:
        write_atomically(output, csv_of(found.runs))
    runs, summary = out.records(found.runs), out.records(found.summary)
    tables: list[RenderableType] = [out.table_of(runs, RUN_COLUMNS)]
    tables += ["", out.table_of(summary, SUMMARY_COLUMNS)]
    if output is not None:
        tables.append(f"written: {output}")
    out.print_answer({"runs": runs, "summary": summary}, tables, as_json=as_json)
    for defect in found.defects:
        out.print_error(f"{defect}. This is a defect of spmilp, please report it")
    if not found.is_sound:
        raise typer.Exit(ExitCode.INTERNAL)
    raise typer.Exit(interrupts.code or ExitCode.OK)


SWEPT = {
    "metavar": "VALUES",
    "rich_help_panel": (
        "What is swept: 1,2,4 is a list, 16k:256k doubles, 16k:256k:16k goes in steps"
    ),
}


@verb(
    *("dim", "input", "tiles", "objective", "pins", "time_limit", "effort", "gap", "workers"),
    models=argument("MODEL.onnx..."),
    machine=option("-m", metavar="A,B,..."),
    spm=option(**SWEPT),
    dma_channels=option(**SWEPT),
    dma_rate=option(**SWEPT),
    dram_rate=option(**SWEPT),
    fields=option(name="--set", **SWEPT | {"metavar": "FIELD=VALUES"}),
    period=option(**SWEPT),
    solver=option(metavar="A,B,..."),
    seeds=option(metavar="N,N,..."),
    jobs=option(min=1, show_default="as many as it has processors for"),
    scheduler=option(metavar="ADDRESS"),
    pareto=option(metavar="A,B,..."),
    target=option(metavar="QUANTITY=VALUE"),
    output=option("-o", metavar="OUTDIR", file_okay=False, show_default="out/sweep-NAME"),
)
def sweep(
    models: list[str],
    machine: str = "mesh4x4",
    spm: str | None = None,
    dma_channels: str | None = None,
    dma_rate: str | None = None,
    dram_rate: str | None = None,
    fields: list[str] | None = None,
    period: str | None = None,
    solver: str = "auto",
    seeds: str = "0",
    jobs: int | None = None,
    scheduler: str | None = None,
    pareto: str = "",
    target: str | None = None,
    output: Path | None = None,
    again: bool = False,
    as_json: bool = False,
    **options: Any,
) -> None:
    """Map networks onto machines of many sizes: every combination is a row of one table.

    Rows are solved side by side, and each is on the disk when it is finished;
    the same command goes on where it was cut off. docs/sweep.md explains it.

    Parameters
    ----------
    models
        ONNX models (onnx:NAME for graphs of the onnx package).
    machine
        Presets (see spmilp machines) or machine files.
    spm
        Bytes of each scratchpad.
    dma_channels
        Channels of each DMA engine.
    dma_rate
        Bytes per cycle of each DMA engine.
    dram_rate
        Bytes per cycle of each DRAM port.
    fields
        Any field of the machine's file by its path, as topology.latency_cycles=1,2 (repeat).
    period
        Cycles from an inference to the next: streams whose latency is as short as is found.
    solver
        Solvers, as for solve.
    seeds
        Seeds.
    jobs
        Rows at one time on this computer.
    scheduler
        Use the workers of a Dask scheduler: tcp://HOST:8786.
    pareto
        Mark the rows that no other is as good as in all of these and better in one: makespan,
        traffic, energy, spm, or another column.
    target
        Find the smallest value of the one field that is swept for which a plan has at most this:
        makespan=6000.
    output
        Folder for rows, plans and sweep.csv.
    again
        Solve what the folder has once more.
    """
    from spmilp.runs.sweep import sweep as swept

    folder = output or Path("out") / f"sweep-{Path(models[0].split(':')[-1]).stem}"
    with interrupts_noted():
        frame = swept(
            models,
            arguments.names(machine),
            spm=spm,
            dma_channels=dma_channels,
            dma_rate=dma_rate,
            dram_rate=dram_rate,
            fields=_assignments(fields or []),
            period=period,
            solver=arguments.names(solver),
            seeds=arguments.numbers(seeds),
            jobs=jobs,
            scheduler=scheduler,
            pareto=arguments.names(pareto) if pareto else (),
            target=target,
            folder=folder,
            again=again,
            on_news=out.say,
            **options,
        )
    said: list[str] = frame.attrs.get("conclusions", [])
    shown: list[RenderableType] = [_swept_table(frame, pareto)]
    shown += [*said, f"tables and plans: {folder}"]
    data = {"rows": out.records(frame), "conclusions": said}
    out.print_answer(data, shown, as_json=as_json)
    raise typer.Exit(_exit_code(frame))


def _assignments(texts: list[str]) -> dict[str, object]:
    """Read ``topology.latency_cycles=1,2`` and its like."""
    found: dict[str, object] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not (name and equals and values):
            raise typer.BadParameter(f"--set {text}: expected FIELD=VALUES")
        if name in found:
            raise typer.BadParameter(f"--set {name} is given twice")
        found[name.removeprefix("machine.")] = values
    return found


def _exit_code(frame: "pd.DataFrame") -> ExitCode:
    """Say what is wrong with a table, if anything is; return the exit code."""
    from spmilp.runs.target import MEETS

    rejected = frame[frame["status"] == "rejected"]
    for reason in rejected["reason"]:
        out.print_error(f"{reason}. This is a defect of spmilp, please report it")
    if len(rejected):
        return ExitCode.INTERNAL
    if frame["objective"].isna().all():
        out.print_error(f"no row has a plan; the first: {frame['reason'].iloc[0]}")
        return ExitCode.LIMIT_WITHOUT_PLAN
    if "verdict" in frame and MEETS not in set(frame["verdict"]):
        return ExitCode.LIMIT_WITHOUT_PLAN
    return ExitCode.OK


def _swept_table(frame: "pd.DataFrame", pareto: str) -> Text:
    """Return the columns in which rows differ, and the figures of each."""
    from spmilp.runs.frames import SHORT

    same = list(frame.columns[: frame.columns.get_loc("status")])
    differing = [name for name in same if frame[name].nunique(dropna=False) > 1] or ["model"]
    rows = out.records(frame)
    for row in rows:
        row["spm"] = None if row["spm"] is None else quantities.shown_bytes(row["spm"])
        row["pareto"] = "*" if row.get("pareto") else ""
    formats = {**dict.fromkeys(differing, ""), **SWEPT_COLUMNS}
    for given in pareto.split(","):
        name = SHORT.get(given.strip(), given.strip())
        if name in frame and name != "spm" and not frame[name].equals(frame["objective"]):
            formats.setdefault(name, ",d")
    formats |= {name: "" for name in ("pareto", "verdict") if name in frame}
    return out.table_of(rows, formats)
