from spmilp.compiled cimport whole

cdef (long long, long long, long long) allocate(
    State* state, long long slice_, CRequest* request
) noexcept nogil
cdef (long long, long long, long long) _allocate_cleared(
    State* state, long long slice_, CRequest* request, long long address
) noexcept nogil
cdef (long long, long long) _with_room_made(State* state, CRequest* request) noexcept nogil
cdef long long _cheapest_to_evict(State* state, CRequest* request, long long size) noexcept nogil
cdef long long _length(UNKNOWN_Table blocks, long long block) noexcept nogil
cdef long long _sort_by_time(State* state, long long memory) noexcept nogil
cdef (double, long long) _choose_cheapest(
    State* state, CRequest* request, long long count, long long missing
) noexcept nogil
cdef long long cheapest_range(State* state, CRequest* request) noexcept nogil
cdef double _with_waiting(
    State* state, CRequest* request, double cost, long long free
) noexcept nogil
cdef long long _end_of_stores(
    State* state, long long memory, long long first, long long last
) noexcept nogil
cdef void _price_all_blocks(State* state, long long memory, long long task) noexcept nogil
cdef bint _is_evictable(State* state, long long held, long long task) noexcept nogil
cdef (long long, double, long long) _eviction_price(
    State* state, long long held, long long task
) noexcept nogil
cdef long long _holder_in(
    Space* space, long long memory, long long address, long long size
) noexcept nogil
cdef long long evict(State* state, long long held, long long task) noexcept nogil
cdef long long _move_to_shared_memory(
    State* state, long long held, long long parent, long long task
) noexcept nogil
