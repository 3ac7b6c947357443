"""Reading suites: those of the package by name, others by path."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from fractions import Fraction
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from spmilp.bench.suite import (
    SOLVE,
    Built,
    Generated,
    ModelOnMachine,
    Peer,
    ProblemFile,
    Row,
    Source,
    Suite,
)
from spmilp.errors import FileError, SpmilpError
from spmilp.files import read_bytes
from spmilp.machine.changed import Scale
from spmilp.machine.fields import (
    Amount,
    Count,
    FileModel,
    Rate,
    fields_of,
    what_is_wrong,
)
from spmilp.problem.objective import Quantity
from spmilp.registry import solver_names
from spmilp.tile_selection.mode import Tiles

T = TypeVar("T")


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


OneOrMore: TypeAlias = Annotated[
    tuple[T, ...], BeforeValidator(_listed), Field(min_length=1, max_length=1000)
]
"""One value, or a list of them."""

Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=300)]
SolverName: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9:/*?_-]*$", max_length=100)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=1e6)]
Workers: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=1024)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Size: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=10_000_000)]


class PeerFields(FileModel):
    """The figure of another tool on the same input."""

    name: Text
    value: Amount
    source: Text


class GeneratedFields(FileModel):
    """Sizes of generated problems."""

    tasks: OneOrMore[Size]
    cores: OneOrMore[Size]
    seed: OneOrMore[Amount] = (0,)


class RunFields(FileModel):
    """A suite of rows; an entry's own fields go before those of the suite."""

    solvers: Annotated[tuple[SolverName, ...], Field(min_length=1)] | None = None
    seeds: Annotated[tuple[Amount, ...], Field(min_length=1)] | None = None
    time_limit_seconds: Seconds | None = None
    workers: Workers | None = None
    gap: Share | None = None


