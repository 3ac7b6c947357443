"""Suites of rows, as YAML files in ``benchmarks/suites``; the problem of each row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from benchmarks.generated import generated_problem
from benchmarks.peers import set_resnet50, stream
from benchmarks.peers.stream import MissingDataError
from benchmarks.scaled import SAME, Scale, load_scaled
from spmilp.bounds.roofline import roofline
from spmilp.errors import FileError, SpmilpError
from spmilp.pipeline import solve, tiled_problem
from spmilp.problem.file import read_problem
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.registry import solver_names
from spmilp.result import Result
from spmilp.tile_selection.settings import Tiles

SUITES = Path(__file__).parents[1] / "suites"
SOLVE = "solve"
"""Name among the solvers of the command ``spmilp solve``: tile search and solver in one limit."""

GREEDY = "greedy:"
"""Prefix of the names of one-pass rules."""

TILES_IN_NAMES = {Tiles.FIRST: "", Tiles.SEARCH: "-searched", Tiles.SMAUG: "-smaug"}


@dataclass(frozen=True, slots=True)
class ProblemFile:
    """A problem that lies in a file."""

    path: Path

    @property
    def name(self) -> str:
        """Name of its row."""
        return self.path.stem


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOnMachine:
    """A network that is lowered for a machine; both as on the command line."""

    model: str
    machine: str
    dims: tuple[tuple[str, int], ...] = ()
    scale: Scale = SAME
    tiles: Tiles = Tiles.FIRST

    @property
    def name(self) -> str:
        """Name of its row: model, machine, and every setting that is not the default."""
        model = Path(self.model.removeprefix("onnx:")).stem
        sizes = "".join(f"-{name}{size}" for name, size in self.dims)
        tiles = TILES_IN_NAMES[self.tiles]
        return f"{model}{sizes}-{Path(self.machine).stem}{self.scale.label}{tiles}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A problem of a given size from :mod:`benchmarks.generated`."""

    tasks: int
    cores: int
    seed: int = 0

    @property
    def name(self) -> str:
        """Name of its row."""
        seed = f"-seed{self.seed}" if self.seed else ""
        return f"generated-{self.tasks}t-{self.cores}c{seed}"


@dataclass(frozen=True, slots=True)
class Built:
    """A problem from :data:`BUILDERS`."""

    name: str


Source: TypeAlias = ProblemFile | ModelOnMachine | Generated | Built

BUILDERS: Mapping[str, Callable[[Path], Problem]] = {
    "stream-2conv": stream.two_convolutions,
    "stream-2conv-without-port": stream.two_convolutions_without_port,
    "stream-resnet18": stream.resnet18,
    "stream-resnet18-half-speed": stream.resnet18_at_half_speed,
    "set-resnet50": set_resnet50.resnet50_on_mesh,
}
"""For ``builder: NAME`` in a suite: the function that makes the problem from ``--data FOLDER``."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The figure of another tool on the same input, and where that comes from."""

    name: str
    value: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One problem, and what is to be run on it.

    Parameters
    ----------
    objective
        ``None`` for the makespan, or the problem file's objective.
    time_limit
        Wall seconds of each run; ``None`` for the solvers' own end.
    """

    name: str
    source: Source
    solvers: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    objective: Quantity | None = None
    time_limit: float | None = 60.0
    workers: int = 1
    gap: float = 0.0
    peer: Peer | None = None

    def runs_of(self, solver: str) -> bool:
        """Whether the solver is for this row: ``solve`` needs a network to map."""
        return solver != SOLVE or isinstance(self.source, ModelOnMachine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A named collection of rows with different names."""

    name: str
    description: str
    rows: tuple[Row, ...]


def list_suites() -> tuple[str, ...]:
    """Return the names of the suites in ``benchmarks/suites``, sorted."""
    return tuple(sorted(path.stem for path in SUITES.glob("*.yaml")))


def load_suite(name_or_path: str) -> Suite:
    """Return a suite by name, or that of a YAML file by path.

    Paths in a file are taken from the file's folder; in those of ``benchmarks/suites``, from the
    current one.

    Raises
    ------
    FileError
        If there is no such suite, the file does not describe one, or two rows have one name.
    """
    path, folder = Path(name_or_path), Path(name_or_path).parent
    if path.suffix not in (".yaml", ".yml"):
        path, folder = SUITES / f"{name_or_path}.yaml", Path()
    if not path.exists():
        raise FileError(f"suite {name_or_path}: there are {', '.join(list_suites())}, or a file")
    try:
        given = yaml.safe_load(path.read_bytes())
        rows = tuple(row for entry in given.pop("rows") for row in _rows(given, entry, folder))
    except (KeyError, TypeError, ValueError, AttributeError, yaml.YAMLError, SpmilpError) as error:
        raise FileError(f"{path}: {type(error).__name__}: {error}") from error
    if len({row.name for row in rows}) < len(rows):
        raise FileError(f"{path}: two rows have one name; leave one out")
    return Suite(name=path.stem, description=given.get("description", "").strip(), rows=rows)


