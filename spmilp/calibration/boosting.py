"""Gradient-boosted regression trees, for a small error or for the right order.

The first is scikit-learn's. For the second, scikit-learn has no loss: each tree is fitted to the
gradient of the pairwise logistic loss, with the steps of Newton's method at the leaves, as in
XGBoost's ``rank:pairwise``, on which TVM's cost model is built (T. Chen et al., "TVM", OSDI 2018,
section 5.2).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.errors import MissingExtraError
from spmilp.lowering.learned import Floats, Trees

TREES = 400
DEPTH = 3
RATE = 0.1
"""By which each tree's answer is multiplied."""

PARTNERS = 8
"""Tiles with which each one is compared for each tree."""

STIFFNESS = 1.0
"""Added to the second derivatives of each leaf, so that few pairs do not decide much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Tiles to learn from, one in each row.

    Parameters
    ----------
    features
        See :data:`spmilp.lowering.learned.FEATURES`.
    rule, measured
        Natural logarithms of cycles.
    workload
        Numbers; only tiles with the same one are put in order.
    """

    features: Floats
    rule: Floats
    measured: Floats
    workload: NDArray[np.int64]

    def some(self, rows: NDArray[Any]) -> "Examples":
        """Return some of the rows."""
        return Examples(
            features=self.features[rows],
            rule=self.rule[rows],
            measured=self.measured[rows],
            workload=self.workload[rows],
        )


def library() -> Any:
    """Return scikit-learn.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import sklearn.ensemble
        import sklearn.isotonic
        import sklearn.tree
    except ImportError as error:
        raise MissingExtraError(
            "scikit-learn is not installed; pip install 'spmilp[calibrate]'"
        ) from error
    return sklearn


def boosted_for_error(examples: Examples, seed: int) -> tuple[float, Trees]:
    """Return offset and trees by which ``log(measured / rule)`` is predicted."""
    ratio = examples.measured - examples.rule
    model = library().ensemble.GradientBoostingRegressor(
        n_estimators=TREES,
        learning_rate=RATE,
        max_depth=DEPTH,
        min_samples_leaf=2,
        subsample=0.7,
        random_state=seed,
    )
    model.fit(examples.features, ratio)
    offset = float(np.mean(ratio))
    return offset, _as_trees(one.tree_ for one in model.estimators_[:, 0])


def boosted_for_rank(examples: Examples, seed: int) -> Trees:
    """Return trees whose sum, added to the logarithm of cycles by rule, puts tiles in order."""
    rng = np.random.default_rng(seed)
    make = library().tree.DecisionTreeRegressor
    score, found = examples.rule.copy(), []
    for _ in range(TREES):
        pull, bend = _pairwise(examples, score, rng)
        tree = make(max_depth=DEPTH, min_samples_leaf=2, random_state=seed)
        weight = bend + STIFFNESS / len(score)
        tree.fit(examples.features, pull / weight, sample_weight=weight)
        score += RATE * tree.predict(examples.features)
        found.append(tree.tree_)
    return _as_trees(found)


def rising_line(score: Floats, measured: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return points of the line that leads from scores to logarithms of cycles, and only rises."""
    line = library().isotonic.IsotonicRegression(out_of_bounds="clip").fit(score, measured)
    return tuple(line.X_thresholds_.tolist()), tuple(line.y_thresholds_.tolist())


def _pairwise(examples: Examples, score: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return how each score has to move for pairs to be in order, and the second derivatives."""
    rows = np.tile(np.arange(len(score)), PARTNERS)
    other = _partners(examples.workload, rng)
    longer = examples.measured[rows] > examples.measured[other]
    shorter = examples.measured[rows] < examples.measured[other]
    first = np.concatenate((rows[longer], other[shorter]))
    second = np.concatenate((other[longer], rows[shorter]))
    wrong = 1.0 / (1.0 + np.exp(np.clip(score[first] - score[second], -50, 50)))
    pull, bend = np.zeros(len(score)), np.zeros(len(score))
    np.add.at(pull, first, wrong)
    np.add.at(pull, second, -wrong)
    for side in (first, second):
        np.add.at(bend, side, wrong * (1 - wrong))
    return pull, bend


def _partners(workload: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return, for each row as often as there are partners, a row of the same workload."""
    by_workload = np.argsort(workload, kind="stable")
    first = np.searchsorted(workload[by_workload], workload, side="left")
    count = np.searchsorted(workload[by_workload], workload, side="right") - first
    drawn = rng.random((PARTNERS, len(workload)))
    return by_workload[(first + (drawn * count).astype(np.int64)).ravel()]


def _as_trees(trees: Iterable[Any]) -> Trees:
    roots: list[int] = []
    columns: list[list[Any]] = [[] for _ in range(5)]
    for tree in trees:
        first = len(columns[0])
        roots.append(first)
        inner = tree.children_left >= 0
        columns[0] += np.where(inner, tree.feature, -1).tolist()
        columns[1] += np.where(inner, tree.threshold, 0.0).tolist()
        columns[2] += np.where(inner, tree.children_left + first, -1).tolist()
        columns[3] += np.where(inner, tree.children_right + first, -1).tolist()
        columns[4] += np.where(inner, 0.0, RATE * tree.value[:, 0, 0]).tolist()
    feature, threshold, left, right, value = map(tuple, columns)
    return Trees(
        roots=tuple(roots),
        feature=feature,
        threshold=threshold,
        left=left,
        right=right,
        value=value,
    )
