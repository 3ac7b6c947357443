"""The iterative algorithm: what gains most for its bytes is moved, until nothing gains."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from spmilp.policies.cdm.data import Accesses
from spmilp.policies.cdm.parts import Event, Placement, Role, Variable
from spmilp.solvers.kernels.records import Ints, numbers
from spmilp.units import BufferIdx


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
        count = accesses.base.shape[1] if freedom.contention else accesses.cores
        self._busy = accesses.base[:, :count].copy()
        self._used: dict[Event, int] = dict(accesses.fixed)
        self._allowed = [
            part.index not in apart and freedom.allows(accesses, part.index)
            for part in accesses.parts
        ]
        self._charges: dict[int, tuple[Ints, Ints]] = {}
        self._whole: dict[BufferIdx, tuple[Placement, ...]] = {}
        self.chosen = {one.buffer: frozenset[int]() for one in accesses.variables.values()}
        for one in accesses.variables.values():
            self._exchange(one, one.off_chip)

    def run(self, is_over: Callable[[], bool]) -> Placement:
        """Apply the best move of each buffer, best first, round by round, until none gains."""
        gains = True
        while gains and not is_over():
            gains = False
            for _, buffer, move in sorted(self._best_moves(is_over), key=lambda found: found[:2]):
                one, now = self._accesses.variables[buffer], self.chosen[buffer]
                if is_over():
                    # What was found in time is applied as far as it still gains.
                    best = move if self._gain(now, move) > 0 else now
                else:
                    _, best = self._best_move(one)
                if best != now and self._has_room(self._more_blocks(now, best)):
                    self._exchange(one, best)
                    gains = True
        return frozenset().union(*self.chosen.values())

    def _best_moves(
        self, is_over: Callable[[], bool]
    ) -> Iterator[tuple[float, BufferIdx, Placement]]:
        for buffer, one in self._accesses.variables.items():
            if is_over():
                return
            ratio, move = self._best_move(one)
            if ratio > 0.0:
                yield -ratio, buffer, move

    def _best_move(self, one: Variable) -> tuple[float, Placement]:
        """Return the move with most cycles gained for each block that it takes more, and these."""
        now = self.chosen[one.buffer]
        best = 0.0, now
        for move in dict.fromkeys(self._moves(one, now)):
            gain = self._gain(now, move)
            if gain <= 0:
                continue
            more = self._more_blocks(now, move)
            ratio = gain / max(1, 1, *more.values())
            if ratio > best[0] and self._has_room(more):
                best = ratio, move
        return best

    def _moves(self, one: Variable, now: Placement) -> Iterator[Placement]:
        """Yield placements of one buffer: another home, each or all who read it served anew."""
        if one.buffer not in self._whole:
            self._whole[one.buffer] = tuple(self._for_all_readers(one))
        yield from self._whole[one.buffer]
        home = next((m for m, part in one.homes.items() if part in now), None)
        for memory, parts in one.readers.items():
            if memory == home:
                continue
            others = now.difference(parts)
            for part in parts:
                needs = self._accesses.parts[part].needs
                if self._allowed[part] and (needs is None or needs in now or needs == one.store):
                    changed = others | {part} | ({needs} if needs is not None else set())
                    yield self._without_idle_store(one, changed)

    def _for_all_readers(self, one: Variable) -> Iterator[Placement]:
        """Yield placements in which all who read a buffer are served by one place in one way."""
        yield one.off_chip
        for home in (None, *one.homes):
            for role in (Role.STREAM, Role.REPLICA):
                found = self._served_from(one, home, role)
                if all(self._allowed[part] for part in found):
                    yield found

    def _without_idle_store(self, one: Variable, placement: Placement) -> Placement:
        """Leave out the copy in DRAM if nobody gets it from there."""
        if any(self._accesses.parts[part].needs == one.store for part in placement):
            return placement
        return placement - {one.store}

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

    def _charges_of(self, part: int) -> tuple[Ints, Ints]:
        """Return where in the table of busy cycles a part adds how many."""
        if part not in self._charges:
            width = self._busy.shape[1]
            known = [one for one in self._accesses.parts[part].charges if one.resource < width]
            places = numbers(one.wave * width + one.resource for one in known)
            self._charges[part] = places, numbers(one.cycles for one in known)
        return self._charges[part]

    def _gain(self, now: Placement, move: Placement) -> int:
        """Return the cycles that a move saves."""
        changes = [(*self._charges_of(part), -1) for part in now - move]
        changes += [(*self._charges_of(part), 1) for part in move - now]
        if not changes:
            return 0
        places = np.concatenate([one[0] for one in changes])
        waves = np.unique(places // self._busy.shape[1])
        rows = self._busy[waves]
        before = rows.max(axis=1).sum()
        at = np.searchsorted(waves, places // self._busy.shape[1]) * self._busy.shape[1]
        cycles = np.concatenate([sign * cycles for _, cycles, sign in changes])
        np.add.at(rows.reshape(-1), at + places % self._busy.shape[1], cycles)
        return int(before - rows.max(axis=1).sum())

    def _more_blocks(self, now: Placement, move: Placement) -> dict[Event, int]:
        parts, more = self._accesses.parts, dict[Event, int]()
        for sign, some in ((-1, now - move), (1, move - now)):
            for index in some:
                for event, blocks in parts[index].blocks.items():
                    more[event] = more.get(event, 0) + sign * blocks
        return more

    def _has_room(self, more: Mapping[Event, int]) -> bool:
        capacity = self._accesses.tables.capacity
        for event, blocks in more.items():
            limit = capacity[event[0]]
            if blocks > 0 and limit is not None and self._used.get(event, 0) + blocks > limit:
                return False
        return True

    def _exchange(self, one: Variable, move: Placement) -> None:
        now, busy = self.chosen[one.buffer], self._busy.reshape(-1)
        for event, blocks in self._more_blocks(now, move).items():
            self._used[event] = self._used.get(event, 0) + blocks
        for sign, some in ((-1, now - move), (1, move - now)):
            for part in some:
                places, cycles = self._charges_of(part)
                np.add.at(busy, places, sign * cycles)
        self.chosen[one.buffer] = move
