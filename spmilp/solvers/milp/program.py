"""A mixed-integer program as it grows: variables with bounds, rows, and big-Ms of their own."""

from spmilp.solvers.milp.linear import Linear, Number, Row, Variable, total

__all__ = ["Program", "total"]


class Program:
    """Variables, rows and an objective to make small; independent of any solver.

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

    def low(self, what: Number) -> int:
        """Return the least value that the bounds of the variables allow."""
        if isinstance(what, int):
            return what
        return what.constant + sum(
            factor * (self.variables[index].low if factor > 0 else self.variables[index].high)
            for index, factor in what.terms.items()
        )

    def high(self, what: Number) -> int:
        """Return the greatest value that the bounds of the variables allow."""
        return -self.low(what * -1)

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


def is_constant(what: Number, value: int) -> bool:
    """Say whether an expression is that constant."""
    return what == value if isinstance(what, int) else not what.terms and what.constant == value
