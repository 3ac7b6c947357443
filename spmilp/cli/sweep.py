"""``spmilp sweep``: networks on machines of many sizes, and the smallest that is good enough."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.interrupts import COMMAND, interrupts_noted
from spmilp.cli.output import progress_line
from spmilp.errors import ExitCode, MissingExtraError
from spmilp.options import with_options

if TYPE_CHECKING:
    import pandas as pd

    from spmilp.runs.rows import News

VALUES = "VALUES"
SUFFIXES = (".yaml", ".yml")
OPTIONS = "dim", "tiles", "objective", "pins", "time_limit", "memory_limit", "gap", "workers"
SHOWN = ("status", "objective", "bound", "gap", "dram_traffic", "peak_spm", "seconds")
PANEL = "What is swept: 1,2,4 is a list, 16k:256k doubles, 16k:256k:16k goes in steps"


@with_options(*OPTIONS, annotation=arguments.of_solve)
def sweep(
    context: typer.Context,
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
    **options: Any,
) -> None:
    """Map networks onto machines of many sizes: every combination is a row of one table.

    Rows are solved side by side, and each is on the disk when it is finished;
    the same command goes on where it was cut off. docs/sweep.md explains it.
    """
    from spmilp.runs.read import read_sweep
    from spmilp.runs.sweep import sweep as swept

    is_file = sources[0].endswith(SUFFIXES)
    if is_file and len(sources) > 1:
        raise typer.BadParameter(f"{sources[0]} is a whole sweep; leave {sources[1]} out")
    wanted: dict[str, Any] = read_sweep(Path(sources[0])) if is_file else {"models": sources}
    fields = {**wanted.get("fields", {}), **_assignments(set_ or ())}
    given = {
        "machines": None if machine is None else arguments.names(machine),
        "spm": spm,
        "dma_channels": dma_channels,
        "dma_rate": dma_rate,
        "dram_rate": dram_rate,
        "solver": None if solver is None else arguments.names(solver),
        "seeds": None if seeds is None else arguments.seeds(seeds),
        "pareto": None if pareto is None else arguments.names(pareto),
        "target": target,
    }
    # The file's go before the defaults of the command line.
    wanted |= {name: options[name] for name in OPTIONS if _is_given(context, name)}
    wanted |= {name: value for name, value in given.items() if value is not None}
    wanted["fields"] = fields
    folder = outdir or Path("out") / f"sweep-{Path(sources[0].split(':')[-1]).stem}"
    COMMAND.state = f"the rows that are finished are in {folder}; the same command goes on"
    with interrupts_noted(), progress_line() as progress:
        frame = swept(
            **wanted,
            folder=folder,
            jobs=jobs,
            scheduler=scheduler,
            again=not resume,
            on_news=lambda news: progress.say(_line(news)),
        )
    raise typer.Exit(_show(frame, wanted, folder, as_json=as_json))


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


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


def _show(
    frame: "pd.DataFrame", wanted: dict[str, Any], folder: Path, *, as_json: bool
) -> ExitCode:
    """Print the table, and what it says of a target; return the exit code."""
    from spmilp.runs.sweep import SHORT_NAMES, draw_pareto, fields_given, swept_field
    from spmilp.runs.target import MEETS, Target, conclusions

    said: list[str] = []
    target = wanted.get("target")
    if target is not None:
        short = {name: wanted.get(name) for name in SHORT_NAMES}
        field = swept_field(fields_given(**short, fields=wanted["fields"]))
        said = list(conclusions(frame, field, Target.of(target)))
    if wanted.get("pareto"):
        try:
            draw_pareto(frame, wanted["pareto"], folder)
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
    if target is not None and MEETS not in set(frame["verdict"]):
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
        return quantities.percent(value)
    if name == "spm":
        return quantities.shown_bytes(int(value))
    if name == "seconds":
        return f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
