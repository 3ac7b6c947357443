"""``spmilp solve``: from a model or a problem file to a checked plan in a folder, with a log."""

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.interrupts import Interrupts, interrupts_noted, writing
from spmilp.cli.output import LOG, OutputError, ProgressLine, print_warning, progress_line, visible
from spmilp.cli.solve_answer import Answer
from spmilp.errors import ExitCode, FileError
from spmilp.files import write_together
from spmilp.options import with_options
from spmilp.report.search_log import HEADING, LogEntry

if TYPE_CHECKING:
    from spmilp.problem.problem import Problem
    from spmilp.watch import Observer, Stage


JSON_ENDINGS = (".jsonl", ".ndjson")
"""Of log files that are to hold lines of JSON."""


class SolveLog:
    """Sends each line to all who want it, as text or as JSON.

    A line that cannot be written costs the lines behind it, never the search.
    """

    def __init__(self, started: float) -> None:
        self._started = started
        self._targets: list[tuple[bool, Callable[[str], None]]] = []
        self._send_heading = True

    def send_to(self, write: Callable[[str], None], *, is_json: bool) -> None:
        """Add somewhere that lines go to."""
        self._targets.append((is_json, write))

    def stage(self, name: str) -> None:
        """Say which stage begins."""
        seconds = self._seconds()
        self._send(
            f"{seconds:>7.1f}s  {name}",
            {"event": "stage", "seconds": seconds, "stage": name},
        )

    def entry(self, entry: LogEntry) -> None:
        """Show what has become better; times count from the start of the command."""
        timed = replace(entry, seconds=self._seconds())
        self._send(timed.as_row(), timed.as_fields())

    def end(self, status: str, entry: LogEntry | None) -> None:
        """Say how it has ended."""
        seconds = self._seconds()
        known: dict[str, object] = {"incumbent": None, "bound": None, "gap": None}
        if entry is not None:
            known = {"incumbent": entry.incumbent, "bound": entry.bound, "gap": entry.gap}
        fields: dict[str, object] = {"event": "end", "seconds": seconds, "status": status}
        self._send(f"{seconds:>7.1f}s  {status}", fields | known)

    def _seconds(self) -> float:
        return round(perf_counter() - self._started, 3)

    def _send(self, text: str, fields: dict[str, object]) -> None:
        if self._send_heading:
            self._send_heading = False
            text = f"{HEADING}\n{text}"
        for target in list(self._targets):
            is_json, write = target
            try:
                write(json.dumps(fields) if is_json else visible(text))
            except (OSError, OutputError, ValueError) as error:
                self._targets.remove(target)
                if not isinstance(error, BrokenPipeError | OutputError):
                    print_warning(f"the log goes on no longer: {error}")


