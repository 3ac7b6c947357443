"""What is swept: values of a machine's fields, and one job for each combination."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from math import isinf, prod
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import msgspec

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.errors import ArgumentError, DoesNotFitError, NoPlanError, SpmilpError
from spmilp.files import sha256_of, write_together
from spmilp.frontend.find import find_model
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.options import DEFAULT_SOLVER, Options
from spmilp.pipeline import has_time_for_roofline, solve, solve_problem
from spmilp.plan.file import open_pair, write_pair
from spmilp.plan.plan import Plan
from spmilp.problem.named_pins import NO_NAMED_PINS
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.quantities import byte_count, shown_bytes
from spmilp.result import Result, checked
from spmilp.runs.jobs import Answer, code_version
from spmilp.runs.run import Run, Watched, run_of, watch
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.source import DEFAULT_MACHINE
from spmilp.units import Bytes
from spmilp.warm_start import carried_over, handed_on, on_machine
from spmilp.watch import Observer, Stage

AnyMachine: TypeAlias = str | Path | Machine | MachineFile

Value: TypeAlias = int | Fraction | str | bool
"""Of a field: numbers are exact, what is no number is text or a truth value."""

SHORT_NAMES = ("spm", "dma_channels", "dma_rate", "dram_rate")
"""Fields that all machines have, as :meth:`~spmilp.machine.read.MachineFile.replace` calls them."""

GROWING = frozenset({"size_bytes", "size_kib", "size_mib", "channels", "rate_bytes_per_cycle"})
"""Fields of which more never makes a plan worse."""

MOST_VALUES = MOST_POINTS = 100_000
"""Of one field, and of one sweep."""

FINEST_SIZE = 1024
"""Bytes between the sizes of a range without a step, where each of them may be the answer."""

_NUMBER = re.compile(r"\d+(\.\d+|/0*[1-9]\d*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOptions:
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

    @classmethod
    def of(cls, given: Mapping[str, object]) -> "PointOptions":
        """Read options of :func:`spmilp.solve`.

        Raises
        ------
        ValueError
            If one has a value that it cannot have.
        FileError
            If pins cannot be read.
        """
        read = Options.of(given)
        tiles, pins = given.get("tiles"), read.pins
        return cls(
            solver=read.solver,
            tiles=None if tiles is None else str(tiles),
            objective=None if read.objective is None else str(read.objective),
            time_limit=None if isinf(read.time_limit) else read.time_limit,
            gap=read.gap,
            seed=read.seed,
            workers=read.workers,
            memory_limit=read.memory_limit,
            pins=None if pins == NO_NAMED_PINS else msgspec.json.encode(pins).decode(),
        )


@dataclass(frozen=True, kw_only=True)
class Point:
    """A job: one network on one machine, to be solved in one way.

    Parameters
    ----------
    model
        An ONNX file, or ``onnx:NAME``; ``model_sha256`` is that of its bytes.
    dim
        Sizes of the model's dynamic dimensions.
    base
        The machine that was changed, as it is called.
    machine
        The machine as it is to be; ``values`` is what was set of its fields.
    start
        ``problem.json`` and ``plan.json`` of another machine, to begin with.
    search
        Search for a better plan than the start, and not only check it on this machine.
    memory
        Bytes that the process may use, where the options have no limit.
    version
        Of the code that asks: that which answers must be the same.
    """

    model: str
    model_sha256: str
    dim: tuple[tuple[str, int], ...] = ()
    base: str
    machine: MachineFile
    values: tuple[tuple[str, Value], ...] = ()
    options: PointOptions
    start: Mapping[str, bytes] | None = field(default=None, repr=False)
    search: bool = True
    memory: Bytes | None = None
    version: str = field(default_factory=code_version)

    @cached_property
    def key(self) -> str:
        """A hash of files, machine, options and the code; the start does not count."""
        hashed = {
            "model": self.model_sha256,
            "machine": self.machine.sha256,
            "dim": self.dim,
            "options": asdict(self.options),
            "version": self.version,
        }
        return sha256_of(json.dumps(hashed, sort_keys=True).encode())[:24]

    @property
    def name(self) -> str:
        """What messages call it."""
        fields = (f", {name} {shown(name, value)}" for name, value in self.values)
        return f"{Path(self.model.removeprefix('onnx:')).stem} on {self.base}{''.join(fields)}"

    @property
    def time_limit(self) -> float | None:
        """Wall seconds of the solve."""
        return self.options.time_limit

    @property
    def about(self) -> dict[str, object]:
        """What a store keeps of it beside its row."""
        return {
            "model": self.model,
            "model_sha256": self.model_sha256,
            "dim": dict(self.dim),
            "machine": self.base,
            "machine_sha256": self.machine.sha256,
            "values": {name: plain(value) for name, value in self.values},
            "options": asdict(self.options),
        }

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

    def ended(self, status: str, reason: str) -> Run:
        """Return the row of this point when it has ended without a plan."""
        return Run(
            key=self.key,
            instance=self.model,
            solver=self.options.solver,
            seed=self.options.seed,
            quantity=self.options.objective or str(Quantity.MAKESPAN),
            status=status,
            reason=reason,
        )

    def carry_out(self) -> Answer:
        """Solve it, from scratch or from the start, and check the plan.

        Raises
        ------
        SpmilpError
            If this computer has another version of the code or another file of the model.
        """
        if self.version != code_version():
            raise SpmilpError(
                f"the sweep is of spmilp {self.version}, and this worker has {code_version()}; "
                "install the same version on all workers"
            )
        try:
            watched = self._solved()
        except DoesNotFitError as error:
            status = SolveStatus.INFEASIBLE if error.is_proven else SolveStatus.UNKNOWN
            return Answer(self.ended(str(status), str(error)))
        except NoPlanError as error:
            return Answer(self.ended(str(SolveStatus.UNKNOWN), str(error)))
        result, limit = watched.result, self.time_limit
        run = run_of(watched, instance=self.model, seed=self.options.seed, key=self.key)
        if has_time_for_roofline(result.origin, float("inf") if limit is None else limit):
            roofline = result.roofline
            run = replace(run, roofline=None if roofline is None else roofline.cycles)
        if result.plan is None:
            return Answer(run)
        with TemporaryDirectory() as folder:
            files = write_pair(result.problem, result.plan, Path(folder))
            return Answer(run, {file.name: file.read_bytes() for file in files})

    def _solved(self) -> Watched:
        if self.start is not None:
            with TemporaryDirectory() as folder:
                write_together(Path(folder), self.start)
                problem, plan = open_pair(Path(folder))
            return watch(partial(improved, problem, plan, self))
        here = sha256_of(find_model(self.model))
        if here != self.model_sha256:
            raise SpmilpError(
                f"{self.model}: the sweep has the file {self.model_sha256[:12]}, and this worker "
                f"{here[:12]}; a cluster needs the same files at the same paths"
            )
        options = asdict(self.options)
        options["memory_limit"] = options["memory_limit"] or self.memory
        options["pins"] = None if options["pins"] is None else json.loads(options["pins"])
        return watch(partial(solve, self.model, self.machine, dim=dict(self.dim), **options))


def improved(problem: Problem, plan: Plan, point: Point, *, observer: Observer) -> Result:
    """Return the best plan of a point's machine that a search finds from a plan of another.

    Where the plan does not hold with the times that it has, its order does with other ones.

    Parameters
    ----------
    problem, plan
        Of the other machine; the result has the same tiles.

    Raises
    ------
    NoPlanError
        If the checker does not accept the plan on this machine, with whatever times.
    """
    target, options = on_machine(problem, point.machine), point.options
    bound = best_bound(target)
    start = carried_over(target, plan, bound)
    if start is None:
        first = check(target, handed_on(target, plan, bound))[0]
        raise NoPlanError(f"{problem.machine.name}'s plan does not hold here: {first.message}")
    limits = SolveOptions(
        time_limit=options.time_limit,
        gap=options.gap,
        seed=options.seed,
        workers=options.workers,
    )
    context = SearchContext(target, limits)
    answer = context.found(start, bound)
    if point.search and answer.status is not SolveStatus.OPTIMAL:
        answer = context.better(solve_problem(target, options.solver, limits, start), answer)
    observer.on_stage(Stage.CHECKING)
    return checked(target, answer, asked=options.solver)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What is to be combined with everything: each model on each machine, with each options."""

    models: Sequence[str | Path]
    machines: Sequence[AnyMachine] = (DEFAULT_MACHINE,)
    options: Sequence[PointOptions] = (PointOptions(),)
    dim: Mapping[str, int] = field(default_factory=dict)

    def points(self, fields: Mapping[str, tuple[Value, ...]]) -> tuple[Point, ...]:
        """Return all combinations: models first, then options, machines, and fields last.

        Parameters
        ----------
        fields
            What fields of each machine are to be: ``spm``, ``dma_channels``, ``dma_rate``,
            ``dram_rate``, or a path as :meth:`~spmilp.machine.read.MachineFile.replace` takes it.

        Raises
        ------
        ValueError
            If a machine has no such field, or cannot be used with a value of it.
        SpmilpError
            If a model or a machine cannot be read.
        """
        self._refuse_what_cannot_be_swept(fields)
        models = [(str(model), sha256_of(find_model(str(model)))) for model in self.models]
        machines = []
        for machine in self.machines:
            base = as_machine_file(machine)
            for values in product(*fields.values()):
                pairs = tuple(zip(fields, values, strict=True))
                machines.append((_called(machine), pairs, with_values(base, dict(pairs))))
        return tuple(
            Point(
                model=model,
                model_sha256=sha256,
                dim=tuple(sorted(self.dim.items())),
                base=base,
                machine=machine,
                values=pairs,
                options=options,
            )
            for (model, sha256), options, (base, pairs, machine) in product(
                models, self.options, machines
            )
        )

    def _refuse_what_cannot_be_swept(self, fields: Mapping[str, tuple[Value, ...]]) -> None:
        count = len(self.models) * len(self.machines) * len(self.options)
        count *= prod(map(len, fields.values()))
        if not 1 <= count <= MOST_POINTS:
            raise ArgumentError(f"the sweep has {count:,} rows, expected 1 to {MOST_POINTS:,}")
        for model in self.models:
            if str(model).endswith(".json"):
                raise ArgumentError(
                    f"{model} is a problem, which carries its machine; a sweep takes ONNX models"
                )


