"""``spmilp solve``: from a model or a problem file to a checked plan in a folder."""

import math
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spmilp import amounts
from spmilp.cli import arguments
from spmilp.cli import options as read
from spmilp.cli import output as out
from spmilp.cli.interrupts import interrupts_noted, writing
from spmilp.cli.progress import progress_line
from spmilp.errors import ExitCode
from spmilp.memory_limit import memory_watched
from spmilp.tile_selection.mode import Tiles

if TYPE_CHECKING:
    from spmilp.problem.problem import Problem
    from spmilp.report.summary import Summary
    from spmilp.result import Result
    from spmilp.solvers.base import Progress

SHORTEST = 0.001
"""Seconds of a time limit that is over before anything has begun."""

MOST_CORES = 20
"""Cores that get a row of their own; of more, the table shows the spread."""


def solve(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL.onnx|PROBLEM.json",
            help="An ONNX model, onnx:NAME for a graph of the onnx package (onnx:light_resnet50), "
            "or a problem file.",
            show_default=False,
        ),
    ],
    machine: arguments.Machine = None,
    dim: arguments.Dim = None,
    solver: Annotated[str, typer.Option(help="Which solver.")] = "auto",
    tiles: Annotated[
        Tiles | None,
        typer.Option(
            help="Tile sizes by a first estimate, or by a search that takes up to 40% of the time.",
            show_default="search with --solver auto, else first",
        ),
    ] = None,
    objective: arguments.Objective = None,
    time_limit: arguments.TimeLimit = 60.0,
    memory_limit: arguments.MemoryLimit = None,
    gap: arguments.Gap = 0.0,
    strict_gap: Annotated[
        bool, typer.Option("--strict-gap", help="Exit code 6 when the gap is above --gap.")
    ] = False,
    seed: arguments.Seed = 0,
    workers: arguments.Workers = 1,
    outdir: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUTDIR",
            file_okay=False,
            help="Folder for problem.json and plan.json.",
            show_default="out/NAME-MACHINE",
        ),
    ] = None,
    write_model: Annotated[
        Path | None,
        typer.Option(
            "--write-model",
            metavar="FILE.mps|FILE.lp",
            dir_okay=False,
            help="Write the problem as a MILP as well, before it is solved, for a solver of your "
            "own.",
        ),
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Map a network onto a machine: load, lower, solve, check, write.

    Writes OUTDIR/problem.json and OUTDIR/plan.json once the checker has
    accepted the plan. Ctrl-C ends the search; the best plan so far is checked
    and written.
    """
    from spmilp import pipeline
    from spmilp.files import require_room
    from spmilp.plan.write import room_for_pair
    from spmilp.problem.documents import collector_paused
    from spmilp.result import write_outputs

    require_room(outdir or Path("out"))
    started = context.obj or time.perf_counter()
    models: list[Path] = []
    with (
        interrupts_noted() as interrupts,
        memory_watched(memory_limit, interrupts),
        progress_line() as progress,
    ):
        progress.ends_at(started + time_limit)

        def on_stage(stage: pipeline.Stage) -> None:
            if stage is pipeline.Stage.CHECKING:
                interrupts.finishing = True
                progress.ends_at(math.inf)
            progress.say(f"reading {source}" if stage is pipeline.Stage.READING else stage)

        def folder_for(problem: "Problem") -> Path:
            return outdir or Path("out") / _folder_name(source, problem)

        def on_tiles(value: int, tasks: int) -> None:
            interrupts.has_plan = True
            progress.better_tiles(value, tasks)

        def on_progress(news: "Progress") -> None:
            interrupts.has_plan = interrupts.has_plan or news.incumbent is not None
            progress.improved(news)

        def on_problem(problem: "Problem") -> None:
            room_for_pair(problem, folder_for(problem))
            if write_model is not None:
                progress.say(f"writing {write_model}")
                with writing(write_model):
                    _write_model(problem, write_model)
                models.append(write_model)

        with collector_paused():
            result = pipeline.solve(
                source,
                machine,
                dim=read.dimensions(dim or ()),
                solver=solver,
                tiles=tiles,
                objective=objective,
                time_limit=max(SHORTEST, time_limit - (time.perf_counter() - started)),
                gap=gap,
                seed=seed,
                workers=workers,
                observer=pipeline.Observer(
                    on_stage=on_stage,
                    on_tiles=on_tiles,
                    on_problem=on_problem,
                    on_progress=on_progress,
                ),
            )
            folder, began = folder_for(result.problem), time.perf_counter()
            with writing(folder):
                files = write_outputs(result, folder)
            answer = Answer(
                result=result,
                files=(*models, *files),
                seconds_to_write=time.perf_counter() - began,
                seconds=time.perf_counter() - started,
                interrupted=interrupts.code is not None,
                shows_roofline=pipeline.has_time_for_roofline(result.origin, time_limit),
            )
        if interrupts.memory is not None:
            out.print_warning(interrupts.why)
        if answer.seconds > time_limit + max(2.0, 0.05 * time_limit):
            out.print_warning(_late(answer, time_limit))
        _show(answer, as_json=as_json)
    raise typer.Exit(_exit_code(answer, gap if strict_gap else math.inf, interrupts.code))


def _write_model(problem: "Problem", file: Path) -> None:
    from spmilp.solvers.milp.solver import write_model

    write_model(problem, file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome of the command.

    Parameters
    ----------
    files
        What was written.
    seconds, seconds_to_write
        Wall time of the command, and of that what writing the plan took.
    shows_roofline
        There is time to compute it.
    """

    result: "Result"
    files: tuple[Path, ...]
    seconds: float
    seconds_to_write: float
    interrupted: bool
    shows_roofline: bool


def _folder_name(source: str, problem: "Problem") -> str:
    """Return ``NAME-MACHINE`` from the model's file name, or from the problem's name."""
    from spmilp.report.summary import network_name

    name = network_name(problem) if source.endswith(".json") else Path(source.split(":")[-1]).stem
    return f"{_plain(name)}-{_plain(problem.machine.name)}"


def _plain(name: str) -> str:
    """Keep what is safe in a file name; names in files may hold anything."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("._") or "unnamed"


def _exit_code(answer: Answer, wanted_gap: float, signal: ExitCode | None) -> ExitCode:
    """Return the code: a defect of ours first, then a signal, then what the solver says."""
    from spmilp.solvers.base import SolveStatus

    result = answer.result
    if result.violations:
        return ExitCode.INTERNAL
    if signal is not None and (signal is not ExitCode.LIMIT_WITHOUT_PLAN or result.plan is None):
        return signal
    if result.status is SolveStatus.INFEASIBLE:
        return ExitCode.INFEASIBLE
    if result.gap is None:
        return ExitCode.LIMIT_WITHOUT_PLAN
    if result.gap > wanted_gap:
        return ExitCode.GAP_NOT_REACHED
    return ExitCode.OK


def _show(answer: Answer, *, as_json: bool) -> None:
    """Print the answer on stdout, and what is wrong on stderr."""
    summary = answer.result.summary
    if summary is None:
        out.print_error(_failure(answer))
    if as_json:
        out.print_json(_as_object(answer, summary))
    elif summary is not None:
        _print_tables(out.console(), answer, summary)


def _late(answer: Answer, time_limit: float) -> str:
    """Say by how much the limit was exceeded, and what for."""
    return (
        f"the time limit of {amounts.time(time_limit)} was exceeded: it took "
        f"{amounts.time(answer.seconds)}, of which {amounts.time(answer.seconds_to_write)} "
        f"to write the plan and {amounts.time(answer.result.seconds_to_check)} to check it"
    )


def _failure(answer: Answer) -> str:
    """Say why there is no plan to show."""
    result, violations = answer.result, answer.result.violations
    if violations:
        lines = [f"  {violation.rule}: {violation.message}" for violation in violations[:10]]
        more = [f"  and {len(violations) - 10} more"] if len(violations) > 10 else []
        kept = f"; the plan is kept in {answer.files[-1]}" if answer.files else ""
        head = (
            f"the checker rejects the plan of the solver {result.solver} "
            f"({amounts.count(len(violations), 'violation')}). This is a defect of spmilp, please "
            f"report it{kept}"
        )
        return "\n".join([head, *lines, *more])
    if result.answer.reason:
        return f"{result.status}: {result.reason}"
    return result.reason


def _as_object(answer: Answer, summary: "Summary | None") -> dict[str, object]:
    """Return the answer for ``--json``; what there is not is null."""
    from spmilp.report.summary import Summary, network_name

    result = answer.result
    figures = asdict(summary) if summary is not None else dict.fromkeys(Summary.__slots__)
    roofline = _roofline(answer)
    names = {
        "network": network_name(result.problem),
        "machine": result.problem.machine.name,
        "quantity": str(result.problem.objective.first),
        "bound": result.bound,
        "bound_source": result.bound_source,
        "roofline": None if roofline is None else roofline.cycles,
        "unverified": list(result.problem.machine.unverified),
    }
    how = {
        "status": str(result.status),
        "reason": result.answer.reason or None,
        "interrupted": answer.interrupted,
        "solver": result.solver,
        "seconds": round(answer.seconds, 3),
        "seconds_to_check": round(result.seconds_to_check, 3),
        "seconds_to_write": round(answer.seconds_to_write, 3),
        "checked": summary is not None,
        "violations": [
            {"rule": found.rule, "objects": list(found.objects), "message": found.message}
            for found in result.violations
        ],
        "files": [str(file) for file in answer.files],
    }
    return figures | names | how


def _roofline(answer: Answer) -> Any:
    """Return the roofline; after an interrupt nobody wants to wait for it."""
    if answer.interrupted or not answer.shows_roofline:
        return None
    return answer.result.roofline


def _print_tables(to: Console, answer: Answer, summary: "Summary") -> None:
    from spmilp.report import answer_table

    result = answer.result
    how = ", interrupted" if answer.interrupted else ""
    to.print(answer_table.title(result.problem, result.status, True, how), markup=False)
    rows = answer_table.rows(summary, _roofline(answer), result.solver, answer.seconds)
    to.print(out.table(("", "", ""), rows, numbers={1}, show_headings=False))
    to.print()
    to.print(_cores(summary))
    if summary.unverified:
        to.print(f"[yellow]unverified:[/] {escape(_unverified(summary))}", soft_wrap=True)
    for file in answer.files:
        to.print(f"written: {escape(str(file))}", soft_wrap=True)


def _unverified(summary: "Summary") -> str:
    """Return one line that names the parameters of the machine that no source confirms."""
    from spmilp.machine.read import list_presets

    names = summary.unverified
    count = amounts.count(len(names), "machine parameter")
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = f"; spmilp machines {summary.machine} lists them" * (summary.machine in list_presets())
    return f"{count} ({', '.join(names[:3])}{more}){shown}"


def _cores(summary: "Summary") -> Table:
    """Return a row per core, or the spread over them when they are many."""
    if len(summary.cores) <= MOST_CORES:
        return out.table(
            ("core", "tasks", "busy cycles", "utilisation"),
            [
                (core.core, f"{core.tasks:,}", f"{core.busy:,}", amounts.percent(core.utilisation))
                for core in summary.cores
            ],
            numbers={1, 2, 3},
        )
    shares = sorted(core.utilisation for core in summary.cores)
    spread = (shares[0], sum(shares) / len(shares), shares[-1])
    busy = f"{sum(1 for core in summary.cores if core.tasks)} of {len(shares)}"
    return out.table(
        ("cores in use", "utilisation: least", "mean", "most"),
        [(busy, *(amounts.percent(share) for share in spread))],
        numbers={1, 2, 3},
    )
