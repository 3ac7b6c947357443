cimport cython

from spmilp.solvers.schedule.kernels.memories cimport (
    block_at,
    blocks_of,
    close,
    free_by,
    gathered,
    is_last_copy,
    next_use,
    residency_in,
    take,
)
from spmilp.solvers.schedule.kernels.records cimport NEVER, NONE
from spmilp.solvers.schedule.kernels.schedule_state cimport (
    BLOCKS_FULL,
    DOES_NOT_FIT,
    DONE,
    FREE,
    RESERVED,
    UNREACHABLE,
    Block,
    Space,
    State,
    buffer_at,
    memory_at,
    residency_at,
    space_in,
)
from spmilp.solvers.schedule.kernels.transfers cimport (
    copy_to,
    cycles_on_idle_hardware,
    earliest_transfer,
    spill,
    transfer,
)

# The fields of Request.
ctypedef struct CRequest:
    long long memory
    long long size
    long long need
    long long lead
    long long ready
    long long task
    bint compact

cdef extern from *:
    const long long TO_BE_TIMED "SPMILP_NONE"

@cython.locals(address=cython.longlong, stop=cython.longlong)
cdef (long long, long long, long long) allocate(
    State* state, long long slice_, CRequest request
) noexcept nogil

cdef (long long, long long) _with_room_made(State* state, CRequest request) noexcept nogil

@cython.locals(
    free=cython.longlong, evictable=cython.longlong, best=cython.longlong,
    others_follow=cython.bint, best_cost=cython.double, cost=cython.double, until=cython.longlong
)
cdef long long _cheapest_to_evict(State* state, CRequest request, long long size) noexcept nogil
cdef long long _length(Block* blocks, long long block) noexcept nogil

@cython.locals(count=cython.longlong, place=cython.longlong)
cdef long long _sort_by_time(State* state, long long memory) noexcept nogil

@cython.locals(
    alone=cython.longlong, together=cython.longlong, cheapest=cython.longlong,
    until=cython.longlong, cost_alone=cython.double, cost=cython.double, least=cython.double,
    is_enough=cython.bint
)
cdef (double, long long) _choose_cheapest(
    State* state, CRequest request, long long count, long long missing
) noexcept nogil

@cython.locals(
    best=cython.longlong, free=cython.longlong, best_cost=cython.double, cost=cython.double,
    has_stores=cython.bint, is_load=cython.bint
)
cdef long long cheapest_range(State* state, CRequest request) noexcept nogil

@cython.locals(in_time=cython.longlong)
cdef double _with_waiting(
    State* state, CRequest request, double cost, long long free
) noexcept nogil

@cython.locals(
    _=cython.longlong, end=cython.longlong, until=cython.longlong, there=cython.longlong,
    option=cython.longlong
)
cdef long long _end_of_stores(
    State* state, long long memory, long long first, long long last
) noexcept nogil

@cython.locals(free_from=cython.longlong, store=cython.longlong, cost=cython.double)
cdef void _price_all_blocks(State* state, long long memory, long long task) noexcept nogil
cdef long long _spilled_to(State* state, long long memory) noexcept nogil
cdef bint _is_evictable(State* state, long long held, long long task) noexcept nogil

@cython.locals(away=cython.longlong, tasks_of_a_core=cython.double)
cdef (long long, double, long long) _eviction_price(
    State* state, long long held, long long task
) noexcept nogil
cdef long long _holder_in(
    Space* space, long long memory, long long address, long long size
) noexcept nogil

@cython.locals(stop=cython.longlong)
cdef long long evict(State* state, long long held, long long task) noexcept nogil

@cython.locals(_=cython.longlong, stop=cython.longlong)
cdef long long _keep_aside(State* state, long long held, long long aside) noexcept nogil

@cython.locals(
    new=cython.longlong, free=cython.longlong, stop=cython.longlong, option=cython.longlong,
    start=cython.longlong, end=cython.longlong
)
cdef long long _move_to_shared_memory(
    State* state, long long held, long long parent, long long task
) noexcept nogil
