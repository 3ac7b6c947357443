"""What is swept: values of a machine's fields, and one job for each combination."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import isinf, prod
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from spmilp.errors import ArgumentError, DoesNotFitError, NoPlanError, SpmilpError
from spmilp.files import sha256_of
from spmilp.frontend.find import find_model
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.options import Options
from spmilp.pipeline import solve
from spmilp.plan.file import PLAN_FILE, PROBLEM_FILE, open_pair, plan_bytes
from spmilp.problem.file import problem_bytes
from spmilp.problem.objective import Quantity
from spmilp.quantities import byte_count, shown_bytes
from spmilp.result import Result, checked
from spmilp.runs.jobs import Answer, Run, code_version, run_of
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.warm_start import Hint, on_machine
from spmilp.watch import Watch

AnyMachine: TypeAlias = str | Path | Machine | MachineFile

Value: TypeAlias = int | Fraction | str | bool
"""A value of a field: numbers are exact, what is no number is text or a truth value."""

SHORT_NAMES = ("spm", "dma_channels", "dma_rate", "dram_rate")
"""Fields that all machines have, as :meth:`~spmilp.machine.read.MachineFile.replace` calls them."""

GROWING = frozenset({"size_bytes", "size_kib", "size_mib", "channels", "rate_bytes_per_cycle"})
"""Fields of which more never makes a plan worse."""

MOST_POINTS = 100_000
"""Most points of one sweep, and most values of a range."""

_NUMBER = re.compile(r"\d+(\.\d+|/0*[1-9]\d*)?")

OPTIONS = "dim", "input", "tiles", "objective", "pins", "time_limit", "effort", "gap", "workers"
"""Options of a solve that hold for each row."""

SETTINGS = ("solver", "seed", "period", *OPTIONS[1:])
"""Options of a solve that a row may have."""


def settings_of(given: Mapping[str, object]) -> dict[str, Any]:
    """Read options of :func:`spmilp.solve`; return them as JSON knows them, to be given again."""
    read = Options.of({**given, "workers": given.get("workers") or 1})
    found: dict[str, Any] = msgspec.to_builtins({name: getattr(read, name) for name in SETTINGS})
    return found


@dataclass(frozen=True, kw_only=True)
class Point:
    """A job: one network on one machine, to be solved in one way.

    The ``base`` is what the machine is called some of whose fields were set to ``values``. Options
    are as :func:`settings_of` returns them. A worker must have the same ``version`` of the code.
    """

    model: str
    model_sha256: str
    dim: tuple[tuple[str, int], ...] = ()
    base: str
    machine: MachineFile
    values: tuple[tuple[str, Value], ...] = ()
    options: Mapping[str, Any]
    version: str = field(default_factory=code_version)

    @cached_property
    def key(self) -> str:
        """A hash of files, machine, options and the code."""
        hashed = {
            "model": self.model_sha256,
            "machine": self.machine.sha256,
            "dim": self.dim,
            "options": self.options,
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
        limit: float = self.options["time_limit"]
        return None if isinf(limit) else limit

    def is_covered_by(self, larger: "Point") -> bool:
        """Whether another point differs in nothing but more memory, channels or bandwidth.

        A valid plan of this point is then one for the other machine too, or can be made one.
        """
        mine, others = dict(self.values), dict(larger.values)
        kept = [(p.model_sha256, p.dim, p.base, p.options) for p in (self, larger)]
        if kept[0] != kept[1] or mine.keys() != others.keys() or mine == others:
            return False
        return all(
            mine[name] == others[name] or _is_less(name, mine[name], others[name]) for name in mine
        )

    def ended(self, status: str, reason: str) -> Run:
        """Return the row of this point when it has ended without a plan."""
        return Run(
            key=self.key,
            instance=self.model,
            solver=self.options["solver"],
            seed=self.options["seed"],
            quantity=self.options["objective"] or str(Quantity.MAKESPAN),
            status=status,
            reason=reason,
        )

    def carry_out(self) -> Answer:
        """Solve and check it; a ``SpmilpError`` if code or model here are of another version."""
        if self.version != code_version():
            raise SpmilpError(
                f"the sweep is of spmilp {self.version}, and this worker has {code_version()}; "
                "install the same version on all workers"
            )
        here = sha256_of(find_model(self.model))
        if here != self.model_sha256:
            raise SpmilpError(
                f"{self.model}: the sweep has the file {self.model_sha256[:12]}, and this worker "
                f"{here[:12]}; a cluster needs the same files at the same paths"
            )
        try:
            return self.answer(solve(self.model, self.machine, dim=dict(self.dim), **self.options))
        except DoesNotFitError as error:
            status = SolveStatus.INFEASIBLE if error.is_proven else SolveStatus.UNKNOWN
            return Answer(self.ended(str(status), str(error)))
        except NoPlanError as error:
            return Answer(self.ended(str(SolveStatus.UNKNOWN), str(error)))

    def answer(self, result: Result) -> Answer:
        """Return the row of a result of this point, with its files."""
        run = run_of(result, instance=self.model, seed=self.options["seed"], key=self.key)
        if result.roofline is not None:
            run = replace(run, roofline=result.roofline.cycles)
        if result.plan is None:
            return Answer(run)
        plan = plan_bytes(result.plan, result.problem)
        return Answer(run, {PROBLEM_FILE: problem_bytes(result.problem), PLAN_FILE: plan})

    def taken_over(self, folder: Path) -> Answer:
        """Return the row and files of a plan of another machine as one of this.

        Raises a ``SpmilpError`` if it does not hold here.
        """
        watch = Watch(Options.of(self.options))
        problem, plan = open_pair(folder)
        target = on_machine(problem, self.machine)
        known = Hint(name=problem.machine.name, plan=plan, problem=problem).plan_of(target)
        answer = SearchContext(target, SolveOptions()).found(known)
        result = checked(target, answer, asked=self.options["solver"])
        return self.answer(replace(result, **watch.seen()))


def points_of(
    models: Sequence[str | Path],
    machines: Sequence[AnyMachine],
    options: Sequence[Mapping[str, Any]],
    fields: Mapping[str, Sequence[Value]],
    dim: Mapping[str, int],
) -> tuple[Point, ...]:
    """Return all combinations: models first, then options, machines, and fields last.

    What fields are to be is as :meth:`~spmilp.machine.read.MachineFile.replace` takes it.
    """
    count = len(models) * len(machines) * len(options) * prod(map(len, fields.values()))
    if not 1 <= count <= MOST_POINTS:
        raise ArgumentError(f"the sweep has {count:,} rows, expected 1 to {MOST_POINTS:,}")
    for model in models:
        if str(model).endswith(".json"):
            raise ArgumentError(
                f"{model} is a problem, which carries its machine; a sweep takes ONNX models"
            )
    read = [(str(model), sha256_of(find_model(str(model)))) for model in models]
    changed = []
    for machine in machines:
        base = as_machine_file(machine)
        called = str(machine) if isinstance(machine, str | Path) else base.machine.name
        for values in product(*fields.values()):
            pairs = tuple(zip(fields, values, strict=True))
            given = {name: plain(value) for name, value in pairs}
            try:
                changed.append((called, pairs, base.replace(fields=given) if given else base))
            except ValueError as error:
                raise ArgumentError(f"machine {base.machine.name}: {error}") from error
    return tuple(
        Point(
            model=model,
            model_sha256=sha256,
            dim=tuple(sorted(dim.items())),
            base=base,
            machine=machine,
            values=pairs,
            options=how,
        )
        for (model, sha256), how, (base, pairs, machine) in product(read, options, changed)
    )


def _is_less(name: str, one: Value, other: Value) -> bool:
    """Whether a machine with one value has less of what never harms than with the other."""
    is_growing = name in SHORT_NAMES or name.rpartition(".")[2] in GROWING
    return is_growing and not isinstance(one, str) and not isinstance(other, str) and one < other


def values_of(name: str, given: object) -> tuple[Value, ...]:
    """Return the values that a text or a list stands for, ascending, each once.

    ``1,2,4`` is a list, ``16k:256k`` doubles from the first to the last, ``16k:256k:16k`` goes
    in steps. Sizes in bytes have units. An ``ArgumentError`` names the field and what is no value.
    """
    several = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    parts = (p for one in several for p in (one.split(",") if isinstance(one, str) else (one,)))
    found = dict.fromkeys(value for part in parts for value in _range(name, part))
    numbers = [value for value in found if not isinstance(value, str)]
    return tuple(sorted(numbers)) if len(numbers) == len(found) else tuple(found)


def plain(value: Value) -> int | str | bool:
    """Return a value as files and machines hold it: ``47/2`` for what is no whole number."""
    return str(value) if isinstance(value, Fraction) else value


def shown(name: str, value: Value) -> str:
    """Return a value for people: sizes with their unit."""
    return shown_bytes(int(value)) if _is_size(name) and isinstance(value, Integral) else str(value)


def _is_size(name: str) -> bool:
    return name == "spm" or name.endswith("_bytes")


def _range(name: str, part: object) -> Iterator[Value]:
    """Yield the values of ``4``, ``FROM:TO`` or ``FROM:TO:STEP``."""
    if not isinstance(part, str) or ":" not in part:
        yield _value(name, part)
        return
    read = [_value(name, text) for text in part.split(":")]
    numbers = [
        value for value in read if isinstance(value, int | Fraction) and not isinstance(value, bool)
    ]
    if len(numbers) < len(read) or len(read) > 3:
        raise ArgumentError(f"{name}={part}: expected FROM:TO or FROM:TO:STEP of numbers")
    now, until, *by = numbers
    if now > until or 0 in (now, *by):
        raise ArgumentError(f"{name}={part}: expected 0 < FROM <= TO, and a STEP > 0")
    if not by:
        while now < until:
            yield now
            now *= 2
        yield until
        return
    if (until - now) / by[0] >= MOST_POINTS:
        raise ArgumentError(f"{name}={part}: more than {MOST_POINTS:,} values; give a larger step")
    while now <= until:
        yield now
        now += by[0]


def _value(name: str, given: object) -> Value:
    if isinstance(given, bool):
        return given
    text = str(given).strip()
    if _is_size(name) and text != "0":
        try:
            return byte_count(text)
        except ValueError as error:
            raise ArgumentError(f"{name}={given}: {error}") from error
    if _NUMBER.fullmatch(text):
        number = Fraction(text)
        return int(number) if number.denominator == 1 else number
    if name in SHORT_NAMES or not text:
        raise ArgumentError(f"{name}={text}: expected numbers such as 1,2,4 or 1:8 or 1:8:1")
    return {"true": True, "false": False}.get(text.lower(), text)
