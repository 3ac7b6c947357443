"""Prefetching: bytes are set aside for a slice long before the task that reads it. Compiled.

The bytes are chosen in the order of decisions. The transfer into them is timed only when its task
is placed: more urgent ones have taken their cycles by then, and this load takes what is left since
its bytes have been free. Or it is timed at once: then a long load need not find a gap between short
ones.
"""

from spmilp.compiled import part
from spmilp.solvers.kernels.records import NO, NONE, SET_ASIDE, ZERO
from spmilp.solvers.kernels.schedule_state import DOES_NOT_FIT, DONE, ScheduleState
from spmilp.solvers.kernels.serial.eviction import Request, allocate
from spmilp.solvers.kernels.serial.fetch import best_source
from spmilp.solvers.kernels.serial.residencies import close, residency_in
from spmilp.solvers.kernels.serial.transfers import cycles_on_idle_hardware, transfer


@part
def prefetch(state: ScheduleState, step: int) -> int:
    """Set bytes aside for one of the ``reads``; from the number of reads on, load it at once."""
    count = state.reads.size
    if step < count:
        return _set_aside(state, step)
    entry = step - count
    stop = _set_aside(state, entry)
    if stop != DONE or state.reads[entry].set_aside == NONE:
        return stop
    memory = state.cores[state.tasks[state.reads[entry].reader].core].memory
    stop = load_prefetched(state, entry, memory)
    state.reads[entry].set_aside = NONE
    state.reads[entry].served_by = NONE
    return stop


@part
def _set_aside(state: ScheduleState, entry: int) -> int:
    """Set bytes aside for one of the ``reads``, if they fit; return why it stopped."""
    read = state.reads[entry]
    reader = state.tasks[read.reader]
    if reader.core == NONE or reader.placed:
        return DONE
    core = state.cores[reader.core]
    memory = core.memory
    if residency_in(state, read.slice, memory) != NONE:
        return DONE
    size = state.slices[read.slice].bytes
    parent = state.memories[memory].parent
    lead = ZERO if parent == NONE else cycles_on_idle_hardware(state, parent, memory, size)
    request = Request(memory, size, core.free, lead, ZERO, read.reader, NO)
    new, _, stop = allocate(state, SET_ASIDE, request)
    if stop == DOES_NOT_FIT:
        return DONE
    read.set_aside = new
    return stop


@part
def load_prefetched(state: ScheduleState, entry: int, memory: int) -> int:
    """Bring a slice into the bytes that were set aside for it; return why it stopped.

    They are given up when the slice has come there by another transfer, and where no engine reaches
    them from where it lies.
    """
    read = state.reads[entry]
    held = read.set_aside
    if held == NONE or not state.residencies[held].alive:
        return DONE
    if read.served_by != NONE:
        close(state, held)
        return DONE
    residency = state.residencies[held]
    source, option, start, end = best_source(state, read.slice, memory, residency.start)
    if source == NONE:
        close(state, held)
        return DONE
    residency.slice = read.slice
    residency.following = state.slices[read.slice].first
    state.slices[read.slice].first = held
    read.served_by = held
    return transfer(state, read.slice, source, held, option, start, end)
