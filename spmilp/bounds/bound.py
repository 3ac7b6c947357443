"""A proven lower bound on a quantity of every valid plan."""

from dataclasses import dataclass

from spmilp.problem.objective import Quantity


@dataclass(frozen=True, slots=True)
class Bound:
    """No valid plan has less.

    Parameters
    ----------
    name
        Of the argument that proves it.
    quantity
        What is bounded, in its own unit.
    """

    name: str
    quantity: Quantity
    value: int
