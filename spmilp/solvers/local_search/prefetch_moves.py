"""Moves that change how early loads are prefetched, and the weights of the scheduler's costs."""

from dataclasses import replace

import numpy as np

from spmilp.solvers.kernels.records import Ints, owners_of
from spmilp.solvers.kernels.schedule_state import Weights
from spmilp.solvers.local_search.candidate import Candidate
from spmilp.solvers.local_search.neighbourhood_state import NeighbourhoodState
from spmilp.solvers.local_search.sequence import leads_by_share

WHOLE = 0.4
"""How often all loads are set anew."""
LEADS = (0, 1, 2, 3, 5, 8, 13, 21, -1, -2, -3, -5, -8, -13, -21)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def prefetch_a_task(now: NeighbourhoodState) -> Candidate | None:
    """Prefetch what a task reads earlier or later."""
    return _with_leads(now, np.array([now.a_task()]))


def prefetch_an_operator(now: NeighbourhoodState) -> Candidate | None:
    """Prefetch what all tasks of an operator read earlier or later."""
    return _with_leads(now, now.an_operator())


def prefetch_by_share(now: NeighbourhoodState) -> Candidate | None:
    """Prefetch anew what fills a share of each memory, for all tasks or a stretch of them."""
    share = now.pick(SHARES)
    sign = 1 if now.rng.random() < 0.5 else -1
    found = sign * leads_by_share(now.index, now.candidate.order, now.candidate.cores, share)
    count = now.position.size
    first, last = sorted(now.rng.integers(0, count + 1, 2).tolist())
    if now.rng.random() < WHOLE:
        first, last = 0, count
    reader = owners_of(now.index.reads)
    inside = (now.position[reader] >= first) & (now.position[reader] < last)
    return _changed(now, np.where(inside, found, now.candidate.leads))


def change_a_weight(now: NeighbourhoodState) -> Candidate | None:
    """Multiply one of the scheduler's weights."""
    weights = now.candidate.weights
    name = now.pick(Weights._fields)
    factor = float(np.exp(now.rng.normal() * 0.7))
    return replace(
        now.candidate, weights=weights._replace(**{name: getattr(weights, name) * factor})
    )


def _with_leads(now: NeighbourhoodState, tasks: Ints) -> Candidate | None:
    """Give the reads of tasks one lead: those of what is there at cycle 0, or all."""
    begin = now.index.reads.begin
    entries = np.concatenate([np.arange(begin[task], begin[task + 1]) for task in tasks])
    if now.rng.random() < 0.8:
        entries = entries[now.index.from_outside[entries] > 0]
    changed = now.candidate.leads.copy()
    changed[entries] = now.pick(LEADS)
    return _changed(now, changed)


def _changed(now: NeighbourhoodState, leads: Ints) -> Candidate | None:
    if (leads == now.candidate.leads).all():
        return None
    return replace(now.candidate, leads=leads)
