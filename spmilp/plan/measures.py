"""The quantities of a plan, and the DRAM traffic that no plan of a problem can avoid."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Claim, Measures, Placement, Residency, Stream, Transfer
from spmilp.problem.loads import least_loads
from spmilp.problem.problem import Problem
from spmilp.units import BufferIdx, Bytes


def measure(
    problem: Problem,
    placements: Sequence[Placement],
    residencies: Sequence[Residency],
    transfers: Sequence[Transfer],
    stream: Stream | None = None,
) -> Measures:
    """Return the quantities of a plan that has these parts, for a solver to state.

    Those of a stream are of one inference: its prologue does not count. Energies that the problem
    or the machine leave open count nothing. A multicast reads its source once and writes each of
    its destinations.
    """
    machine = problem.machine
    begins = 0 if stream is None else stream.begins
    makespan = traffic = energy = peak = 0
    for placement in placements:
        makespan = max(makespan, placement.end - begins)
        of_kinds = problem.tasks[placement.task].energy
        if of_kinds:
            energy += of_kinds[machine.cores[placement.core].kind] or 0
    for move in transfers:
        if move.start < begins:
            continue
        makespan = max(makespan, move.end - begins)
        size = problem.slices[move.slice].bytes
        per_byte = sum(machine.links[link].energy_per_byte or 0 for link in move.route)
        for end in (move.source, *move.destinations):
            memory = machine.memories[residencies[end].memory]
            per_byte += memory.energy_per_byte or 0
            if memory.kind is MemoryKind.DRAM:
                traffic += size
        energy += size * per_byte
    for residency in residencies:
        if machine.memories[residency.memory].kind is MemoryKind.SPM:
            offset = max(residency.offset, *residency.instances, 0)
            peak = max(peak, offset + residency.bytes)
    return Measures(
        makespan=makespan,
        dram_traffic=traffic,
        energy=energy,
        peak_spm=peak,
        period=None if stream is None else stream.period,
    )


def claim_of(measures: Measures, bound: int, bound_source: str) -> Claim:
    """Return the claim of a plan that costs this, with a proven bound and its name."""
    return Claim(**asdict(measures), bound=bound, bound_source=bound_source)


def compulsory_dram_traffic(problem: Problem, stream: Stream | None = None) -> Bytes:
    """Return bytes that every valid plan, or every inference of a stream, moves to and from DRAM.

    Of a stream, constants may be permanent.
    """
    every = zip(problem.buffers, compulsory_loads_and_stores(problem), strict=True)
    return sum(sum(both) for buffer, both in every if stream is None or not buffer.is_constant)


def compulsory_loads_and_stores(problem: Problem) -> list[tuple[Bytes, Bytes]]:
    """For each buffer, the bytes that every valid plan loads from DRAM and stores there.

    A buffer that starts in DRAM loads what :func:`~spmilp.problem.loads.least_loads` says, or all
    of its bytes if it must end in another memory. A buffer that ends in DRAM and does not start
    there stores all of its bytes. Both presume that no core works in that DRAM itself; buffers in a
    DRAM in which a core works count 0.
    """
    machine = problem.machine
    drams = {memory.index for memory in machine.drams} - {core.memory for core in machine.cores}
    least: Counter[BufferIdx] = Counter()
    for load in least_loads(problem):
        least[load.buffer.index] += load.bytes
    found = []
    for buffer in problem.buffers:
        moves_away = buffer.ends_in is not None and buffer.ends_in != buffer.starts_in
        needed = buffer.bytes if moves_away else least[buffer.index]
        loads = needed if buffer.starts_in in drams else 0
        found.append((loads, buffer.bytes if buffer.ends_in in drams and moves_away else 0))
    return found
