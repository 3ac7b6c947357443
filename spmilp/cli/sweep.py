"""``spmilp sweep``: networks on machines of many sizes, and the smallest that is good enough."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spmilp import amounts
from spmilp.cli import arguments
from spmilp.cli import options as read
from spmilp.cli import output as out
from spmilp.cli.interrupts import COMMAND, interrupts_noted
from spmilp.cli.progress import progress_line
from spmilp.errors import ExitCode, MissingExtraError
from spmilp.tile_selection.mode import Tiles

if TYPE_CHECKING:
    import pandas as pd

    from spmilp.sizing.run import News
    from spmilp.sizing.sweep import Sweep

VALUES = "VALUES"
SUFFIXES = (".yaml", ".yml")
SHOWN = ("status", "objective", "bound", "gap", "dram_traffic", "peak_spm", "seconds")
PANEL = "What is swept: 1,2,4 is a list, 16k:256k doubles, 16k:256k:16k goes in steps"


def sweep(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SWEEP.yaml|MODEL.onnx...",
            help="A file that describes a sweep, or ONNX models (onnx:NAME for graphs of the onnx "
            "package).",
            show_default=False,
        ),
    ],
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            metavar="A,B,...",
            help="Presets (see spmilp machines) or machine files.",
            show_default="mesh4x4",
        ),
    ] = None,
    spm: Annotated[
        str | None,
        typer.Option(metavar=VALUES, help="Bytes of each scratchpad.", rich_help_panel=PANEL),
    ] = None,
    dma_channels: Annotated[
        str | None,
        typer.Option(metavar=VALUES, help="Channels of each DMA engine.", rich_help_panel=PANEL),
    ] = None,
    dma_rate: Annotated[
        str | None,
        typer.Option(
            metavar=VALUES, help="Bytes per cycle of each DMA engine.", rich_help_panel=PANEL
        ),
    ] = None,
    dram_rate: Annotated[
        str | None,
        typer.Option(
            metavar=VALUES, help="Bytes per cycle of each DRAM port.", rich_help_panel=PANEL
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUES",
            help="Any field of the machine's file by its path, as topology.latency_cycles=1,2 "
            "(repeat).",
            rich_help_panel=PANEL,
        ),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Solvers, as for solve.", show_default="auto"),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Seeds.", show_default="0")
    ] = None,
    dim: arguments.Dim = None,
    tiles: Annotated[Tiles | None, typer.Option(help="As for solve.")] = None,
    objective: arguments.Objective = None,
    pins: arguments.Pins = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            parser=read.duration,
            metavar="DURATION",
            help="Limit on each row: 60s, 5m, 1h, none.",
            show_default="60s",
        ),
    ] = None,
    memory_limit: Annotated[
        int | None,
        typer.Option(
            "--memory-limit",
            parser=read.byte_count,
            metavar="SIZE",
            help="Limit on each row: 2GiB, 500MiB.",
            show_default="its part of the worker's memory",
        ),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option(parser=read.share, metavar="SHARE", help="As for solve.", show_default="0"),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads of each row.", show_default="1")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows at one time on this computer; 1 needs no Dask.",
            show_default="as many as it has processors for",
        ),
    ] = None,
    scheduler: arguments.Scheduler = None,
    pareto: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Mark the rows that no other is as good as in all of these and better in one: "
            "makespan, traffic, energy, spm, or another column.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="QUANTITY=VALUE",
            help="Find the smallest value of the one field that is swept for which a plan has "
            "at most this: makespan=6000.",
        ),
    ] = None,
    outdir: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUTDIR",
            file_okay=False,
            help="Folder for rows, plans, sweep.csv and sweep.parquet.",
            show_default="out/sweep-NAME",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume/--again", help="Leave out what the folder has, or solve it again."),
    ] = True,
    as_json: arguments.AsJson = False,
) -> None:
    """Map networks onto machines of many sizes: every combination is a row of one table.

    Rows are solved side by side, and each is on the disk when it is finished;
    the same command goes on where it was cut off. docs/sweep.md explains it.
    """
    from spmilp.sizing.sweep import Place, carry_out, pins_of

    swept = {
        "spm": spm,
        "dma_channels": dma_channels,
        "dma_rate": dma_rate,
        "dram_rate": dram_rate,
        **_assignments(set_ or ()),
    }
    changes = {
        "machines": None if machine is None else read.names(machine),
        "dim": read.dimensions(dim) if dim else None,
        "solvers": None if solver is None else read.names(solver),
        "seeds": None if seeds is None else read.seeds(seeds),
        "pareto": None if pareto is None else read.names(pareto),
        "target": target,
    }
    options = {
        "tiles": None if tiles is None else str(tiles),
        "objective": None if objective is None else str(objective),
        "time_limit": time_limit,
        "memory_limit": memory_limit,
        "gap": gap,
        "workers": workers,
        "pins": None if pins is None else pins_of(pins),
    }
    wanted = _changed(_given(sources), swept, changes, options)
    place = Place(
        folder=outdir or Path("out") / f"sweep-{_stem(sources[0])}",
        jobs=jobs,
        scheduler=scheduler,
        again=not resume,
    )
    COMMAND.state = f"the rows that are finished are in {place.folder}; the same command goes on"
    with interrupts_noted(), progress_line() as progress:
        frame = carry_out(wanted, place, lambda news: progress.say(_line(news)))
    raise typer.Exit(_show(frame, wanted, place.folder or Path(), as_json=as_json))


def _given(sources: list[str]) -> "Sweep":
    """Return the sweep of a file, or one that has only its models yet."""
    from spmilp.sizing.read import read_sweep
    from spmilp.sizing.sweep import Sweep

    if sources[0].endswith(SUFFIXES):
        if len(sources) > 1:
            raise typer.BadParameter(f"{sources[0]} is a whole sweep; leave {sources[1]} out")
        return read_sweep(Path(sources[0]))
    return Sweep(models=tuple(sources))


def _changed(
    wanted: "Sweep",
    swept: Mapping[str, object],
    changes: Mapping[str, Any],
    options: Mapping[str, Any],
) -> "Sweep":
    """Return a sweep with what the options say in place of what the file says."""
    fields = {name: given for name, given in swept.items() if given is not None}
    new = {name: given for name, given in options.items() if given is not None}
    if new.get("time_limit") == math.inf:
        new["time_limit"] = None
    return replace(
        wanted,
        fields={**wanted.fields, **fields},
        options=replace(wanted.options, **new),
        **{name: given for name, given in changes.items() if given is not None},
    )


def _assignments(texts: "list[str] | tuple[()]") -> dict[str, object]:
    """Read ``topology.latency_cycles=1,2`` and its like.

    Raises
    ------
    BadParameter
        If a text is not ``FIELD=VALUES``, or a field comes twice.
    """
    found: dict[str, object] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not (name and equals and values):
            raise typer.BadParameter(f"--set {text}: expected FIELD=VALUES")
        if name in found:
            raise typer.BadParameter(f"--set {name} is given twice")
        found[name.removeprefix("machine.")] = values
    return found


def _line(news: "News") -> str:
    left = "" if news.seconds_left is None else f", {_span(news.seconds_left)} left"
    name = f": {news.name}" if news.name else ""
    return f"{news.step}: {news.done:,} of {news.total:,} rows{left}{name}"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _stem(source: str) -> str:
    return Path(source.split(":")[-1]).stem


def _show(frame: "pd.DataFrame", wanted: "Sweep", folder: Path, *, as_json: bool) -> ExitCode:
    """Print the table, and what it says of a target; return the exit code."""
    from spmilp.sizing.sweep import draw_pareto, swept_field
    from spmilp.sizing.target import MEETS, Target, conclusions

    said: list[str] = []
    if wanted.target is not None:
        said = list(conclusions(frame, swept_field(wanted), Target.of(wanted.target)))
    if wanted.pareto:
        try:
            draw_pareto(frame, wanted, folder)
        except MissingExtraError as error:
            out.print_warning(str(error))
    if as_json:
        out.print_json({"rows": out.records(frame), "conclusions": said})
    else:
        _print(frame, said, folder)
    rejected = frame[frame["status"] == "rejected"]
    for reason in rejected["reason"]:
        out.print_error(f"{reason}. This is a defect of spmilp, please report it")
    if len(rejected):
        return ExitCode.INTERNAL
    if frame["objective"].isna().all():
        out.print_error(f"no row has a plan; the first: {frame['reason'].iloc[0]}")
        return ExitCode.LIMIT_WITHOUT_PLAN
    if wanted.target is not None and MEETS not in set(frame["verdict"]):
        return ExitCode.LIMIT_WITHOUT_PLAN
    return ExitCode.OK


def _print(frame: "pd.DataFrame", said: list[str], folder: Path) -> None:
    """Print the columns in which rows differ, and the figures of each."""
    same = list(frame.columns[: frame.columns.get_loc("status")])
    differing = [name for name in same if frame[name].nunique(dropna=False) > 1]
    ends = [name for name in ("pareto", "verdict") if name in frame]
    columns = [*(differing or ["model"]), *SHOWN, *ends]
    numbers = {
        columns.index(name) for name in columns if name not in ("model", "machine", "status")
    }
    cells = [[_cell(name, row[name]) for name in columns] for _, row in frame.iterrows()]
    to = out.console()
    names = [name.replace("_", " ") for name in columns]
    to.print(out.table(names, cells, numbers=numbers - {len(columns) - 1} if ends else numbers))
    for sentence in said:
        to.print(sentence, markup=False, soft_wrap=True)
    to.print(f"tables and plans: {folder}", markup=False, soft_wrap=True)


def _cell(name: str, value: Any) -> str:
    import pandas as pd

    if value is None or value is pd.NA or value != value:
        return ""
    if isinstance(value, bool) or str(value) in ("True", "False"):
        return "*" if value else ""
    if name == "gap":
        return amounts.percent(value)
    if name == "spm":
        return amounts.shown_bytes(int(value))
    if name == "seconds":
        return f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
