"""Linear expressions and rows with whole coefficients, kept exact until a solver gets them."""

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
        Whether a solver has to be told that it is an integer. The others (times, offsets) are
        whole in the plan too; see :mod:`spmilp.solvers.milp.repair`.
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
