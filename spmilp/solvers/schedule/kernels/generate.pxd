from spmilp.compiled cimport whole

cdef long long _place_initial_buffers(State* state) noexcept nogil
cdef long long _empty_the_memory(State* state, long long task) noexcept nogil
cdef bint _is_pinned_home(State* state, long long held) noexcept nogil
cdef long long _place(State* state, long long task, bint compact) noexcept nogil
cdef (long long, long long) _reserve_outputs(
    State* state, long long task, long long memory, long long need, bint compact
) noexcept nogil
cdef long long _overwritten(
    State* state, long long task, long long entry, long long memory, long long need, bint compact
) noexcept nogil
cdef long long _write(
    State* state, long long task, long long memory, long long start, long long end
) noexcept nogil
cdef long long _release(State* state, long long task) noexcept nogil
cdef (long long, long long) fetch(
    State* state, long long slice_, long long memory, long long need, long long task, bint compact
) noexcept nogil
cdef long long _store_home(State* state, long long slice_) noexcept nogil
cdef (long long, long long) _fetch_directly(
    State* state, long long slice_, long long memory, long long need, long long task, bint compact
) noexcept nogil
cdef (long long, long long, long long, long long) best_source(
    State* state, long long slice_, long long memory, long long free
) noexcept nogil
cdef long long send_towards(
    State* state, long long held, long long memory, long long task
) noexcept nogil
