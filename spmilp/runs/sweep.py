"""Networks on machines of many sizes, as one table: ``spmilp.sweep``."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from spmilp.compiled import warn_if_slow
from spmilp.errors import ArgumentError, SpmilpError
from spmilp.files import require_room, write_atomically
from spmilp.machine.read import MachineFile
from spmilp.options import DEFAULT_SOLVER, with_options
from spmilp.processes import processors
from spmilp.quantities import dimensions
from spmilp.runs.frames import csv_of, mark_undominated, swept_frame
from spmilp.runs.jobs import Answer, Executor, Run, Store, processes
from spmilp.runs.points import OPTIONS, AnyMachine, Point, points_of, settings_of, values_of
from spmilp.source import DEFAULT_MACHINE

TABLE = "sweep.csv"


@with_options(*OPTIONS)
def sweep(
    models: str | Path | Iterable[str | Path],
    machines: AnyMachine | Iterable[AnyMachine] = DEFAULT_MACHINE,
    *,
    spm: object = None,
    dma_channels: object = None,
    dma_rate: object = None,
    dram_rate: object = None,
    fields: Mapping[str, object] | None = None,
    solver: str | Iterable[str] = DEFAULT_SOLVER,
    seeds: Iterable[int] = (0,),
    period: object = None,
    pareto: str | Iterable[str] = (),
    target: str | None = None,
    folder: str | Path | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    again: bool = False,
    on_news: Callable[[str], None] = lambda news: None,
    **given: Any,
) -> pd.DataFrame:
    """Map networks onto machines of many sizes; each combination is a row of the table.

    Each row is solved in a process of its own, and all rows alike. One that is worse than that of a
    smaller machine then takes over its plan, if it holds there: more memory or channels never make
    a row worse. More bandwidth of one part may. ``docs/sweep.md`` explains the columns.

    Parameters
    ----------
    models, machines
        One or more, as :func:`spmilp.solve` takes them; no problems.
    spm, dma_channels, dma_rate, dram_rate
        What :meth:`MachineFile.replace` is to set: a value, a list, ``"16k,64k"``, ``"16k:256k"``
        (doubling) or ``"16k:256k:16k"`` (in steps).
    fields
        The same for any other fields by their paths: ``{"topology.latency_cycles": [1, 2]}``.
    solver, seeds
        One or more.
    period
        Cycles: the same ways to give several. Rows are streams, of which none needs a shorter
        period, each with as short a latency as is found: throughput against latency.
    pareto
        Columns, ``["makespan", "spm"]`` or ``"makespan,spm"``: the rows that no other row of the
        model is as good as in all of them and better in one are marked in the column ``pareto``.
    target
        ``"makespan=6000"``: look for the smallest value of the one field that has several. The
        table has the values that were tried, ascending, each with its ``verdict``; what they say
        together is in ``attrs["conclusions"]``.
    folder
        Where rows, plans and tables stay. The same call goes on where one was cut off.
    jobs
        Rows that are solved at one time on this computer; by default as many as it has processors
        for.
    scheduler
        The address of a Dask scheduler, whose workers solve the rows instead.
    again
        Solve also what the folder has.
    on_news
        Called after each row with how far the sweep is, in words.
    given
        Options of :func:`spmilp.solve` that hold for each row: ``dim``, ``input``, ``tiles``,
        ``objective``, ``pins``, ``time_limit``, ``effort``, ``gap``, ``workers``. A row whose
        machine or tiles lack what a pin names fails, and says so.

    Raises
    ------
    ValueError
        If an argument has a value that it cannot have, or a machine has no such field.
    SpmilpError
        If a file cannot be used, or the scheduler does not answer, or Dask is not installed.

    Examples
    --------
    >>> spmilp.sweep("net.onnx", "mesh4x4", spm="16k:256k", dma_channels=[1, 2], folder="out/sizes")
    """
    from spmilp.runs.target import Target, conclusions, look_for_smallest, swept_field

    wanted = None if target is None else Target.of(target)
    if wanted is not None and given.get("objective") is None:
        given["objective"] = wanted.quantity
    short = {"spm": spm, "dma_channels": dma_channels, "dma_rate": dma_rate, "dram_rate": dram_rate}
    swept = {name: each for name, each in short.items() if each is not None} | dict(fields or {})
    periods = [{}] if period is None else [{"period": p} for p in values_of("period", period)]
    options = [
        settings_of({**given, **every, "solver": name, "seed": seed})
        for name, seed, every in product(_listed(solver, str), _listed(seeds, int), periods)
    ]
    machines = _listed(machines, (str, Path, MachineFile))
    named, dim = _listed(models, (str, Path)), dimensions(given.get("dim"))
    # What cannot be swept is said before a worker is started.
    values = {name: values_of(name, each) for name, each in swept.items()}
    sought = None if wanted is None else swept_field(values)
    points = points_of(named, machines, options, values, dim)
    columns = pareto.split(",") if isinstance(pareto, str) else list(pareto)
    warn_if_slow(warnings.warn)
    with ExitStack() as opened:
        place = Path(folder or opened.enter_context(TemporaryDirectory()))
        require_room(place)
        executor = opened.enter_context(executor_for(jobs, scheduler, options[0]["workers"]))
        rows = Rows(store=Store(place), executor=executor, on_news=on_news)
        try:
            if wanted is None or sought is None:
                rows.solve(points, again=again)
                rows.warm_start(points)
            else:
                several = values[sought]
                for first in range(0, len(points), len(several)):
                    tried = points[first : first + len(several)]
                    look_for_smallest(several, tried, wanted, rows)
        finally:
            frame = swept_frame(points, rows.found)
            if wanted is not None and sought is not None and len(frame):
                frame["verdict"] = [wanted.verdict_on(rows.found[key]) for key in frame["row"]]
                frame.attrs["conclusions"] = list(conclusions(frame, sought, wanted))
            if columns and len(frame):
                frame = mark_undominated(frame, columns)
            if folder is not None and len(frame):
                write_atomically(place / TABLE, csv_of(frame))
    return frame


def executor_for(
    jobs: int | None, scheduler: str | None, threads: int
) -> AbstractContextManager[Executor]:
    """Return what solves points with so many threads each; its workers end with the block."""
    if scheduler is None:
        return processes(jobs or max(1, processors() // threads))
    if jobs is not None:
        raise ArgumentError("jobs: a cluster has as many as it has workers; leave jobs out")
    from spmilp.runs.cluster import cluster

    return cluster(scheduler)


@dataclass
class Rows:
    """The rows of some points by their keys, and how missing ones are made."""

    store: Store
    executor: Executor
    on_news: Callable[[str], None] = lambda news: None
    found: dict[str, Run] = field(default_factory=dict)

    def solve(self, points: Sequence[Point], *, again: bool = False) -> None:
        """Solve the points whose rows are not in the folder yet; with ``again``, all."""
        missing = []
        for point in points:
            run = None if again else self.store.find(point.key)
            if run is None:
                missing.append(point)
            else:
                self.found[point.key] = run
        by_key, first = {point.key: point for point in missing}, len(points) - len(missing) + 1
        for done, answer in enumerate(self.executor(missing) if missing else (), start=first):
            # It is kept before the next one is told of.
            self._keep(answer)
            name = by_key[answer.run.key].name
            self.on_news(f"solving: {done:,} of {len(points):,} rows: {name}")

    def warm_start(self, points: Sequence[Point]) -> None:
        """Let each point take over a better plan of a smaller machine, where one holds there.

        There is no other search, so that all rows come from searches of the same length. The points
        of smaller machines come before those of larger ones.
        """
        for point in points:
            own, smaller = self.found[point.key], (p for p in points if p.is_covered_by(point))
            better = [run for p in smaller if _is_better(run := self.found[p.key], own)]
            if not better:
                continue
            start = min(better, key=lambda run: run.objective or 0)
            with suppress(SpmilpError):  # the plan may not hold there
                answer = point.taken_over(self.store.folder_of(start.key))
                if _is_better(answer.run, own):
                    seconds = (own.seconds or 0.0) + (answer.run.seconds or 0.0)
                    run = replace(answer.run, seconds=seconds, roofline=own.roofline)
                    self._keep(replace(answer, run=replace(run, warm_start=start.key)))

    def _keep(self, answer: Answer) -> None:
        self.found[answer.run.key] = answer.run
        self.store.keep(answer)


def _is_better(one: Run, that: Run) -> bool:
    return one.objective is not None and (that.objective is None or one.objective < that.objective)


def _listed(given: Any, single: type | tuple[type, ...]) -> list[Any]:
    """Return what is given one by one or as several, as a list."""
    return [given] if isinstance(given, single) or not isinstance(given, Iterable) else list(given)
