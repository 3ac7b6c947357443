"""Cycles of tiles by a model that was learned from measurements, and its file."""

import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import exp, log2
from pathlib import Path
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from spmilp.errors import FileError
from spmilp.files import read_bytes, sha256_of, write_atomically
from spmilp.formats import read_document
from spmilp.machine.machine import CoreKind, MacArray, Machine
from spmilp.units import LARGEST, Amount, Cycles

LOOPS = ("B", "G", "K", "C", "Y", "X", "R", "S")
FEATURES = ("rule", "macs", "vector", *LOOPS)
"""Of a tile, each as the logarithm to base 2: cycles by rule, MACs, element operations, trips."""

LEAF = -1
"""In place of a feature and of children."""

Floats: TypeAlias = NDArray[np.float64]
Family: TypeAlias = tuple[str, str, str]
"""Kind of core, operator that groups are built around, data type: each has a model of its own."""


def features_of(loops: tuple[tuple[str, int], ...], vector: int, rule: Cycles) -> Floats:
    """Return the features of a tile, with the precision in which trees are made."""
    trips = dict(loops)
    lengths = [log2(trips.get(loop, 1)) for loop in LOOPS]
    macs = sum(lengths) if loops else -1.0
    logs = [log2(rule), macs, log2(1 + vector), *lengths]
    return np.array(logs, dtype=np.float32).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Trees:
    """Regression trees whose answers are added up; children come behind their parents.

    Parameters
    ----------
    roots
        The first node of each tree.
    feature, threshold
        A feature up to the threshold leads to the left, and one above to the right.
    left, right
        Nodes; ``LEAF`` where there are none.
    value
        What a leaf adds.
    """

    roots: tuple[int, ...] = ()
    feature: tuple[int, ...] = ()
    threshold: tuple[float, ...] = ()
    left: tuple[int, ...] = ()
    right: tuple[int, ...] = ()
    value: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        nodes = len(self.value)
        columns = (self.feature, self.threshold, self.left, self.right)
        if any(len(column) != nodes for column in columns):
            raise ValueError(f"trees: columns of {[*map(len, columns), nodes]} nodes")
        if not all(0 <= root < nodes for root in self.roots):
            raise ValueError(f"trees: a root is none of the {nodes} nodes")
        for node, (feature, *children) in enumerate(
            zip(self.feature, self.left, self.right, strict=True)
        ):
            if feature == LEAF:
                continue
            if not 0 <= feature < len(FEATURES):
                raise ValueError(f"node {node}: there is no feature {feature}")
            if not all(node < child < nodes for child in children):
                raise ValueError(f"node {node}: its children {children} do not follow it")

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], ...]:
        return tuple(np.array(column) for column in (self.feature, self.left, self.right))

    @cached_property
    def _numbers(self) -> tuple[Floats, ...]:
        return np.array(self.threshold), np.array(self.value)

    def sum(self, features: Floats) -> float:
        """Return what the trees say of a tile."""
        if not self.roots:
            return 0.0
        feature, left, right = self._columns
        threshold, value = self._numbers
        at = np.array(self.roots)
        while True:
            inner = np.flatnonzero(feature[at] != LEAF)
            if not inner.size:
                return float(np.sum(value[at]))
            node = at[inner]
            lower = features[feature[node]] <= threshold[node]
            at[inner] = np.where(lower, left[node], right[node])


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyModel:
    """The model of one family.

    Parameters
    ----------
    rows
        Measurements that it was fitted to.
    low, high
        Of each feature among them; outside there is no answer.
    offset
        Added to the trees' sum and to the natural logarithm of the cycles by rule.
    error, error_by_rule
        Mean of ``|predicted - measured| / measured`` on held-out rows: of this model, and of the
        analytic one on the same rows.
    """

    kind: str
    operator: str
    dtype: str
    rows: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    offset: float
    trees: Trees
    error: float
    error_by_rule: float

    def __post_init__(self) -> None:
        if len(self.low) != len(FEATURES) or len(self.high) != len(FEATURES):
            raise ValueError(f"{self.family}: ranges of other than {len(FEATURES)} features")

    @property
    def family(self) -> Family:
        """What it is the model of."""
        return self.kind, self.operator, self.dtype

    def cycles(self, features: Floats, rule: Cycles) -> Cycles | None:
        """Return the cycles of a tile; ``None`` outside of the ranges."""
        if self.outside(features):
            return None
        logarithm = float(np.log(rule)) + self.offset + self.trees.sum(features)
        return max(1, min(LARGEST, round(exp(min(logarithm, 60.0)))))

    def outside(self, features: Floats) -> str:
        """Say by which feature a tile lies outside of the ranges; empty where it does not."""
        for name, value, low, high in zip(FEATURES, features, self.low, self.high, strict=True):
            if not low <= value <= high:
                return f"{name} {2**value:,.0f}, measured from {2**low:,.0f} to {2**high:,.0f}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Models of families of tiles on the kinds of core of a machine.

    Parameters
    ----------
    seed
        Of the fit.
    measured
        SHA-256 of the measurements.
    kinds
        ``(name, launch, arrays, lanes)`` as text of each kind of core: what cycles by rule come
        from.
    """

    seed: int
    measured: str
    kinds: tuple[tuple[str, str], ...]
    families: tuple[FamilyModel, ...]

    def of(self, kind: str, operator: str, dtype: str) -> FamilyModel | None:
        """Return the model of a family, if there is one."""
        wanted = kind, operator, dtype
        return next((one for one in self.families if one.family == wanted), None)

    def on(self, machine: Machine, origin: str, sha256: str) -> Machine:
        """Return a machine whose tiles take the cycles that the model has learned.

        Raises
        ------
        FileError
            If none of its kinds of core is one that the model was made for, as it was then.
        """
        known = dict(self.kinds)
        for kind in machine.kinds:
            if kind.name in known and known[kind.name] != rates_of(kind):
                raise FileError(
                    f"{origin}: was made for cores {kind.name} with {known[kind.name]}; those of "
                    f"{machine.name} have {rates_of(kind)}: calibrate again, with this machine"
                )
        if known.keys().isdisjoint(kind.name for kind in machine.kinds):
            raise FileError(
                f"{origin}: was made for cores {', '.join(known)}, and {machine.name} has "
                f"{', '.join(kind.name for kind in machine.kinds)}"
            )
        kinds = tuple(
            replace(kind, measured=LearnedCycles(sha256=sha256, kind=kind.name, model=self))
            for kind in machine.kinds
        )
        return replace(machine, kinds=kinds)


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
    model: CostModel
    _known: dict[object, Cycles | None] = field(default_factory=dict, compare=False, repr=False)

    def cycles(
        self,
        operator: str,
        dtype: str,
        loops: tuple[tuple[str, int], ...],
        vector: int,
        rule: Cycles,
    ) -> Cycles | None:
        """Return the cycles of a tile; ``None`` where it lies outside of what was measured."""
        key = operator, dtype, loops, vector
        if key not in self._known:
            found = self.model.of(self.kind, operator, dtype)
            self._known[key] = (
                None if found is None else found.cycles(features_of(loops, vector, rule), rule)
            )
        return self._known[key]


def rates_of(kind: CoreKind) -> str:
    """Return what the cycles by rule on a kind of core come from, as text."""
    lanes = ", ".join(f"{name} {count}" for name, count in kind.lanes)
    arrays = "; ".join(map(_array, kind.arrays)) or "none"
    return f"launch {kind.launch}, lanes {lanes or 'none'}, arrays {arrays}"


def _array(array: MacArray) -> str:
    return " ".join((array.dtype, *(f"{loop}{size}" for loop, size in array.unroll)))


FORMAT, VERSION = "spmilp-cost-model", "2.0"
MOST_BYTES = 1 << 26
"""Of a model's file."""


class _File(Struct, frozen=True):
    format: str
    format_version: str
    seed: Amount
    measured: str
    kinds: tuple[tuple[str, str], ...]
    families: tuple[FamilyModel, ...]


def write_cost_model(model: CostModel, path: Path | str) -> None:
    """Write a model's file: the same bytes for the same model.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    content = {"format": FORMAT, "format_version": VERSION} | asdict(model)
    write_atomically(path, json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n")


def read_cost_model(path: Path | str) -> tuple[CostModel, str]:
    """Return a model from its file, and the file's SHA-256.

    Raises
    ------
    FileError
        If the file cannot be read, or is no model.
    """
    if Path(path).is_file() and Path(path).stat().st_size > MOST_BYTES:
        raise FileError(
            f"{path}: has {Path(path).stat().st_size} B, more than the {MOST_BYTES} B of any model"
        )
    data = read_bytes(path)
    given, _ = read_document(path, data, _File, FORMAT, VERSION)
    model = CostModel(
        seed=given.seed,
        measured=given.measured,
        kinds=given.kinds,
        families=given.families,
    )
    return model, sha256_of(data)
