"""``spmilp.sweep``: networks on machines of many sizes, as one table."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from spmilp.amounts import byte_count, duration, share
from spmilp.errors import ArgumentError
from spmilp.files import require_room, write_atomically
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.options import DEFAULT_SOLVER
from spmilp.problem.named_pins import NO_NAMED_PINS, PinsGiven, read_pins
from spmilp.sizing.engine import engine
from spmilp.sizing.figure import pareto_figure
from spmilp.sizing.grid import AnyMachine, Grid, Options, fields_of, options_of
from spmilp.sizing.run import Listener, Rows
from spmilp.sizing.store import Store
from spmilp.sizing.table import mark_undominated, sweep_frame, write_tables
from spmilp.sizing.target import Range, Target, smallest
from spmilp.sizing.values import Value, every_value_of
from spmilp.source import DEFAULT_MACHINE

FIGURE = "pareto.png"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What a sweep is to be: the arguments of :func:`sweep`, as they are given."""

    models: tuple[str | Path, ...]
    machines: tuple[AnyMachine, ...] = (DEFAULT_MACHINE,)
    fields: Mapping[str, object] = field(default_factory=dict)
    dim: Mapping[str, int] = field(default_factory=dict)
    solvers: tuple[str, ...] = (DEFAULT_SOLVER,)
    seeds: tuple[int, ...] = (0,)
    options: Options = field(default_factory=Options)
    pareto: tuple[str, ...] = ()
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a sweep is carried out.

    Parameters
    ----------
    folder
        For rows and tables; ``None`` for one that is removed in the end.
    jobs, scheduler
        See :func:`spmilp.sizing.engine.engine`.
    again
        Solve also what is in the folder.
    """

    folder: Path | None = None
    jobs: int | None = None
    scheduler: str | None = None
    again: bool = False


def sweep(
    models: str | Path | Iterable[str | Path],
    machines: AnyMachine | Iterable[AnyMachine] = DEFAULT_MACHINE,
    *,
    spm: object = None,
    dma_channels: object = None,
    dma_rate: object = None,
    dram_rate: object = None,
    fields: Mapping[str, object] | None = None,
    dim: Mapping[str, int] | None = None,
    solver: str | Iterable[str] = DEFAULT_SOLVER,
    tiles: str | None = None,
    objective: str | None = None,
    pins: PinsGiven = None,
    time_limit: str | float | None = 60.0,
    memory_limit: str | int | None = None,
    gap: str | float = 0.0,
    seeds: Iterable[int] = (0,),
    workers: int = 1,
    pareto: str | Iterable[str] = (),
    target: str | None = None,
    folder: str | Path | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    again: bool = False,
    on_news: Listener = lambda news: None,
) -> pd.DataFrame:
    """Map networks onto machines of many sizes; each combination is a row of the table.

    Each row is solved in a process of its own, on Dask workers unless ``jobs`` is 1. More memory,
    channels or bandwidth never makes a row worse: better plans of smaller machines are handed on.

    Parameters
    ----------
    models, machines
        One or more, as :func:`spmilp.solve` takes them; no problems.
    spm, dma_channels, dma_rate, dram_rate
        What :meth:`MachineFile.replace` is to set: a value, a list, ``"16k,64k"``, ``"16k:256k"``
        (doubling) or ``"16k:256k:16k"`` (in steps).
    fields
        The same for any other fields by their paths: ``{"topology.latency_cycles": [1, 2]}``.
    dim, tiles, objective, pins, time_limit, memory_limit, gap, workers
        As for :func:`spmilp.solve`. A row whose machine or tiles lack what a pin names fails, and
        says so.
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
        Called with a :class:`News` after each row.

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
    given = {"spm": spm, "dma_channels": dma_channels, "dma_rate": dma_rate, "dram_rate": dram_rate}
    options = Options(
        tiles=tiles,
        objective=None if objective is None else str(objective),
        time_limit=seconds_of(time_limit),
        gap=_read("gap", share, gap),
        workers=workers,
        memory_limit=size_of(memory_limit),
        pins=pins_of(pins),
    )
    wanted = Sweep(
        models=tuple(_listed(models, (str, Path))),
        machines=tuple(_listed(machines, (str, Path, MachineFile))),
        fields={name: each for name, each in given.items() if each is not None}
        | dict(fields or {}),
        dim=dim or {},
        solvers=tuple(_listed(solver, str)),
        seeds=tuple(_listed(seeds, int)),
        options=options,
        pareto=tuple(pareto.split(",") if isinstance(pareto, str) else pareto),
        target=target,
    )
    place = Place(
        folder=None if folder is None else Path(folder),
        jobs=jobs,
        scheduler=scheduler,
        again=again,
    )
    return carry_out(wanted, place, on_news)


