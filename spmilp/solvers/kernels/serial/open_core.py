"""On which core a task would end first, when none has been chosen for it. Compiled."""

from spmilp.compiled import part
from spmilp.solvers.kernels.records import NONE, ONE, ZERO
from spmilp.solvers.kernels.schedule_state import Board
from spmilp.solvers.kernels.serial.transfers import cycles_on_idle_hardware


@part
def core_that_ends_first(board: Board, task: int) -> int:
    """Return the core on which a task would end first, with loads on idle hardware.

    What each memory holds is counted once for all cores, so that a core costs the same time however
    much the task reads.
    """
    _count_what_is_there(board, task)
    reads = board.tasks[task].reads_to - board.tasks[task].reads_from
    ready = end_of_predecessors(board, task)
    best, best_end = NONE, ZERO
    rate, moving = ZERO, ZERO
    for core in range(board.cores.size):
        there = board.cores[core]
        cycles = board.cycles[task, there.kind]
        if cycles == NONE:
            continue
        memory = board.memories[there.memory]
        loads = ZERO
        pair = board.pair_at[memory.parent, there.memory]
        if pair != NONE:
            way = board.ways[board.pairs[pair].ways_from]
            if way.rate != rate:
                rate = way.rate
                moving = _cycles_of_all_reads(board, task, rate)
            loads = reads * way.fixed + moving - memory.spared
        end = max(max(ready, there.free), ready + loads) + cycles
        if best == NONE or end < best_end:
            best, best_end = core, end
    return best


@part
def end_of_predecessors(board: Board, task: int) -> int:
    """Return the cycle from which a task could start for what it follows."""
    end = ZERO
    follower = board.tasks[task]
    for entry in range(follower.before_from, follower.before_to):
        end = max(end, board.tasks[board.lists[entry]].end)
    return end


@part
def _count_what_is_there(board: Board, task: int) -> None:
    """Add up, for each memory, the cycles of loads that its contents spare a task."""
    for memory in range(board.memories.size):
        board.memories[memory].spared = ZERO
    for entry in range(board.tasks[task].reads_from, board.tasks[task].reads_to):
        what = board.reads[entry].slice
        _count_copies(board, what, board.slices[what].bytes, entry + ONE)
        buffer = board.slices[what].buffer
        if buffer != what:
            _count_copies(board, buffer, board.slices[what].bytes, entry + ONE)


@part
def _count_copies(board: Board, held: int, size: int, now: int) -> None:
    """Count a load of ``size`` bytes for each memory that holds a slice and was not counted now."""
    one = board.slices[held].first
    while one != NONE:
        residency = board.residencies[one]
        memory = board.memories[residency.memory]
        if residency.alive and memory.counted != now:
            memory.counted = now
            memory.spared += cycles_on_idle_hardware(board, memory.parent, residency.memory, size)
        one = residency.following


@part
def _cycles_of_all_reads(board: Board, task: int, rate: int) -> int:
    """Return the cycles in which all that a task reads passes at a scaled rate."""
    cycles = ZERO
    for entry in range(board.tasks[task].reads_from, board.tasks[task].reads_to):
        size = board.slices[board.reads[entry].slice].bytes
        cycles += (size * board.scale + rate - ONE) // rate
    return cycles
