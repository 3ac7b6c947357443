"""Bytes that are set aside for a slice before it is the turn of the task that reads it. Compiled.

The bytes are chosen in the order of decisions. The transfer into them is timed only when its task
is placed: what is more urgent has taken its cycles by then, and this load takes what is left since
its bytes have been free. Or it is timed at once: then a long load need not find a gap between short
ones.
"""

from spmilp.compiled import part
from spmilp.solvers.kernels.records import NO, NONE, SET_ASIDE, ZERO
from spmilp.solvers.kernels.schedule_state import Board
from spmilp.solvers.kernels.serial.eviction import DOES_NOT_FIT, make_room
from spmilp.solvers.kernels.serial.fetch import best_source
from spmilp.solvers.kernels.serial.residencies import close, residency_in
from spmilp.solvers.kernels.serial.transfers import DONE, cycles_on_idle_hardware, transfer


@part
def do_ahead(board: Board, step: int) -> int:
    """Set bytes aside for one of the ``reads``; from the number of reads on, load it at once."""
    count = board.reads.size
    if step < count:
        return _set_aside(board, step)
    entry = step - count
    stop = _set_aside(board, entry)
    if stop != DONE or board.reads[entry].set_aside == NONE:
        return stop
    memory = board.cores[board.tasks[board.reads[entry].reader].core].memory
    stop = fill_what_is_set_aside(board, entry, memory)
    board.reads[entry].set_aside = NONE
    board.reads[entry].served_by = NONE
    return stop


@part
def _set_aside(board: Board, entry: int) -> int:
    """Set bytes aside for one of the ``reads``, if there is room; return why it stopped."""
    read = board.reads[entry]
    reader = board.tasks[read.reader]
    if reader.core == NONE or reader.placed:
        return DONE
    core = board.cores[reader.core]
    memory = core.memory
    if residency_in(board, read.slice, memory) != NONE:
        return DONE
    size = board.slices[read.slice].bytes
    parent = board.memories[memory].parent
    lead = ZERO if parent == NONE else cycles_on_idle_hardware(board, parent, memory, size)
    new, _, stop = make_room(board, SET_ASIDE, size, memory, core.free, lead, ZERO, read.reader, NO)
    if stop == DOES_NOT_FIT:
        return DONE
    read.set_aside = new
    return stop


@part
def fill_what_is_set_aside(board: Board, entry: int, memory: int) -> int:
    """Bring a slice into the bytes that were set aside for it; return why it stopped.

    They are given up when the slice has come there in another way, and where no engine reaches them
    from where it lies.
    """
    read = board.reads[entry]
    held = read.set_aside
    if held == NONE or not board.residencies[held].alive:
        return DONE
    if read.served_by != NONE:
        close(board, held)
        return DONE
    residency = board.residencies[held]
    source, way, start, end = best_source(board, read.slice, memory, residency.start)
    if source == NONE:
        close(board, held)
        return DONE
    residency.slice = read.slice
    residency.following = board.slices[read.slice].first
    board.slices[read.slice].first = held
    read.served_by = held
    return transfer(board, read.slice, source, held, way, start, end)
