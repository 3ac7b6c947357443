"""The iterative algorithm: what gains most for its bytes is moved, until nothing gains."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from spmilp.policies.cdm.data import Accesses
from spmilp.policies.cdm.parts import Event, Placement, Role, Variable


@dataclass(frozen=True, slots=True, kw_only=True)
class Freedom:
    """What placements may make use of; less of it for comparisons.

    Parameters
    ----------
    private, shared
        Whether buffers that one scratchpad's tasks use, or those of several, may be on chip.
    replication
        Whether a buffer may lie in several scratchpads.
    contention
        Whether the time of links is known.
    """

    private: bool = True
    shared: bool = True
    replication: bool = True
    contention: bool = True

    def allows(self, accesses: Accesses, index: int) -> bool:
        """Say whether a placement may have a part."""
        part = accesses.parts[index]
        if part.role is Role.STORE or (part.role is Role.STREAM and part.source == accesses.dram):
            return True
        is_shared = accesses.uses.is_shared(part.buffer)
        if not (self.shared if is_shared else self.private):
            return False
        return self.replication or part.role is not Role.REPLICA


class Improvement:
    """A placement, and what its moves gain."""

    def __init__(self, accesses: Accesses, freedom: Freedom, apart: Placement) -> None:
        self._accesses = accesses
        self._freedom = freedom
        self._apart = apart
        count = accesses.base.shape[1] if freedom.contention else accesses.cores
        self._busy = accesses.base[:, :count].copy()
        self._used: dict[Event, int] = dict(accesses.fixed)
        self.chosen = {one.buffer: frozenset[int]() for one in accesses.variables.values()}
        for one in accesses.variables.values():
            self._exchange(one, one.off_chip)

    def run(self, is_over: Callable[[], bool]) -> Placement:
        """Apply the best move of each buffer, best first, round by round, until none gains."""
        gains = True
        while gains and not is_over():
            gains = False
            for _, buffer in sorted(self._best_moves(is_over)):
                one = self._accesses.variables[buffer]
                ratio, move = self._best_move(one)
                if ratio > 0.0:
                    self._exchange(one, move)
                    gains = True
                if is_over():
                    break
        return frozenset().union(*self.chosen.values())

    def _best_moves(self, is_over: Callable[[], bool]) -> Iterator[tuple[float, int]]:
        for buffer, one in self._accesses.variables.items():
            if is_over():
                return
            ratio, _ = self._best_move(one)
            if ratio > 0.0:
                yield -ratio, buffer

    def _best_move(self, one: Variable) -> tuple[float, Placement]:
        """Return the move with most cycles gained for each block that it takes more, and these."""
        now = self.chosen[one.buffer]
        best = 0.0, now
        for move in dict.fromkeys(self._moves(one, now)):
            gain, blocks = self._gain(now, move)
            ratio = gain / max(1, blocks)
            if ratio > best[0] and self._has_room(now, move):
                best = ratio, move
        return best

    def _moves(self, one: Variable, now: Placement) -> Iterator[Placement]:
        """Yield placements of one buffer: another home, each or all who read it served anew."""
        yield one.off_chip
        for home in (None, *one.homes):
            for role in (Role.STREAM, Role.REPLICA):
                yield from self._allowed(self._served_from(one, home, role))
        home = next((m for m, part in one.homes.items() if part in now), None)
        for memory, parts in one.readers.items():
            if memory == home:
                continue
            others = now.difference(parts)
            for part in parts:
                needs = self._accesses.parts[part].needs
                if needs is None or needs in now or needs == one.store:
                    changed = others | {part} | ({needs} if needs is not None else set())
                    yield from self._allowed(self._without_idle_store(one, changed))

    def _without_idle_store(self, one: Variable, placement: Placement) -> Placement:
        """Leave out the copy in DRAM if nobody gets it from there."""
        if any(self._accesses.parts[part].needs == one.store for part in placement):
            return placement
        return placement - {one.store}

    def _allowed(self, placement: Placement) -> Iterator[Placement]:
        allows, accesses = self._freedom.allows, self._accesses
        if not placement & self._apart and all(allows(accesses, one) for one in placement):
            yield placement

    def _served_from(self, one: Variable, home: int | None, role: Role) -> Placement:
        """Return all readers served by a home, or by DRAM, in one way where that is possible."""
        source = self._accesses.dram if home is None else home
        chosen = {one.homes[home]} if home is not None else set()
        for memory, parts in one.readers.items():
            if memory == home:
                continue
            able = [self._accesses.parts[part] for part in parts]
            near = [part for part in able if part.source == source] or able[:1]
            best = next((part for part in near if part.role is role), near[0])
            chosen.add(best.index)
            if best.needs is not None:
                chosen.add(best.needs)
        return frozenset(chosen)

    def _gain(self, now: Placement, move: Placement) -> tuple[int, int]:
        """Return the cycles that a move saves, and the most blocks that it takes more."""
        parts, width = self._accesses.parts, self._busy.shape[1]
        changes: dict[int, dict[int, int]] = {}
        for sign, some in ((-1, now - move), (1, move - now)):
            for index in some:
                for wave, resource, cycles in parts[index].charges:
                    if resource < width:
                        at = changes.setdefault(wave, {})
                        at[resource] = at.get(resource, 0) + sign * cycles
        gain = 0
        for wave, some_cycles in changes.items():
            row = self._busy[wave].copy()
            row[list(some_cycles)] += np.fromiter(some_cycles.values(), np.int64)
            gain += int(self._busy[wave].max()) - int(row.max())
        return gain, max(self._more_blocks(now, move).values(), default=0)

    def _more_blocks(self, now: Placement, move: Placement) -> dict[Event, int]:
        parts, more = self._accesses.parts, dict[Event, int]()
        for sign, some in ((-1, now - move), (1, move - now)):
            for index in some:
                for event, blocks in parts[index].blocks.items():
                    more[event] = more.get(event, 0) + sign * blocks
        return more

    def _has_room(self, now: Placement, move: Placement) -> bool:
        capacity = self._accesses.tables.capacity
        for event, blocks in self._more_blocks(now, move).items():
            limit = capacity[event[0]]
            if blocks > 0 and limit is not None and self._used.get(event, 0) + blocks > limit:
                return False
        return True

    def _exchange(self, one: Variable, move: Placement) -> None:
        now, parts = self.chosen[one.buffer], self._accesses.parts
        for event, blocks in self._more_blocks(now, move).items():
            self._used[event] = self._used.get(event, 0) + blocks
        for sign, some in ((-1, now - move), (1, move - now)):
            for index in some:
                for wave, resource, cycles in parts[index].charges:
                    if resource < self._busy.shape[1]:
                        self._busy[wave, resource] += sign * cycles
        self.chosen[one.buffer] = move
