"""New times with all addresses open, then new addresses."""

from collections.abc import Iterator

import numpy as np

from spmilp.solvers.list_scheduler.records import NEVER, Ints
from spmilp.solvers.lns.addresses import pack_all
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.lifetimes import lifetimes, makespan_of
from spmilp.solvers.lns.loose import loosely_left, loosely_right
from spmilp.solvers.lns.standing import Standing, compacted

ROUNDS = 6
"""Passes to the right and back at most."""

TRIES = 16
"""Packings at most in a row."""

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


def loosened(ground: Ground, standing: Standing, filling: Filling) -> Iterator[Standing | None]:
    """Yield better and better standings; ``None`` after each attempt that led to none.

    Times are improved by passes to the right and to the left in which memories are full or not,
    wherever the bytes lie; then offsets are looked for.
    """
    for _ in range(TRIES):
        times = loose_times(ground, standing, filling)
        found = addressed(ground, standing, times, filling)
        yield found
        if found is None:
            continue
        filling.raise_all()
        if found.makespan >= standing.makespan:
            return
        standing = found


def loose_times(ground: Ground, standing: Standing, filling: Filling) -> Ints:
    """Return start cycles with no later end, for which there may be no addresses."""
    draft, limit = standing.draft, filling.limit()
    early, makespan = standing.start, standing.makespan
    for _ in range(ROUNDS):
        later = loosely_right(draft, ground.kin, ground.kept, limit, early, makespan)
        early = loosely_left(draft, ground.kin, ground.kept, limit, later, makespan)
        before, makespan = makespan, makespan_of(draft, early)
        if makespan == before:
            break
    return early


def addressed(ground: Ground, standing: Standing, times: Ints, filling: Filling) -> Standing | None:
    """Return a standing with those times or better ones; ``None`` if no addresses were found."""
    draft = standing.draft
    begins, ends = lifetimes(draft, times, makespan_of(draft, times))
    machine = ground.problem.machine
    offset, without = pack_all(machine, ground.packed, draft, ground.kin, begins, ends)
    if without:
        filling.lower(without)
        return None
    return compacted(ground, draft._replace(offset=offset), times)
