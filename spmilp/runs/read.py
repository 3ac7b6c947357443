"""Sweeps in YAML files: the keywords of :func:`spmilp.sweep`."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, ValidationError

from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.frontend.find import LIGHT_PREFIX
from spmilp.machine.fields import Amount, Count, FileModel, fields_of, what_is_wrong
from spmilp.machine.read import SUFFIXES
from spmilp.problem.objective import Quantity
from spmilp.runs.points import PointOptions
from spmilp.runs.sweep import OPTIONS
from spmilp.tile_selection.settings import Tiles

T = TypeVar("T")


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


OneOrMore: TypeAlias = Annotated[
    tuple[T, ...], BeforeValidator(_listed), Field(min_length=1, max_length=1000)
]
"""One value, or a list of them."""

Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=300)]
SolverName: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9:/*?_-]*$", max_length=100)]
Workers: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=1024)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Values: TypeAlias = OneOrMore[
    Annotated[int | float | bool | Text, Field(union_mode="left_to_right")]
]


class SweepFields(FileModel):
    """A whole file: what is swept, how it is solved, and what is asked of the table."""

    description: str = ""
    models: OneOrMore[Text]
    machines: OneOrMore[Text] | None = None
    dim: dict[Text, Count] | None = None
    spm: Values | None = None
    dma_channels: Values | None = None
    dma_rate: Values | None = None
    dram_rate: Values | None = None
    set: dict[Text, Values] = Field(default_factory=dict)
    solver: OneOrMore[SolverName] | None = None
    tiles: Tiles | None = None
    objective: Quantity | None = None
    pins: Text | None = None
    time_limit: int | float | Text | None = None
    memory_limit: int | Text | None = None
    gap: Share | None = None
    seeds: OneOrMore[Amount] | None = None
    workers: Workers | None = None
    pareto: OneOrMore[Text] | None = None
    target: Text | None = None


def read_sweep(path: Path) -> dict[str, Any]:
    """Return the keywords of the sweep that a YAML file describes.

    Paths in the file are taken from the file's folder.

    Raises
    ------
    FileError
        If it is no YAML or breaks the format; the message names the field.
    """
    content = fields_of(read_bytes(path), str(path), "the fields of a sweep (models, spm, ...)")
    try:
        given = SweepFields.model_validate(content)
        found = _keywords(given, path.parent)
        PointOptions.of({name: found[name] for name in OPTIONS if name in found})
    except ValidationError as error:
        wrong = what_is_wrong(error, SweepFields)
        raise FileError(f"{path}: {wrong}") from error
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error
    return found


def _keywords(given: SweepFields, folder: Path) -> dict[str, Any]:
    dumped = given.model_dump(exclude={"description", "set"}, exclude_unset=True)
    # Only for the time limit, nothing is something: no limit.
    found = {key: each for key, each in dumped.items() if each is not None or key == "time_limit"}
    found["fields"] = dict(given.set)
    found["models"] = [
        model if model.startswith(LIGHT_PREFIX) else str(folder / model) for model in given.models
    ]
    if given.pins is not None:
        found["pins"] = folder / given.pins
    if given.machines is not None:
        found["machines"] = [
            str(folder / name) if name.endswith(SUFFIXES) else name for name in given.machines
        ]
    return found
