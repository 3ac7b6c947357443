"""``spmilp compare`` and ``spmilp sweep``: many solves, as one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import RenderableType
from rich.table import Table

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.arguments import argument, option, verb
from spmilp.cli.interrupts import COMMAND, interrupts_noted, writing
from spmilp.errors import ExitCode, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

    from spmilp.runs.sweep import News

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


@verb(
    *("dim", "objective", "time_limit", "gap", "seed", "workers"),
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
    from spmilp.watch import Observer

    if output is not None:
        require_room(output.parent, [output.name])
    with interrupts_noted() as interrupts, out.progress_line() as progress:
        found = compared(
            sources,
            machine,
            solvers=arguments.names(solvers),
            observer=Observer(on_stage=progress.say, on_progress=progress.improved),
            on_start=lambda instance, solver: progress.say(f"{instance}: {solver}"),
            **given,
        )
    if output is not None:
        with writing(output):
            write_atomically(output, csv_of(found.runs))
    runs, summary = out.records(found.runs), out.records(found.summary)
    tables: list[RenderableType] = [_table(runs, RUN_COLUMNS, keys=2)]
    tables += ["", _table(summary, SUMMARY_COLUMNS, keys=1)]
    if output is not None:
        tables.append(f"written: {output}")
    out.print_answer({"runs": runs, "summary": summary}, tables, as_json=as_json)
    for defect in found.defects:
        out.print_error(f"{defect}. This is a defect of spmilp, please report it")
    if not found.is_sound:
        raise typer.Exit(ExitCode.INTERNAL)
    raise typer.Exit(interrupts.code or ExitCode.OK)


def _table(
    records: list[dict[str, object]], columns: dict[str, tuple[str, str]], *, keys: int
) -> out.Stacked:
    """Return the named columns under their headings; what is missing is a dash."""
    rows = [
        [
            "–" if row[name] is None else format(row[name], form)
            for name, (_, form) in columns.items()
        ]
        for row in records
    ]
    numbers = {at for at, (_, form) in enumerate(columns.values()) if form != TEXT}
    return out.Stacked([heading for heading, _ in columns.values()], rows, numbers, keys)


OPTIONS = "dim", "tiles", "objective", "pins", "time_limit", "gap", "workers"
SHOWN = ("status", "objective", "bound", "gap", "dram_traffic", "peak_spm", "seconds")
SWEPT = {
    "metavar": "VALUES",
    "rich_help_panel": (
        "What is swept: 1,2,4 is a list, 16k:256k doubles, 16k:256k:16k goes in steps"
    ),
}


@verb(
    *OPTIONS,
    sources=argument("SWEEP.yaml|MODEL.onnx..."),
    machine=option("-m", metavar="A,B,..."),
    spm=option(**SWEPT),
    dma_channels=option(**SWEPT),
    dma_rate=option(**SWEPT),
    dram_rate=option(**SWEPT),
    fields=option(name="--set", **SWEPT | {"metavar": "FIELD=VALUES"}),
    solver=option(metavar="A,B,...", show_default="auto"),
    seeds=option(metavar="N,N,...", show_default="0"),
    jobs=option(min=1, show_default="as many as it has processors for"),
    scheduler=option(metavar="ADDRESS"),
    pareto=option(metavar="A,B,..."),
    target=option(metavar="QUANTITY=VALUE"),
    output=option("-o", metavar="OUTDIR", file_okay=False, show_default="out/sweep-NAME"),
    resume=option(name="--resume/--again"),
)
def sweep(
    context: typer.Context,
    sources: list[str],
    machine: str | None = None,
    spm: str | None = None,
    dma_channels: str | None = None,
    dma_rate: str | None = None,
    dram_rate: str | None = None,
    fields: list[str] | None = None,
    solver: str | None = None,
    seeds: str | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    pareto: str | None = None,
    target: str | None = None,
    output: Path | None = None,
    resume: bool = True,
    as_json: bool = False,
    **options: Any,
) -> None:
    """Map networks onto machines of many sizes: every combination is a row of one table.

    Rows are solved side by side, and each is on the disk when it is finished;
    the same command goes on where it was cut off. docs/sweep.md explains it.

    Parameters
    ----------
    sources
        A file that describes a sweep, or ONNX models (onnx:NAME for graphs of the onnx package).
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
    solver
        Solvers, as for solve.
    seeds
        Seeds.
    jobs
        Rows at one time on this computer; 1 needs no Dask.
    scheduler
        Use the workers of a Dask scheduler: tcp://HOST:8786.
    pareto
        Mark the rows that no other is as good as in all of these and better in one: makespan,
        traffic, energy, spm, or another column.
    target
        Find the smallest value of the one field that is swept for which a plan has at most this:
        makespan=6000.
    output
        Folder for rows, plans, sweep.csv and sweep.parquet.
    resume
        Leave out what the folder has, or solve it again.
    """
    from spmilp.machine.read import SUFFIXES
    from spmilp.runs.read import read_sweep
    from spmilp.runs.sweep import draw_pareto
    from spmilp.runs.sweep import sweep as swept

    is_file = sources[0].endswith(SUFFIXES)
    if is_file and len(sources) > 1:
        raise typer.BadParameter(f"{sources[0]} is a whole sweep; leave {sources[1]} out")
    wanted: dict[str, Any] = read_sweep(Path(sources[0])) if is_file else {"models": sources}
    own_fields = {**wanted.get("fields", {}), **_assignments(fields or [])}
    given = {
        "machines": None if machine is None else arguments.names(machine),
        "spm": spm,
        "dma_channels": dma_channels,
        "dma_rate": dma_rate,
        "dram_rate": dram_rate,
        "solver": None if solver is None else arguments.names(solver),
        "seeds": None if seeds is None else arguments.numbers(seeds),
        "pareto": None if pareto is None else arguments.names(pareto),
        "target": target,
    }
    # The file's go before the defaults of the command line.
    wanted |= {name: options[name] for name in OPTIONS if _is_given(context, name)}
    wanted |= {name: value for name, value in given.items() if value is not None}
    folder = output or Path("out") / f"sweep-{Path(sources[0].split(':')[-1]).stem}"
    COMMAND.state = f"the rows that are finished are in {folder}; the same command goes on"
    with interrupts_noted(), out.progress_line() as progress:
        frame = swept(
            **{**wanted, "fields": own_fields},
            folder=folder,
            jobs=jobs,
            scheduler=scheduler,
            again=not resume,
            on_news=lambda news: progress.say(_line(news)),
        )
    if wanted.get("pareto"):
        try:
            draw_pareto(frame, wanted["pareto"], folder)
        except MissingExtraError as error:
            out.print_warning(str(error))
    said: list[str] = frame.attrs.get("conclusions", [])
    shown: list[RenderableType] = [_swept_table(frame)]
    shown += [*said, f"tables and plans: {folder}"]
    data = {"rows": out.records(frame), "conclusions": said}
    out.print_answer(data, shown, as_json=as_json)
    raise typer.Exit(_exit_code(frame))


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _assignments(texts: list[str]) -> dict[str, object]:
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
    left = news.seconds_left
    if left is None:
        span = ""
    elif left < 120:
        span = f", {left:.0f} s left"
    else:
        span = f", {left / 60:.0f} min left" if left < 7200 else f", {left / 3600:.1f} h left"
    name = f": {news.name}" if news.name else ""
    return f"{news.step}: {news.done:,} of {news.total:,} rows{span}{name}"


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


def _swept_table(frame: "pd.DataFrame") -> Table:
    """Return the columns in which rows differ, and the figures of each."""
    same = list(frame.columns[: frame.columns.get_loc("status")])
    differing = [name for name in same if frame[name].nunique(dropna=False) > 1]
    ends = [name for name in ("pareto", "verdict") if name in frame]
    columns = [*(differing or ["model"]), *SHOWN, *ends]
    texts = {"model", "machine", "status", *ends[-1:]}
    numbers = {at for at, name in enumerate(columns) if name not in texts}
    cells = [[_cell(name, row[name]) for name in columns] for _, row in frame.iterrows()]
    return out.table([name.replace("_", " ") for name in columns], cells, numbers=numbers)


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
