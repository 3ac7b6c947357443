"""Offsets for residencies whose times are known, memory by memory."""

import numpy as np

from spmilp.machine.machine import Machine, Memory
from spmilp.packing import Item, PackingOptions, PackingProblem, pack
from spmilp.solvers.kernels.machine_tables import alignment_of
from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.draft import Draft
from spmilp.units import MemoryIdx

NODES = 30_000
"""A fraction of a second for one memory; a limit on nodes gives the same answer everywhere."""


def pack_memory(
    machine: Machine, memory: Memory, draft: Draft, begins: Ints, ends: Ints, seconds: float | None
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
    limits = PackingOptions(time_limit=seconds, node_limit=NODES, cliques=False, conflict=False)
    found = pack(problem, limits)
    return None if found.offsets is None else (held, np.array(found.offsets, np.int64))


def pack_all(
    machine: Machine,
    memories: tuple[MemoryIdx, ...],
    draft: Draft,
    begins: Ints,
    ends: Ints,
    clock: Clock,
) -> tuple[Ints, tuple[MemoryIdx, ...]]:
    """Return an offset for each residency, and the memories for which none were found."""
    offset = draft.offset.copy()
    without: list[MemoryIdx] = []
    for position, index in enumerate(memories):
        if clock.is_over():
            return offset, memories[position:]
        found = pack_memory(
            machine, machine.memories[index], draft, begins, ends, clock.seconds_left()
        )
        if found is None:
            without.append(index)
        else:
            held, offsets = found
            offset[held] = offsets
    return offset, tuple(without)
