# The kernels of generate.py in C.

cimport cython

from spmilp.compiled cimport longs_at, whole
from spmilp.solvers.schedule.kernels.eviction cimport CRequest, allocate, cheapest_range, evict
from spmilp.solvers.schedule.kernels.memories cimport (
    blocks_of,
    close,
    close_idle_copies,
    close_if_idle,
    is_counted,
    new_residency,
    next_use,
    residency_in,
    settle_at,
)
from spmilp.solvers.schedule.kernels.records cimport NEVER, NONE
from spmilp.solvers.schedule.kernels.schedule_state cimport (
    BLOCKS_FULL,
    COUNT_FAILED_MEMORY,
    COUNT_FAILED_SLICE,
    COUNT_FAILED_TASK,
    COUNT_LATEST,
    COUNT_TRANSFERS,
    DOES_NOT_FIT,
    DONE,
    RESIDENCIES_FULL,
    TOO_LATE,
    UNREACHABLE,
    State,
    buffer_at,
    core_at,
    memory_at,
    read_at,
    residency_at,
    space_in,
    state_at,
    task_at,
    write_at,
)
from spmilp.solvers.schedule.kernels.transfers cimport (
    earliest_finish_core,
    earliest_transfer,
    end_of_predecessors,
    spill,
    store,
    transfer_to_all,
)

cdef long long MOST_SOURCES

cdef long long _generate(State* state, long long* order, long long count) noexcept nogil
cdef long long _place_initial_buffers(State* state) noexcept nogil

@cython.locals(block=cython.longlong)
cdef long long _empty_the_memory(State* state, long long task) noexcept nogil

@cython.locals(at_home=cython.bint)
cdef bint _is_pinned_home(State* state, long long held) noexcept nogil

@cython.locals(
    here=cython.longlong, stop=cython.longlong, start=cython.longlong, need=cython.longlong
)
cdef long long _place(State* state, long long task, bint compact) noexcept nogil

@cython.locals(new=cython.longlong, free=cython.longlong, stop=cython.longlong)
cdef (long long, long long) _reserve_outputs(
    State* state, long long task, long long memory, long long need, bint compact
) noexcept nogil

@cython.locals(taken=cython.bint)
cdef long long _overwritten(
    State* state, long long task, long long entry, long long memory, long long need, bint compact
) noexcept nogil
cdef long long _write(
    State* state, long long task, long long memory, long long start, long long end
) noexcept nogil
cdef long long _release(State* state, long long task) noexcept nogil

@cython.locals(here=cython.longlong, staged=cython.longlong, stop=cython.longlong)
cdef (long long, long long) fetch(
    State* state, long long slice_, long long memory, long long need, long long task, bint compact
) noexcept nogil
cdef long long _store_home(State* state, long long slice_) noexcept nogil

@cython.locals(
    source=cython.longlong, option=cython.longlong, start=cython.longlong, end=cython.longlong,
    new=cython.longlong, free=cython.longlong, stop=cython.longlong,
)
cdef (long long, long long) _fetch_directly(
    State* state, long long slice_, long long memory, long long need, long long task, bint compact
) noexcept nogil

@cython.locals(
    best=cython.longlong, best_option=cython.longlong, best_start=cython.longlong,
    best_end=cython.longlong, best_cost=cython.double, before=cython.longlong,
    in_parent=cython.bint, asked=cython.longlong, option=cython.longlong, start=cython.longlong,
    end=cython.longlong, cost=cython.double,
)
cdef (long long, long long, long long, long long) best_source(
    State* state, long long slice_, long long memory, long long free
) noexcept nogil

@cython.locals(here=cython.longlong, stop=cython.longlong)
cdef long long send_towards(
    State* state, long long held, long long memory, long long task
) noexcept nogil
