"""A mixed-integer program: expressions with whole coefficients, variables with bounds, rows.

Everything is exact until a solver gets it, within limits, and gives an outcome.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import TypeAlias, Union

from spmilp.errors import SpmilpError

LEAST = 0.05
"""Seconds that a solver gets however late it is."""


class TooLargeError(SpmilpError):
    """The program would have more variables that have to be integers than are worth trying."""

    def __init__(self, count: str, most: int) -> None:
        super().__init__(
            f"the MILP would have {count} integer variables > {most}; use the solver cpsat, or a "
            "smaller problem (about ten tasks: larger tiles, fewer cores)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a run; ``None`` for no limit of seconds, or of nodes of HiGHS's search."""

    seconds: float | None
    threads: int
    seed: int
    gap: float = 0.0
    nodes: int | None = None

    def since(self, began: float) -> "Limits":
        """Return the limits that are left of a run that began at a monotonic time."""
        if self.seconds is None:
            return self
        return replace(self, seconds=max(LEAST, self.seconds - (monotonic() - began)))


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The result of a run.

    ``values`` are those of each variable as the solver gives them, ``None`` without a solution;
    ``bound`` is proven on the objective, ``None`` when nothing is. It is ``infeasible`` if there is
    proven to be no solution, ``complete`` if it has ended by itself, and ``interrupted`` if the
    user has asked to stop. ``nodes`` are those of HiGHS's search.
    """

    values: list[float] | None = None
    bound: int | None = None
    infeasible: bool = False
    complete: bool = False
    interrupted: bool = False
    nodes: int = 0


Number: TypeAlias = Union["Linear", int]
"""An expression or a constant."""


class Linear:
    """A sum of variables times whole numbers, and a constant. Never changed once made.

    ``terms`` are the coefficients by the variables' indices; none of them is 0.
    """

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[int, int] | None = None, constant: int = 0) -> None:
        self.terms = terms or {}
        self.constant = constant

    def __add__(self, other: Number) -> "Linear":
        return total((self, other))

    __radd__ = __add__

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

    A ``whole`` one is an integer for the solver. The others (times, offsets) are whole in the plan
    too; see :mod:`spmilp.solvers.exact.milp.rows`.
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
    least number that makes the row say nothing when it is released. At most ``most_whole``
    variables may have to be integers; ``None`` for no limit.
    """

    def __init__(self, most_whole: int | None = None) -> None:
        self._most_whole = most_whole
        self._whole = 0
        self.variables: list[Variable] = []
        self.rows: list[Row] = []
        self.objective = Linear()
        self.is_impossible = False

    def binary(self, name: str) -> Linear:
        """Return a new variable that is 0 or 1."""
        return self.number(name, 0, 1, whole=True)

    def number(self, name: str, low: int, high: int, *, whole: bool = False) -> Linear:
        """Return a new variable; a constant if its bounds leave no choice.

        Raises a ``TooLargeError`` if it is one more than may have to be integers.
        """
        if low > high:
            self.is_impossible = True
            high = low
        if low == high:
            return Linear(constant=low)
        self._whole += whole
        if self._most_whole is not None and self._whole > self._most_whole:
            raise TooLargeError(f"at least {self._whole}", self._most_whole)
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
