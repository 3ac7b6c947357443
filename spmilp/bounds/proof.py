"""A lower bound, and a proof that has not been computed yet."""

from collections.abc import Callable
from dataclasses import dataclass

from spmilp.problem.objective import Quantity


@dataclass(frozen=True, slots=True)
class Bound:
    """No valid plan has less.

    ``name`` is that of the argument that proves it; ``quantity`` is bounded, in its own unit.
    """

    name: str
    quantity: Quantity
    value: int


@dataclass(frozen=True, slots=True)
class Proof:
    """A bound that has not been computed yet.

    ``value`` computes it. One that ``is_slow`` takes some ten times as long as others: heads and
    tails that see joins of several producers are found first, which those behind it share.
    """

    name: str
    quantity: Quantity
    value: Callable[[], int]
    is_slow: bool = False

    def bound(self) -> Bound:
        """Compute the bound."""
        return Bound(self.name, self.quantity, self.value())
