"""Offsets for residencies whose times are known, memory by memory."""

import numpy as np

from spmilp.machine.machine import Machine, Memory
from spmilp.packing import Item, PackingOptions, PackingProblem, pack
from spmilp.solvers.list_scheduler.machine_tables import alignment_of
from spmilp.solvers.list_scheduler.records import NONE, Ints
from spmilp.solvers.lns.draft import Draft
from spmilp.units import MemoryIdx

LIMITS = PackingOptions(node_limit=30_000, cliques=False, conflict=False)
"""A fraction of a second for one memory; a limit on nodes gives the same answer everywhere."""


def pack_memory(
    machine: Machine, memory: Memory, draft: Draft, begins: Ints, ends: Ints
) -> tuple[Ints, Ints] | None:
    """Return the residencies in a memory and an offset for each; ``None`` if none were found.

    What is there at cycle 0 keeps its offset.
    """
    held = np.flatnonzero((draft.memory == memory.index) & (begins < ends))
    position = {one: i for i, one in enumerate(held.tolist())}
    alignment = alignment_of(machine, memory.index)
    rows = zip(
        *(column[held].tolist() for column in (draft.bytes, begins, ends, draft.filler)),
        draft.offset[held].tolist(),
        strict=True,
    )
    problem = PackingProblem(
        items=tuple(
            Item(
                size=size,
                lifetimes=((start, end),),
                alignment=1 if filler == NONE else alignment,
                offset=offset if filler == NONE else None,
            )
            for size, start, end, filler, offset in rows
        ),
        capacity=memory.size,
        reserved=tuple((taken.start, taken.end) for taken in memory.reserved),
        together=tuple(
            (position[parent], i)
            for i, parent in enumerate(draft.parent[held].tolist())
            if parent != NONE
        ),
    )
    found = pack(problem, LIMITS)
    return None if found.offsets is None else (held, np.array(found.offsets, np.int64))


def pack_all(
    machine: Machine,
    memories: tuple[MemoryIdx, ...],
    draft: Draft,
    begins: Ints,
    ends: Ints,
) -> tuple[Ints, tuple[MemoryIdx, ...]]:
    """Return an offset for each residency, and the memories for which none were found."""
    offset = draft.offset.copy()
    without = []
    for index in memories:
        found = pack_memory(machine, machine.memories[index], draft, begins, ends)
        if found is None:
            without.append(index)
        else:
            held, offsets = found
            offset[held] = offsets
    return offset, tuple(without)
