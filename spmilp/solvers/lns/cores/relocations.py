"""Steps in which tasks change cores."""

import numpy as np

from spmilp.solvers.kernels.records import NEVER, Ints
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.cores.components import Choice, Components
from spmilp.solvers.lns.cores.moving import Mover, Times
from spmilp.solvers.lns.cores.room import overfull
from spmilp.solvers.lns.cores.stretched import stretched
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.lifetimes import lifetimes, makespan_of
from spmilp.solvers.lns.loose import loosely_left, loosely_left_by, loosely_right
from spmilp.solvers.lns.loosened import opened
from spmilp.solvers.lns.rows import owners_of
from spmilp.solvers.lns.standing import Standing
from spmilp.units import MemoryIdx

TRIES = 8
"""Moves at most in a step."""


class Relocations:
    """Moves one component to other cores, or lets it change places with a task, if that pays.

    The plan has to end earlier, or at the same cycle and the busiest resource has less to do.
    """

    def __init__(self, ground: Ground, seed: int) -> None:
        self._ground = ground
        plan = ground.plan
        first_spare = len(plan.placements) + len(plan.transfers)
        self._mover = Mover(ground.problem, ground.copies, first_spare)
        random = np.random.default_rng(seed)
        self._known: tuple[Standing, Ints, Ints, Ints] | None = None
        self._components = Components(ground.problem, self._mover.pools, random)

    def improve(self, loose: Standing, limit: Ints, clock: Clock) -> Standing:
        """Try some moves, up to the first that pays; return a standing that ends no later."""
        ground, draft, makespan = self._ground, loose.draft, loose.makespan
        late, early = self._extremes(loose, limit)
        if makespan_of(draft, early) < makespan:
            return Standing(draft, early, makespan_of(draft, early))
        times = Times(late, *lifetimes(draft, late, makespan))
        for choices in self._components.choices(draft, times, early, limit, TRIES):
            if clock.is_over():
                break
            found = self._moved(draft, times, choices, limit)
            if found is not None and _is_better(found, loose):
                return opened(ground, found, limit, clock, rounds=1)
        return loose

    def _extremes(self, loose: Standing, limit: Ints) -> tuple[Ints, Ints]:
        """Return start cycles as late and as early as they can be; those of the last time again."""
        known = self._known
        if known is None or known[0] is not loose or not np.array_equal(known[1], limit):
            draft, kept = loose.draft, self._ground.kept
            late = loosely_right(draft, kept, limit, loose.start, loose.makespan)
            early = loosely_left(draft, kept, limit, late, loose.makespan)
            self._known = known = (loose, limit, late, early)
        return known[2:]

    def _moved(
        self, before: Draft, late: Times, choices: tuple[Choice, ...], limit: Ints
    ) -> Standing | None:
        """Return the standing after moves; ``None`` if they are not possible or do not pay."""
        draft, times = before, late
        anew: set[int] = set()
        memories: set[MemoryIdx] = set()
        for choice in choices:
            moved = self._mover.moved(draft, times, choice.tasks, choice.pool)
            if moved is None:
                return None
            start = stretched(draft, moved, times.start)
            draft, last = moved.draft, makespan_of(moved.draft, start)
            times = Times(start, *lifetimes(draft, start, last))
            anew.update(act for _, _, act in moved.anew)
            memories.update(moved.memories)
        full = overfull(draft, times, limit, sorted(memories))
        if full:
            as_before = overfull(before, late, limit, full)
            if any(most > as_before.get(memory, 0) for memory, most in full.items()):
                return None
        # Whatever is behind may not be later than it can be for the makespan before.
        by = late.start.copy()
        by[sorted(anew)] = NEVER
        last = makespan_of(draft, times.start)
        left = loosely_left_by(draft, self._ground.kept, limit, times.start, last, by)
        return None if left is None else Standing(draft, left, makespan_of(draft, left))


def _is_better(found: Standing, loose: Standing) -> bool:
    if found.makespan != loose.makespan:
        return found.makespan < loose.makespan
    return _busiest(found.draft) < _busiest(loose.draft)


def _busiest(draft: Draft) -> float:
    """Return the cycles for which the busiest of all resources is held as a whole."""
    work = draft.amounts * draft.cycles[owners_of(draft.demands)]
    held = np.bincount(draft.demands.items, weights=work, minlength=draft.capacity.size)
    return float((held / draft.capacity).max(initial=0.0))
