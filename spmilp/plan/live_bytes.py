"""The bytes that are occupied in a memory over time."""

from collections import defaultdict
from collections.abc import Iterable

from spmilp.plan.plan import Residency
from spmilp.units import Bytes, Cycles


def live_bytes(residencies: Iterable[Residency]) -> tuple[list[Cycles], list[Bytes]]:
    """Return the cycles at which the occupied bytes change, and the bytes from each one on.

    Residencies that overlap in time and in bytes, which in a valid plan share them in place at the
    same offset, count once.
    """
    events = []
    for residency in residencies:
        if residency.start >= residency.end:
            continue
        events.append((residency.start, True, residency.offset, residency.bytes))
        events.append((residency.end, False, residency.offset, residency.bytes))
    events.sort()

    at_offset: defaultdict[Bytes, list[Bytes]] = defaultdict(list)
    cycles: list[Cycles] = []
    totals: list[Bytes] = []
    total = 0
    for cycle, begins, offset, size in events:
        sizes = at_offset[offset]
        total -= max(sizes, default=0)
        if begins:
            sizes.append(size)
        else:
            sizes.remove(size)
        total += max(sizes, default=0)
        if cycles and cycles[-1] == cycle:
            totals[-1] = total
        else:
            cycles.append(cycle)
            totals.append(total)
    return cycles, totals
