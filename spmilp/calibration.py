"""Cycles of tiles learned from measurements: ``spmilp calibrate``, and ``--cost-model`` of solves.

Measured tiles come from a CSV file, and this file is the cost model: each family of tiles gets
scikit-learn's gradient-boosted regression trees when the file is read.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import log2
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from spmilp.errors import FileError, MissingExtraError, SpmilpError
from spmilp.files import read_bytes, sha256_of
from spmilp.formats import converted
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.geometry import Work
from spmilp.lowering.cost import can_run, task_cycles
from spmilp.lowering.groups import Computation, reduction_length
from spmilp.lowering.lower import tile_group
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.quantities import count
from spmilp.tile_selection.first_choice import CandidateSpace
from spmilp.units import LARGEST, Amount, Count, Cycles

LOOPS = ("B", "G", "K", "C", "Y", "X", "R", "S")
FEATURES = ("rule", "macs", "vector", *LOOPS)
"""Features of a tile, as logarithms to base 2: cycles by rule, MACs, element operations, trips."""

FOLDS = 5
"""Of the cross-validation."""

LEAST_ROWS = 25
"""Least measurements of a family of operators; with fewer the analytic model stays."""

TREES = 400
"""Boosted trees of a family's model."""

MOST_EXAMPLES = 3
"""Reasons that a warning names."""

Family: TypeAlias = tuple[str, str, str]
"""Kind of core, operator that groups are built around, data type: each has a model of its own."""


class Measurement(NamedTuple):
    """A tile and its cycles on a kind of core, measured and by the machine's rates."""

    family: Family
    work: Work
    cycles: Cycles
    rule: Cycles


_Row = msgspec.defstruct(
    "_Row",
    [
        *(("kind", str), ("operator", str), ("dtype", str)),
        *((loop, Count | None, None) for loop in LOOPS),
        *(("vector", Amount, 0), ("cycles", Count), ("workload", str, "")),
    ],
    forbid_unknown_fields=True,
    kw_only=True,
)
"""The columns of a file; ``workload`` is for people."""


