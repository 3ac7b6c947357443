"""Prices for the rows of linear relaxations, found by ascent on their Lagrangian duals.

By weak duality a bound follows from whatever prices, so they need not be the best ones, nor exact.
They are returned as fractions, with which the bounds are then computed in exact numbers. The method
is that of Held, Wolfe, Crowder, "Validation of subgradient optimization", Mathematical Programming
6, 1974. No solver's library is loaded: those for linear programs and OR-Tools each bring a HiGHS of
their own and cannot live in one process.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

STEPS = 300
GRAIN = 1 << 20
"""Prices are rounded down to multiples of one part in this many."""

Floats: TypeAlias = NDArray[np.float64]


def prices_of_shares(
    cycles: Sequence[Sequence[int | None]], counts: Sequence[int], cores: Sequence[int]
) -> list[Fraction]:
    """Return a price for each kind of core in the fractional assignment of tasks to kinds.

        min T  with  sum_k x[i, k] = counts[i],  sum_i cycles[i][k] x[i, k] <= cores[k] T,  x >= 0

    Its dual value is ``sum_i counts[i] min_k y[k] cycles[i][k]`` over ``sum_k cores[k] y[k]``. Each
    step raises the price of the kinds that the cheapest assignment overloads.

    Parameters
    ----------
    cycles
        Of each sort of task on each kind; ``None`` where it cannot run.
    """
    table = np.array([[np.inf if c is None else float(c) for c in row] for row in cycles])
    number = np.array(counts, np.float64)
    width = np.array(cores, np.float64)
    prices = np.ones(len(cores)) / width.sum()
    best, best_prices = -1.0, prices
    rows = np.arange(len(counts))
    for step in range(STEPS):
        cost = prices * table
        chosen = np.argmin(cost, axis=1)
        value = float((number * cost[rows, chosen]).sum())
        if value > best:
            best, best_prices = value, prices
        load = np.bincount(chosen, number * table[rows, chosen], len(cores)) / width
        overload = np.clip(load / max(value, 1e-9) - 1, -10.0, 10.0)
        prices = prices * np.exp(overload / (2 + step / 4))
        prices /= (prices * width).sum()
    scale = 1.0 / best_prices.max()
    return [_price(float(price) * scale) for price in best_prices]


def prices_of_covers(
    rows: Sequence[tuple[int, Sequence[int]]], costs: Sequence[int], limits: Sequence[int]
) -> list[Fraction]:
    """Return a price for each row of a covering problem.

        min sum_j costs[j] z[j]  with  sum_{j in row} z[j] >= needed,  0 <= z[j] <= limits[j]

    The dual value of prices ``y`` is ``sum y needed - sum_j limits[j] max(0, y(j) - costs[j])``,
    with ``y(j)`` the sum over the rows with column ``j``.

    Parameters
    ----------
    rows
        ``(needed, columns)``.
    """
    needed = np.array([each for each, _ in rows], np.float64)
    matrix = np.zeros((len(rows), len(costs)))
    for number, (_, columns) in enumerate(rows):
        matrix[number, list(columns)] = 1.0
    cost, limit = np.array(costs, np.float64), np.array(limits, np.float64)
    cheapest = float(cost.min())
    # The row that needs most, at the least cost of any byte, is a bound to begin with.
    prices = np.zeros(len(rows))
    prices[int(needed.argmax())] = cheapest
    best, best_prices = _cover_value(prices, needed, matrix, cost, limit), prices
    for step in range(STEPS):
        over = prices @ matrix > cost
        slope = needed - matrix @ (limit * over)
        size = float(np.linalg.norm(slope))
        if size == 0.0:
            break
        prices = np.maximum(0.0, prices + slope / size * (2 * cheapest / (1 + step / 10)))
        value = _cover_value(prices, needed, matrix, cost, limit)
        if value > best:
            best, best_prices = value, prices
    return [_price(float(price)) for price in best_prices]


def _cover_value(
    prices: Floats, needed: Floats, matrix: Floats, cost: Floats, limit: Floats
) -> float:
    over = np.maximum(0.0, prices @ matrix - cost)
    return float(prices @ needed - limit @ over)


def _price(value: float) -> Fraction:
    return Fraction(max(0, int(value * GRAIN)), GRAIN)
