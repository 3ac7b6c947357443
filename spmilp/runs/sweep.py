"""Networks on machines of many sizes, as one table: ``spmilp.sweep``."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from spmilp.errors import ArgumentError
from spmilp.files import require_room, write_atomically, write_together
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.options import DEFAULT_SOLVER, with_options
from spmilp.processes import Children
from spmilp.quantities import dimensions
from spmilp.runs.frames import csv_of, mark_undominated, pareto_figure, swept_frame
from spmilp.runs.jobs import Executor, Processes
from spmilp.runs.points import SHORT_NAMES as SHORT_NAMES
from spmilp.runs.points import AnyMachine, Grid, PointOptions, Value, values_of
from spmilp.runs.rows import Listener, Rows
from spmilp.runs.store import Store
from spmilp.runs.target import Range, Target, smallest
from spmilp.source import DEFAULT_MACHINE

TABLE, PARQUET, FIGURE = "sweep.csv", "sweep.parquet", "pareto.png"


OPTIONS = "dim", "tiles", "objective", "pins", "time_limit", "memory_limit", "gap", "workers"
"""Options of a solve that hold for each row."""


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
    pareto: str | Iterable[str] = (),
    target: str | None = None,
    folder: str | Path | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    again: bool = False,
    on_news: Listener = lambda news: None,
    **given: Any,
) -> pd.DataFrame:
    """Map networks onto machines of many sizes; each combination is a row of the table.

    Each row is solved in a process of its own, on Dask workers unless ``jobs`` is 1. More memory,
    channels or bandwidth never makes a row worse: larger machines start from better plans of
    smaller ones.

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
    pareto
        Columns, ``["makespan", "spm"]`` or ``"makespan,spm"``: the rows that no other row of the
        model is as good as in all of them and better in one are marked in the column ``pareto``.
    target
        ``"makespan=6000"``: look for the smallest value of the one field that has several. The
        table has the values that were tried, ascending, each with its ``verdict``.
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
        Called with a :class:`~spmilp.runs.rows.News` after each row.
    given
        Options of :func:`spmilp.solve` that hold for each row: ``dim``, ``tiles``, ``objective``,
        ``pins``, ``time_limit``, ``memory_limit``, ``gap``, ``workers``. A row whose machine or
        tiles lack what a pin names fails, and says so.

    Returns
    -------
    DataFrame
        A row for each combination; ``docs/sweep.md`` explains the columns.

    Raises
    ------
    ValueError
        If an argument has a value that it cannot have, or a machine has no such field.
    SpmilpError
        If a file cannot be used, or the scheduler does not answer.
    MissingExtraError
        If Dask is needed and not installed.

    Examples
    --------
    >>> spmilp.sweep("net.onnx", "mesh4x4", spm="16k:256k", dma_channels=[1, 2], folder="out/sizes")
    """
    wanted = None if target is None else Target.of(target)
    if wanted is not None and given.get("objective") is None:
        given["objective"] = wanted.quantity
    options = [
        PointOptions.of({**given, "solver": name, "seed": seed})
        for name, seed in product(_listed(solver, str), _listed(seeds, int))
    ]
    grid = Grid(
        models=_listed(models, (str, Path)),
        machines=_listed(machines, (str, Path, MachineFile)),
        options=options,
        dim=dimensions(given.get("dim")),
    )
    swept = fields_given(spm, dma_channels, dma_rate, dram_rate, fields)
    # What cannot be swept is said before a worker is started.
    ranges = [] if wanted is None else list(ranges_of(grid, swept))
    points = (
        ()
        if ranges
        else grid.points({name: values_of(name, values) for name, values in swept.items()})
    )
    columns = pareto.split(",") if isinstance(pareto, str) else list(pareto)
    with ExitStack() as opened:
        place = Path(folder or opened.enter_context(TemporaryDirectory()))
        require_room(place)
        executor = opened.enter_context(executor_for(jobs, scheduler, options[0].workers))
        rows = Rows(store=Store(place), executor=executor, on_news=on_news)
        if wanted is None:
            try:
                rows.solve(points, again=again)
                rows.warm_start(points)
            finally:
                if rows.found and folder is not None:
                    write_tables(swept_frame(points, rows.found), place)
        else:
            points = tuple(point for among in ranges for point in smallest(among, wanted, rows))
        frame = swept_frame(points, rows.found)
        if wanted is not None:
            verdicts = [wanted.verdict_on(rows.found[key]) for key in frame["row"]]
            frame = frame.assign(verdict=verdicts)
        if columns:
            frame = mark_undominated(frame, columns)
        if folder is not None:
            write_tables(frame, place)
    return frame


@contextmanager
def executor_for(jobs: int | None, scheduler: str | None, threads: int) -> Iterator[Executor]:
    """Give what solves points, and end its workers afterwards.

    Parameters
    ----------
    jobs
        Points that are solved at one time on this computer: 1 needs no Dask; ``None`` for as many
        as there are processors for.
    scheduler
        The address of a Dask scheduler, whose workers solve them instead.
    threads
        Of each solve.

    Raises
    ------
    MissingExtraError
        If Dask is needed and not installed.
    SpmilpError
        If the scheduler does not answer.
    """
    if scheduler is not None and jobs is not None:
        raise ArgumentError("jobs: a cluster has as many as it has workers; leave jobs out")
    jobs = jobs or max(1, (os.cpu_count() or 1) // threads)
    if scheduler is None and jobs == 1:
        with Children() as children:
            yield Processes(children)
        return
    from spmilp.runs.cluster import cluster

    with cluster(jobs, scheduler) as found:
        yield found


def fields_given(
    spm: object = None,
    dma_channels: object = None,
    dma_rate: object = None,
    dram_rate: object = None,
    fields: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return what is given for each field of a machine."""
    short = {"spm": spm, "dma_channels": dma_channels, "dma_rate": dma_rate, "dram_rate": dram_rate}
    return {name: each for name, each in short.items() if each is not None} | dict(fields or {})


