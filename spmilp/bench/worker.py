"""The process that makes one problem, or runs one solver on one problem.

``python -m spmilp.bench.worker REQUEST`` reads a pickled request from a file in its parent's
private folder and writes what happens to its standard output, one JSON object per line; what
libraries print goes to standard error. It ends when its standard input does, so that it never
outlives its parent.
"""

import json
import os
import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from spmilp.bench.make import facts_of, load_source, make_problem
from spmilp.bench.memory import is_killed_first, peak_bytes
from spmilp.bench.requests import MakeRequest, RunRequest
from spmilp.bench.suite import SOLVE, ModelOnMachine
from spmilp.bench.warm_up import warm_up
from spmilp.comparison.run import Watched, judged, watch
from spmilp.errors import MissingDataError, SpmilpError
from spmilp.files import write_atomically
from spmilp.pipeline import draft_network, solve_problem
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.problem.write import problem_sha256
from spmilp.solvers.base import Progress, SolveOptions, SolverResult
from spmilp.tile_selection.search import LEAST_SECONDS, SHARE_OF_TILES, TileSearch

Send: TypeAlias = Callable[..., None]


def main() -> None:
    """Do what the request says, and say how it ended."""
    send = _channel()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    is_killed_first()
    try:
        request = pickle.loads(Path(sys.argv[1]).read_bytes())
        if isinstance(request, MakeRequest):
            _make(request, send)
        else:
            _run(request, send)
    except MissingDataError as error:
        send("skipped", reason=str(error))
    except MemoryError:
        send("failed", status="out of memory", reason="an allocation failed")
    except SpmilpError as error:
        send("failed", status="failed", reason=str(error))


def _make(request: MakeRequest, send: Send) -> None:
    problem, ceiling = make_problem(request.source, request.objective, request.data)
    facts, text = facts_of(problem, ceiling)
    request.pickled.write_bytes(pickle.dumps(problem))
    if request.written is not None:
        write_atomically(request.written, text)
    send("made", facts=asdict(facts))


def _run(request: RunRequest, send: Send) -> None:
    warm_up("auto" if request.solver == SOLVE else request.solver)
    if request.solver == SOLVE:
        watched, problem = _solve_like_the_command(request, send)
        sha256 = problem_sha256(problem)
    else:
        loaded: Problem = pickle.loads(request.pickled.read_bytes())
        problem, sha256 = loaded, request.problem_sha256
        send("started")
        watched = watch(
            lambda options: solve_problem(loaded, request.solver, options),
            request.options,
            lambda moment: send("moment", **asdict(moment)),
        )
    peak = peak_bytes()
    send("solved")
    run = judged(request.instance, problem, request.solver, request.options.seed, watched)
    names = ("status", "objective", "bound", "bound_source", "transfers", "busy", "dram_ratio")
    others = ("violations", "seconds", "cpu_seconds", "reason")
    outcome = {name: getattr(run, name) for name in (*names, *others)}
    course = [asdict(moment) for moment in run.course]
    own = {"problem_sha256": sha256, "tasks": len(problem.tasks)}
    send("ended", own=own, peak_bytes=peak, course=course, **outcome)


def _solve_like_the_command(request: RunRequest, send: Send) -> tuple[Watched, Problem]:
    """Map a network within one limit, as ``spmilp solve`` does: tile sizes first, then a plan."""
    source = request.source
    if not isinstance(source, ModelOnMachine):
        raise SpmilpError(f"{SOLVE} maps networks; {request.instance} is a problem already")
    found: list[Problem] = []
    wanted = request.objective or Quantity.MAKESPAN

    def search(options: SolveOptions) -> SolverResult:
        started = perf_counter()
        limit = options.time_limit
        loaded = load_source(source)
        tiles = TileSearch(
            seconds=None if limit is None else limit * SHARE_OF_TILES,
            on_better=lambda value, tasks: _tell(options, value),
        )
        draft = draft_network(loaded, wanted, tiles)
        found.append(draft.problem)
        first = draft.plan()
        left = None if limit is None else max(limit - (perf_counter() - started), LEAST_SECONDS)
        return solve_problem(draft.problem, "auto", replace(options, time_limit=left), first)

    send("started")
    watched = watch(search, request.options, lambda moment: send("moment", **asdict(moment)))
    return watched, found[0]


def _tell(options: SolveOptions, value: int) -> None:
    """Tell of a schedule that tiles were judged by: the plan of who interrupts the command now."""
    if options.on_progress is not None:
        options.on_progress(Progress(incumbent=value, bound=0, source="tiles"))


def _channel() -> Send:
    """Return what writes to the parent; whatever else prints goes to standard error."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(event: str, **content: Any) -> None:
        # A parent that has gone wants nothing any more.
        with suppress(BrokenPipeError):
            stream.write(json.dumps({"event": event, **content}, allow_nan=False) + "\n")
            stream.flush()

    return send


def _end_with_the_parent() -> None:
    # Not through sys.stdin, whose lock would still be held when the interpreter ends.
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
