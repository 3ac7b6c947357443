"""Moves that change how early bytes are set aside, and what the scheduler's choices cost."""

from dataclasses import replace

import numpy as np

from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.kernels.schedule_state import Weights
from spmilp.solvers.local_search.candidate import Candidate
from spmilp.solvers.local_search.neighbourhood_state import NeighbourhoodState
from spmilp.solvers.local_search.sequence import leads_by_share

WHOLE = 0.4
"""How often all loads are set anew."""
LEADS = (0, 1, 2, 3, 5, 8, 13, 21, -1, -2, -3, -5, -8, -13, -21)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def load_a_task_ahead(now: NeighbourhoodState) -> Candidate | None:
    """Set bytes aside earlier or later for what a task reads."""
    return _with_leads(now, np.array([now.a_task()]))


def load_an_operator_ahead(now: NeighbourhoodState) -> Candidate | None:
    """The same for all tasks of an operator."""
    return _with_leads(now, now.an_operator())


def load_by_share(now: NeighbourhoodState) -> Candidate | None:
    """Load ahead anew what fills a share of each memory, for all tasks or a stretch of them."""
    share = SHARES[int(now.rng.integers(len(SHARES)))]
    sign = 1 if now.rng.random() < 0.5 else -1
    found = sign * leads_by_share(now.index, now.candidate.order, now.candidate.cores, share)
    count = now.position.size
    first, last = sorted(now.rng.integers(0, count + 1, 2).tolist())
    if now.rng.random() < WHOLE:
        first, last = 0, count
    reader = np.repeat(np.arange(count), np.diff(now.index.reads.begins))
    inside = (now.position[reader] >= first) & (now.position[reader] < last)
    return _changed(now, np.where(inside, found, now.candidate.leads))


def change_a_weight(now: NeighbourhoodState) -> Candidate | None:
    """Multiply one of the scheduler's weights."""
    weights = now.candidate.weights
    name = Weights._fields[int(now.rng.integers(len(Weights._fields)))]
    factor = float(np.exp(now.rng.normal() * 0.7))
    return replace(
        now.candidate, weights=weights._replace(**{name: getattr(weights, name) * factor})
    )


def _with_leads(now: NeighbourhoodState, tasks: Ints) -> Candidate | None:
    """Give the reads of tasks one lead: those of what is there at cycle 0, or all."""
    begins = now.index.reads.begins
    entries = np.concatenate([np.arange(begins[task], begins[task + 1]) for task in tasks])
    if now.rng.random() < 0.8:
        entries = entries[now.index.from_outside[entries] > 0]
    changed = now.candidate.leads.copy()
    changed[entries] = LEADS[int(now.rng.integers(len(LEADS)))]
    return _changed(now, changed)


def _changed(now: NeighbourhoodState, leads: Ints) -> Candidate | None:
    if (leads == now.candidate.leads).all():
        return None
    return replace(now.candidate, leads=leads)
