"""Where data stops on its way between memories that no engine connects directly."""

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from spmilp.machine.machine import MemoryKind
from spmilp.units import Cycles, MemoryIdx

if TYPE_CHECKING:
    from spmilp.machine.routes import Routes


def staging_path(
    routes: "Routes", source: MemoryIdx, destination: MemoryIdx
) -> tuple[MemoryIdx, ...] | None:
    """Return the memories of the best chain of transfers, both ends included.

    Fewest transfers, then fewest scratchpads in between (they have other work), then least
    latency, then the least sequence of memory indices.
    """
    if source == destination:
        return (source,)
    if routes.engines_for(source, destination):
        return source, destination
    memories = routes.machine.memories
    waiting: list[tuple[int, int, Cycles, tuple[MemoryIdx, ...]]] = [(0, 0, 0, (source,))]
    settled: set[MemoryIdx] = set()
    while waiting:
        transfers, scratchpads, latency, path = heappop(waiting)
        here = path[-1]
        if here == destination:
            return path
        if here in settled:
            continue
        settled.add(here)
        passed = scratchpads + (here != source and memories[here].kind is MemoryKind.SPM)
        for memory in memories:
            there = memory.index
            if there in settled or not routes.engines_for(here, there):
                continue
            route = routes.between(here, there)
            if route is not None:
                longer = latency + route.latency
                heappush(waiting, (transfers + 1, passed, longer, (*path, there)))
    return None
