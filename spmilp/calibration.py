"""Cycles of tiles learned from measurements: ``spmilp calibrate``.

Measured tiles come from a CSV file. Each family of tiles (kind of core, operator, data type) gets
scikit-learn's gradient-boosted regression trees, cross-validated; where they are no better than the
machine's rates, these stay. The model and its file are in :mod:`spmilp.lowering.learned`, which
needs no scikit-learn.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spmilp.errors import FileError, MissingExtraError, SpmilpError
from spmilp.files import read_bytes, sha256_of
from spmilp.formats import near_matches
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.geometry import Work
from spmilp.lowering.cost import can_run, task_cycles
from spmilp.lowering.groups import Computation, reduction_length
from spmilp.lowering.learned import (
    LOOPS,
    CostModel,
    Family,
    FamilyModel,
    Floats,
    LearnedCycles,
    Trees,
    features_of,
    rates_of,
)
from spmilp.lowering.lower import tile_group
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.quantities import count
from spmilp.tile_selection.first_choice import CandidateSpace
from spmilp.units import LARGEST, Cycles

NAMES = ("kind", "operator", "dtype")
COLUMNS = (*NAMES, *LOOPS, "vector", "cycles")
WORKLOAD = "workload"
"""A column that may be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A tile and its cycles on a kind of core.

    Parameters
    ----------
    operator
        The ONNX type of the operator that the tile's group is built around.
    rule
        Cycles by the machine's arrays, lanes and launch.
    workload
        What the tile is a part of; empty where the file does not say.
    """

    kind: str
    operator: str
    work: Work
    cycles: Cycles
    rule: Cycles
    workload: str = ""

    @property
    def family(self) -> Family:
        """What it is an example of."""
        return self.kind, self.operator, self.work.dtype


def read_measurements(path: Path | str, machine: Machine) -> tuple[tuple[Measurement, ...], str]:
    """Return the rows of a file, and the file's SHA-256.

    Raises
    ------
    FileError
        If the file cannot be read or is not of the format; the message names the line.
    """
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        _require_columns(tuple(reader.fieldnames or ()), path)
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
    return tuple(found), sha256_of(data)


def _require_columns(header: tuple[str, ...], path: Path | str) -> None:
    needed, known = (*NAMES, "cycles"), (*COLUMNS, WORKLOAD)
    for name in needed:
        if name not in header:
            raise FileError(
                f"{path}: has no column {name}{near_matches(name, header)}; expected "
                f"{','.join(COLUMNS)} with {', '.join(needed)} at least"
            )
    for name in header:
        if name not in known:
            raise FileError(f"{path}: unknown column {name!r}{near_matches(name, known)}")
        if header.count(name) > 1:
            raise FileError(f"{path}: the column {name} is there {header.count(name)} times")


def _measurement(cells: dict[str, str | None], machine: Machine) -> Measurement:
    if None in cells or None in cells.values():
        raise ValueError("has another number of cells than the first line")
    given = {name: (cell or "").strip() for name, cell in cells.items()}
    name, operator, dtype = (given[column] for column in NAMES)
    kinds = {kind.name: kind for kind in machine.kinds}
    if name not in kinds:
        raise ValueError(f"kind: {machine.name} has no cores {name!r}, only {', '.join(kinds)}")
    loops = tuple((loop, _number(given, loop, 1)) for loop in LOOPS if given.get(loop))
    vector = _number(given, "vector", 0) if given.get("vector") else 0
    work = Work(loops=loops, vector=vector, dtype=dtype)
    rule = task_cycles(work, kinds[name])
    if rule is None:
        raise ValueError(f"cores {name} of {machine.name} cannot do work of type {dtype!r}")
    return Measurement(
        kind=name,
        operator=operator,
        work=work,
        cycles=_number(given, "cycles", 1),
        rule=rule,
        workload=given.get(WORKLOAD, ""),
    )


def _number(given: dict[str, str], column: str, least: int) -> int:
    text = given[column]
    if not (text.isascii() and text.isdecimal() and least <= int(text[:20]) <= LARGEST):
        raise ValueError(f"{column}: {text[:40]!r}, expected a whole number >= {least}")
    return int(text)


def as_csv(rows: Iterable[Measurement]) -> str:
    """Return measurements as the text of a file."""
    to = io.StringIO()
    writer = csv.writer(to, lineterminator="\n")
    writer.writerow((*COLUMNS, WORKLOAD))
    for row in rows:
        trips = dict(row.work.loops)
        numbers = [trips.get(loop, "") for loop in LOOPS]
        names = row.kind, row.operator, row.work.dtype
        writer.writerow((*names, *numbers, row.work.vector, row.cycles, row.workload))
    return to.getvalue()


def tiles_worth_measuring(network: Network, machine: Machine) -> Iterator[Measurement]:
    """Yield the different tiles of all candidate tilings of a network, with cycles by rule.

    Raises
    ------
    SpmilpError
        If no kind of core can run a group, or a group's smallest tile fits no scratchpad.
    """
    space = CandidateSpace(network, machine)
    seen: set[tuple[str, str, Work]] = set()
    for group in network.groups:
        operator = group.operators[group.anchor].kind
        tilings = [profile.candidate.tiling for profile in space.profiles(group)]
        works = (task.work for one in tilings for task in tile_group(network, group, one).tasks)
        for work in dict.fromkeys(works):
            for kind in machine.kinds:
                rule = task_cycles(work, kind) if can_run(kind, group) else None
                if rule is None or (kind.name, operator, work) in seen:
                    continue
                seen.add((kind.name, operator, work))
                yield Measurement(
                    kind=kind.name,
                    operator=operator,
                    work=work,
                    cycles=rule,
                    rule=rule,
                    workload=group.name,
                )


FOLDS = 5
LEAST_ROWS = 25
"""Of a family; with fewer the analytic model stays."""

TREES, DEPTH, RATE = 400, 3, 0.1
"""Trees of a family, their depth, and by how much each tree's answer is multiplied."""


