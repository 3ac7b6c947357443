"""From an order and a core for each task to a complete schedule. Compiled.

The contents of each scratchpad are known at every step, so eviction can look ahead: what is needed
last goes first (Belady, IBM Systems Journal 5(2), 1966), weighed against how soon its bytes are
free and how long it takes to bring back. A buffer that DRAM has no copy of is stored before its
bytes are given away; the store may run as soon as the buffer is valid, long before.
"""

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NO, NONE, SET_ASIDE, YES, ZERO, Ints
from spmilp.solvers.kernels.reference import by_reference
from spmilp.solvers.kernels.schedule_state import (
    COUNT_FAILED_MEMORY,
    COUNT_FAILED_SLICE,
    COUNT_FAILED_TASK,
    COUNT_LATEST,
    Board,
    Stop,
)
from spmilp.solvers.kernels.serial.eviction import (
    BLOCKS_FULL,
    DOES_NOT_FIT,
    best_window,
    evict,
    make_room,
)
from spmilp.solvers.kernels.serial.fetch import fetch, send_towards
from spmilp.solvers.kernels.serial.open_core import core_that_ends_first, end_of_predecessors
from spmilp.solvers.kernels.serial.prefetch import do_ahead, fill_what_is_set_aside
from spmilp.solvers.kernels.serial.residencies import (
    close,
    close_idle_copies,
    close_if_idle,
    new_residency,
    next_use,
    residency_in,
    settle_at,
)
from spmilp.solvers.kernels.serial.transfers import (
    DONE,
    RESIDENCIES_FULL,
)

TOO_LATE = int(Stop.TOO_LATE)


@kernel
def decode(given: Board, order: Ints) -> int:
    """Do what ``order`` says; return why it stopped.

    An entry is a task to be placed; or the number of tasks plus one of the ``reads``, for whose
    slice bytes are set aside; or that plus the number of reads, and the slice is loaded at once.
    """
    board = by_reference(given)
    stop = _place_what_is_there_at_the_start(board)
    if stop != DONE:
        return stop
    for task in order:
        if task >= board.tasks.size:
            stop = do_ahead(board, task - board.tasks.size)
            if stop != DONE:
                return stop
            continue
        if board.tasks[task].core == NONE:
            board.tasks[task].core = core_that_ends_first(board, task)
        stop = _place(board, task, NO)
        if stop == DOES_NOT_FIT:
            # What the task has brought so far lies badly: begin again in an empty memory.
            stop = _empty_the_memory(board, task)
            if stop == DONE:
                stop = _place(board, task, YES)
        if stop != DONE:
            board.counts[COUNT_FAILED_TASK] = task
            return stop
        if board.tasks[task].end + board.tasks[task].behind > board.counts[COUNT_LATEST]:
            return TOO_LATE
    return DONE


@part
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


@part
def _empty_the_memory(board: Board, task: int) -> int:
    """Evict all that may go from the memory in which a task is to run, what it reads included."""
    memory = board.cores[board.tasks[task].core].memory
    block = 0
    while block < board.space.length[memory]:
        held = board.space.blocks[memory, block].holder
        if held < 0 or _must_stay(board, held):
            block += 1
            continue
        if board.residencies[held].slice == SET_ASIDE:
            close(board, held)
            block = 0
            continue
        stop = evict(board, held, task)
        if stop != DONE:
            return stop
        block = 0
    return DONE


@part
def _must_stay(board: Board, held: int) -> bool:
    residency = board.residencies[held]
    if residency.slice < 0:
        return False
    buffer = board.slices[residency.slice].buffer
    at_home = board.buffers[buffer].home == held
    return at_home and board.buffers[buffer].ends == residency.memory


@part
def _place(board: Board, task: int, compact: bool) -> int:
    """Give a task its slices, bytes and cycles."""
    placed = board.tasks[task]
    core = board.cores[placed.core]
    memory = core.memory
    need = max(core.free, end_of_predecessors(board, task))
    for entry in range(placed.reads_from, placed.reads_to):
        read = board.reads[entry]
        read.served_by = residency_in(board, read.slice, memory)
        if read.served_by != NONE:
            served = board.residencies[read.served_by]
            served.pinned = task
            need = max(need, served.valid)
    for entry in range(placed.reads_from, placed.reads_to):
        read = board.reads[entry]
        stop = fill_what_is_set_aside(board, entry, memory)
        if stop != DONE:
            return stop
        if read.served_by != NONE:
            need = max(need, board.residencies[read.served_by].valid)
        else:
            here, stop = fetch(board, read.slice, memory, need, task, compact)
            if stop != DONE:
                return stop
            read.served_by = here
            need = max(need, board.residencies[here].valid)
    placed.placed = 1
    start, stop = _reserve_what_it_writes(board, task, memory, need, compact)
    if stop != DONE:
        placed.placed = 0
        return stop
    end = start + board.cycles[task, core.kind]
    placed.start = start
    placed.end = end
    core.free = end
    board.memories[memory].settled = max(board.memories[memory].settled, start)
    stop = _write(board, task, memory, start, end)
    if stop != DONE:
        return stop
    return _let_go(board, task)


