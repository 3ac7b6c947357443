"""Prices for the rows of linear relaxations: by ascent on Lagrangian duals, or from a dual simplex.

By weak duality a bound follows from whatever prices, so they need not be the best ones, nor exact.

Those of the ascent are returned as fractions, with which the bounds are then computed in exact
numbers. The method is that of Held, Wolfe, Crowder, "Validation of subgradient optimization",
Mathematical Programming 6, 1974. It loads no solver's library. A :class:`LinearProgram` is solved
by SciPy, and what its prices prove is returned, less all that rounding may have added.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

STEPS = 300
GRAIN = 1 << 20
"""Prices are rounded down to multiples of one part in this many."""

Floats: TypeAlias = NDArray[np.float64]


def prices_of_covers(
    rows: Sequence[tuple[int, Sequence[tuple[int, Fraction]]]],
    costs: Sequence[int],
    limits: Sequence[int],
) -> list[Fraction]:
    """Return a price for each row of a covering problem.

        min sum_j costs[j] z[j]  with  sum_j factor[j] z[j] >= needed for each row,
        0 <= z[j] <= limits[j]

    The dual value of prices ``y`` is ``sum y needed - sum_j limits[j] max(0, y(j) - costs[j])``,
    with ``y(j)`` the sum of price times factor of ``j`` over the rows.

    Parameters
    ----------
    rows
        ``(needed, ((column, factor), ...))``, with factors above 0 and at most 1.
    """
    needed = np.array([each for each, _ in rows], np.float64)
    matrix = np.zeros((len(rows), len(costs)))
    for number, (_, factors) in enumerate(rows):
        for column, factor in factors:
            matrix[number, column] = float(factor)
    cost, limit = np.array(costs, np.float64), np.array(limits, np.float64)
    alone = np.array(
        [_price_alone(row, each, cost, limit) for row, each in zip(matrix, needed, strict=True)]
    )
    values = [
        _cover_value(price * unit, needed, matrix, cost, limit)
        for price, unit in zip(alone, np.eye(len(rows)), strict=True)
    ]
    # The row that costs most alone is a bound to begin with.
    first = int(np.argmax(values))
    prices = np.zeros(len(rows))
    prices[first] = alone[first]
    best, best_prices = values[first], prices
    for step in range(STEPS):
        over = prices @ matrix > cost
        # Prices of rows with small factors are high: steps are in proportion.
        slope = alone * (needed - matrix @ (limit * over))
        size = float(np.linalg.norm(slope))
        if size == 0.0:
            break
        prices = np.maximum(0.0, prices + alone * slope / size * (2 / (1 + step / 10)))
        value = _cover_value(prices, needed, matrix, cost, limit)
        if value > best:
            best, best_prices = value, prices
    return [_price(float(price)) for price in best_prices]


def _price_alone(row: Floats, needed: float, cost: Floats, limit: Floats) -> float:
    """Return the price of a row that is the best when all others have none.

    The columns with the least cost for what they cover are bought until they suffice; the price is
    that of the last one.
    """
    columns = np.flatnonzero(row)
    rates = cost[columns] / row[columns]
    order = np.argsort(rates, kind="stable")
    covered = np.cumsum((row * limit)[columns][order])
    last = min(int(np.searchsorted(covered, needed)), columns.size - 1)
    return float(rates[order][last])


def _cover_value(
    prices: Floats, needed: Floats, matrix: Floats, cost: Floats, limit: Floats
) -> float:
    over = np.maximum(0.0, prices @ matrix - cost)
    return float(prices @ needed - limit @ over)


def _price(value: float) -> Fraction:
    return Fraction(max(0, int(value * GRAIN)), GRAIN)


EPSILON = float(np.finfo(np.float64).eps)


@dataclass
class LinearProgram:
    """Minimise ``cost @ x`` with ``matrix @ x >= least`` and ``0 <= x <= most``.

    Variables and rows are added one by one and named by their number.
    """

    cost: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)

    def variable(self, most: float, cost: float = 0.0) -> int:
        """Add a variable between 0 and ``most``, which is finite."""
        self.cost.append(cost)
        self.most.append(most)
        return len(self.cost) - 1

    def at_least(self, least: float, terms: list[tuple[int, float]]) -> None:
        """Add a row: the sum of factor times variable is ``least`` or more."""
        self.rows.extend([len(self.least)] * len(terms))
        self.columns.extend(variable for variable, _ in terms)
        self.factors.extend(factor for _, factor in terms)
        self.least.append(least)


def proven_minimum(program: LinearProgram, iterations: int) -> int:
    """Return a whole number that no solution of the program is below; 0 if none is found.

    The dual simplex of HiGHS solves the program. What it says of the rows' prices is taken as any
    other prices would be: for all prices ``y >= 0``,

        sum y * least + sum min(0, d) * most  with  d = cost - y @ matrix

    is at most the minimum (weak duality). Every rounding error of that sum is bounded and taken off
    (A. Neumaier, O. Shcherbina, "Safe bounds in linear and mixed-integer linear programming",
    Mathematical Programming 99, 2004).

    Parameters
    ----------
    iterations
        Of the simplex at most; past them there is no bound.
    """
    prices = _prices(program, iterations)
    return 0 if prices is None else max(0, ceil(_value_of(program, prices)))


def _value_of(program: LinearProgram, prices: Floats) -> float:
    """Return the bound that the prices prove, less all that rounding may have added to it."""
    rows, columns = np.array(program.rows, np.int64), np.array(program.columns, np.int64)
    cost = np.array(program.cost)
    earned = prices * np.array(program.least)
    paid = prices[rows] * np.array(program.factors)
    reduced = cost - np.bincount(columns, paid, cost.size)
    terms = np.bincount(columns, minlength=cost.size)
    sizes = np.abs(cost) + np.bincount(columns, np.abs(paid), cost.size)
    errors = (terms + 2) * EPSILON * sizes
    lost = np.minimum(0.0, reduced - errors) * np.array(program.most)
    total = float(earned.sum() + lost.sum())
    size = float(np.abs(earned).sum() + np.abs(lost).sum())
    return float(total - (earned.size + lost.size + 4) * EPSILON * size)


def _prices(program: LinearProgram, iterations: int) -> Floats | None:
    # SciPy's HiGHS lives in one process with that of OR-Tools; highspy's does not.
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    shape = (len(program.least), len(program.cost))
    matrix = csr_array((program.factors, (program.rows, program.columns)), shape=shape)
    answer = linprog(
        program.cost,
        A_ub=-matrix,
        b_ub=-np.array(program.least),
        bounds=np.column_stack((np.zeros(len(program.most)), program.most)),
        method="highs-ds",
        options={"maxiter": iterations},
    )
    if answer.status != 0:
        return None
    return np.maximum(0.0, -np.asarray(answer.ineqlin.marginals, np.float64))
