"""Transfers: which engine, when, from which residency. Compiled."""

from spmilp.compiled import part
from spmilp.solvers.kernels.records import NONE, ONE, ZERO
from spmilp.solvers.kernels.schedule_state import COUNT_TRANSFERS, Board, Stop
from spmilp.solvers.kernels.serial.residencies import new_residency
from spmilp.solvers.kernels.timeline import earliest_gap, occupy

DONE = int(Stop.DONE)
RESIDENCIES_FULL = int(Stop.RESIDENCIES_FULL)
TRANSFERS_FULL = int(Stop.TRANSFERS_FULL)
TIMELINE_FULL = int(Stop.TIMELINE_FULL)
NO_WAY = int(Stop.NO_WAY)


@part
def cycles_on_idle_hardware(board: Board, source: int, target: int, size: int) -> int:
    """Return the cycles of a transfer between two memories; 0 when nothing connects them."""
    pair = board.pair_at[source, target]
    if pair == NONE:
        return ZERO
    return _cycles(board, board.pairs[pair].ways_from, size)


@part
def _cycles(board: Board, way: int, size: int) -> int:
    taken = board.ways[way]
    return taken.fixed + (size * board.scale + taken.rate - 1) // taken.rate


@part
def earliest_transfer(
    board: Board, what: int, source: int, memory: int, ready: int
) -> tuple[int, int, int]:
    """Return way, start and end of the transfer of a slice that ends first; way -1 if none can.

    Parameters
    ----------
    source
        The residency that it is copied from.
    ready
        Cycle before which it cannot start.
    """
    residency = board.residencies[source]
    pair = board.pair_at[residency.memory, memory]
    best, best_start, best_end = NONE, ZERO, ZERO
    if pair == NONE:
        return best, best_start, best_end
    size = board.slices[what].bytes
    dimensions = _nested_strides(board, what, source, memory)
    offset = _offset(board, what, source, memory)
    for way in range(board.pairs[pair].ways_from, board.pairs[pair].ways_to):
        limits = board.resources[board.ways[way].engine]
        if size > limits.longest or dimensions > limits.dimensions:
            continue
        if offset % limits.congruence != 0:
            continue
        cycles = _cycles(board, way, size)
        start = _first_start(board, pair, way, ready, cycles)
        if best == NONE or start + cycles < best_end:
            best, best_start, best_end = way, start, start + cycles
    return best, best_start, best_end


@part
def _nested_strides(board: Board, what: int, source: int, memory: int) -> int:
    """Return the dimensions of the copy: both ends packed, or one inside something larger."""
    residency = board.residencies[source]
    entry = board.slices[what]
    memories = board.memories
    if memories[memory].is_dram or memories[residency.memory].is_dram:
        return entry.at_place
    return ONE if residency.slice == what else entry.from_parent


@part
def _offset(board: Board, what: int, source: int, memory: int) -> int:
    """Return by how many bytes one end of the copy lies behind what all alignments divide."""
    residency = board.residencies[source]
    entry = board.slices[what]
    memories = board.memories
    if memories[memory].is_dram or memories[residency.memory].is_dram:
        return entry.offset_at_place
    return ZERO if residency.slice == what else entry.offset_in_parent


@part
def _first_start(board: Board, pair: int, way: int, ready: int, cycles: int) -> int:
    """Return the first cycle at which the engine and every link of the route have room."""
    line = board.line
    taken, route = board.ways[way], board.pairs[pair]
    channels = board.resources[taken.engine].capacity
    start = ready
    while True:
        asked = start
        start = earliest_gap(line, taken.engine, start, cycles, channels - 1)
        for entry in range(route.links_from, route.links_to):
            link = board.links[entry]
            spare = board.resources[link].capacity - taken.rate
            start = earliest_gap(line, link, start, cycles, spare)
        if start == asked:
            return start


@part
def transfer(
    board: Board, what: int, source: int, destination: int, way: int, start: int, end: int
) -> int:
    """Write a transfer down; its destination holds the slice from ``start`` on."""
    new = board.counts[COUNT_TRANSFERS]
    if new == board.transfers.size:
        return TRANSFERS_FULL
    board.counts[COUNT_TRANSFERS] = new + 1
    came_from, goes_to = board.residencies[source], board.residencies[destination]
    route = board.pairs[board.pair_at[came_from.memory, goes_to.memory]]
    taken = board.ways[way]
    if not occupy(board.line, taken.engine, start, end, ONE):
        return TIMELINE_FULL
    for entry in range(route.links_from, route.links_to):
        if not occupy(board.line, board.links[entry], start, end, taken.rate):
            return TIMELINE_FULL
    moved = board.transfers[new]
    moved.slice = what
    moved.source = source
    moved.destination = destination
    moved.engine = taken.engine
    moved.start = start
    moved.end = end
    goes_to.start = start
    goes_to.valid = end
    goes_to.end = end
    goes_to.filled_by_transfer = new
    came_from.end = max(came_from.end, end)
    return DONE


@part
def store(board: Board, held: int, dram: int) -> int:
    """Copy a whole buffer to DRAM as soon as it is valid."""
    what = board.residencies[held].slice
    ready = board.residencies[held].valid
    way, start, end = earliest_transfer(board, what, held, dram, ready)
    if way == NONE:
        return NO_WAY
    new = new_residency(board, what, dram, board.slices[what].bytes)
    if new == NONE:
        return RESIDENCIES_FULL
    board.buffers[board.slices[what].buffer].in_dram = new
    return transfer(board, what, held, new, way, start, end)
