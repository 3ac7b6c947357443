"""``spmilp solve``: from a model or a problem file to a checked plan in a folder, with a log."""

import gc
import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import RenderableType

from spmilp import quantities
from spmilp.cli import output as out
from spmilp.cli.arguments import FIELDS, argument, option, verb
from spmilp.cli.interrupts import interrupts_noted
from spmilp.cli.plans import LOG
from spmilp.errors import ExitCode
from spmilp.options import usual_time_limit

if TYPE_CHECKING:
    from spmilp.problem.problem import Problem
    from spmilp.result import Result
    from spmilp.watch import Stage

SHORTEST = 0.001
"""Seconds of a time limit that is over before anything has begun."""


@verb(
    *FIELDS,
    source=argument("MODEL.onnx|PROBLEM.json..."),
    output=option("-o", metavar="OUTDIR", file_okay=False, show_default="out/NAME-MACHINE"),
    write_model=option(metavar="FILE.mps|FILE.lp", dir_okay=False),
    quiet=option("-q"),
)
def solve(
    context: typer.Context,
    source: list[str],
    machine: str | None = None,
    *,
    strict_gap: bool = False,
    output: Path | None = None,
    write_model: Path | None = None,
    quiet: bool = False,
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
        An ONNX or TensorFlow Lite model, onnx:NAME for a graph of the onnx package
        (onnx:light_resnet50), or a problem file. Several models run together, each as often as its
        rate says.
    strict_gap
        Exit code 6 when the gap of these tiles is above it.
    output
        Folder for problem.json and plan.json.
    write_model
        Write the problem as a MILP as well, before it is solved, for a solver of your own.
    quiet
        No log on stderr.
    """
    from spmilp import pipeline
    from spmilp.files import require_room, write_atomically
    from spmilp.formats import collector_paused
    from spmilp.plan.file import PLAN_FILE, PROBLEM_FILE
    from spmilp.watch import Observer, Stage

    require_room(output or Path("out"))
    started = context.obj or time.perf_counter()
    time_limit = usual_time_limit(given["time_limit"], given["effort"])
    files = list[Path]()
    log = out.SolveLog(started, shows=not (quiet or as_json))
    with collector_paused(), interrupts_noted() as interrupts:

        def on_stage(stage: "Stage") -> None:
            interrupts.finishing |= stage is Stage.CHECKING
            log.stage(f"reading {' '.join(source)}" if stage is Stage.READING else stage)

        def on_problem(problem: "Problem") -> None:
            require_room(output or _folder_for(source, problem), (PROBLEM_FILE, PLAN_FILE))
            if write_model is not None:
                from spmilp.solvers.exact.milp.solver import write_model as write

                write(problem, write_model, period=given["period"])
                files.append(write_model)

        observer = Observer(
            on_stage=on_stage,
            on_problem=on_problem,
            on_log=log.entry,
            on_warning=out.print_warning,
        )
        given["time_limit"] = max(SHORTEST, time_limit - (time.perf_counter() - started))
        result = pipeline.solve(source, machine, observer=observer, **given)
        folder = output or _folder_for(source, result.problem)
        began = time.perf_counter()
        if result.answer.plan is not None:
            files += result.save(folder)
        ended = time.perf_counter()
        result = replace(result, seconds=ended - started)
        log.end(str(result.status), result.log[-1] if result.log else None)
        if result.plan is not None:
            write_atomically(folder / LOG, "".join(f"{line}\n" for line in log.lines))
        if ended - started > time_limit + max(2.0, 0.05 * time_limit):
            out.print_warning(
                f"the time limit of {quantities.time(time_limit)} was exceeded: it took "
                f"{quantities.time(ended - started)}, of which {quantities.time(ended - began)} "
                f"to write the plan and {quantities.time(result.seconds_to_check)} to check it"
            )
        if result.plan is None:
            out.print_error(failure(result, files))
        interrupted = interrupts.code is not None
        if as_json:
            answer = {
                **result.data(),
                "interrupted": interrupted,
                "seconds": round(ended - started, 3),
                "seconds_to_write": round(ended - began, 3),
                "files": [str(file) for file in files],
            }
            out.print_json(answer)
        elif result.plan is not None:
            shown = answer_of(result, files, interrupted=interrupted)
            out.print_answer(None, shown, as_json=False)
        gc.freeze()  # the process ends; nothing is looked for any more
    raise typer.Exit(_exit_code(result, given["gap"] if strict_gap else math.inf, interrupts.code))


def answer_of(
    result: "Result", files: Sequence[Path], *, interrupted: bool
) -> Iterator[RenderableType]:
    """Yield the figures, the use of the cores, and what was written."""
    from spmilp.plan.frames import core_rows

    yield out.styled(result.title(", interrupted" * interrupted))
    rows = result.rows()
    if result.plan is not None:
        shares = [core["utilisation"] for core in core_rows(result.problem, result.plan)]
        least, most = quantities.percent(min(shares)), quantities.percent(max(shares))
        mean = quantities.percent(sum(shares) / len(shares))
        of = "makespan" if result.period is None else "period"
        rows.append(("cores busy", mean, f"of the {of}, from {least} to {most}"))
    yield out.table(("", "", ""), rows, numbers={1})
    machine = result.problem.machine
    if machine.unverified:
        said = quantities.count(len(machine.unverified), "parameter")
        yield f"unverified: {said} of {machine.name}, which spmilp machines lists"
    yield from result.footprint.lines() if result.footprint else ()
    yield from result.lock.lines() if result.lock else ()
    yield from (f"written: {file}" for file in files)


def failure(result: "Result", files: Sequence[Path]) -> str:
    """Say why there is no plan to show."""
    violations = result.violations
    if not violations:
        return f"{result.status}: {result.reason}" if result.answer.reason else result.reason
    kept = f"; the plan is kept in {files[-1]}" if files else ""
    head = (
        f"the checker rejects the plan of the solver {result.solver} "
        f"({quantities.count(len(violations), 'violation')}). This is a defect of spmilp, "
        f"please report it{kept}"
    )
    return "\n".join([head, *(f"  {each.rule}: {each.message}" for each in violations[:10])])


def _folder_for(source: Sequence[str], problem: "Problem") -> Path:
    """Return ``out/NAME-MACHINE`` from the model's file name, or from the problem's name."""
    from spmilp.explaining.text import network_name

    name, is_model = network_name(problem), len(source) == 1 and not source[0].endswith(".json")
    name = Path(source[0].split(":")[-1]).stem if is_model else name
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