def read_measurements(path: Path | str, machine: Machine) -> tuple[Measurement, ...]:
    """Return the rows of a file; a ``FileError`` names the line that is not of the format."""
    data = read_bytes(path)
    try:
        text = io.StringIO(data.decode("utf-8-sig"), newline="")
        rows = csv.DictReader(text, restkey="beyond the header", skipinitialspace=True, strict=True)
        header = rows.fieldnames or ()
        if len(set(header)) < len(header):
            raise FileError(f"{path}: a column is there twice: {', '.join(header)}")
        found = []
        for cells in rows:
            try:
                found.append(_measurement(cells, machine))
            except ValueError as error:
                raise FileError(f"{path}, line {rows.line_num}: {error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileError(f"{path}: is no CSV in UTF-8: {error}") from error
    if not found:
        raise FileError(f"{path}: has no row with a measured tile")
    return tuple(found)


def _measurement(cells: dict[str, Any], machine: Machine) -> Measurement:
    row: Any = converted({name: cell for name, cell in cells.items() if cell}, _Row, strict=False)
    kinds = {kind.name: kind for kind in machine.kinds}
    if row.kind not in kinds:
        raise ValueError(f"kind: {machine.name} has no cores {row.kind!r}, only {', '.join(kinds)}")
    loops = tuple((loop, getattr(row, loop)) for loop in LOOPS if getattr(row, loop))
    work = Work(loops=loops, vector=row.vector, dtype=row.dtype)
    rule = task_cycles(work, kinds[row.kind])
    if rule is None:
        raise ValueError(f"cores {row.kind} of {machine.name} cannot do work of type {row.dtype!r}")
    return Measurement((row.kind, row.operator, row.dtype), work, row.cycles, rule)


def as_csv(rows: Iterable[Measurement]) -> str:
    """Return measurements as the text of a file."""
    to = io.StringIO()
    writer = csv.writer(to, lineterminator="\n")
    writer.writerow(("kind", "operator", "dtype", *LOOPS, "vector", "cycles"))
    for family, work, cycles, _ in rows:
        trips = dict(work.loops)
        writer.writerow((*family, *(trips.get(loop) for loop in LOOPS), work.vector, cycles))
    return to.getvalue()


def tiles_worth_measuring(network: Network, machine: Machine) -> list[Measurement]:
    """Return the different tiles of all candidate tilings of a network, with cycles by rule."""
    space = CandidateSpace(network, machine)
    found: dict[Measurement, None] = {}
    for group in network.groups:
        tilings = [profile.candidate.tiling for profile in space.profiles(group)]
        works = (task.work for one in tilings for task in tile_group(network, group, one).tasks)
        able = [kind for kind in machine.kinds if can_run(kind, group)]
        for work in dict.fromkeys(works):
            for kind in able:
                rule = task_cycles(work, kind)
                if rule is not None:
                    family = kind.name, group.operators[group.anchor].kind, work.dtype
                    found[Measurement(family, work, rule, rule)] = None
    return list(found)


def features_of(work: Work, rule: Cycles) -> list[float]:
    """Return the features of a tile."""
    trips = dict(work.loops)
    lengths = [log2(trips.get(loop, 1)) for loop in LOOPS]
    return [log2(rule), sum(lengths) if trips else -1.0, log2(1 + work.vector), *lengths]


class FamilyModel(NamedTuple):
    """The model of one family: the natural logarithm of ``cycles / rule`` by regression trees.

    ``least`` and ``most`` of each feature are those among the measurements; outside is no answer.
    """

    regressor: Any
    least: list[float]
    most: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedCycles:
    """The cycles of tiles on one kind of core; see :class:`spmilp.machine.machine.MeasuredCycles`.

    The hash is that of the file of measurements.
    """

    sha256: str
    kind: str
    models: dict[Family, FamilyModel] = field(compare=False, repr=False)
    _known: dict[tuple[str, Work], Cycles | None] = field(
        default_factory=dict, compare=False, repr=False
    )

    def cycles(self, operator: str, work: Work, rule: Cycles) -> Cycles | None:
        """Return the cycles of a tile; ``None`` where it lies outside of what was measured."""
        if (operator, work) not in self._known:
            found, features = None, features_of(work, rule)
            if not self.outside(operator, work.dtype, features):
                regressor = self.models[self.kind, operator, work.dtype].regressor
                ratio = np.exp(regressor.predict([features])[0])
                found = max(1, min(LARGEST, round(float(rule * ratio))))
            self._known[operator, work] = found
        return self._known[operator, work]

    def outside(self, operator: str, dtype: str, features: list[float]) -> str:
        """Say why nothing was learned of a tile; empty where something was."""
        model = self.models.get((self.kind, operator, dtype))
        if model is None:
            return "nothing learned"
        for name, value, low, high in zip(FEATURES, features, model.least, model.most, strict=True):
            if not low <= value <= high:
                return f"{name} {2**value:,.0f}, measured from {2**low:,.0f} to {2**high:,.0f}"
        return ""


def with_learned_cycles(machine: Machine, path: Path | str) -> Machine:
    """Return a machine whose tiles take the cycles that are learned from a file of measurements."""
    models: dict[Family, FamilyModel] = {}
    for family, rows in families_of(read_measurements(path, machine)).items():
        features, logarithms = _table(rows)
        models[family] = FamilyModel(
            regressor=_regressor().fit(features, logarithms),
            least=features.min(axis=0).tolist(),
            most=features.max(axis=0).tolist(),
        )
    sha256 = sha256_of(read_bytes(path))
    kinds = (
        replace(kind, measured=LearnedCycles(sha256=sha256, kind=kind.name, models=models))
        for kind in machine.kinds
    )
    return replace(machine, kinds=tuple(kinds))


def families_of(rows: Sequence[Measurement]) -> dict[Family, list[Measurement]]:
    """Return the rows of each family that has enough of them; a ``SpmilpError`` if none has."""
    by_family = attrgetter("family")
    found = {family: list(some) for family, some in groupby(sorted(rows, key=by_family), by_family)}
    enough = {family: some for family, some in found.items() if len(some) >= LEAST_ROWS}
    if not enough:
        most = max(map(len, found.values()))
        raise SpmilpError(
            f"no family of tiles can be learned: none has more than {count(most, 'row')}, fewer "
            f"than {LEAST_ROWS}"
        )
    return enough


def held_out_errors(rows: Sequence[Measurement]) -> tuple[float, float]:
    """Return the mean of ``|predicted - measured| / measured`` on rows of a family held out.

    That is of the model, by cross-validation, and of the machine's rates on the same rows.
    """
    regressor = _regressor()
    from sklearn.model_selection import KFold, cross_val_predict

    features, logarithms = _table(rows)
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    errors = np.exp(cross_val_predict(regressor, features, logarithms, cv=folds) - logarithms) - 1
    return float(np.mean(np.abs(errors))), float(np.mean(np.abs(np.exp(-logarithms) - 1)))


def _table(rows: Sequence[Measurement]) -> tuple[Any, Any]:
    """Return the features of the rows, and the logarithms of ``cycles / rule``."""
    features = np.array([features_of(one.work, one.rule) for one in rows])
    return features, np.log([one.cycles / one.rule for one in rows])


def _regressor() -> Any:
    try:
        from sklearn.ensemble import GradientBoostingRegressor
    except ImportError as error:
        missing = "scikit-learn is not installed; pip install 'spmilp[calibrate]'"
        raise MissingExtraError(missing) from error
    return GradientBoostingRegressor(
        n_estimators=TREES, max_depth=3, min_samples_leaf=2, subsample=0.7, random_state=0
    )


def what_lies_outside(network: Network, problem: Problem, origin: str) -> Iterator[str]:
    """Yield a warning for each kind of core some of whose tasks have the analytic model's cycles.

    They call the cost model by its ``origin``.
    """
    groups = {group.name: group for group in network.groups}
    lengths = {name: reduction_length(network, group) for name, group in groups.items()}
    made = {name: Computation(network, group, lengths[name]) for name, group in groups.items()}
    for kind in problem.machine.kinds:
        reasons: Counter[str] = Counter()
        for tile in (task.tile for task in problem.tasks):
            if tile is None or not can_run(kind, groups[tile.of]):
                continue
            work = made[tile.of].work(tile.box, tile.reduction or (0, lengths[tile.of]))
            rule = task_cycles(work, kind)
            if rule is not None and isinstance(kind.measured, LearnedCycles):
                operator = groups[tile.of].operators[groups[tile.of].anchor].kind
                why = kind.measured.outside(operator, work.dtype, features_of(work, rule))
                reasons.update([f"{operator} {work.dtype}: {why}"] if why else [])
        if reasons:
            examples = "; ".join(why for why, _ in reasons.most_common(MOST_EXAMPLES))
            more = "; …" if len(reasons) > MOST_EXAMPLES else ""
            yield (
                f"{origin}: {reasons.total():,} of {count(len(problem.tasks), 'task')} on "
                f"{kind.name} lie outside of what was measured, and have the cycles of the "
                f"analytic model ({examples}{more})"
            )
