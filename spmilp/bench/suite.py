"""Suites of rows: each a problem with the solvers, seeds and limits for it."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from spmilp.machine.changed import AS_IT_IS, Scale, shown
from spmilp.problem.objective import Quantity
from spmilp.tile_selection.mode import Tiles

SOLVE = "solve"
"""Name among the solvers of the command ``spmilp solve``: tile search and solver in one limit."""

GREEDY = "greedy:"
"""Prefix of the names of one-pass rules."""


@dataclass(frozen=True, slots=True)
class ProblemFile:
    """A problem that lies in a file.

    Parameters
    ----------
    path
        As found from the current folder.
    """

    path: Path

    @property
    def name(self) -> str:
        """Name of its row."""
        return self.path.stem


TILES_IN_NAMES = {Tiles.FIRST: "", Tiles.SEARCH: "-searched", Tiles.SMAUG: "-smaug"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOnMachine:
    """A network that is lowered for a machine.

    Parameters
    ----------
    model, machine
        As on the command line: a path, or ``onnx:NAME``; a path, or the name of a preset.
    dims
        Sizes of the model's dynamic dimensions.
    """

    model: str
    machine: str
    dims: tuple[tuple[str, int], ...] = ()
    scale: Scale = AS_IT_IS
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
    """A problem of a given size from :mod:`spmilp.bench.generated`."""

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
    """A problem from :data:`spmilp.bench.make.BUILDERS`."""

    name: str


Source: TypeAlias = ProblemFile | ModelOnMachine | Generated | Built


@dataclass(frozen=True, slots=True)
class Peer:
    """The figure of another tool on the same input.

    Parameters
    ----------
    name
        Of the tool and its version.
    value
        Its objective, in the unit of the row's quantity.
    source
        Where the figure comes from.
    """

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

    @property
    def described(self) -> dict[str, object]:
        """Columns that describe the row's source; empty where they do not apply."""
        source = self.source
        if isinstance(source, ModelOnMachine):
            factors: tuple[Fraction, ...] = (source.scale.dram, source.scale.spm)
            dram, spm = (shown(factor) for factor in factors)
            names: dict[str, object] = {"model": source.model, "machine": source.machine}
            return names | {"dram": dram, "spm": spm, "tiles": str(source.tiles)}
        return dict.fromkeys(("model", "machine", "dram", "spm", "tiles"), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A named collection of rows with different names."""

    name: str
    description: str
    rows: tuple[Row, ...]