def swept_field(given: Mapping[str, object]) -> str:
    """Return the one field that has several values.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    several = [
        name for name, values in given.items() if len(values_of(name, values, each=True)) > 1
    ]
    if len(several) != 1:
        found = " and ".join(several) or "none"
        raise ArgumentError(
            f"target: give one field a range, as in --spm 16k:256k; there is {found}"
        )
    return several[0]


def ranges_of(grid: Grid, given: Mapping[str, object]) -> Iterator[Range]:
    """Yield each network on each machine, with all values of the field that is looked for."""
    name = swept_field(given)
    values = values_of(name, given[name], each=True)
    others = {other: values_of(other, given[other]) for other in given if other != name}
    fixed: dict[str, Value] = {other: found[0] for other, found in others.items()}
    for machine, options in product(grid.machines, grid.options):
        single = replace(grid, machines=(machine,), options=(options,))
        for point in single.points({**others, name: values[:1]}):
            yield Range(
                point=point, base=as_machine_file(machine), others=fixed, field=name, values=values
            )


def write_tables(frame: pd.DataFrame, folder: Path) -> tuple[Path, ...]:
    """Write the table as CSV, and as Parquet where pyarrow is installed; return the files.

    Raises
    ------
    FileError
        If the folder cannot be written.
    """
    contents: dict[str, str | bytes] = {TABLE: csv_of(frame)}
    if find_spec("pyarrow") is not None:
        packed = BytesIO()
        frame.to_parquet(packed, index=False)
        contents[PARQUET] = packed.getvalue()
    return write_together(folder, contents)


def draw_pareto(frame: pd.DataFrame, columns: Iterable[str], folder: Path) -> Path:
    """Draw what is not dominated into a folder, and return the file.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    FileError
        If the folder cannot be written.
    """
    drawn = BytesIO()
    pareto_figure(frame, list(columns)).savefig(drawn, format="png", dpi=120)
    write_atomically(folder / FIGURE, drawn.getvalue())
    return folder / FIGURE


def _listed(given: Any, single: type | tuple[type, ...]) -> list[Any]:
    """Return what is given one by one or as several, as a list."""
    return [given] if isinstance(given, single) or not isinstance(given, Iterable) else list(given)
