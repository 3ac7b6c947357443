"""Leaving a local optimum: some activities wait a while, and all passes begin again."""

import numpy as np

from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.lns.advance import advanced, loads_of
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.lifetimes import makespan_of
from spmilp.solvers.lns.loose import loosely_left, loosely_right
from spmilp.solvers.lns.loosened import opened
from spmilp.solvers.lns.reloads import without_reloads
from spmilp.solvers.lns.standing import Standing

FEW = 3
"""Loads that go first, on average."""

SHARE_THAT_WAITS = 0.1
LEAST_WAIT, MOST_WAIT = -3.5, -1.5
"""Powers of ten: the longest wait of a kick as a share of the makespan."""


def kicked(
    ground: Ground, loose: Standing, limit: Ints, clock: Clock, random: np.random.Generator
) -> Standing:
    """Return a standing with open addresses that ends no later, from another order of activities.

    In a pass to the left, a random few wait though they could start, and others go before them.
    None starts later than in the pass to the right before it, so the makespan does not grow.
    """
    draft, makespan = loose.draft, loose.makespan
    later = loosely_right(draft, ground.kept, limit, loose.start, makespan)
    draft = without_reloads(ground, draft, later, makespan, limit)
    longest = makespan * 10.0 ** random.uniform(LEAST_WAIT, MOST_WAIT)
    waits = random.random(later.size) < SHARE_THAT_WAITS
    pause = np.where(waits, random.random(later.size) * longest, 0.0).astype(np.int64)
    early = loosely_left(draft, ground.kept, limit, later, makespan, pause)
    return opened(ground, Standing(draft, early, makespan_of(draft, early)), limit, clock, rounds=1)


def pushed(
    ground: Ground, loose: Standing, limit: Ints, clock: Clock, random: np.random.Generator
) -> Standing:
    """Return a standing with open addresses that ends no later, in which some loads go first.

    All is taken to the right until a little later than it ends now, so that the loads find room at
    the beginning; what that costs has to be won by what they let start earlier.
    """
    draft, makespan = loose.draft, loose.makespan
    loads = loads_of(ground, draft)
    if not loads.size:
        return loose
    count = 1 + int(random.geometric(1 / FEW))
    chosen = random.choice(loads, min(count, loads.size), replace=False)
    last = makespan + int(draft.cycles[chosen].sum())
    later = loosely_right(draft, ground.kept, limit, loose.start, last)
    first = advanced(ground, draft, later, last, limit, chosen)
    early = loosely_left(draft, ground.kept, limit, first, last)
    found = Standing(draft, early, makespan_of(draft, early))
    found = opened(ground, found, limit, clock, rounds=1)
    return found if found.makespan <= makespan else loose