def carry_out(wanted: Sweep, place: Place, on_news: Listener = lambda news: None) -> pd.DataFrame:
    """Solve all rows of a sweep and return its table, which is also written into the folder."""
    target = None if wanted.target is None else Target.of(wanted.target)
    options = wanted.options
    if target is not None and options.objective is None:
        options = replace(options, objective=str(target.quantity))
    each = options_of(wanted.solvers, wanted.seeds, options)
    # What cannot be swept is said before a worker is started.
    ranges = [] if target is None else list(ranges_of(wanted, each))
    points = () if ranges else _grid(wanted, fields_of(wanted.fields), each).points()
    with ExitStack() as opened:
        folder = place.folder or Path(opened.enter_context(TemporaryDirectory()))
        require_room(folder)
        workers = opened.enter_context(engine(place.jobs, place.scheduler, options.workers))
        rows = Rows(store=Store(folder), engine=workers, on_news=on_news)
        if target is None:
            try:
                rows.solve(points, again=place.again)
                rows.hand_on(points)
            finally:
                if rows.found and place.folder is not None:
                    write_tables(sweep_frame(points, rows.found), folder)
        else:
            points = tuple(point for among in ranges for point in smallest(among, target, rows))
        frame = sweep_frame(points, rows.found)
        if target is not None:
            verdicts = [target.verdict_on(rows.found[key]) for key in frame["row"]]
            frame = frame.assign(verdict=verdicts)
        if wanted.pareto:
            frame = mark_undominated(frame, wanted.pareto)
        if place.folder is not None:
            write_tables(frame, folder)
    return frame


def swept_field(wanted: Sweep) -> str:
    """Return the one field that has several values.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    several = [
        name for name, given in wanted.fields.items() if len(every_value_of(name, given)) > 1
    ]
    if len(several) != 1:
        found = " and ".join(several) or "none"
        raise ArgumentError(
            f"target: give one field a range, as in --spm 16k:256k; there is {found}"
        )
    return several[0]


def draw_pareto(frame: pd.DataFrame, wanted: Sweep, folder: Path) -> Path:
    """Draw what is not dominated into a folder, and return the file.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    FileError
        If the folder cannot be written.
    """
    from io import BytesIO

    drawn = BytesIO()
    pareto_figure(frame, wanted.pareto).savefig(drawn, format="png", dpi=120)
    write_atomically(folder / FIGURE, drawn.getvalue())
    return folder / FIGURE


def ranges_of(wanted: Sweep, each: Iterable[Options]) -> Iterable[Range]:
    """Yield each network on each machine, with all values of the field that is looked for."""
    name = swept_field(wanted)
    values = every_value_of(name, wanted.fields[name])
    others = fields_of({other: given for other, given in wanted.fields.items() if other != name})
    fixed = {other: given[0] for other, given in others.items()}
    for machine, options in product(wanted.machines, each):
        single = replace(wanted, machines=(machine,))
        first: dict[str, tuple[Value, ...]] = {**others, name: values[:1]}
        for point in _grid(single, first, (options,)).points():
            yield Range(
                point=point, base=as_machine_file(machine), others=fixed, field=name, values=values
            )


def _grid(wanted: Sweep, fields: Mapping[str, tuple[Value, ...]], each: Iterable[Options]) -> Grid:
    return Grid(
        models=wanted.models,
        machines=wanted.machines,
        fields=fields,
        options=tuple(each),
        dim=wanted.dim,
    )


def _listed(given: Any, single: type | tuple[type, ...]) -> list[Any]:
    """Return what is given one by one or as several, as a list."""
    return [given] if isinstance(given, single) or not isinstance(given, Iterable) else list(given)


def seconds_of(given: str | float | None) -> float | None:
    """Read a time limit; ``None`` for none."""
    limit = _read("time_limit", duration, given)
    return None if limit == float("inf") else limit


def size_of(given: str | int | None) -> int | None:
    """Read a memory limit in bytes; ``None`` for none."""
    return None if given is None else int(_read("memory_limit", byte_count, given))


def pins_of(given: PinsGiven) -> str | None:
    """Read pins, and return them as JSON; ``None`` for none.

    Raises
    ------
    FileError
        If it is no file of pins.
    """
    named = read_pins(given)
    return None if named == NO_NAMED_PINS else named.model_dump_json(exclude_defaults=True)


def _read(name: str, reader: Callable[[Any], Any], given: str | float | None) -> Any:
    if given is None:
        return None
    try:
        return reader(given)
    except ValueError as error:
        raise ArgumentError(f"{name}: {error}") from error
