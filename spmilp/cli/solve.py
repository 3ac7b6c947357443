"""``spmilp solve``: from a model or a problem file to a checked plan in a folder, with a log."""

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer
from rich.console import RenderableType
from rich.table import Table

from spmilp import quantities
from spmilp.cli import output as out
from spmilp.cli.arguments import argument, option, verb
from spmilp.cli.interrupts import interrupts_noted, writing
from spmilp.cli.output import OutputError, print_warning, visible
from spmilp.cli.plans import LOG
from spmilp.errors import ExitCode, FileError
from spmilp.files import write_together

if TYPE_CHECKING:
    from spmilp.machine.machine import Machine
    from spmilp.problem.problem import Problem
    from spmilp.report.search_log import LogEntry
    from spmilp.result import Result
    from spmilp.watch import Stage

JSON_ENDINGS = (".jsonl", ".ndjson")
"""Endings of log files that are to hold lines of JSON."""

SHORTEST = 0.001
"""Seconds of a time limit that is over before anything has begun."""

MOST_CORES = 20
"""Cores that get a row of their own; of more, the table shows the spread."""


@verb(
    every_option=True,
    source=argument("MODEL.onnx|PROBLEM.json"),
    output=option("-o", metavar="OUTDIR", file_okay=False, show_default="out/NAME-MACHINE"),
    write_model=option(metavar="FILE.mps|FILE.lp", dir_okay=False),
    log_file=option(metavar="FILE.log|FILE.jsonl", dir_okay=False, show_default="none"),
    quiet=option("-q"),
)
def solve(
    context: typer.Context,
    source: str,
    machine: str | None = None,
    *,
    strict_gap: bool = False,
    output: Path | None = None,
    write_model: Path | None = None,
    log_file: Path | None = None,
    quiet: bool = False,
    json_lines: bool = False,
    as_json: bool = False,
    **given: Any,
) -> None:
    """Map a network onto a machine: load, lower, solve, check, write.

    Writes OUTDIR/problem.json and OUTDIR/plan.json once the checker has
    accepted the plan. Ctrl-C ends the search; the best plan so far is checked
    and written.

    Parameters
    ----------
    source
        An ONNX model, onnx:NAME for a graph of the onnx package (onnx:light_resnet50), or a problem
        file.
    strict_gap
        Exit code 6 when the gap of these tiles is above it.
    output
        Folder for problem.json and plan.json.
    write_model
        Write the problem as a MILP as well, before it is solved, for a solver of your own.
    log_file
        Write the log there, too: a line for each better plan or bound; .jsonl: as JSON.
    quiet
        No log on stderr.
    json_lines
        Print the log as lines of JSON, and the answer as the last one.
    """
    from spmilp import pipeline
    from spmilp.files import require_room
    from spmilp.formats import collector_paused
    from spmilp.plan.file import room_for_pair
    from spmilp.source import has_time_for_roofline
    from spmilp.watch import Observer, Stage

    if as_json and json_lines:
        raise typer.BadParameter("--json and --json-lines: one of them, please")
    require_room(output or Path("out"))
    started, time_limit = context.obj or time.perf_counter(), given["time_limit"]
    log, kept, files = SolveLog(started), list[str](), list[Path]()
    shows_log = not (quiet or as_json or json_lines)
    log.send_to(kept.append, is_json=True)
    with ExitStack() as stack:
        interrupts = stack.enter_context(interrupts_noted())
        progress = stack.enter_context(out.progress_line())
        stack.enter_context(_written_to(log, log_file))
        if json_lines:
            log.send_to(_line_writer(sys.stdout), is_json=True)
        elif shows_log:
            log.send_to(progress.print_above, is_json=False)
        progress.ends_at(started + time_limit)

        def on_stage(stage: "Stage") -> None:
            if stage is Stage.CHECKING:
                interrupts.finishing = True
                progress.ends_at(math.inf)
            said = f"reading {source}" if stage is Stage.READING else stage
            log.stage(said)
            progress.say(said)

        def on_problem(problem: "Problem") -> None:
            room_for_pair(problem, output or _folder_for(source, problem))
            if write_model is not None:
                from spmilp.solvers.exact.milp.solver import write_model as write

                progress.say(f"writing {write_model}")
                with writing(write_model):
                    write(problem, write_model)
                files.append(write_model)

        observer = Observer(
            on_stage=on_stage,
            on_tiles=progress.better_tiles,
            on_problem=on_problem,
            on_progress=None if shows_log else progress.improved,
            on_log=log.entry,
            on_warning=print_warning,
        )
        with collector_paused():
            left = max(SHORTEST, time_limit - (time.perf_counter() - started))
            given["time_limit"] = left
            result = pipeline.solve(source, machine, observer=observer, **given)
            folder = output or _folder_for(source, result.problem)
            began = time.perf_counter()
            if result.answer.plan is not None:
                with writing(folder):
                    files += result.save(folder)
            ended = time.perf_counter()
        result = replace(result, seconds=ended - started)
        log.end(str(result.status), result.log[-1] if result.log else None)
        if result.plan is not None:
            keep_beside_plan(kept, folder)
        if ended - started > time_limit + max(2.0, 0.05 * time_limit):
            print_warning(
                f"the time limit of {quantities.time(time_limit)} was exceeded: it took "
                f"{quantities.time(ended - started)}, of which {quantities.time(ended - began)} "
                f"to write the plan and {quantities.time(result.seconds_to_check)} to check it"
            )
        if result.plan is None:
            out.print_error(failure(result, files))
        interrupted = interrupts.code is not None
        # After an interrupt nobody wants to wait.
        more = not interrupted and has_time_for_roofline(result.origin, time_limit)
        if as_json or json_lines:
            answer = {
                **result.data(any_tiles=more),
                "interrupted": interrupted,
                "seconds": round(ended - started, 3),
                "seconds_to_write": round(ended - began, 3),
                "files": [str(file) for file in files],
            }
            if json_lines:
                out.print_json_line({"event": "answer", **answer})
            else:
                out.print_json(answer)
        elif result.plan is not None:
            shown = answer_of(result, files, more=more, interrupted=interrupted)
            out.print_answer(None, shown, as_json=False)
    raise typer.Exit(_exit_code(result, given["gap"] if strict_gap else math.inf, interrupts.code))


