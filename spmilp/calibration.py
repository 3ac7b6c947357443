"""Cycles of tiles learned from measurements: ``spmilp calibrate``, and ``--cost-model`` of solves.

Measured tiles come from a CSV file. Each family of tiles gets scikit-learn's gradient-boosted
regression trees, cross-validated; where they are no better than the machine's rates, these stay.
A model is read and used without scikit-learn.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import exp, log, log2
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Struct

from spmilp.errors import FileError, MissingExtraError, SpmilpError
from spmilp.files import read_bytes, sha256_of
from spmilp.formats import converted, read_document
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.geometry import Work
from spmilp.lowering.cost import can_run, task_cycles
from spmilp.lowering.groups import Computation, reduction_length
from spmilp.lowering.lower import tile_group
from spmilp.machine.machine import CoreKind, Machine
from spmilp.problem.problem import Problem
from spmilp.quantities import count
from spmilp.tile_selection.first_choice import CandidateSpace
from spmilp.units import LARGEST, Amount, Count, Cycles

LOOPS = ("B", "G", "K", "C", "Y", "X", "R", "S")
FEATURES = ("rule", "macs", "vector", *LOOPS)
"""Features of a tile, as logarithms to base 2: cycles by rule, MACs, element operations, trips."""

FORMAT, VERSION = "spmilp-cost-model", "3.0"

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
    """Return the rows of a file.

    Raises
    ------
    FileError
        If the file cannot be read or is not of the format; the message names the line.
    """
    data = read_bytes(path)
    try:
        text = io.StringIO(data.decode("utf-8-sig"), newline="")
        reader = csv.DictReader(
            text, restkey="beyond the header", skipinitialspace=True, strict=True
        )
        header = reader.fieldnames or ()
        if len(set(header)) < len(header):
            raise FileError(f"{path}: a column is there twice: {', '.join(header)}")
        found = []
        for cells in reader:
            try:
                found.append(_measurement(cells, machine))
            except ValueError as error:
                raise FileError(f"{path}, line {reader.line_num}: {error}") from error
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


def tiles_worth_measuring(network: Network, machine: Machine) -> Iterator[Measurement]:
    """Yield the different tiles of all candidate tilings of a network, with cycles by rule.

    Raises
    ------
    SpmilpError
        If no kind of core can run a group, or a group's smallest tile fits no scratchpad.
    """
    space = CandidateSpace(network, machine)
    seen: set[Measurement] = set()
    for group in network.groups:
        tilings = [profile.candidate.tiling for profile in space.profiles(group)]
        works = (task.work for one in tilings for task in tile_group(network, group, one).tasks)
        able = [kind for kind in machine.kinds if can_run(kind, group)]
        for work in dict.fromkeys(works):
            for kind in able:
                rule = task_cycles(work, kind)
                if rule is not None:
                    family = kind.name, group.operators[group.anchor].kind, work.dtype
                    tile = Measurement(family, work, rule, rule)
                    if tile not in seen:
                        seen.add(tile)
                        yield tile


def features_of(work: Work, rule: Cycles) -> list[float]:
    """Return the features of a tile, with the precision in which trees are made."""
    trips = dict(work.loops)
    lengths = [log2(trips.get(loop, 1)) for loop in LOOPS]
    logs = [log2(rule), sum(lengths) if trips else -1.0, log2(1 + work.vector), *lengths]
    found: list[float] = np.array(logs, dtype=np.float32).tolist()
    return found


class Split(Struct, frozen=True, array_like=True):
    """A node of a regression tree: where to go up to, and above, a threshold of a feature.

    A branch that is a number is the tree's answer.
    """

    feature: Annotated[int, Meta(ge=0, lt=len(FEATURES))]
    threshold: float
    low: "Split | float"
    high: "Split | float"


class FamilyModel(Struct, frozen=True, kw_only=True):
    """The model of one family: the natural logarithm of ``cycles / rule`` as a sum of trees.

    Parameters
    ----------
    rows
        Measurements that it was fitted to.
    ranges
        Least and largest value of each feature among them; outside there is no answer.
    offset
        Added to the trees' sum.
    error, error_by_rule
        Mean of ``|predicted - measured| / measured`` on held-out rows: of this model, and of the
        analytic one on the same rows.
    """

    family: Family
    rows: Amount
    ranges: Annotated[tuple[tuple[float, float], ...], Meta(min_length=11, max_length=11)]
    offset: float
    trees: tuple[Split | float, ...]
    error: float
    error_by_rule: float

    def cycles(self, features: list[float], rule: Cycles) -> Cycles:
        """Return the cycles of a tile inside of the ranges."""
        logarithm = log(rule) + self.offset
        for node in self.trees:
            while isinstance(node, Split):
                node = node.low if features[node.feature] <= node.threshold else node.high
            logarithm += node
        return max(1, min(LARGEST, round(exp(min(logarithm, 60.0)))))

    def outside(self, features: list[float]) -> str:
        """Say by which feature a tile lies outside of the ranges; empty where it does not."""
        for name, value, (low, high) in zip(FEATURES, features, self.ranges, strict=True):
            if not low <= value <= high:
                return f"{name} {2**value:,.0f}, measured from {2**low:,.0f} to {2**high:,.0f}"
        return ""


class CostModel(Struct, frozen=True, kw_only=True):
    """Models of families of tiles, and by kind of core what its cycles by rule come from."""

    format: str = FORMAT
    format_version: str = VERSION
    kinds: dict[str, str]
    families: tuple[FamilyModel, ...]

    def encoded(self) -> bytes:
        """Return the content of the file: the same for the same model."""
        return msgspec.json.encode(self) + b"\n"

    def on(self, machine: Machine, origin: str, sha256: str) -> Machine:
        """Return a machine whose tiles take the cycles that the model has learned.

        Raises
        ------
        FileError
            If none of its kinds of core is one that the model was made for, as it was then.
        """
        there = {kind.name: rates_of(kind) for kind in machine.kinds}
        shared = there.keys() & self.kinds.keys()
        if not shared or any(there[name] != self.kinds[name] for name in shared):
            made, has = ("; ".join(map(": ".join, each.items())) for each in (self.kinds, there))
            raise FileError(
                f"{origin}: was made for cores {made}; and {machine.name} has {has}. Calibrate "
                "again, with this machine"
            )
        models = {one.family: one for one in self.families}
        kinds = [
            replace(kind, measured=LearnedCycles(sha256=sha256, kind=kind.name, models=models))
            for kind in machine.kinds
        ]
        return replace(machine, kinds=tuple(kinds))


def read_cost_model(path: Path | str) -> tuple[CostModel, str]:
    """Return a model from its file, and the file's SHA-256.

    Raises
    ------
    FileError
        If the file cannot be read, or is no model.
    """
    data = read_bytes(path)
    return read_document(path, data, CostModel, FORMAT, VERSION)[0], sha256_of(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedCycles:
    """The cycles of tiles on one kind of core; see :class:`spmilp.machine.machine.MeasuredCycles`.

    Parameters
    ----------
    sha256
        Of the model's file.
    """

    sha256: str
    kind: str
    models: dict[Family, FamilyModel]
    _known: dict[tuple[str, Work], Cycles | None] = field(default_factory=dict, repr=False)

    def cycles(self, operator: str, work: Work, rule: Cycles) -> Cycles | None:
        """Return the cycles of a tile; ``None`` where it lies outside of what was measured."""
        if (operator, work) not in self._known:
            found, features = None, features_of(work, rule)
            if not self.outside(operator, work.dtype, features):
                found = self.models[self.kind, operator, work.dtype].cycles(features, rule)
            self._known[operator, work] = found
        return self._known[operator, work]

    def outside(self, operator: str, dtype: str, features: list[float]) -> str:
        """Say why nothing was learned of a tile; empty where something was."""
        model = self.models.get((self.kind, operator, dtype))
        return "nothing learned" if model is None else model.outside(features)


def rates_of(kind: CoreKind) -> str:
    """Return what the cycles by rule on a kind of core come from, as text."""
    lanes = ", ".join(f"{name} {count}" for name, count in kind.lanes) or "none"
    arrays = (" ".join((a.dtype, *(f"{loop}{n}" for loop, n in a.unroll))) for a in kind.arrays)
    return f"launch {kind.launch}, lanes {lanes}, arrays {', '.join(arrays) or 'none'}"


def calibrate(
    rows: Sequence[Measurement], machine: Machine, *, seed: int = 0
) -> tuple[CostModel, dict[Family, str]]:
    """Fit a model for each family of tiles, and say why others keep the analytic model.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    SpmilpError
        If no family is left.
    """
    models, left_out = [], {}
    by_family = attrgetter("family")
    for family, some in groupby(sorted(rows, key=by_family), by_family):
        members = list(some)
        if len(members) < LEAST_ROWS:
            left_out[family] = f"{count(len(members), 'row')}, fewer than {LEAST_ROWS}"
            continue
        found = _family_model(family, members, seed)
        if found.error < found.error_by_rule:
            models.append(found)
        else:
            left_out[family] = "on held-out rows no better than the analytic model"
    if not models:
        why = "; ".join(f"{' '.join(family)}: {reason}" for family, reason in left_out.items())
        raise SpmilpError(f"no family of tiles can be learned ({why})")
    learned = {model.family[0] for model in models}
    kinds = {kind.name: rates_of(kind) for kind in machine.kinds if kind.name in learned}
    model = CostModel(kinds=kinds, families=tuple(models))
    return model, left_out


def _family_model(family: Family, members: list[Measurement], seed: int) -> FamilyModel:
    try:
        from sklearn.ensemble import GradientBoostingRegressor
        from sklearn.model_selection import KFold, cross_val_predict
    except ImportError as error:
        missing = "scikit-learn is not installed; pip install 'spmilp[calibrate]'"
        raise MissingExtraError(missing) from error
    features = np.array([features_of(one.work, one.rule) for one in members])
    times = np.array([one.cycles / one.rule for one in members])
    fit = GradientBoostingRegressor(
        n_estimators=TREES, max_depth=3, min_samples_leaf=2, subsample=0.7, random_state=seed
    )
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    predicted = np.exp(cross_val_predict(fit, features, np.log(times), cv=folds))
    fit.fit(features, np.log(times))
    lowest, highest = features.min(axis=0).tolist(), features.max(axis=0).tolist()
    return FamilyModel(
        family=family,
        rows=len(members),
        ranges=tuple(zip(lowest, highest, strict=True)),
        offset=float(np.mean(np.log(times))),
        trees=tuple(_node(each.tree_, 0, fit.learning_rate) for each in fit.estimators_[:, 0]),
        error=float(np.mean(np.abs(predicted / times - 1))),
        error_by_rule=float(np.mean(np.abs(1 / times - 1))),
    )


def _node(tree: Any, index: int, rate: float) -> Split | float:
    """Return a node of one of scikit-learn's trees, with what hangs on it."""
    low, high = tree.children_left[index], tree.children_right[index]
    if low < 0:
        return rate * float(tree.value[index, 0, 0])
    feature, threshold = int(tree.feature[index]), float(tree.threshold[index])
    return Split(feature, threshold, _node(tree, low, rate), _node(tree, high, rate))


def what_lies_outside(network: Network, problem: Problem, origin: str) -> Iterator[str]:
    """Yield a warning for each kind of core some of whose tasks have the analytic model's cycles.

    Parameters
    ----------
    origin
        What the cost model is called.
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
