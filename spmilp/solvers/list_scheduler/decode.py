"""From an order and a core for each task to a complete schedule. Compiled.

The contents of each scratchpad are known at every step, so eviction can look ahead: what is needed
last goes first (Belady, IBM Systems Journal 5(2), 1966), weighed against how soon its bytes are
free and how long it takes to bring back. A buffer that DRAM has no copy of is stored before its
bytes are given away; the store may run as soon as the buffer is valid, long before.
"""

from numba import njit

from spmilp.solvers.list_scheduler.board import (
    COUNT_FAILED_MEMORY,
    COUNT_FAILED_SLICE,
    COUNT_FAILED_TASK,
    Board,
)
from spmilp.solvers.list_scheduler.fetch import fetch, send_towards
from spmilp.solvers.list_scheduler.lifetimes import (
    close,
    close_idle_copies,
    close_if_idle,
    new_residency,
    next_use,
    residency_in,
    settle_at,
)
from spmilp.solvers.list_scheduler.records import NEVER, NO, NONE, YES, ZERO, Ints
from spmilp.solvers.list_scheduler.room import (
    BLOCKS_FULL,
    DOES_NOT_FIT,
    best_window,
    evict,
    make_room,
)
from spmilp.solvers.list_scheduler.transfers import (
    DONE,
    RESIDENCIES_FULL,
    cycles_on_idle_hardware,
)


@njit(cache=True)
def decode(board: Board, order: Ints) -> int:
    """Place every task in ``order``; return why it stopped."""
    stop = _place_what_is_there_at_the_start(board)
    if stop != DONE:
        return stop
    for task in order:
        if board.tasks[task].core == NONE:
            board.tasks[task].core = _core_that_ends_first(board, task)
        stop = _place(board, task, NO)
        if stop == DOES_NOT_FIT:
            # What the task has brought so far lies badly: begin again in an empty memory.
            stop = _empty_the_memory(board, task)
            if stop == DONE:
                stop = _place(board, task, YES)
        if stop != DONE:
            board.counts[COUNT_FAILED_TASK] = task
            return stop
    return DONE


@njit(cache=True)
def _place_what_is_there_at_the_start(board: Board) -> int:
    for buffer in range(board.buffers.size):
        memory = board.buffers[buffer].begins
        if memory == NONE:
            continue
        size = board.slices[buffer].bytes
        new = new_residency(board, buffer, memory, size)
        if new == NONE:
            return RESIDENCIES_FULL
        if board.memories[memory].is_dram:
            board.buffers[buffer].in_dram = new
            continue
        address = best_window(board, memory, size, ZERO, ZERO, ZERO, NONE, YES)
        if address == NONE:
            board.counts[COUNT_FAILED_SLICE] = buffer
            board.counts[COUNT_FAILED_MEMORY] = memory
            return DOES_NOT_FIT
        if not settle_at(board, new, address):
            return BLOCKS_FULL
        board.buffers[buffer].home = new
    return DONE


@njit(cache=True)
def _core_that_ends_first(board: Board, task: int) -> int:
    """Return the core on which a task would end first, with loads on idle hardware."""
    ready = _end_of_predecessors(board, task)
    best, best_end = NONE, ZERO
    for core in range(board.cores.size):
        cycles = board.cycles[task, board.cores[core].kind]
        if cycles == NONE:
            continue
        memory = board.cores[core].memory
        start = max(ready, board.cores[core].free)
        loads = 0
        for entry in range(board.tasks[task].reads_from, board.tasks[task].reads_to):
            what = board.reads[entry].slice
            if residency_in(board, what, memory) == NONE:
                parent = board.memories[memory].parent
                size = board.slices[what].bytes
                loads += cycles_on_idle_hardware(board, parent, memory, size)
        end = max(start, ready + loads) + cycles
        if best == NONE or end < best_end:
            best, best_end = core, end
    return best


@njit(cache=True)
def _end_of_predecessors(board: Board, task: int) -> int:
    end = ZERO
    for entry in range(board.tasks[task].before_from, board.tasks[task].before_to):
        end = max(end, board.tasks[board.lists[entry]].end)
    return end


@njit(cache=True)
def _empty_the_memory(board: Board, task: int) -> int:
    """Evict all that may go from the memory in which a task is to run, what it reads included."""
    memory = board.cores[board.tasks[task].core].memory
    block = 0
    while block < board.space.length[memory]:
        held = board.space.blocks[memory, block].holder
        if held < 0 or _must_stay(board, held):
            block += 1
            continue
        stop = evict(board, held, task)
        if stop != DONE:
            return stop
        block = 0
    return DONE


@njit(cache=True)
def _must_stay(board: Board, held: int) -> bool:
    residency = board.residencies[held]
    buffer = board.slices[residency.slice].buffer
    at_home = board.buffers[buffer].home == held
    return at_home and board.buffers[buffer].ends == residency.memory