class LeftOut(NamedTuple):
    """A family for which the analytic model stays, and why."""

    family: Family
    rows: int
    reason: str


def calibrate(
    rows: Sequence[Measurement], machine: Machine, *, seed: int = 0, measured: str = ""
) -> tuple[CostModel, tuple[LeftOut, ...]]:
    """Fit a model for each family of tiles; the same for the same rows and seed.

    A family is left out where it has too few rows, or where on held-out rows its model is no
    better than the analytic one.

    Parameters
    ----------
    measured
        SHA-256 of the measurements.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    SpmilpError
        If no family is left.
    """
    by_family: dict[Family, list[Measurement]] = {}
    for row in rows:
        by_family.setdefault(row.family, []).append(row)
    models, left_out = [], []
    for family, members in sorted(by_family.items()):
        if len(members) < LEAST_ROWS:
            reason = f"{count(len(members), 'row')}, fewer than {LEAST_ROWS}"
        else:
            found = _family_model(family, members, seed)
            if found.error < found.error_by_rule:
                models.append(found)
                continue
            reason = "on held-out rows no better than the analytic model"
        left_out.append(LeftOut(family, len(members), reason))
    if not models:
        why = "; ".join(f"{' '.join(one.family)}: {one.reason}" for one in left_out)
        raise SpmilpError(f"no family of tiles can be learned ({why})")
    kinds = {model.kind for model in models}
    model = CostModel(
        seed=seed,
        measured=measured,
        kinds=tuple((kind.name, rates_of(kind)) for kind in machine.kinds if kind.name in kinds),
        families=tuple(models),
    )
    return model, tuple(left_out)


