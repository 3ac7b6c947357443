"""New times with all addresses open, then new addresses."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from spmilp.solvers.kernels.records import NEVER, Ints
from spmilp.solvers.lns.addresses import pack_all
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.lifetimes import lifetimes, makespan_of
from spmilp.solvers.lns.loose import loosely_left, loosely_right
from spmilp.solvers.lns.reloads import without_reloads
from spmilp.solvers.lns.spared import sparing_dram
from spmilp.solvers.lns.standing import Standing, compacted

ROUNDS = 6
"""Passes to the right and back at most."""

TRIES = 12
"""Packings at most in a row."""

TRIES_AT_ONCE = 4
"""Packings of the same times, pressed together a little less tightly each time."""

FIRST_SHARE = 0.9
"""Of each memory, at most, is filled at first: what is fuller is often not packed."""

MORE, LESS = 1.03, 0.96
"""How much fuller, or less full, a memory becomes after a packing that was found, or was not."""


class Filling:
    """How full each memory may become where something moves.

    The fuller, the better the times, and the rarer a packing.
    """

    def __init__(self, ground: Ground) -> None:
        self._usable = ground.usable
        self._share = np.full(ground.usable.size, FIRST_SHARE)

    def limit(self) -> Ints:
        """Return the bytes of each memory that may be used; ``NEVER`` for no limit."""
        bytes_ = (np.minimum(self._usable, 2**52) * self._share).astype(np.int64)
        return np.where(self._usable == NEVER, NEVER, bytes_)

    def lower(self, memories: tuple[int, ...]) -> None:
        """Fill some memories less."""
        self._share[list(memories)] *= LESS

    def raise_all(self) -> None:
        """Fill all memories more."""
        self._share = np.minimum(1.0, self._share * MORE)


def opened(
    ground: Ground, standing: Standing, limit: Ints, clock: Clock, rounds: int = ROUNDS
) -> Standing:
    """Return a standing that ends no later, for whose times there may be no addresses.

    Times are improved by passes to the right and to the left, in which memories are full or not
    wherever the bytes lie; where all is as late as it can be, reloads that have become needless
    are dropped.
    """
    draft, early, makespan = standing.draft, standing.start, standing.makespan
    for _ in range(rounds):
        later = loosely_right(draft, ground.kept, limit, early, makespan)
        draft = without_reloads(ground, draft, later, makespan, limit)
        draft, later = sparing_dram(ground, draft, later, makespan, limit)
        early = loosely_left(draft, ground.kept, limit, later, makespan)
        before, makespan = makespan, makespan_of(draft, early)
        if makespan == before or clock.is_over():
            break
    return Standing(draft, early, makespan)


def loosened(
    ground: Ground,
    standing: Standing,
    filling: Filling,
    clock: Clock,
    loose: Standing | None = None,
) -> Iterator[Standing | None]:
    """Yield better and better standings; ``None`` after each attempt that led to none.

    Parameters
    ----------
    loose
        Times that end no later than those of ``standing``, perhaps without addresses, to try first.
    """
    failed = 0
    for _ in range(TRIES):
        loose = opened(ground, loose or standing, filling.limit(), clock)
        found = addressed(ground, loose, filling, clock)
        yield found
        if found is None:
            failed += 1
            if failed == TRIES_AT_ONCE:
                loose, failed = None, 0
            continue
        filling.raise_all()
        if found.makespan >= standing.makespan:
            return
        standing, loose, failed = found, None, 0


def addressed(ground: Ground, loose: Standing, filling: Filling, clock: Clock) -> Standing | None:
    """Return a standing with those times or better ones; ``None`` if no addresses were found."""
    draft = loose.draft
    begins, ends = lifetimes(draft, loose.start, loose.makespan)
    machine = ground.problem.machine
    offset, without = pack_all(machine, ground.packed, draft, begins, ends, clock)
    if without:
        filling.lower(without)
        return None
    return compacted(ground, replace(loose, draft=draft._replace(offset=offset)))
