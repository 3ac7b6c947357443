"""``spmilp solve``: from a model or a problem file to a checked plan in a folder."""

import math
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.interrupts import interrupts_noted, writing
from spmilp.cli.progress import progress_line
from spmilp.cli.solve_answer import Answer, as_object, late, show
from spmilp.cli.solve_log import SolveLog, keep_beside_plan, log_file, send_to_output
from spmilp.errors import ExitCode
from spmilp.options import with_options

if TYPE_CHECKING:
    from spmilp.problem.problem import Problem
    from spmilp.solvers.base import Progress

SHORTEST = 0.001
"""Seconds of a time limit that is over before anything has begun."""


@with_options(annotation=arguments.of_solve)
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
    *,
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
    logged: Annotated[
        Path | None,
        typer.Option(
            "--log-file",
            metavar="FILE.log|FILE.jsonl",
            dir_okay=False,
            help="Write the log there, too: a line for each better plan or bound; .jsonl: as JSON.",
            show_default="none",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No log on stderr.")] = False,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json-lines", help="Print the log as lines of JSON, and the answer as the last one."
        ),
    ] = False,
    strict_gap: Annotated[
        bool,
        typer.Option("--strict-gap", help="Exit code 6 when that gap is above --gap."),
    ] = False,
    as_json: arguments.AsJson = False,
    **given: Any,
) -> None:
    """Map a network onto a machine: load, lower, solve, check, write.

    Writes OUTDIR/problem.json and OUTDIR/plan.json once the checker has
    accepted the plan. Ctrl-C ends the search; the best plan so far is checked
    and written.
    """
    from spmilp import pipeline, watch
    from spmilp.files import require_room
    from spmilp.plan.write import room_for_pair
    from spmilp.problem.documents import collector_paused
    from spmilp.result import write_outputs

    if as_json and json_lines:
        raise typer.BadParameter("--json and --json-lines: one of them, please")
    require_room(outdir or Path("out"))
    started, time_limit = context.obj or time.perf_counter(), given["time_limit"]
    log, kept = SolveLog(started), list[str]()
    log.send_to(kept.append, is_json=True)
    models: list[Path] = []
    with (
        interrupts_noted() as interrupts,
        watch.memory_watched(given.pop("memory_limit"), interrupts),
        progress_line() as progress,
        log_file(log, logged),
    ):
        shows_log = not (quiet or as_json or json_lines)
        if json_lines:
            send_to_output(log)
        elif shows_log:
            log.send_to(progress.print_above, is_json=False)
        progress.ends_at(started + time_limit)

        def on_stage(stage: watch.Stage) -> None:
            if stage is watch.Stage.CHECKING:
                interrupts.finishing = True
                progress.ends_at(math.inf)
            said = f"reading {source}" if stage is watch.Stage.READING else stage
            log.stage(said)
            progress.say(said)

        def folder_for(problem: "Problem") -> Path:
            return outdir or Path("out") / _folder_name(source, problem)

        def on_tiles(value: int, tasks: int) -> None:
            interrupts.has_plan = True
            progress.better_tiles(value, tasks)

        def on_progress(news: "Progress") -> None:
            interrupts.has_plan = interrupts.has_plan or news.incumbent is not None
            if not shows_log:
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
                **given
                | {"time_limit": max(SHORTEST, time_limit - (time.perf_counter() - started))},
                observer=watch.Observer(
                    on_stage=on_stage,
                    on_tiles=on_tiles,
                    on_problem=on_problem,
                    on_progress=on_progress,
                    on_log=log.entry,
                    on_warning=out.print_warning,
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
        log.end(str(result.status), result.log[-1] if result.log else None)
        if result.plan is not None and not result.violations:
            keep_beside_plan(kept, folder)
        if interrupts.memory is not None:
            out.print_warning(interrupts.why)
        if answer.seconds > time_limit + max(2.0, 0.05 * time_limit):
            out.print_warning(late(answer, time_limit))
        if json_lines:
            out.print_json_line({"event": "answer", **as_object(answer, result.summary)})
        show(answer, as_json=as_json, is_shown=json_lines)
    raise typer.Exit(_exit_code(answer, given["gap"] if strict_gap else math.inf, interrupts.code))


def _write_model(problem: "Problem", file: Path) -> None:
    from spmilp.solvers.milp.solver import write_model

    write_model(problem, file)


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
