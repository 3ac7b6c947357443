"""Transfers: which engine, when, from which residency. Compiled."""

from numba import njit

from spmilp.solvers.list_scheduler.arrays import MachineArrays
from spmilp.solvers.list_scheduler.lifetimes import new_residency
from spmilp.solvers.list_scheduler.records import NONE
from spmilp.solvers.list_scheduler.state import COUNT_TRANSFERS, Board, Stop
from spmilp.solvers.list_scheduler.timeline import earliest_gap, occupy

DONE = int(Stop.DONE)
RESIDENCIES_FULL = int(Stop.RESIDENCIES_FULL)
TRANSFERS_FULL = int(Stop.TRANSFERS_FULL)
TIMELINE_FULL = int(Stop.TIMELINE_FULL)
NO_WAY = int(Stop.NO_WAY)


@njit(cache=True)
def cycles_on_idle_hardware(machine: MachineArrays, source: int, target: int, size: int) -> int:
    """Return the cycles of a transfer between two memories; 0 when nothing connects them."""
    pair = machine.pair[source, target]
    if pair == NONE:
        return 0
    return _cycles(machine, machine.ways_from[pair], size)


@njit(cache=True)
def _cycles(machine: MachineArrays, way: int, size: int) -> int:
    taken = machine.ways[way]
    return taken.fixed + (size * machine.scale + taken.rate - 1) // taken.rate


@njit(cache=True)
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
    machine = board.machine
    residency = board.state.residencies[source]
    pair = machine.pair[residency.memory, memory]
    best, best_start, best_end = NONE, 0, 0
    if pair == NONE:
        return best, best_start, best_end
    size = board.problem.slices[what].bytes
    dimensions = _nested_strides(board, what, source, memory)
    for way in range(machine.ways_from[pair], machine.ways_from[pair + 1]):
        limits = machine.engines[machine.ways[way].engine]
        if size > limits.longest or dimensions > limits.dimensions:
            continue
        cycles = _cycles(machine, way, size)
        start = _first_start(board, pair, way, ready, cycles)
        if best == NONE or start + cycles < best_end:
            best, best_start, best_end = way, start, start + cycles
    return best, best_start, best_end


@njit(cache=True)
def _nested_strides(board: Board, what: int, source: int, memory: int) -> int:
    """Return the dimensions of the copy: both ends packed, or one inside something larger."""
    residency = board.state.residencies[source]
    entry = board.problem.slices[what]
    memories = board.machine.memories
    if memories[memory].is_dram or memories[residency.memory].is_dram:
        return entry.at_place
    return 1 if residency.slice == what else entry.from_parent


@njit(cache=True)
def _first_start(board: Board, pair: int, way: int, ready: int, cycles: int) -> int:
    """Return the first cycle at which the engine and every link of the route have room."""
    machine, line = board.machine, board.line
    engine, rate = machine.ways[way].engine, machine.ways[way].rate
    engines = machine.engines.size
    start = ready
    while True:
        asked = start
        start = earliest_gap(line, engine, start, cycles, machine.capacity[engine] - 1)
        for entry in range(machine.links_from[pair], machine.links_from[pair + 1]):
            link = engines + machine.links[entry]
            start = earliest_gap(line, link, start, cycles, machine.capacity[link] - rate)
        if start == asked:
            return start


@njit(cache=True)
def transfer(
    board: Board, what: int, source: int, destination: int, way: int, start: int, end: int
) -> int:
    """Write a transfer down; its destination holds the slice from ``start`` on."""
    state, machine = board.state, board.machine
    new = state.counts[COUNT_TRANSFERS]
    if new == state.transfers.size:
        return TRANSFERS_FULL
    state.counts[COUNT_TRANSFERS] = new + 1
    came_from, goes_to = state.residencies[source], state.residencies[destination]
    pair = machine.pair[came_from.memory, goes_to.memory]
    engine, rate = machine.ways[way].engine, machine.ways[way].rate
    if not occupy(board.line, engine, start, end, 1):
        return TIMELINE_FULL
    for entry in range(machine.links_from[pair], machine.links_from[pair + 1]):
        link = machine.engines.size + machine.links[entry]
        if not occupy(board.line, link, start, end, rate):
            return TIMELINE_FULL
    entry_ = state.transfers[new]
    entry_.slice = what
    entry_.source = source
    entry_.destination = destination
    entry_.pair = pair
    entry_.engine = engine
    entry_.start = start
    entry_.end = end
    goes_to.start = start
    goes_to.valid = end
    goes_to.end = end
    goes_to.filled_by_transfer = new
    came_from.end = max(came_from.end, end)
    return DONE


@njit(cache=True)
def store(board: Board, held: int, dram: int) -> int:
    """Copy a whole buffer to DRAM as soon as it is valid."""
    what = board.state.residencies[held].slice
    ready = board.state.residencies[held].valid
    way, start, end = earliest_transfer(board, what, held, dram, ready)
    if way == NONE:
        return NO_WAY
    new = new_residency(board, what, dram, board.problem.slices[what].bytes)
    if new == NONE:
        return RESIDENCIES_FULL
    board.state.buffers[board.problem.slices[what].buffer].in_dram = new
    return transfer(board, what, held, new, way, start, end)