@part
def _reserve_what_it_writes(
    board: Board, task: int, memory: int, need: int, compact: bool
) -> tuple[int, int]:
    """Find bytes for outputs and scratch; return the task's start and why it stopped."""
    writer = board.tasks[task]
    for entry in range(writer.writes_from, writer.writes_to):
        write = board.writes[entry]
        write.held_by = _overwritten(board, task, entry, memory, need, compact)
        if write.held_by != NONE:
            need = max(need, board.residencies[write.held_by].end)
            continue
        size = board.slices[write.buffer].bytes
        new, free, stop = make_room(
            board, write.buffer, size, memory, need, ZERO, NEVER, task, compact
        )
        if stop != DONE:
            return need, stop
        write.held_by = new
        need = max(need, free)
    if writer.scratch_bytes > 0:
        new, free, stop = make_room(
            board, NONE, writer.scratch_bytes, memory, need, ZERO, NEVER, task, compact
        )
        if stop != DONE:
            return need, stop
        writer.scratch = new
        need = max(need, free)
    return need, DONE


@part
def _overwritten(board: Board, task: int, entry: int, memory: int, need: int, compact: bool) -> int:
    """Return the operand whose bytes the task's output ``entry`` may take over; -1 if none.

    Nobody else needs the operand, it is large enough, and waiting for its other uses costs nothing
    (or there is no room to be choosy).
    """
    write = board.writes[entry]
    size = board.slices[write.buffer].bytes
    for pair in range(write.overwrites_from, write.overwrites_to):
        read = board.reads[board.tasks[task].reads_from + board.lists[pair]]
        held = read.served_by
        residency = board.residencies[held]
        if residency.slice != read.slice or residency.memory != memory:
            continue
        if residency.bytes < size or (residency.end > need and not compact):
            continue
        if next_use(board, held) != NEVER:
            continue
        # Reading another slice of the same residency would find it overwritten.
        taken = False
        for other in range(board.tasks[task].reads_from, board.tasks[task].reads_to):
            another = board.reads[other]
            taken = taken or (another.served_by == held and another.slice != read.slice)
        for other in range(board.tasks[task].writes_from, entry):
            taken = taken or board.writes[other].held_by == held
        if not taken:
            return held
    return NONE


@part
def _write(board: Board, task: int, memory: int, start: int, end: int) -> int:
    """Fix the cycles of what a task uses; overwritten operands give up their bytes."""
    writer = board.tasks[task]
    for entry in range(writer.reads_from, writer.reads_to):
        served = board.residencies[board.reads[entry].served_by]
        served.end = max(served.end, end)
    for entry in range(writer.writes_from, writer.writes_to):
        write = board.writes[entry]
        buffer = write.buffer
        old = board.residencies[write.held_by]
        if old.slice != buffer:
            close(board, write.held_by)
            write.held_by = new_residency(board, buffer, memory, board.slices[buffer].bytes)
            if write.held_by == NONE:
                return RESIDENCIES_FULL
            if not settle_at(board, write.held_by, old.offset):
                return BLOCKS_FULL
        written = board.residencies[write.held_by]
        written.start = start
        written.valid = end
        written.end = end
        written.filled_by_task = task
        board.buffers[buffer].home = write.held_by
    if writer.scratch != NONE:
        scratch = board.residencies[writer.scratch]
        scratch.start = start
        scratch.end = end
        close(board, writer.scratch)
    return DONE


@part
def _let_go(board: Board, task: int) -> int:
    """Store outputs, and close every residency that nobody needs any more."""
    done = board.tasks[task]
    for entry in range(done.writes_from, done.writes_to):
        written = board.buffers[board.writes[entry].buffer]
        if written.ends != NONE:
            stop = send_towards(board, written.home, written.ends, task)
            if stop != DONE:
                return stop
        close_if_idle(board, written.home)
    for entry in range(done.reads_from, done.reads_to):
        read = board.reads[entry]
        close_if_idle(board, read.served_by)
        close_if_idle(board, board.buffers[board.slices[read.slice].buffer].home)
        close_idle_copies(board, read.slice)
    return DONE