class EntryFields(RunFields):
    """One problem, or every combination of some."""

    problem: OneOrMore[Text] | None = None
    model: OneOrMore[Text] | None = None
    machine: OneOrMore[Text] | None = None
    dims: dict[Text, Count] | None = None
    dram: OneOrMore[Rate] | None = None
    spm: OneOrMore[Rate] | None = None
    tiles: OneOrMore[Tiles] | None = None
    generated: GeneratedFields | None = None
    builder: OneOrMore[Text] | None = None
    objective: OneOrMore[Quantity] | None = None
    peer: PeerFields | None = None

    @model_validator(mode="after")
    def _it_has_one_source(self) -> "EntryFields":
        sources = ("problem", "model", "generated", "builder")
        given = [name for name in sources if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise ValueError(f"give one of {', '.join(sources)}; there is {found}")
        if given == ["model"] and self.machine is None:
            raise ValueError("model needs a machine")
        if given != ["model"]:
            for name in ("machine", "dims", "dram", "spm", "tiles"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} goes with model, not with {given[0]}")
        return self


class SuiteFields(RunFields):
    """A whole suite file."""

    description: str = ""
    solvers: Annotated[tuple[SolverName, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Amount, ...], Field(min_length=1)] = (0,)
    time_limit_seconds: Seconds = 60.0
    workers: Workers = 1
    gap: Share = 0.0
    rows: Annotated[tuple[EntryFields, ...], Field(min_length=1)]


ONCE: Fraction = Fraction(1)


SUITES = files("spmilp.bench") / "suites"
SUFFIXES = (".yaml", ".yml")


def list_suites() -> tuple[str, ...]:
    """Return the names of the suites that come with the package, sorted."""
    names = (Path(entry.name) for entry in SUITES.iterdir())
    return tuple(sorted(name.stem for name in names if name.suffix in SUFFIXES))


def load_suite(name_or_path: str) -> Suite:
    """Return a suite of the package by name, or that of a YAML file by path.

    Paths in a file are taken from the file's folder; in the package's suites, from the current one.

    Raises
    ------
    FileError
        If there is no such suite, or the file does not describe one.
    """
    if name_or_path.endswith(SUFFIXES) or "/" in name_or_path or "\\" in name_or_path:
        path = Path(name_or_path)
        return read_suite(read_bytes(path), path.stem, str(path), path.parent)
    known = list_suites()
    if name_or_path not in known:
        near = get_close_matches(name_or_path, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
        raise FileError(
            f"suite {name_or_path!r}: none of this name; {hint} "
            "(a file is given with its ending .yaml)"
        )
    data = (SUITES / f"{name_or_path}.yaml").read_bytes()
    return read_suite(data, name_or_path, f"suite {name_or_path}", Path())


def read_suite(data: bytes, name: str, origin: str, folder: Path) -> Suite:
    """Return the suite that the bytes of a YAML file describe.

    Parameters
    ----------
    name
        Of the suite.
    origin
        What messages call the file.
    folder
        From which relative paths lead.

    Raises
    ------
    FileError
        If it is no YAML, breaks the format, names a solver that there is not, or has two rows of
        one name.
    """
    content = fields_of(data, origin, "the fields of a suite (solvers, rows)")
    try:
        given = SuiteFields.model_validate(content)
        rows = tuple(row for entry in given.rows for row in _rows(given, entry, folder))
    except ValidationError as error:
        wrong = what_is_wrong(error, SuiteFields)
        raise FileError(f"{origin}: {wrong}") from error
    except (ValueError, SpmilpError) as error:
        raise FileError(f"{origin}: {error}") from error
    twice = [row for row, count in Counter(row.name for row in rows).items() if count > 1]
    if twice:
        raise FileError(f"{origin}: two rows are called {twice[0]}; leave one out")
    return Suite(name=name, description=given.description.strip(), rows=rows)


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
        matching = [name for name in known if name == pattern] or [
            name for name in known if fnmatchcase(name, pattern)
        ]
        if not matching:
            raise SpmilpError(f"no solver is named {pattern!r}; there are {', '.join(known)}")
        found.update(dict.fromkeys(matching))
    return tuple(found)


def _rows(suite: SuiteFields, entry: EntryFields, folder: Path) -> Iterator[Row]:
    """Yield the rows of an entry: all combinations of what it lists."""
    sources = list(_sources(entry, folder))
    for source, objective in product(sources, entry.objective or (None,)):
        suffix = f"-{objective}" if objective is not None and len(entry.objective or ()) > 1 else ""
        row = Row(
            name=f"{source.name}{suffix}",
            source=source,
            solvers=solvers_named(entry.solvers or suite.solvers),
            seeds=entry.seeds or suite.seeds,
            objective=objective,
            time_limit=entry.time_limit_seconds or suite.time_limit_seconds,
            workers=entry.workers or suite.workers,
            gap=suite.gap if entry.gap is None else entry.gap,
            peer=None
            if entry.peer is None
            else Peer(entry.peer.name, entry.peer.value, entry.peer.source),
        )
        yield fitting(row)


def fitting(row: Row) -> Row:
    """Return the row without ``solve`` where there is no network to map."""
    if isinstance(row.source, ModelOnMachine):
        return row
    return replace(row, solvers=tuple(name for name in row.solvers if name != SOLVE))


def _sources(entry: EntryFields, folder: Path) -> Iterator[Source]:
    for pattern in entry.problem or ():
        yield from (ProblemFile(path) for path in _problem_files(pattern, folder))
    for name in entry.builder or ():
        yield Built(name)
    if entry.generated is not None:
        sizes = entry.generated
        for tasks, cores, seed in product(sizes.tasks, sizes.cores, sizes.seed):
            yield Generated(tasks=tasks, cores=cores, seed=seed)
    for model, machine, dram, spm, tiles in product(
        entry.model or (),
        entry.machine or (),
        entry.dram or (ONCE,),
        entry.spm or (ONCE,),
        entry.tiles or (Tiles.FIRST,),
    ):
        yield ModelOnMachine(
            model=model if model.startswith("onnx:") else str(folder / model),
            machine=str(folder / machine) if machine.endswith(SUFFIXES) else machine,
            dims=tuple(sorted((entry.dims or {}).items())),
            scale=Scale(dram=dram, spm=spm),
            tiles=tiles,
        )


def _problem_files(pattern: str, folder: Path) -> list[Path]:
    """Return the file of a name, or the files of a pattern in the order of their names."""
    if not set(pattern) & set("*?["):
        return [folder / pattern]
    if Path(pattern).is_absolute():
        raise FileError(f"problem {pattern}: a pattern is relative to the suite's folder")
    found = sorted(folder.glob(pattern))
    if not found:
        raise FileError(f"problem {pattern}: no file in {folder.resolve()} matches")
    return found
