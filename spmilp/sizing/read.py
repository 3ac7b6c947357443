"""Reading sweeps from YAML files."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field, ValidationError

from spmilp.bench.read import OneOrMore, Share, SolverName, Text, Workers
from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.frontend.find import LIGHT_PREFIX
from spmilp.machine.fields import Amount, Count, FileModel, fields_of, what_is_wrong
from spmilp.machine.read import SUFFIXES
from spmilp.options import DEFAULT_SOLVER
from spmilp.problem.objective import Quantity
from spmilp.sizing.grid import Options
from spmilp.sizing.sweep import Sweep, pins_of, seconds_of, size_of
from spmilp.sizing.values import SHORT_NAMES
from spmilp.source import DEFAULT_MACHINE
from spmilp.tile_selection.mode import Tiles

Values: TypeAlias = OneOrMore[
    Annotated[int | float | bool | Text, Field(union_mode="left_to_right")]
]


class SweepFields(FileModel):
    """A whole file: what is swept, how it is solved, and what is asked of the table."""

    description: str = ""
    models: OneOrMore[Text]
    machines: OneOrMore[Text] = (DEFAULT_MACHINE,)
    dim: dict[Text, Count] = Field(default_factory=dict)
    spm: Values | None = None
    dma_channels: Values | None = None
    dma_rate: Values | None = None
    dram_rate: Values | None = None
    set: dict[Text, Values] = Field(default_factory=dict)
    solver: OneOrMore[SolverName] = (DEFAULT_SOLVER,)
    tiles: Tiles | None = None
    objective: Quantity | None = None
    pins: Text | None = None
    time_limit: int | float | Text | None = 60
    memory_limit: int | Text | None = None
    gap: Share = 0.0
    seeds: OneOrMore[Amount] = (0,)
    workers: Workers = 1
    pareto: OneOrMore[Text] | None = None
    target: Text | None = None


def read_sweep(path: Path) -> Sweep:
    """Return the sweep that a YAML file describes.

    Paths in the file are taken from the file's folder.

    Raises
    ------
    FileError
        If it is no YAML or breaks the format; the message names the field.
    """
    content = fields_of(read_bytes(path), str(path), "the fields of a sweep (models, spm, ...)")
    try:
        given = SweepFields.model_validate(content)
        return _sweep(given, path.parent)
    except ValidationError as error:
        wrong = what_is_wrong(error, SweepFields)
        raise FileError(f"{path}: {wrong}") from error
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error


def _sweep(given: SweepFields, folder: Path) -> Sweep:
    fields: dict[str, Any] = {name: getattr(given, name) for name in SHORT_NAMES}
    return Sweep(
        models=tuple(
            model if model.startswith(LIGHT_PREFIX) else str(folder / model)
            for model in given.models
        ),
        machines=tuple(
            str(folder / name) if name.endswith(SUFFIXES) else name for name in given.machines
        ),
        fields={name: each for name, each in fields.items() if each is not None} | given.set,
        dim=given.dim,
        solvers=given.solver,
        seeds=given.seeds,
        options=Options(
            tiles=None if given.tiles is None else str(given.tiles),
            objective=None if given.objective is None else str(given.objective),
            time_limit=seconds_of(given.time_limit),
            memory_limit=size_of(given.memory_limit),
            gap=given.gap,
            workers=given.workers,
            pins=None if given.pins is None else pins_of(folder / given.pins),
        ),
        pareto=given.pareto or (),
        target=given.target,
    )
