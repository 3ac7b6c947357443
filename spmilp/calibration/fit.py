"""A cost model from measurements: one for each family of tiles, cross-validated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import spearmanr

from spmilp.calibration.boosting import (
    Examples,
    boosted_for_error,
    boosted_for_rank,
    rising_line,
)
from spmilp.calibration.measurements import Measurement
from spmilp.errors import SpmilpError
from spmilp.lowering.learned import (
    CostModel,
    Family,
    FamilyModel,
    Floats,
    Quality,
    Trees,
    features_of,
    rates_of,
)
from spmilp.machine.machine import Machine
from spmilp.quantities import count

FOLDS = 5
LEAST_TO_RANK = 3
"""Rows of one workload whose order is compared."""

LEAST_ROWS = 25
"""Of a family; with fewer the analytic model stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A family for which the analytic model stays, and why."""

    family: Family
    rows: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A cost model, and the families that it has no model of."""

    model: CostModel
    left_out: tuple[LeftOut, ...]


def calibrate(
    rows: Sequence[Measurement],
    machine: Machine,
    *,
    objective: Literal["error", "rank"] = "error",
    seed: int = 0,
    measured: str = "",
) -> Calibration:
    """Fit a model for each family of tiles; the same for the same rows, objective and seed.

    A family is left out where it has too few rows, or where on held-out rows its model is no
    better than the analytic one: in error, or in rank correlation if that is the objective.

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
            found = _family_model(family, members, objective, seed)
            if _is_better(found, objective):
                models.append(found)
                continue
            reason = "on held-out rows no better than the analytic model"
        left_out.append(LeftOut(family=family, rows=len(members), reason=reason))
    if not models:
        why = "; ".join(f"{' '.join(one.family)}: {one.reason}" for one in left_out)
        raise SpmilpError(f"no family of tiles can be learned ({why})")
    kinds = {model.kind for model in models}
    model = CostModel(
        objective=objective,
        seed=seed,
        measured=measured,
        kinds=tuple((kind.name, rates_of(kind)) for kind in machine.kinds if kind.name in kinds),
        families=tuple(models),
    )
    return Calibration(model=model, left_out=tuple(left_out))


def _is_better(found: FamilyModel, objective: str) -> bool:
    if objective == "rank":
        return found.learned.rank > found.by_rule.rank
    return found.learned.error < found.by_rule.error


def _family_model(
    family: Family, members: list[Measurement], objective: str, seed: int
) -> FamilyModel:
    examples = _examples(members)
    order = np.random.default_rng(seed).permutation(len(members))
    predicted = np.empty(len(members))
    for fold in range(FOLDS):
        held_out = order[fold::FOLDS]
        fitted = _Fitted.to(examples.some(np.setdiff1d(order, held_out)), objective, seed)
        predicted[held_out] = fitted.predict(examples.some(held_out))
    fitted = _Fitted.to(examples, objective, seed)
    kind, operator, dtype = family
    return FamilyModel(
        kind=kind,
        operator=operator,
        dtype=dtype,
        rows=len(members),
        low=tuple(examples.features.min(axis=0).tolist()),
        high=tuple(examples.features.max(axis=0).tolist()),
        offset=fitted.offset,
        trees=fitted.trees,
        scores=fitted.scores,
        logs=fitted.logs,
        learned=_quality(predicted, examples),
        by_rule=_quality(examples.rule, examples),
    )


def _examples(members: list[Measurement]) -> Examples:
    workloads = {name: at for at, name in enumerate(dict.fromkeys(m.workload for m in members))}
    return Examples(
        features=np.array([features_of(m.work.loops, m.work.vector, m.rule) for m in members]),
        rule=np.log([m.rule for m in members]),
        measured=np.log([m.cycles for m in members]),
        workload=np.array([workloads[m.workload] for m in members]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """What was learned from some examples; see :class:`~spmilp.lowering.learned.FamilyModel`."""

    offset: float
    trees: Trees
    scores: tuple[float, ...] = ()
    logs: tuple[float, ...] = ()

    @classmethod
    def to(cls, examples: Examples, objective: str, seed: int) -> "_Fitted":
        if objective == "error":
            offset, trees = boosted_for_error(examples, seed)
            return cls(offset=offset, trees=trees)
        trees = boosted_for_rank(examples, seed)
        found = cls(offset=0.0, trees=trees)
        scores, logs = rising_line(found.predict(examples), examples.measured)
        return cls(offset=0.0, trees=trees, scores=scores, logs=logs)

    def predict(self, examples: Examples) -> Floats:
        sums = [self.trees.sum(features) for features in examples.features]
        score: Floats = examples.rule + self.offset + np.array(sums)
        if not self.scores:
            return score
        line: Floats = np.interp(score, self.scores, self.logs)
        return line


def _quality(predicted: Floats, examples: Examples) -> Quality:
    """Compare natural logarithms of cycles."""
    error = float(np.mean(np.abs(np.exp(predicted - examples.measured) - 1)))
    members = [examples.workload == one for one in np.unique(examples.workload)]
    ranks = [
        _rank(predicted[rows], examples.measured[rows])
        for rows in members
        if np.count_nonzero(rows) >= LEAST_TO_RANK
    ]
    return Quality(error=error, rank=float(np.mean(ranks)) if ranks else 0.0)


def _rank(predicted: Floats, measured: Floats) -> float:
    if np.ptp(predicted) == 0 or np.ptp(measured) == 0:
        return 0.0
    return float(spearmanr(predicted, measured).statistic)