def answer_of(
    result: "Result", files: Sequence[Path], *, more: bool, interrupted: bool
) -> Iterator[RenderableType]:
    """Yield the figures, the use of the cores, and what was written.

    Parameters
    ----------
    more
        Whether there is time for what no tiling can be below, and for the footprint.
    """
    from spmilp.plan.frames import core_rows

    yield out.styled(result.title(", interrupted" * interrupted))
    rows = result.rows(any_tiles=more)
    yield out.table(("", "", ""), rows, numbers={1}, show_headings=False)
    yield ""
    if result.plan is not None:
        yield _cores(core_rows(result.problem, result.plan))
    if result.problem.machine.unverified:
        yield _unverified(result.problem.machine)
    yield from result.footprint.lines() if more and result.footprint else ()
    yield from result.lock.lines() if result.lock else ()
    yield from (f"written: {file}" for file in files)


def failure(result: "Result", files: Sequence[Path]) -> str:
    """Say why there is no plan to show."""
    violations = result.violations
    if violations:
        lines = [f"  {violation.rule}: {violation.message}" for violation in violations[:10]]
        more = [f"  and {len(violations) - 10} more"] if len(violations) > 10 else []
        kept = f"; the plan is kept in {files[-1]}" if files else ""
        head = (
            f"the checker rejects the plan of the solver {result.solver} "
            f"({quantities.count(len(violations), 'violation')}). This is a defect of spmilp, "
            f"please report it{kept}"
        )
        return "\n".join([head, *lines, *more])
    return f"{result.status}: {result.reason}" if result.answer.reason else result.reason


