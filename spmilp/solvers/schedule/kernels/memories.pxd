cimport cython

from spmilp.solvers.schedule.kernels.records cimport NEVER, NONE
from spmilp.solvers.schedule.kernels.schedule_state cimport (
    BLOCKS_FULL,
    COUNT_RESIDENCIES,
    DONE,
    FREE,
    RESERVED,
    RESIDENCIES_FULL,
    Block,
    Space,
    State,
    block_row_at,
    buffer_at,
    residency_at,
    slice_at,
    space_in,
    task_at,
)

cdef inline Block* blocks_of(Space* space, long long memory) noexcept nogil:
    return space.blocks + memory * space.most

@cython.locals(low=cython.longlong, high=cython.longlong)
cdef long long block_at(Space* space, long long memory, long long address) noexcept nogil
cdef void release(
    Space* space, long long memory, long long address, long long cycle, long long settled
) noexcept nogil
cdef void _join(Space* space, long long memory, long long block, long long settled) noexcept nogil
cdef void _close_gap(
    Space* space, long long memory, long long block, long long blocks
) noexcept nogil
cdef bint claim(
    Space* space, long long memory, long long address, long long size, long long holder
) noexcept nogil
cdef long long _cut(Space* space, long long memory, long long address) noexcept nogil

@cython.locals(
    last=cython.longlong, total=cython.longlong, following=cython.longlong, more=cython.longlong
)
cdef long long free_by(State* state, long long memory, long long size) noexcept nogil

@cython.locals(since=cython.longlong, of_first=cython.longlong)
cdef long long gathered(
    State* state, long long memory, long long size, long long limit
) noexcept nogil

@cython.locals(
    since=cython.longlong, total=cython.longlong, later=cython.longlong, before=cython.longlong,
    more=cython.longlong
)
cdef (long long, long long) _free_last(
    Space* space, long long memory, long long size, long long limit
) noexcept nogil

@cython.locals(position=cython.longlong, latest=cython.longlong)
cdef long long _put_together(
    State* state, long long memory, long long since, long long of_first, long long limit
) noexcept nogil

@cython.locals(at_home=cython.bint, only_dram_besides=cython.bint, soonest=cython.longlong)
cdef long long next_use(State* state, long long held) noexcept nogil
cdef long long _next_reader(State* state, long long slice_, long long memory) noexcept nogil
cdef long long residency_in(State* state, long long slice_, long long memory) noexcept nogil

@cython.locals(before=cython.longlong)
cdef long long _first_alive_in(State* state, long long slice_, long long memory) noexcept nogil
cdef bint is_last_copy(State* state, long long held) noexcept nogil
cdef long long new_residency(
    State* state, long long slice_, long long memory, long long size
) noexcept nogil

@cython.locals(best=cython.longlong, best_left=cython.longlong, block=cython.longlong)
cdef long long free_range(
    State* state, long long memory, long long size, long long by
) noexcept nogil

@cython.locals(free=cython.longlong)
cdef (long long, long long, long long) take(
    State* state, long long slice_, long long memory, long long size, long long address,
    long long task
) noexcept nogil

@cython.locals(at_place=cython.bint)
cdef bint is_counted(State* state, long long slice_, long long memory) noexcept nogil
cdef bint settle_at(State* state, long long held, long long address) noexcept nogil
cdef long long padded_size(
    State* state, long long memory, long long address, long long size
) noexcept nogil
cdef void close(State* state, long long held) noexcept nogil
cdef void close_if_idle(State* state, long long held) noexcept nogil
cdef void close_idle_copies(State* state, long long slice_) noexcept nogil
