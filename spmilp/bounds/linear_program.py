"""Linear programs whose minimum is proven: by the prices of a dual simplex, less all rounding.

By weak duality a bound follows from whatever prices, so they need not be the best ones, nor exact.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf, nextafter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)


def rounded_up(number: Fraction) -> float:
    """Return a number that is no less, for the factors of rows."""
    return nextafter(float(number), inf)


def rounded_down(number: Fraction) -> float:
    """Return a number that is no more."""
    return nextafter(float(number), 0.0)


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

    The dual simplex of GLOP, in OR-Tools, solves the program. What it says of the rows' prices is
    taken as any other prices would be: for all prices ``y >= 0``,

        sum y * least + sum min(0, d) * most  with  d = cost - y @ matrix

    is at most the minimum (weak duality). Every rounding error of that sum is bounded and taken off
    (A. Neumaier, O. Shcherbina, "Safe bounds in linear and mixed-integer linear programming",
    Mathematical Programming 99, 2004). The simplex makes at most so many ``iterations``; past them
    there is no bound.
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
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("GLOP")
    solver.SetSolverSpecificParametersAsString(
        f"use_dual_simplex: true max_number_of_iterations: {iterations}"
    )
    variables = [solver.NumVar(0.0, most, "") for most in program.most]
    rows = [solver.Constraint(least, solver.infinity()) for least in program.least]
    for number, column, factor in zip(program.rows, program.columns, program.factors, strict=True):
        row, variable = rows[number], variables[column]
        row.SetCoefficient(variable, row.GetCoefficient(variable) + factor)
    for variable, cost in zip(variables, program.cost, strict=True):
        solver.Objective().SetCoefficient(variable, cost)
    if solver.Solve() != solver.OPTIMAL:
        return None
    return np.maximum(0.0, [row.dual_value() for row in rows])
