"""Sweeps in YAML files: the keywords of :func:`spmilp.sweep`."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.formats import FileRow, converted, fields_of, listed
from spmilp.frontend.find import LIGHT_PREFIX
from spmilp.machine.read import SUFFIXES
from spmilp.problem.objective import Quantity
from spmilp.runs.points import settings_of
from spmilp.runs.sweep import OPTIONS
from spmilp.tile_selection.settings import Tiles
from spmilp.units import Amount, Count

SEVERAL = Meta(min_length=1, max_length=1000)
Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=300)]
Texts: TypeAlias = Annotated[tuple[Text, ...], SEVERAL]
Values: TypeAlias = Annotated[tuple[int | float | bool | Text, ...], SEVERAL]

ONE_OR_MORE = (
    *("models", "machines", "spm", "dma_channels", "dma_rate", "dram_rate"),
    *("solver", "seeds", "pareto"),
)
"""Fields that hold a value or a list of them, as those below ``set`` do."""


class SweepFields(FileRow, frozen=True, kw_only=True):
    """A whole file: what is swept, how it is solved, and what is asked of the table."""

    description: str = ""
    models: Texts
    machines: Texts | None = None
    dim: dict[Text, Count] | None = None
    spm: Values | None = None
    dma_channels: Values | None = None
    dma_rate: Values | None = None
    dram_rate: Values | None = None
    set: dict[Text, Values] = field(default_factory=dict)
    solver: Texts | None = None
    tiles: Tiles | None = None
    objective: Quantity | None = None
    pins: Text | None = None
    time_limit: int | float | Text | UnsetType | None = UNSET
    gap: Annotated[float, Meta(ge=0, le=1)] | None = None
    seeds: Annotated[tuple[Amount, ...], SEVERAL] | None = None
    workers: Annotated[int, Meta(ge=1, le=1024)] | None = None
    pareto: Texts | None = None
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
    several: Any = content.get("set")
    names = (*ONE_OR_MORE, *(several if isinstance(several, dict) else ()))
    try:
        given = converted(listed(content, names), SweepFields)
        fields = {name: getattr(given, name) for name in given.__struct_fields__}
        # Only for the time limit, nothing is something: no limit.
        found = {
            key: each
            for key, each in fields.items()
            if key not in ("description", "set")
            and each is not UNSET
            and (each is not None or key == "time_limit")
        }
        found["fields"] = dict(given.set)
        found["models"] = [
            each if each.startswith(LIGHT_PREFIX) else str(path.parent / each)
            for each in given.models
        ]
        if given.pins is not None:
            found["pins"] = path.parent / given.pins
        if given.machines is not None:
            found["machines"] = [
                str(path.parent / name) if name.endswith(SUFFIXES) else name
                for name in given.machines
            ]
        settings_of({name: found[name] for name in OPTIONS if name in found})
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error
    return found
