"""A mixed-integer program: expressions with whole coefficients, variables with bounds, rows.

Everything is exact until a solver gets it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, Union

Number: TypeAlias = Union["Linear", int]
"""An expression or a constant."""


class Linear:
    """A sum of variables times whole numbers, and a constant. Never changed once made.

    Parameters
    ----------
    terms
        The coefficient of each variable, by the variable's index; none of them 0.
    """

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[int, int] | None = None, constant: int = 0) -> None:
        self.terms = terms or {}
        self.constant = constant

    def __add__(self, other: Number) -> "Linear":
        return total((self, other))

    __radd__ = __add__

    def __neg__(self) -> "Linear":
        return self * -1

    def __sub__(self, other: Number) -> "Linear":
        return total((self, other * -1))

    def __rsub__(self, other: Number) -> "Linear":
        return total((other, self * -1))

    def __mul__(self, factor: int) -> "Linear":
        if factor == 0:
            return Linear()
        terms = {index: factor * own for index, own in self.terms.items()}
        return Linear(terms, factor * self.constant)

    __rmul__ = __mul__

    def value(self, values: Mapping[int, int]) -> int:
        """Return the value at a point."""
        return self.constant + sum(c * values[index] for index, c in self.terms.items())


def total(parts: Iterable[Number]) -> Linear:
    """Return the sum of expressions and constants."""
    terms: dict[int, int] = {}
    constant = 0
    for part in parts:
        if isinstance(part, int):
            constant += part
            continue
        constant += part.constant
        for index, factor in part.terms.items():
            terms[index] = terms.get(index, 0) + factor
    if 0 in terms.values():
        terms = {index: factor for index, factor in terms.items() if factor}
    return Linear(terms, constant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable with finite bounds.

    Parameters
    ----------
    whole
        Whether it is an integer for the solver. The others (times, offsets) are
        whole in the plan too; see :mod:`spmilp.solvers.milp.solution`.
    """

    index: int
    name: str
    low: int
    high: int
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``left >= 0``, or ``left == 0``."""

    left: Linear
    equal: bool


class Program:
    """Variables, rows and an objective to minimise; independent of any solver.

    Every big-M is computed from the bounds of the very expressions that it separates: it is the
    least number that makes the row say nothing when it is released.
    """

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.rows: list[Row] = []
        self.objective = Linear()
        self.is_impossible = False

    def binary(self, name: str) -> Linear:
        """Return a new variable that is 0 or 1."""
        return self.number(name, 0, 1, whole=True)

    def number(self, name: str, low: int, high: int, *, whole: bool = False) -> Linear:
        """Return a new variable; a constant if its bounds leave no choice."""
        if low > high:
            self.is_impossible = True
            high = low
        if low == high:
            return Linear(constant=low)
        index = len(self.variables)
        variable = Variable(index=index, name=f"{name}_{index}", low=low, high=high, whole=whole)
        self.variables.append(variable)
        return Linear({index: 1})

    def low(self, part: Number) -> int:
        """Return the least value that the bounds of the variables allow."""
        if isinstance(part, int):
            return part
        return part.constant + sum(
            factor * (self.variables[index].low if factor > 0 else self.variables[index].high)
            for index, factor in part.terms.items()
        )

    def high(self, part: Number) -> int:
        """Return the greatest value that the bounds of the variables allow."""
        return -self.low(part * -1)

    def at_least(self, left: Number, right: Number, *unless: Number) -> None:
        """Demand ``left >= right``, released when the sum of ``unless`` is 1 or more."""
        slack = total((left, right * -1))
        least = self.low(slack)
        if least >= 0:
            return
        released = total(unless)
        if not slack.terms and not released.terms and released.constant < 1:
            self.is_impossible = True
        self.rows.append(Row(left=slack + released * -least, equal=False))

    def at_most(self, left: Number, right: Number, *unless: Number) -> None:
        """Demand ``left <= right``, released when the sum of ``unless`` is 1 or more."""
        self.at_least(right, left, *unless)

    def equal(self, left: Number, right: Number) -> None:
        """Demand that two expressions are equal."""
        difference = total((left, right * -1))
        if difference.terms:
            self.rows.append(Row(left=difference, equal=True))
        elif difference.constant:
            self.is_impossible = True

    @property
    def whole_variables(self) -> int:
        """How many variables have to be integers."""
        return sum(variable.whole for variable in self.variables)
