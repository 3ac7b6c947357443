"""The smallest value of one field of a machine for which a plan meets a target."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import pandas as pd

from spmilp.errors import ArgumentError
from spmilp.problem.objective import Quantity
from spmilp.runs.frames import SHORT
from spmilp.runs.jobs import Run
from spmilp.runs.points import Point, Value, shown
from spmilp.runs.sweep import Rows

MEETS = "meets the target"
PROVEN = "no plan can"
NOT_FOUND = "no plan was found, and none is ruled out"


@dataclass(frozen=True, slots=True)
class Target:
    """A quantity that is to be at most so much."""

    quantity: Quantity
    most: int

    @classmethod
    def of(cls, text: str) -> "Target":
        """Read ``makespan=6000``; a ``ValueError`` if it is nothing of that kind."""
        name, _, most = (part.strip() for part in text.partition("="))
        quantity = SHORT.get(name, name)
        if quantity not in list(Quantity):
            known = ", ".join([*map(str, Quantity), *SHORT])
            raise ArgumentError(f"target {text}: there are {known}")
        if not most.isascii() or not most.isdecimal() or int(most) < 1:
            raise ArgumentError(f"target {text}: expected a whole number, as in makespan=6000")
        return cls(Quantity(quantity), int(most))

    def is_met_by(self, run: Run) -> bool:
        """Whether the row has a plan that is good enough."""
        return run.objective is not None and run.objective <= self.most

    def verdict_on(self, run: Run) -> str:
        """Say whether a row meets the target, and if not, whether any plan could."""
        if self.is_met_by(run):
            return MEETS
        if self.quantity is Quantity.MAKESPAN and (run.roofline or 0) > self.most:
            return f"{PROVEN}: {run.roofline:,} at least, with any tiles"
        if run.bound is not None and run.bound > self.most:
            return f"no plan with these tiles can: {run.bound:,} at least ({run.bound_source})"
        return NOT_FOUND


def swept_field(values: Mapping[str, Sequence[Value]]) -> str:
    """Return the one field that has several values; a ``ValueError`` if it is not one."""
    several = [name for name, each in values.items() if len(each) > 1]
    if len(several) != 1:
        found = " and ".join(several) or "none"
        raise ArgumentError(
            f"target: give one field a range, as in --spm 16k:256k:1k; there is {found}"
        )
    return several[0]


def look_for_smallest(
    values: Sequence[Value], points: Sequence[Point], target: Target, rows: Rows
) -> None:
    """Solve points of ascending values until one meets a target; then look between it and the last.

    Numbers are doubled at first, so that a sweep that doubles finds no smaller one, then bisected.
    """

    def meets(index: int) -> bool:
        rows.solve([points[index]])
        rows.warm_start([point for point in points if point.key in rows.found])
        return target.is_met_by(rows.found[points[index].key])

    low, high = -1, len(points) - 1
    if not meets(high):
        return
    numbers = [Fraction(value) for value in values if not isinstance(value, str)]
    least = numbers[0] if len(numbers) == len(values) else inf
    for at, number in enumerate(numbers[:-1]):
        if number >= least:
            if meets(at):
                high = at
                break
            low, least = at, 2 * number
    while high - low > 1:
        middle = (low + high) // 2
        if meets(middle):
            high = middle
        else:
            low = middle


def conclusions(frame: pd.DataFrame, field: str, target: Target) -> Iterator[str]:
    """Yield what a table of tried values, ascending, says of each network and machine."""
    wanted = f"{target.quantity} {target.most:,}"
    for (model, machine, solver, seed), tried in frame.groupby(
        ["model", "machine", "solver", "seed"], sort=False
    ):
        name = f"{model} on {machine} ({solver}, seed {seed})"
        met = tried[tried["verdict"] == MEETS]
        if met.empty:
            most = shown(field, tried.iloc[-1][field])
            yield f"{name}: {field} {most} is too little for {wanted}"
            continue
        found = met.iloc[0]
        yield (
            f"{name}: {field} {shown(field, found[field])} is the smallest found for {wanted}: "
            f"{found['objective']:,}"
        )
