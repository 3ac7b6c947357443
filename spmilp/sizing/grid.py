"""The points of a sweep: models on machines with other numbers, by solvers with options."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import TypeAlias

import spmilp
from spmilp.code_cache import hash_of_imports
from spmilp.errors import ArgumentError
from spmilp.files import sha256_of
from spmilp.frontend.find import find_model
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.options import DEFAULT_SOLVER
from spmilp.registry import solver_names
from spmilp.sizing.values import SHORT_NAMES, Value, plain, shown, values_of
from spmilp.source import DEFAULT_MACHINE
from spmilp.tile_selection.mode import Tiles
from spmilp.units import Bytes

AnyMachine: TypeAlias = str | Path | Machine | MachineFile

GROWING = frozenset({"size_bytes", "size_kib", "size_mib", "channels", "rate_bytes_per_cycle"})
"""Fields of which more never makes a plan worse."""

MOST_POINTS = 100_000
"""Of one sweep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How each point is solved; see :func:`spmilp.solve`.

    Parameters
    ----------
    time_limit
        Wall seconds; ``None`` for no limit.
    memory_limit
        Bytes; ``None`` for what the worker has.
    pins
        What all plans keep to, as JSON; ``None`` for nothing.
    """

    solver: str = DEFAULT_SOLVER
    tiles: str | None = None
    objective: str | None = None
    time_limit: float | None = 60.0
    gap: float = 0.0
    seed: int = 0
    workers: int = 1
    memory_limit: Bytes | None = None
    pins: str | None = None


@dataclass(frozen=True, kw_only=True)
class Point:
    """One network on one machine, to be solved in one way.

    Parameters
    ----------
    model
        An ONNX file, or ``onnx:NAME``; ``model_sha256`` is that of its bytes.
    dim
        Sizes of the model's dynamic dimensions.
    base
        The machine that was changed, as it is called.
    machine
        The machine as it is to be.
    values
        What was set of its fields.
    """

    model: str
    model_sha256: str
    dim: tuple[tuple[str, int], ...] = ()
    base: str
    machine: MachineFile
    values: tuple[tuple[str, Value], ...] = ()
    options: Options

    @cached_property
    def key(self) -> str:
        """A hash of all that its result depends on: files, options and the code."""
        hashed = {
            "model": self.model_sha256,
            "machine": self.machine.sha256,
            "dim": self.dim,
            "options": asdict(self.options),
            "version": code_version(),
        }
        return sha256_of(json.dumps(hashed, sort_keys=True).encode())[:24]

    @property
    def name(self) -> str:
        """What messages call it."""
        fields = (f", {name} {shown(name, value)}" for name, value in self.values)
        return f"{Path(self.model.removeprefix('onnx:')).stem} on {self.base}{''.join(fields)}"

    def is_covered_by(self, larger: "Point") -> bool:
        """Whether another point differs in nothing but more memory, channels or bandwidth.

        A valid plan of this point is then one for the other machine too, or can be made one.
        """
        mine, others = dict(self.values), dict(larger.values)
        if self._kept() != larger._kept() or mine.keys() != others.keys() or mine == others:
            return False
        return all(
            is_growing(name) and not _less(others[name], mine[name])
            for name in mine
            if mine[name] != others[name]
        )

    def _kept(self) -> tuple[object, ...]:
        return self.model_sha256, self.dim, self.base, self.options


@cache
def code_version() -> str:
    """Return the version, and a hash of all sources that rows depend on, on any computer."""
    worker = Path(spmilp.__file__).parent / "sizing" / "worker.py"
    return f"{spmilp.__version__}+{hash_of_imports(worker)}"


def is_growing(name: str) -> bool:
    """Whether more of a field never makes a plan worse."""
    return name in SHORT_NAMES or name.rpartition(".")[2] in GROWING


def _less(one: Value, other: Value) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return True  # text is neither more nor less
    return one < other


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Everything that is to be combined with everything.

    Parameters
    ----------
    models
        ONNX files, or ``onnx:NAME``.
    machines
        Presets, files or machines.
    fields
        What fields of each machine are to be: ``spm``, ``dma_channels``, ``dma_rate``,
        ``dram_rate``, or a path as :meth:`~spmilp.machine.read.MachineFile.replace` takes it.
    options
        One for each solver and seed.
    """

    models: Sequence[str | Path]
    machines: Sequence[AnyMachine] = (DEFAULT_MACHINE,)
    fields: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    options: Sequence[Options] = (Options(),)
    dim: Mapping[str, int] = field(default_factory=dict)

    def points(self) -> tuple[Point, ...]:
        """Return all combinations: models first, then machines, options, and fields last.

        Raises
        ------
        ValueError
            If a machine has no such field, or cannot be used with a value of it.
        SpmilpError
            If a model or a machine cannot be read, or there is no such solver.
        """
        _refuse_what_cannot_be_swept(self)
        models = [(str(model), sha256_of(find_model(str(model)))) for model in self.models]
        machines = [
            (target, tuple(zip(self.fields, values, strict=True)), base)
            for base, file in ((_called(each), as_machine_file(each)) for each in self.machines)
            for values in product(*self.fields.values())
            for target in (with_values(file, dict(zip(self.fields, values, strict=True))),)
        ]
        return tuple(
            Point(
                model=model,
                model_sha256=sha256,
                dim=tuple(sorted(self.dim.items())),
                base=base,
                machine=machine,
                values=values,
                options=options,
            )
            for (model, sha256), options, (machine, values, base) in product(
                models, self.options, machines
            )
        )


def with_values(file: MachineFile, values: Mapping[str, Value]) -> MachineFile:
    """Return a machine with other values of some fields.

    Raises
    ------
    ValueError
        If the machine has no such field, or cannot be used with a value.
    """
    if not values:
        return file
    try:
        return file.replace(fields={name: plain(value) for name, value in values.items()})
    except ValueError as error:
        raise ArgumentError(f"machine {file.machine.name}: {error}") from error


def options_of(
    solvers: Iterable[str], seeds: Iterable[int], common: Options
) -> tuple[Options, ...]:
    """Return the options of each solver with each seed."""
    return tuple(
        Options(**(asdict(common) | {"solver": solver, "seed": seed}))
        for solver, seed in product(solvers, seeds)
    )


def fields_of(given: Mapping[str, object]) -> dict[str, tuple[Value, ...]]:
    """Read the values of each field; see :func:`~spmilp.sizing.values.values_of`."""
    return {name: values_of(name, values) for name, values in given.items()}


def _called(machine: AnyMachine) -> str:
    if isinstance(machine, MachineFile):
        return machine.machine.name
    return machine.name if isinstance(machine, Machine) else str(machine)


def _refuse_what_cannot_be_swept(grid: Grid) -> None:
    count = len(grid.models) * len(grid.machines) * len(grid.options)
    for values in grid.fields.values():
        count *= len(values)
    if not 1 <= count <= MOST_POINTS:
        raise ArgumentError(f"the sweep has {count:,} rows, expected 1 to {MOST_POINTS:,}")
    for model in grid.models:
        if str(model).endswith(".json"):
            raise ArgumentError(
                f"{model} is a problem, which carries its machine; a sweep takes ONNX models"
            )
    for options in grid.options:
        if options.solver not in solver_names():
            known = ", ".join(solver_names())
            raise ArgumentError(f"solver {options.solver}: there are {known}", is_option=True)
        if options.tiles is not None and options.tiles not in list(Tiles):
            raise ArgumentError(
                f"tiles {options.tiles}: there are {', '.join(Tiles)}", is_option=True
            )