def solvers_named(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the solvers of some names and patterns (``greedy:*``), in this order, each once.

    Raises
    ------
    SpmilpError
        If a name or a pattern stands for no solver.
    """
    known = (*solver_names(), SOLVE)
    found: dict[str, None] = {}
    for pattern in patterns:
        matching = [name for name in known if fnmatchcase(name, pattern)]
        if not matching:
            raise SpmilpError(f"no solver is named {pattern!r}; there are {', '.join(known)}")
        found.update(dict.fromkeys(matching))
    return tuple(found)


def _rows(suite: Mapping[str, Any], entry: Mapping[str, Any], folder: Path) -> Iterator[Row]:
    """Yield the rows of an entry: all combinations of what it lists, its settings first."""
    given = {**suite, **entry}
    objectives = _several(given.get("objective"))
    for source, objective in product(list(_sources(entry, folder)), objectives):
        row = Row(
            name=source.name + (f"-{objective}" if len(objectives) > 1 else ""),
            source=source,
            solvers=solvers_named(given["solvers"]),
            seeds=tuple(given.get("seeds", (0,))),
            objective=None if objective is None else Quantity(objective),
            time_limit=given.get("time_limit_seconds", 60.0),
            workers=given.get("workers", 1),
            gap=given.get("gap", 0.0),
            peer=Peer(**given["peer"]) if "peer" in given else None,
        )
        yield replace(row, solvers=tuple(filter(row.runs_of, row.solvers)))


def _sources(entry: Mapping[str, Any], folder: Path) -> Iterator[Source]:
    if "problem" in entry:
        for pattern in _several(entry["problem"]):
            found = (
                sorted(folder.glob(pattern)) if set(pattern) & set("*?[") else [folder / pattern]
            )
            yield from map(ProblemFile, found)
    elif "builder" in entry:
        yield from map(Built, _several(entry["builder"]))
    elif "generated" in entry:
        sizes = entry["generated"]
        names = ("tasks", "cores", "seed")
        for values in product(*(_several(sizes.get(name, 0)) for name in names)):
            yield Generated(**dict(zip(names, values, strict=True)))
    else:
        names = ("model", "machine", "dram", "spm", "tiles")
        defaults = {"dram": 1, "spm": 1, "tiles": "first"}
        lists = (_several(entry.get(name, defaults.get(name))) for name in names)
        for model, machine, dram, spm, tiles in product(*lists):
            yield ModelOnMachine(
                model=model if model.startswith("onnx:") else str(folder / model),
                machine=str(folder / machine) if machine.endswith(".yaml") else machine,
                dims=tuple(sorted(entry.get("dims", {}).items())),
                scale=Scale(dram=Fraction(str(dram)), spm=Fraction(str(spm))),
                tiles=Tiles(tiles),
            )


def _several(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list) else [given]


def make_problem(
    source: Source, objective: Quantity | None, data: Path | None
) -> tuple[Problem, int | None]:
    """Return the problem of a row, and the roofline of its network if there is one.

    Raises
    ------
    MissingDataError
        If it is made from data that is not there.
    SpmilpError
        If it cannot be made for another reason.
    """
    if isinstance(source, ModelOnMachine):
        # The limit of the search is in tasks and not in seconds: the same tiles each time.
        tiled, origin = tiled_problem(
            source.model,
            load_scaled(source.machine, source.scale),
            dim=dict(source.dims),
            objective=objective,
            tiles=source.tiles,
        )
        problem = tiled.problem
        if origin is None or problem.objective.first is not Quantity.MAKESPAN:
            return problem, None
        return problem, roofline(origin.network, problem.machine).cycles
    if isinstance(source, ProblemFile):
        made = read_problem(source.path)
    elif isinstance(source, Generated):
        made = generated_problem(source.tasks, source.cores, source.seed)
    elif data is None:
        raise MissingDataError("it is made from data; say where with --data FOLDER")
    else:
        made = BUILDERS[source.name](data)
    return (made if objective is None else replace(made, objective=Objective.of(objective))), None


def solve_of(row: Row, solver: str, seed: int, problem: Problem) -> Callable[..., Result]:
    """Return the function of a run, which takes an ``observer``: the whole line, or one solver."""
    given: dict[str, Any] = {
        "time_limit": row.time_limit,
        "gap": row.gap,
        "seed": seed,
        "workers": row.workers,
    }
    source = row.source
    if solver != SOLVE or not isinstance(source, ModelOnMachine):
        return partial(solve, problem, solver=solver, **given)
    machine = load_scaled(source.machine, source.scale)
    dim = dict(source.dims)
    return partial(solve, source.model, machine, dim=dim, objective=row.objective, **given)