def _called(machine: AnyMachine) -> str:
    if isinstance(machine, MachineFile):
        return machine.machine.name
    return machine.name if isinstance(machine, Machine) else str(machine)


def is_growing(name: str) -> bool:
    """Whether more of a field never makes a plan worse."""
    return name in SHORT_NAMES or name.rpartition(".")[2] in GROWING


def _less(one: Value, other: Value) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return True  # text is neither more nor less
    return one < other


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


def values_of(name: str, given: object, *, each: bool = False) -> tuple[Value, ...]:
    """Return the values that a text or a list stands for, ascending, each once.

    ``1,2,4`` is a list, ``16k:256k`` doubles from the first to the last, ``16k:256k:16k`` goes
    in steps. Sizes in bytes have units.

    Parameters
    ----------
    each
        ``16k:256k`` stands for every KiB, and for every whole number where it is no size.

    Raises
    ------
    ValueError
        If something is no value of the field; the message names the field and what is given.
    """
    found: dict[Value, None] = {}
    for part in _parts(given):
        for value in _of_part(name, part, each=each):
            found[value] = None
            if len(found) > MOST_VALUES:
                raise ArgumentError(
                    f"more than {MOST_VALUES:,} values of one field; give a larger step"
                )
    if any(isinstance(value, str) for value in found):
        return tuple(found)
    return tuple(sorted(found, key=lambda value: value if not isinstance(value, str) else 0))


