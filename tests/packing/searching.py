"""The search alone, and one random problem asked in all the ways that must agree."""

from dataclasses import dataclass, replace
from random import Random

import numpy as np

from spmilp.packing import (
    PackingOptions,
    PackingProblem,
    PackingStatus,
    check_packing,
    minimise,
    pack,
)
from spmilp.packing.decide import Decider
from spmilp.packing.instance import height_bound, instance_of
from spmilp.packing.result import Clock
from spmilp.packing.search import Outcome
from tests.packing.oracle import can_be_packed

NODES = 200_000
AMPLE = 200
"""A capacity in which every random problem fits that does not contradict itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What the search said, with the restarts it took."""

    outcome: Outcome
    offsets: tuple[int, ...] | None
    restarts: int


def search_alone(problem: PackingProblem, seed: int = 0) -> Searched:
    """Search without bounds, heuristics and CP-SAT before it or beside it."""
    options = PackingOptions(seed=seed, node_limit=NODES)
    instance, clock = instance_of(problem), Clock(options)
    fixed = np.flatnonzero(instance.groups.offset[instance.groups.of_item] >= 0).tolist()
    if pack(problem.part(fixed)).status is PackingStatus.INFEASIBLE:
        return Searched(outcome=Outcome.EXHAUSTED, offsets=None, restarts=0)
    verdict = Decider(instance, options, clock).decide(problem.capacity or 0)
    if verdict.offsets is None:
        return Searched(outcome=verdict.outcome, offsets=None, restarts=clock.restarts)
    offsets = instance.offsets_of_items(verdict.offsets)
    return Searched(outcome=verdict.outcome, offsets=offsets, restarts=clock.restarts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What one random problem showed, disagreements first."""

    wrong: tuple[str, ...]
    asked: int = 0
    infeasible: int = 0
    above_bound: int = 0
    restarted: int = 0
    given_up: int = 0


def agreement_on(problem: PackingProblem, random: Random) -> Agreement:
    """Ask at the least height and one byte below, with two seeds.

    What the second opinion has to confirm is the proof; offsets are checked.
    """
    least = minimise(problem)
    if least.height is None or least.offsets is None:
        ample = can_be_packed(replace(problem, capacity=AMPLE))
        return Agreement(wrong=("minimise",) if ample else (), asked=1, infeasible=1)
    wrong = []
    if least.status is not PackingStatus.OPTIMAL or least.bound != least.height:
        wrong.append(f"not proven: {least}")
    at_it, below = (replace(problem, capacity=least.height - less) for less in (0, 1))
    if check_packing(at_it, least.offsets):
        wrong.append(f"wrong offsets: {least}")
    above_bound = least.height > height_bound(instance_of(problem))
    # To confirm what the live bytes forbid takes long on larger problems.
    if (above_bound or len(problem.items) <= 12) and can_be_packed(below):
        wrong.append(f"lower ones exist: {least}")
    restarted = given_up = 0
    for _ in range(2):
        packed, refuted = (search_alone(p, random.randrange(100)) for p in (at_it, below))
        if packed.outcome is Outcome.EXHAUSTED or (
            packed.offsets is not None and check_packing(at_it, packed.offsets)
        ):
            wrong.append(f"capacity {at_it.capacity}: {packed}")
        if refuted.outcome is Outcome.PACKED:
            wrong.append(f"capacity {below.capacity}: {refuted}")
        given_up += Outcome.PAUSED in (packed.outcome, refuted.outcome)
        restarted += max(packed.restarts, refuted.restarts) > 1
    return Agreement(
        wrong=tuple(wrong),
        asked=2,
        infeasible=1,
        above_bound=above_bound,
        restarted=restarted,
        given_up=given_up,
    )
