"""The process that makes one problem, or runs one solver on one problem.

``python -m spmilp.bench.worker`` reads names of files from its standard input, one per line; in
each is a pickled request, in its parent's private folder. What happens it writes to its standard
output, one JSON object per line; what libraries print goes to standard error. It ends when its
standard input does, so that it never outlives its parent.
"""

import json
import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from spmilp.analysis.analyse import analyse
from spmilp.analysis.attribution import attribution_of
from spmilp.bench.child import MakeRequest, RunRequest
from spmilp.bench.make import make_problem, statistics_of
from spmilp.bench.suite import SOLVE, ModelOnMachine
from spmilp.comparison.run import run_of, watch
from spmilp.comparison.warm_up import warm_up
from spmilp.errors import MissingDataError, SpmilpError
from spmilp.files import write_atomically
from spmilp.machine.read import load_machine
from spmilp.options import DEFAULT_SOLVER
from spmilp.pipeline import solve
from spmilp.problem.problem import Problem
from spmilp.problem.write import problem_sha256
from spmilp.result import Result
from spmilp.watch import Observer, Stage

Send: TypeAlias = Callable[..., None]


def main() -> None:
    """Make the problem of a request, or run its solver."""
    serve(_carry_out)


def serve(carry_out: Callable[[Any, Send], None]) -> None:
    """Carry out requests until there are no more, and report how each ended.

    Parameters
    ----------
    carry_out
        Takes a request, and the function that sends messages to the parent.
    """
    send = _channel()
    files: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read_files, args=(files,), daemon=True).start()
    is_killed_first()
    while True:
        file = Path(files.get())
        try:
            carry_out(pickle.loads(file.read_bytes()), send)
        except MissingDataError as error:
            send("skipped", reason=str(error))
        except MemoryError:
            send("failed", status="out of memory", reason="an allocation failed")
        except SpmilpError as error:
            send("failed", status="failed", reason=str(error))


def _carry_out(request: MakeRequest | RunRequest, send: Send) -> None:
    if isinstance(request, MakeRequest):
        _make(request, send)
    else:
        _run(request, send)


def _make(request: MakeRequest, send: Send) -> None:
    problem, ceiling = make_problem(request.source, request.objective, request.data)
    statistics, text = statistics_of(problem, ceiling)
    request.pickled.write_bytes(pickle.dumps(problem))
    if request.written is not None:
        write_atomically(request.written, text)
    send("made", statistics=asdict(statistics))


def _run(request: RunRequest, send: Send) -> None:
    """Solve, from the model or from the problem that was made, and report the result."""
    whole = request.solver == SOLVE
    warm_up(DEFAULT_SOLVER if whole else request.solver)
    peak: list[int | None] = []

    def on_stage(stage: Stage) -> None:
        if stage is Stage.CHECKING:
            peak.append(peak_bytes())
            send("solved")

    send("started")
    observer = Observer(on_stage=on_stage)
    watched = watch(solve_of(request), observer, lambda moment: send("moment", **asdict(moment)))
    problem = watched.result.problem
    run = run_of(request.instance, request.options.seed, watched)
    names = ("status", "objective", "bound", "bound_source", "transfers", "busy", "dram_ratio")
    others = ("violations", "seconds", "cpu_seconds", "reason")
    outcome = {name: getattr(run, name) for name in (*names, *others)}
    history = [asdict(moment) for moment in run.history]
    sha256 = problem_sha256(problem) if whole else request.problem_sha256
    own = {"problem_sha256": sha256, "tasks": len(problem.tasks)}
    if request.attribute:
        outcome["attribution"] = _attribution(watched.result)
    send("ended", own=own, peak_bytes=peak[-1], history=history, **outcome)


def _attribution(result: Result) -> dict[str, Any] | None:
    """Return where the time and the traffic of an accepted plan go, if there is one."""
    if result.plan is None:
        return None
    # What the solver has found is more: a plan too large to be analysed is a run like others.
    with suppress(MemoryError):
        return asdict(attribution_of(analyse(result.problem, result.plan)))
    return None


def solve_of(request: RunRequest) -> Callable[..., Result]:
    """Return the function of a run: the whole line, or one solver on a problem made before.

    It takes an ``observer``.

    Raises
    ------
    SpmilpError
        If the whole line is to begin with a problem.
    """
    names = ("time_limit", "gap", "seed", "workers")
    limits: dict[str, Any] = {name: getattr(request.options, name) for name in names}
    if request.solver != SOLVE:
        problem: Problem = pickle.loads(request.pickled.read_bytes())
        return partial(solve, problem, solver=request.solver, **limits)
    source = request.source
    if not isinstance(source, ModelOnMachine):
        raise SpmilpError(f"{SOLVE} maps networks; {request.instance} is a problem already")
    machine = load_machine(source.machine, source.scale)
    dim = dict(source.dims)
    return partial(solve, source.model, machine, dim=dim, objective=request.objective, **limits)


def _channel() -> Send:
    """Return the function that writes to the parent; other output goes to standard error."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(event: str, **content: Any) -> None:
        # The parent may have ended.
        with suppress(BrokenPipeError):
            stream.write(json.dumps({"event": event, **content}, allow_nan=False) + "\n")
            stream.flush()

    return send


def _read_files(files: "queue.Queue[str]") -> None:
    """Hand on what the parent writes, and end this process, whatever it does, with the parent."""
    # Not through sys.stdin, whose lock would still be held when the interpreter ends.
    with os.fdopen(os.dup(0), encoding="utf-8") as names:
        for name in names:
            files.put(name.removesuffix("\n"))
    os._exit(1)


def peak_bytes() -> int | None:
    """Return the most bytes of memory that this process has had; ``None`` if unknown.

    Linux counts in ``VmHWM`` since the program was started; ``getrusage`` may count the
    parent's.
    """
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def is_killed_first() -> None:
    """Let Linux end this process before others when memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


if __name__ == "__main__":
    main()