def _unverified(machine: "Machine") -> RenderableType:
    """Return one line that names the parameters of the machine that no source confirms."""
    from spmilp.machine.read import list_presets

    names = machine.unverified
    count = quantities.count(len(names), "machine parameter")
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = f"; spmilp machines {machine.name} lists them" * (machine.name in list_presets())
    said = f" {count} ({', '.join(names[:3])}{more}){shown}"
    return out.styled("unverified:", "yellow").append(visible(said), style="default")


def _cores(cores: list[dict[str, Any]]) -> Table:
    """Return a row per core, or the spread over them when they are many."""
    percent, shares = quantities.percent, sorted(core["utilisation"] for core in cores)
    if len(shares) <= MOST_CORES:
        rows = [
            (core["name"], f"{core['tasks']:,}", f"{core['busy']:,}", percent(core["utilisation"]))
            for core in cores
        ]
        return out.table(("core", "tasks", "busy cycles", "utilisation"), rows, numbers={1, 2, 3})
    spread = (shares[0], sum(shares) / len(shares), shares[-1])
    busy = f"{sum(1 for core in cores if core['tasks'])} of {len(shares)}"
    headings = ("cores in use", "utilisation: least", "mean", "most")
    return out.table(headings, [(busy, *map(percent, spread))], numbers={1, 2, 3})


def _folder_for(source: str, problem: "Problem") -> Path:
    """Return ``out/NAME-MACHINE`` from the model's file name, or from the problem's name."""
    from spmilp.explaining.text import network_name

    name = network_name(problem) if source.endswith(".json") else Path(source.split(":")[-1]).stem
    # Names in files may hold anything.
    plain = (
        re.sub(r"[^A-Za-z0-9_.]+", "_", each).strip("._") or "unnamed"
        for each in (name, problem.machine.name)
    )
    return Path("out") / "-".join(plain)


def _exit_code(result: "Result", wanted_gap: float, signal: ExitCode | None) -> ExitCode:
    """Return the code: a defect of ours first, then a signal, then what the solver says."""
    from spmilp.solvers.base import SolveStatus

    if result.violations:
        return ExitCode.INTERNAL
    if signal is not None:
        return signal
    if result.status is SolveStatus.INFEASIBLE:
        return ExitCode.INFEASIBLE
    if result.gap is None:
        return ExitCode.LIMIT_WITHOUT_PLAN
    return ExitCode.GAP_NOT_REACHED if result.gap > wanted_gap else ExitCode.OK


class SolveLog:
    """Sends each line to all who want it, as text or as JSON; times count from the command's start.

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
            f"{seconds:>7.1f}s  {name}", {"event": "stage", "seconds": seconds, "stage": name}
        )

    def entry(self, entry: "LogEntry") -> None:
        """Show what has become better."""
        timed = replace(entry, seconds=self._seconds())
        self._send(timed.as_row(), timed.as_fields())

    def end(self, status: str, entry: "LogEntry | None") -> None:
        """Say how it has ended."""
        seconds = self._seconds()
        known = {
            name: None if entry is None else getattr(entry, name)
            for name in ("incumbent", "bound", "gap")
        }
        fields = {"event": "end", "seconds": seconds, "status": status, **known}
        self._send(f"{seconds:>7.1f}s  {status}", fields)

    def _seconds(self) -> float:
        return round(time.perf_counter() - self._started, 3)

    def _send(self, text: str, fields: dict[str, object]) -> None:
        if self._send_heading:
            from spmilp.report.search_log import HEADING

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
def _written_to(log: SolveLog, file: Path | None) -> Iterator[None]:
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
    log.send_to(_line_writer(opened), is_json=file.suffix in JSON_ENDINGS)
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


def _line_writer(stream: TextIO) -> Callable[[str], None]:
    """Return what writes lines to a stream at once."""

    def write(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return write
