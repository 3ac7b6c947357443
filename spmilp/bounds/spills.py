"""The spill bound: data without space beside a task's working set goes to DRAM and comes back."""

from collections.abc import Iterator
from fractions import Fraction
from math import gcd

import networkx as nx

from spmilp.bounds.linear_program import LinearProgram, proven_minimum, rounded_up
from spmilp.bounds.movement import Distances
from spmilp.bounds.resources import pieces_beside
from spmilp.machine.machine import MemoryKind
from spmilp.problem.problem import Problem
from spmilp.units import BufferIdx, Bytes, TaskIdx

ITERATIONS = 20_000
"""Limit on the iterations of the dual simplex."""

MOST_TASKS = 1000
"""With more tasks the sets of what comes before and after each one grow too large."""


def spill_bound(problem: Problem) -> Bytes:
    """Return bytes of DRAM traffic beyond the compulsory ones.

    While task ``t`` runs, its working set lies on the chip. So does, or else lies in DRAM only,
    what tasks before ``t`` have written and tasks after ``t`` read (of each such buffer ``b`` the
    largest slice that one of them reads, of ``w[t, b]`` bytes), and what tasks on both sides read
    of a buffer that comes from DRAM. (What is on its way lies in the destination of its transfer
    already.) With all memories on the chip taken as one, what lies in DRAM only when ``t`` starts
    has in total at least

        excess(t) = working set(t) + sum of w[t, b] over the buffers live at t - capacity

    bytes, and, as it is a sum of some ``w[t, b]``, at least the next multiple of their greatest
    common divisor. A slice is moved as a whole, out of itself or its buffer: one that does not lie
    on the chip as a whole returns as a whole. Let ``z[b]`` be the largest ``w[t, b]`` over the
    tasks at which that slice of ``b`` is not on the chip. One such slice can cover no more than the
    excess; hence, for each ``t``,

        sum of z[b] min(1, excess(t) / w[t, b]) over the buffers live at t  >=  excess(t).

    (The same step makes covers of knapsacks strong: R. D. Carr et al., "Strengthening integrality
    gaps for capacitated network design and covering problems", SODA 2000.)

    Those bytes of a written buffer have been stored, and are loaded; if the buffer must end in DRAM
    anyway, the store is compulsory. Those of a buffer that comes from DRAM are loaded twice. The
    least sum of these costs under the conditions is a linear program; as all costs are integers, it
    is at least the next multiple of the divisor that all ``w`` share.
    """
    machine = problem.machine
    distances = Distances(problem)
    if len(problem.tasks) > MOST_TASKS or any(
        machine.memories[memory].kind is MemoryKind.DRAM for memory in distances.worked_in
    ):
        return 0
    squeezes = list(_squeezes(problem, distances))
    if not squeezes:
        return 0
    program = LinearProgram()
    column = {
        buffer: program.variable(
            float(problem.buffers[buffer].bytes), float(_cost(problem, distances, buffer))
        )
        for buffer in sorted({buffer for _, live in squeezes for buffer in live})
    }
    for excess, live in squeezes:
        parts = {buffer: rounded_up(Fraction(excess, size)) for buffer, size in live.items()}
        program.at_least(float(excess), [(column[one], min(1.0, f)) for one, f in parts.items()])
    grain = gcd(*(size for _, live in squeezes for size in live.values()))
    return -(-proven_minimum(program, ITERATIONS) // grain) * grain


def _squeezes(
    problem: Problem, distances: Distances
) -> Iterator[tuple[Bytes, dict[BufferIdx, Bytes]]]:
    """Yield by how much the live data beside a task exceeds the memories, where it does.

    With it comes what may go: each buffer with the bytes that must return if it goes.
    """
    capacity = sum(
        memory.usable or 0
        for memory in problem.machine.memories
        if memory.kind is not MemoryKind.DRAM
    )
    order = nx.DiGraph((b, task) for task, some in enumerate(problem.predecessors()) for b in some)
    order.add_nodes_from(range(len(problem.tasks)))
    writers = problem.writers()
    readers: dict[BufferIdx, list[tuple[TaskIdx, int]]] = {}
    for task in problem.tasks:
        for read in task.reads:
            readers.setdefault(problem.slices[read].buffer, []).append((task.index, read))
    for task in problem.tasks:
        before, after = (find(order, task.index) for find in (nx.ancestors, nx.descendants))
        live = {}
        touched = {problem.slices[read].buffer for read in task.reads}
        for buffer, uses in readers.items():
            if buffer in touched:
                continue
            wanted = {read for reader, read in uses if reader in after}
            writer = writers[buffer]
            if writer is None:
                if not distances.starts_in_dram(buffer):
                    continue
                wanted &= {read for reader, read in uses if reader in before}
            elif writer not in before:
                continue
            if wanted:
                live[buffer] = max(problem.slices[read].bytes for read in wanted)
        excess = sum(pieces_beside(problem, task)) + sum(live.values()) - capacity
        if excess > 0 and live:
            grain = gcd(*live.values())
            yield -(-excess // grain) * grain, dict(sorted(live.items()))


def _cost(problem: Problem, distances: Distances, buffer: BufferIdx) -> int:
    """Return the bytes that one byte moves beyond those that are compulsory."""
    if problem.buffers[buffer].starts_in is not None or distances.ends_in_dram(buffer):
        return 1
    return 2