def _family_model(family: Family, members: list[Measurement], seed: int) -> FamilyModel:
    features = np.array([features_of(m.work.loops, m.work.vector, m.rule) for m in members])
    rule = np.array([m.rule for m in members], dtype=np.float64)
    cycles = np.array([m.cycles for m in members], dtype=np.float64)
    ratio = np.log(cycles) - np.log(rule)
    order = np.random.default_rng(seed).permutation(len(members))
    predicted = np.empty(len(members))
    for fold in range(FOLDS):
        held_out = order[fold::FOLDS]
        others = np.setdiff1d(order, held_out)
        offset, trees = boosted(features[others], ratio[others], seed)
        predicted[held_out] = [offset + trees.sum(row) for row in features[held_out]]
    offset, trees = boosted(features, ratio, seed)
    kind, operator, dtype = family
    return FamilyModel(
        kind=kind,
        operator=operator,
        dtype=dtype,
        rows=len(members),
        low=tuple(features.min(axis=0).tolist()),
        high=tuple(features.max(axis=0).tolist()),
        offset=offset,
        trees=trees,
        error=float(np.mean(np.abs(np.exp(predicted) * rule / cycles - 1))),
        error_by_rule=float(np.mean(np.abs(rule / cycles - 1))),
    )


def boosted(features: Floats, ratio: Floats, seed: int) -> tuple[float, Trees]:
    """Return offset and trees by which ``log(measured / rule)`` is predicted.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import GradientBoostingRegressor
    except ImportError as error:
        raise MissingExtraError(
            "scikit-learn is not installed; pip install 'spmilp[calibrate]'"
        ) from error
    model = GradientBoostingRegressor(
        n_estimators=TREES,
        learning_rate=RATE,
        max_depth=DEPTH,
        min_samples_leaf=2,
        subsample=0.7,
        random_state=seed,
    )
    model.fit(features, ratio)
    return float(np.mean(ratio)), _as_trees(one.tree_ for one in model.estimators_[:, 0])


def _as_trees(trees: Iterable[Any]) -> Trees:
    roots: list[int] = []
    columns: list[list[Any]] = [[] for _ in range(5)]
    for tree in trees:
        first, inner = len(columns[0]), tree.children_left >= 0
        roots.append(first)
        for column, values in zip(
            columns,
            (
                np.where(inner, tree.feature, -1),
                np.where(inner, tree.threshold, 0.0),
                np.where(inner, tree.children_left + first, -1),
                np.where(inner, tree.children_right + first, -1),
                np.where(inner, 0.0, RATE * tree.value[:, 0, 0]),
            ),
            strict=True,
        ):
            column += values.tolist()
    names = ("feature", "threshold", "left", "right", "value")
    return Trees(roots=tuple(roots), **dict(zip(names, map(tuple, columns), strict=True)))


MOST_EXAMPLES = 3


def what_lies_outside(network: Network, problem: Problem, origin: str) -> Iterator[str]:
    """Yield a warning for each kind of core some of whose tasks have the analytic model's cycles.

    Parameters
    ----------
    origin
        What the cost model is called.
    """
    groups = {group.name: group for group in network.groups}

    @cache
    def computation(name: str) -> tuple[Computation, int]:
        length = reduction_length(network, groups[name])
        return Computation(network, groups[name], length), length

    for kind in problem.machine.kinds:
        learned = kind.measured
        if not isinstance(learned, LearnedCycles):
            continue
        reasons: Counter[str] = Counter()
        for task in problem.tasks:
            if task.tile is None or not can_run(kind, groups[task.tile.of]):
                continue
            group = groups[task.tile.of]
            made, length = computation(group.name)
            work = made.work(task.tile.box, task.tile.reduction or (0, length))
            operator = group.operators[group.anchor].kind
            rule = task_cycles(work, kind)
            if rule is None:
                continue
            family = learned.model.of(kind.name, operator, work.dtype)
            why = "nothing learned"
            if family is not None:
                why = family.outside(features_of(work.loops, work.vector, rule))
            if why:
                reasons[f"{operator} {work.dtype}: {why}"] += 1
        if reasons:
            examples = "; ".join(why for why, _ in reasons.most_common(MOST_EXAMPLES))
            more = "; …" if len(reasons) > MOST_EXAMPLES else ""
            yield (
                f"{origin}: {reasons.total():,} of {count(len(problem.tasks), 'task')} on "
                f"{kind.name} lie outside of what was measured, and have the cycles of the "
                f"analytic model ({examples}{more})"
            )
