"""What ``spmilp solve`` does once its options are read."""

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from spmilp import pipeline
from spmilp.cli.interrupts import Interrupts, interrupts_noted
from spmilp.cli.options import Tiles
from spmilp.cli.progress import ProgressLine, progress_line
from spmilp.cli.solved import Answer, figures_of, print_answer
from spmilp.cli.sources import read_source
from spmilp.errors import ExitCode
from spmilp.problem.documents import collector_paused
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.report.summary import network_name
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.registry import solver_names
from spmilp.tile_selection.search import LEAST_SECONDS, SHARE_OF_TILES, TileSearch
from spmilp.tile_selection.tiled_problem import TiledProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of the command, read; ``None`` where the user said nothing."""

    source: str
    machine: str | None
    dims: Mapping[str, int]
    solver: str
    tiles: Tiles
    objective: Quantity | None
    time_limit: float
    gap: float
    strict_gap: bool
    seed: int
    workers: int
    outdir: Path | None
    write_model: Path | None
    as_json: bool


def run(request: Request) -> ExitCode:
    """Solve, check, write, print; return the exit code."""
    started = time.perf_counter()
    _solver_exists(request.solver)
    with interrupts_noted() as interrupts, progress_line() as progress:
        progress.ends_at(started + request.time_limit)
        source = read_source(
            request.source,
            request.machine,
            request.dims,
            request.objective,
            progress.say,
            _tile_search(request, progress),
        )
        draft = source.draft
        outdir = request.outdir or Path("out") / _folder_name(request.source, draft.problem)
        models, result = _solved(request, draft, progress, started, interrupts)
        interrupts.finishing = True
        progress.ends_at(math.inf)
        progress.say("checking the plan")
        with collector_paused():
            mapped, files = pipeline.judge_and_write(draft.problem, result, outdir)
            answer = Answer(
                mapped=mapped,
                summary=figures_of(mapped),
                roofline=None if interrupts.code is not None else source.roofline(),
                files=(*models, *files),
                solver=request.solver,
                seconds=time.perf_counter() - started,
                interrupted=interrupts.code is not None,
            )
    print_answer(answer, as_json=request.as_json)
    return _exit_code(request, answer, interrupts.code)


def _solved(
    request: Request,
    draft: TiledProblem,
    progress: ProgressLine,
    started: float,
    interrupts: Interrupts,
) -> tuple[tuple[Path, ...], SolverResult]:
    """Write what is to be written before, and solve; who was interrupted takes what there is."""
    known = draft.result() if interrupts.code is not None else None
    if known is not None:
        return (), known
    models: tuple[Path, ...] = ()
    try:
        models = _written_model(request, draft.problem, progress)
        first = draft.plan()
        options = _options(request, progress, started, interrupts.code is not None)
        return models, pipeline.solve_problem(draft.problem, request.solver, options, first)
    except KeyboardInterrupt:
        known = draft.result()
        if known is None:
            raise
        return models, known


def _solver_exists(name: str) -> None:
    """Refuse an unknown solver before the model is read."""
    if name not in solver_names():
        raise typer.BadParameter(f"--solver {name}: there are {', '.join(solver_names())}")


def _written_model(request: Request, problem: Problem, progress: ProgressLine) -> tuple[Path, ...]:
    """Write the problem as a MILP if the user wants that."""
    if request.write_model is None:
        return ()
    from spmilp.solvers.milp.write import write_model

    progress.say(f"writing {request.write_model}")
    write_model(problem, request.write_model)
    return (request.write_model,)


def _tile_search(request: Request, progress: ProgressLine) -> TileSearch | None:
    if request.tiles is Tiles.FIRST:
        return None
    limit = request.time_limit
    return TileSearch(
        seconds=None if math.isinf(limit) else limit * SHARE_OF_TILES,
        on_better=progress.better_tiles,
    )


def _options(
    request: Request, progress: ProgressLine, started: float, interrupted: bool
) -> SolveOptions:
    """Return what is left of the limits; after an interrupt, time for little more than one plan."""
    progress.say("solving")
    left = started + request.time_limit - time.perf_counter()
    limit = LEAST_SECONDS if interrupted else max(left, LEAST_SECONDS)
    return SolveOptions(
        time_limit=None if math.isinf(limit) else limit,
        gap=request.gap,
        seed=request.seed,
        workers=request.workers,
        on_progress=progress.improved,
    )


def _folder_name(source: str, problem: Problem) -> str:
    """Return ``NAME-MACHINE`` from the model's file name, or from the problem's name."""
    name = network_name(problem) if source.endswith(".json") else Path(source.split(":")[-1]).stem
    return f"{_plain(name)}-{_plain(problem.machine.name)}"


def _plain(name: str) -> str:
    """Keep what is safe in a file name; names in files may hold anything."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("._") or "unnamed"


def _exit_code(request: Request, answer: Answer, signal: ExitCode | None) -> ExitCode:
    """Return the code: a defect of ours first, then a signal, then what the solver says."""
    if answer.mapped.violations:
        return ExitCode.INTERNAL
    if signal is not None:
        return signal
    if answer.mapped.result.status is SolveStatus.INFEASIBLE:
        return ExitCode.INFEASIBLE
    if answer.summary is None:
        return ExitCode.LIMIT_WITHOUT_PLAN
    if request.strict_gap and answer.summary.gap > request.gap:
        return ExitCode.GAP_NOT_REACHED
    return ExitCode.OK