@contextmanager
def log_file(log: SolveLog, file: Path | None) -> Iterator[None]:
    """Send the log to a file, too, for as long as the block runs.

    Raises
    ------
    FileError
        If the file cannot be made.
    """
    if file is None:
        yield
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        opened = file.open("w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise FileError(f"{file}: the log cannot be written: {error.strerror}") from error
    log.send_to(line_writer(opened), is_json=file.suffix in JSON_ENDINGS)
    try:
        yield
    finally:
        with suppress(OSError):
            opened.close()


def keep_beside_plan(lines: Sequence[str], folder: Path) -> None:
    """Write the lines of a log beside a plan, where reports and plots look for them.

    Times are those of this run: nothing else in the folder tells one run from another. A plan is
    worth more than its log, so that one which cannot be written is a warning.
    """
    try:
        write_together(folder, {LOG: "".join(f"{line}\n" for line in lines)})
    except FileError as error:
        print_warning(f"the log is not kept: {error}")


def line_writer(stream: TextIO) -> Callable[[str], None]:
    """Return what writes lines to a stream at once."""

    def write(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return write


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
    strict_gap: Annotated[
        bool,
        typer.Option("--strict-gap", help="Exit code 6 when the gap of these tiles is above it."),
    ] = False,
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
    from spmilp.formats import collector_paused
    from spmilp.result import write_outputs

    if as_json and json_lines:
        raise typer.BadParameter("--json and --json-lines: one of them, please")
    require_room(outdir or Path("out"))
    started, time_limit = context.obj or time.perf_counter(), given["time_limit"]
    log, kept = SolveLog(started), list[str]()
    log.send_to(kept.append, is_json=True)
    with ExitStack() as stack:
        interrupts = stack.enter_context(interrupts_noted())
        memory_limit = given.pop("memory_limit")
        stack.enter_context(watch.memory_watched(memory_limit, interrupts))
        progress = stack.enter_context(progress_line())
        stack.enter_context(log_file(log, logged))
        shows_log = not (quiet or as_json or json_lines)
        if json_lines:
            log.send_to(line_writer(sys.stdout), is_json=True)
        elif shows_log:
            log.send_to(progress.print_above, is_json=False)
        progress.ends_at(started + time_limit)
        following = _Following(
            source=source,
            outdir=outdir,
            model=write_model,
            log=log,
            progress=progress,
            interrupts=interrupts,
            shows_progress=not shows_log,
        )
        with collector_paused():
            left = max(SHORTEST, time_limit - (time.perf_counter() - started))
            result = pipeline.solve(
                source, machine, observer=following.observer(), **given | {"time_limit": left}
            )
            folder, began = following.folder_for(result.problem), time.perf_counter()
            with writing(folder):
                files = write_outputs(result, folder)
            ended = time.perf_counter()
            answer = Answer(
                result=replace(result, seconds=ended - started),
                files=(*following.written, *files),
                seconds_to_write=ended - began,
                interrupted=interrupts.code is not None,
                has_time=pipeline.has_time_for_roofline(result.origin, time_limit),
            )
        log.end(str(result.status), result.log[-1] if result.log else None)
        if result.plan is not None and not result.violations:
            keep_beside_plan(kept, folder)
        if interrupts.memory is not None:
            out.print_warning(interrupts.why)
        if answer.seconds > time_limit + max(2.0, 0.05 * time_limit):
            out.print_warning(answer.why_late(time_limit))
        if result.summary is None:
            out.print_error(answer.failure())
        if json_lines:
            out.print_json_line({"event": "answer", **answer.data()})
        elif as_json:
            out.print_json(answer.data())
        elif result.summary is not None:
            answer.print_tables(out.console(), result.summary)
    raise typer.Exit(_exit_code(answer, given["gap"] if strict_gap else math.inf, interrupts.code))


@dataclass(frozen=True, kw_only=True)
class _Following:
    """What the command does as a solve gets on: the line of progress, the log, the model's file.

    Parameters
    ----------
    model
        Where the problem is to be written as a MILP.
    written
        Files that are written so far.
    """

    source: str
    outdir: Path | None
    model: Path | None
    log: SolveLog
    progress: ProgressLine
    interrupts: Interrupts
    shows_progress: bool
    written: list[Path] = field(default_factory=list)

    def observer(self) -> "Observer":
        from spmilp.watch import Observer

        return Observer(
            on_stage=self._stage,
            on_tiles=self.progress.better_tiles,
            on_problem=self._problem,
            on_progress=self.progress.improved if self.shows_progress else None,
            on_log=self._entry,
            on_warning=out.print_warning,
        )

    def folder_for(self, problem: "Problem") -> Path:
        return self.outdir or Path("out") / _folder_name(self.source, problem)

    def _stage(self, stage: "Stage") -> None:
        from spmilp.watch import Stage

        if stage is Stage.CHECKING:
            self.interrupts.finishing = True
            self.progress.ends_at(math.inf)
        said = f"reading {self.source}" if stage is Stage.READING else stage
        self.log.stage(said)
        self.progress.say(said)

    def _entry(self, entry: "LogEntry") -> None:
        self.interrupts.has_plan |= entry.incumbent is not None
        self.log.entry(entry)

    def _problem(self, problem: "Problem") -> None:
        from spmilp.plan.file import room_for_pair

        room_for_pair(problem, self.folder_for(problem))
        if self.model is None:
            return
        from spmilp.solvers.exact.milp.solver import write_model

        self.progress.say(f"writing {self.model}")
        with writing(self.model):
            write_model(problem, self.model)
        self.written.append(self.model)


def _folder_name(source: str, problem: "Problem") -> str:
    """Return ``NAME-MACHINE`` from the model's file name, or from the problem's name."""
    from spmilp.explaining.text import network_name

    name = network_name(problem) if source.endswith(".json") else Path(source.split(":")[-1]).stem
    # Names in files may hold anything.
    plain = (
        re.sub(r"[^A-Za-z0-9_.]+", "_", each).strip("._") or "unnamed"
        for each in (name, problem.machine.name)
    )
    return "-".join(plain)


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