def plain(value: Value) -> int | str | bool:
    """Return a value as files and machines hold it: ``47/2`` for what is no whole number."""
    return str(value) if isinstance(value, Fraction) else value


def shown(name: str, value: Value) -> str:
    """Return a value for people: sizes with their unit."""
    return shown_bytes(int(value)) if _is_size(name) and isinstance(value, Integral) else str(value)


def _is_size(name: str) -> bool:
    return name == "spm" or name.endswith("_bytes")


def _parts(given: object) -> Iterator[object]:
    several = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    for one in several:
        yield from (text.strip() for text in one.split(",")) if isinstance(one, str) else (one,)


def _of_part(name: str, part: object, *, each: bool) -> Iterator[Value]:
    if not isinstance(part, str) or ":" not in part:
        yield _value(name, part)
        return
    first, last, *step = (_value(name, text.strip()) for text in part.split(":"))
    if any(isinstance(value, str | bool) for value in (first, last, *step)) or len(step) > 1:
        raise ArgumentError(f"{name}={part}: expected FROM:TO or FROM:TO:STEP of numbers")
    now, until, *by = (value for value in (first, last, *step) if isinstance(value, int | Fraction))
    if now > until or 0 in (now, *by):
        raise ArgumentError(f"{name}={part}: expected 0 < FROM <= TO, and a STEP > 0")
    if each and not by:
        by = [FINEST_SIZE if _is_size(name) and until >= 2 * FINEST_SIZE else 1]
    while now < until or (by and now == until):
        yield now
        now = now + by[0] if by else 2 * now
    if not by:
        yield until


def _value(name: str, given: object) -> Value:
    try:
        if isinstance(given, bool):
            return given
        if _is_size(name) and str(given) != "0":
            return byte_count(str(given))
    except ValueError as error:
        raise ArgumentError(f"{name}={given}: {error}") from error
    text = str(given).strip()
    if _NUMBER.fullmatch(text):
        number = Fraction(text)
        return int(number) if number.denominator == 1 else number
    if name in SHORT_NAMES or not text:
        raise ArgumentError(f"{name}={text}: expected numbers such as 1,2,4 or 1:8 or 1:8:1")
    return {"true": True, "false": False}.get(text.lower(), text)
