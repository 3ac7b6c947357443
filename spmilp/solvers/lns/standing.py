"""A plan in hand: decisions with valid times and addresses."""

from dataclasses import dataclass

from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.lifetimes import makespan_of
from spmilp.solvers.lns.sequence import leftmost, rightmost
from spmilp.units import Cycles

ROUNDS = 4
"""Passes to the right and back at most; most of the gain is in the first."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A draft, a valid start cycle for each activity, and when the last one ends."""

    draft: Draft
    start: Ints
    makespan: Cycles


def compacted(ground: Ground, standing: Standing) -> Standing:
    """Return a standing with better times, its decisions and addresses as they are.

    All is taken as late as it can be, then as early as it can be, until that gains nothing: the
    double justification of Valls, Ballestín and Quintanilla (European Journal of Operational
    Research 165, 2005). The makespan never grows.
    """
    draft, start = standing.draft, standing.start
    tenants = ground.tenants(draft, start)
    early = leftmost(draft, tenants, start)
    makespan = makespan_of(draft, early)
    for _ in range(ROUNDS):
        later = rightmost(draft, tenants, early, makespan)
        early = leftmost(draft, tenants, later)
        before, makespan = makespan, makespan_of(draft, early)
        if makespan == before:
            break
    return Standing(draft, early, makespan)
