"""A draft in the course of being changed: only what changes is written down."""

from collections.abc import Mapping, Sequence

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.lns.cores.ways import Way
from spmilp.solvers.lns.draft import Draft, Rows
from spmilp.units import Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx


class Sketch:
    """Looks like the draft, with changes.

    Parameters
    ----------
    first_spare
        The first of the spares, see :mod:`spmilp.solvers.lns.cores.spares`.
    """

    def __init__(self, draft: Draft, first_spare: int) -> None:
        self._draft = draft
        self._spares = iter(
            (first_spare + np.flatnonzero(draft.cycles[first_spare:] == 0)).tolist()
        )
        self._cycles: dict[int, Cycles] = {}
        self._part: dict[int, SliceIdx] = {}
        self._ways: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._reads: dict[int, list[ResidencyIdx]] = {}
        self._users: dict[ResidencyIdx, list[int]] = {}
        self._memory: dict[ResidencyIdx, MemoryIdx] = {}
        self._slice: dict[ResidencyIdx, SliceIdx] = {}
        self._bytes: dict[ResidencyIdx, Bytes] = {}
        self._parent: dict[ResidencyIdx, ResidencyIdx] = {}
        self._heir: dict[ResidencyIdx, ResidencyIdx] = {}

    def cycles(self, act: int) -> Cycles:
        """Return the cycles of an activity."""
        return self._cycles.get(act, int(self._draft.cycles[act]))

    def reads(self, act: int) -> list[ResidencyIdx]:
        """Return what an activity reads."""
        return self._reads[act] if act in self._reads else _row(self._draft.reads, act)

    def users(self, held: ResidencyIdx) -> list[int]:
        """Return who reads a residency; who reads it twice, twice."""
        if held in self._users:
            return self._users[held]
        return _row(self._draft.users, held)

    def fills(self, act: int) -> list[ResidencyIdx]:
        """Return what an activity fills."""
        return _row(self._draft.fills, act)

    def memory(self, held: ResidencyIdx) -> MemoryIdx:
        """Return where a residency lies."""
        return self._memory.get(held, int(self._draft.memory[held]))

    def slice(self, held: ResidencyIdx) -> SliceIdx:
        """Return what a residency holds."""
        return self._slice.get(held, int(self._draft.slice[held]))

    def heir(self, held: ResidencyIdx) -> ResidencyIdx:
        """Return what takes over a residency's bytes; -1 for none."""
        return self._heir.get(held, int(self._draft.heir[held]))

    def put(self, held: ResidencyIdx, memory: MemoryIdx) -> None:
        """Let a residency lie in a memory."""
        self._memory[held] = memory

    def run(self, task: int, pool: int, cycles: Cycles) -> None:
        """Let a task run on a pool of cores."""
        self._ways[task] = (pool,), (1,)
        self._cycles[task] = cycles

    def go(self, move: int, way: Way) -> None:
        """Let a transfer take a way."""
        self._ways[move] = way.resources, way.amounts
        self._cycles[move] = way.cycles

    def drop(self, move: int) -> None:
        """Do without a transfer."""
        (source,) = self.reads(move)
        self._users[source] = [one for one in self.users(source) if one != move]
        self._reads[move] = []
        self._cycles[move] = 0

    def read_instead(self, act: int, old: ResidencyIdx, new: ResidencyIdx) -> None:
        """Let an activity read another residency, as often as it read the old one."""
        count = self.reads(act).count(old)
        self._reads[act] = [new if one == old else one for one in self.reads(act)]
        self._users[old] = [one for one in self.users(old) if one != act]
        self._users[new] = sorted([*self.users(new), *[act] * count])

    def copied(
        self, what: SliceIdx, size: Bytes, source: ResidencyIdx, memory: MemoryIdx, way: Way
    ) -> tuple[int, ResidencyIdx] | None:
        """Add a transfer; return it and what it fills, or ``None`` without a spare left."""
        move = next(self._spares, None)
        if move is None:
            return None
        (new,) = self.fills(move)
        self.go(move, way)
        self._part[move] = what
        self._reads[move] = [source]
        self._users[source] = sorted([*self.users(source), move])
        self._users[new] = []
        self._slice[new], self._bytes[new], self._memory[new] = what, size, memory
        self._parent[new] = self._heir[new] = NONE
        return move, new

    def bequeath(self, held: ResidencyIdx, instead: ResidencyIdx) -> None:
        """Let ``instead`` hand its bytes over to the heir of a residency."""
        heir = self.heir(held)
        self._heir[held], self._heir[instead], self._parent[heir] = NONE, heir, instead

    def keep_apart(self, held: ResidencyIdx) -> None:
        """Let nothing take over the bytes of a residency any more."""
        heir = self.heir(held)
        if heir != NONE:
            self._heir[held], self._parent[heir] = NONE, NONE

    def draft(self) -> Draft:
        """Return the draft as it is now."""
        draft = self._draft
        demands = _with_rows(draft.demands, {act: way[0] for act, way in self._ways.items()})
        amounts = _with_rows(
            Rows(draft.demands.begin, draft.amounts),
            {act: way[1] for act, way in self._ways.items()},
        )
        return draft._replace(
            cycles=_with(draft.cycles, self._cycles),
            part=_with(draft.part, self._part),
            demands=demands,
            amounts=amounts.items,
            reads=_with_rows(draft.reads, self._reads),
            users=_with_rows(draft.users, self._users),
            memory=_with(draft.memory, self._memory),
            slice=_with(draft.slice, self._slice),
            bytes=_with(draft.bytes, self._bytes),
            parent=_with(draft.parent, self._parent),
            heir=_with(draft.heir, self._heir),
        )


def _row(rows: Rows, index: int) -> list[int]:
    found: list[int] = rows.items[rows.begin[index] : rows.begin[index + 1]].tolist()
    return found


def _with(column: Ints, changes: dict[int, int]) -> Ints:
    if not changes:
        return column
    found = column.copy()
    found[[*changes]] = [*changes.values()]
    return found


def _with_rows(rows: Rows, changes: Mapping[int, Sequence[int]]) -> Rows:
    """Return rows of which some are others, without sorting all."""
    if not changes:
        return rows
    owners = [*changes]
    if all(rows.begin[one + 1] - rows.begin[one] == len(some) for one, some in changes.items()):
        items = rows.items.copy()
        for owner, some in changes.items():
            items[rows.begin[owner] : rows.begin[owner + 1]] = some
        return Rows(rows.begin, items)
    lengths = np.diff(rows.begin)
    kept = np.ones(lengths.size, np.bool_)
    kept[owners] = False
    is_kept = np.repeat(kept, lengths)
    lengths[owners] = [len(items) for items in changes.values()]
    begin = np.concatenate(([0], np.cumsum(lengths)))
    items = np.zeros(begin[-1], np.int64)
    items[np.repeat(kept, lengths)] = rows.items[is_kept]
    for owner, some in changes.items():
        items[begin[owner] : begin[owner + 1]] = some
    return Rows(begin, items)