@njit(cache=True)
def _place(board: Board, task: int, compact: bool) -> int:
    """Give a task its slices, bytes and cycles."""
    core = board.tasks[task].core
    memory = board.cores[core].memory
    need = max(board.cores[core].free, _end_of_predecessors(board, task))
    for entry in range(board.tasks[task].reads_from, board.tasks[task].reads_to):
        here = residency_in(board, board.reads[entry].slice, memory)
        board.reads[entry].served_by = here
        if here != NONE:
            board.residencies[here].pinned = task
            need = max(need, board.residencies[here].valid)
    for entry in range(board.tasks[task].reads_from, board.tasks[task].reads_to):
        if board.reads[entry].served_by == NONE:
            here, stop = fetch(board, board.reads[entry].slice, memory, need, task, compact)
            if stop != DONE:
                return stop
            board.reads[entry].served_by = here
            need = max(need, board.residencies[here].valid)
    board.tasks[task].placed = 1
    start, stop = _reserve_what_it_writes(board, task, memory, need, compact)
    if stop != DONE:
        board.tasks[task].placed = 0
        return stop
    end = start + board.cycles[task, board.cores[core].kind]
    board.tasks[task].start = start
    board.tasks[task].end = end
    board.cores[core].free = end
    board.memories[memory].settled = max(board.memories[memory].settled, start)
    stop = _write(board, task, memory, start, end)
    if stop != DONE:
        return stop
    return _let_go(board, task)


@njit(cache=True)
def _reserve_what_it_writes(
    board: Board, task: int, memory: int, need: int, compact: bool
) -> tuple[int, int]:
    """Find bytes for outputs and scratch; return the task's start and why it stopped."""
    for entry in range(board.tasks[task].writes_from, board.tasks[task].writes_to):
        old = _overwritten(board, task, entry, memory, need, compact)
        board.writes[entry].held_by = old
        if old != NONE:
            need = max(need, board.residencies[old].end)
            continue
        buffer = board.writes[entry].buffer
        size = board.slices[buffer].bytes
        new, free, stop = _reserve(board, buffer, size, memory, need, task, compact)
        if stop != DONE:
            return need, stop
        board.writes[entry].held_by = new
        need = max(need, free)
    if board.tasks[task].scratch_bytes > 0:
        size = board.tasks[task].scratch_bytes
        new, free, stop = _reserve(board, NONE, size, memory, need, task, compact)
        if stop != DONE:
            return need, stop
        board.tasks[task].scratch = new
        need = max(need, free)
    return need, DONE


@njit(cache=True)
def _reserve(
    board: Board, what: int, size: int, memory: int, need: int, task: int, compact: bool
) -> tuple[int, int, int]:
    address = best_window(board, memory, size, need, ZERO, NEVER, task, compact)
    if address == NONE:
        return NONE, ZERO, DOES_NOT_FIT
    return make_room(board, what, size, memory, address, task)


@njit(cache=True)
def _overwritten(board: Board, task: int, entry: int, memory: int, need: int, compact: bool) -> int:
    """Return the operand whose bytes the task's output ``entry`` may take over; -1 if none.

    Nobody else needs the operand, it is large enough, and waiting for its other uses costs nothing
    (or there is no room to be choosy).
    """
    size = board.slices[board.writes[entry].buffer].bytes
    for pair in range(board.writes[entry].overwrites_from, board.writes[entry].overwrites_to):
        read = board.tasks[task].reads_from + board.lists[pair]
        held = board.reads[read].served_by
        residency = board.residencies[held]
        if residency.slice != board.reads[read].slice or residency.memory != memory:
            continue
        if residency.bytes < size or (residency.end > need and not compact):
            continue
        if next_use(board, held) != NEVER:
            continue
        taken = False
        for other in range(board.tasks[task].writes_from, entry):
            taken = taken or board.writes[other].held_by == held
        if not taken:
            return held
    return NONE


@njit(cache=True)
def _write(board: Board, task: int, memory: int, start: int, end: int) -> int:
    """Fix the cycles of what a task uses; overwritten operands give up their bytes."""
    for entry in range(board.tasks[task].reads_from, board.tasks[task].reads_to):
        served = board.residencies[board.reads[entry].served_by]
        served.end = max(served.end, end)
    for entry in range(board.tasks[task].writes_from, board.tasks[task].writes_to):
        buffer = board.writes[entry].buffer
        if board.residencies[board.writes[entry].held_by].slice != buffer:
            old = board.writes[entry].held_by
            close(board, old)
            board.writes[entry].held_by = new_residency(
                board, buffer, memory, board.slices[buffer].bytes
            )
            if board.writes[entry].held_by == NONE:
                return RESIDENCIES_FULL
            if not settle_at(board, board.writes[entry].held_by, board.residencies[old].offset):
                return BLOCKS_FULL
        written = board.residencies[board.writes[entry].held_by]
        written.start = start
        written.valid = end
        written.end = end
        written.filled_by_task = task
        board.buffers[buffer].home = board.writes[entry].held_by
    if board.tasks[task].scratch != NONE:
        scratch = board.residencies[board.tasks[task].scratch]
        scratch.start = start
        scratch.end = end
        close(board, board.tasks[task].scratch)
    return DONE


@njit(cache=True)
def _let_go(board: Board, task: int) -> int:
    """Store outputs, and close every residency that nobody needs any more."""
    for entry in range(board.tasks[task].writes_from, board.tasks[task].writes_to):
        buffer = board.writes[entry].buffer
        ends = board.buffers[buffer].ends
        if ends != NONE:
            stop = send_towards(board, board.buffers[buffer].home, ends, task)
            if stop != DONE:
                return stop
        close_if_idle(board, board.buffers[buffer].home)
    for entry in range(board.tasks[task].reads_from, board.tasks[task].reads_to):
        what = board.reads[entry].slice
        buffer = board.slices[what].buffer
        close_if_idle(board, board.reads[entry].served_by)
        close_if_idle(board, board.buffers[buffer].home)
        close_idle_copies(board, what)
    return DONE
