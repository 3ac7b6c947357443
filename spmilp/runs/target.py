"""The smallest value of one field of a machine for which a plan meets a target."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from spmilp.errors import ArgumentError
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.plan.file import open_pair
from spmilp.problem.objective import Quantity
from spmilp.runs.frames import SHORT
from spmilp.runs.jobs import Run
from spmilp.runs.points import (
    AnyMachine,
    Point,
    points_of,
    shown,
    values_of,
    with_values,
)
from spmilp.runs.sweep import Rows
from spmilp.warm_start import is_valid_on

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
        """Read ``makespan=6000``.

        Raises
        ------
        ValueError
            If it is nothing of that kind.
        """
        name, _, most = (part.strip() for part in text.partition("="))
        quantity = SHORT.get(name, name)
        if quantity not in list(Quantity):
            known = ", ".join([*map(str, Quantity), *SHORT])
            raise ArgumentError(f"target {text}: there are {known}")
        digits = re.sub(r"(?<=\d)[,_](?=\d{3})", "", most)
        if not digits.isascii() or not digits.isdecimal() or int(digits) < 1:
            raise ArgumentError(f"target {text}: expected a whole number, as in makespan=6000")
        return cls(Quantity(quantity), int(digits))

    def is_met_by(self, run: Run) -> bool:
        """Whether the row has a plan that is good enough."""
        return run.objective is not None and run.objective <= self.most

    def is_ruled_out_by(self, run: Run) -> bool:
        """Whether no plan of the row's machine can meet it, with any tiles."""
        return self.quantity is Quantity.MAKESPAN and (run.roofline or 0) > self.most

    def verdict_on(self, run: Run) -> str:
        """Say whether a row meets the target, and if not, whether any plan could."""
        if self.is_met_by(run):
            return MEETS
        if self.is_ruled_out_by(run):
            return f"{PROVEN}: {run.roofline:,} at least, with any tiles"
        if run.bound is not None and run.bound > self.most:
            return f"no plan with these tiles can: {run.bound:,} at least ({run.bound_source})"
        return NOT_FOUND


class Range(NamedTuple):
    """One network on one machine with each of so many values of one field, ascending."""

    length: int
    point: Callable[[int], Point]


def swept_field(given: Mapping[str, object]) -> str:
    """Return the one field that has several values.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    several = [
        name for name, values in given.items() if len(values_of(name, values, each=True)) > 1
    ]
    if len(several) != 1:
        found = " and ".join(several) or "none"
        raise ArgumentError(
            f"target: give one field a range, as in --spm 16k:256k; there is {found}"
        )
    return several[0]


def ranges_of(
    models: Sequence[str | Path],
    machines: Sequence[AnyMachine],
    options: Sequence[Mapping[str, Any]],
    given: Mapping[str, object],
    dim: Mapping[str, int],
) -> Iterator[Range]:
    """Yield each network on each machine, with all values of the field that is looked for."""
    name = swept_field(given)
    values = values_of(name, given[name], each=True)
    fixed = {other: values_of(other, given[other])[0] for other in given if other != name}
    one_value = {each: (value,) for each, value in {**fixed, name: values[0]}.items()}

    def point_with(point: Point, base: MachineFile, index: int) -> Point:
        pairs = {**fixed, name: values[index]}
        return replace(point, machine=with_values(base, pairs), values=tuple(pairs.items()))

    for machine in machines:
        base = as_machine_file(machine)
        for point in points_of(models, [machine], options, one_value, dim):
            yield Range(len(values), partial(point_with, point, base))


def smallest(among: Range, target: Target, rows: Rows) -> list[Point]:
    """Look by bisection for the smallest value that meets a target; return what was solved.

    Each plan that meets it is checked on smaller machines, too: one that uses less than there is
    meets the target with less. The points are in ascending order; the first that meets the target
    has the smallest value that was found.
    """
    among.point(0)  # a smallest value that no machine can have is an error at once
    tried: dict[int, Point] = {}

    def try_value(index: int) -> None:
        tried[index] = among.point(index)
        rows.solve([tried[index]])
        rows.warm_start([tried[each] for each in sorted(tried)])

    def least_that_meets() -> int | None:
        met = (each for each in tried if target.is_met_by(rows.found[tried[each].key]))
        return min(met, default=None)

    high = among.length - 1
    try_value(high)
    # What the top does not reach by itself it may with the plan of a smaller machine.
    while least_that_meets() is None:
        if high == 0 or target.is_ruled_out_by(rows.found[tried[high].key]):
            break
        high //= 2
        try_value(high)
    while (found := least_that_meets()) is not None:
        low = max((each for each in tried if each < found), default=-1)
        least = _least_that_holds(among, rows, tried[found].key, low, found)
        if least < found:
            tried[least] = among.point(least)
            rows.adopt(tried[least], tried[found])
        if least - low <= 1:
            break
        try_value((low + least) // 2)
    return [tried[index] for index in sorted(tried)]


def _least_that_holds(among: Range, rows: Rows, key: str, low: int, high: int) -> int:
    """Return the smallest index above ``low`` with which the plan of ``high`` is still valid."""
    problem, plan = open_pair(rows.store.folder_of(key))
    while high - low > 1:
        middle = (low + high) // 2
        if is_valid_on(problem, plan, among.point(middle).machine):
            high = middle
        else:
            low = middle
    return high


def conclusions(frame: pd.DataFrame, field: str, target: Target) -> Iterator[str]:
    """Yield what a table of tried values says, in a sentence for each network and machine.

    Parameters
    ----------
    frame
        With a column ``verdict``, in ascending order of the field.
    """
    wanted = f"{target.quantity} {target.most:,}"
    for (model, machine, solver, seed), tried in frame.groupby(
        ["model", "machine", "solver", "seed"], sort=False
    ):
        name = f"{model} on {machine} ({solver}, seed {seed})"
        met = tried[tried["verdict"] == MEETS]
        if met.empty:
            last = tried.iloc[-1]
            yield f"{name}: {field} {shown(field, last[field])} is too little for {wanted}"
            continue
        found = met.iloc[0]
        yield (
            f"{name}: {field} {shown(field, found[field])} is the smallest found for {wanted}: "
            f"{found['objective']:,}"
        )
        proven = tried[tried["verdict"].str.startswith(PROVEN)]
        if not proven.empty:
            most = proven.iloc[-1][field]
            yield f"{name}: {field} {shown(field, most)} and less cannot, which is proven"
