from spmilp.compiled cimport whole

cdef long long cycles_on_idle_hardware(
    State* state, long long source, long long target, long long size
) noexcept nogil
cdef long long _pair(State* state, long long source, long long target) noexcept nogil
cdef (long long, long long, long long) earliest_transfer(
    State* state, long long slice_, long long source, long long memory, long long ready, long long before
) noexcept nogil
cdef bint can_make(
    State* state, long long option, long long slice_, long long source, long long destination
) noexcept nogil
cdef (long long, long long) _layout(
    State* state, long long slice_, long long source, long long memory
) noexcept nogil
cdef long long _first_start(
    State* state, long long pair, long long option, long long ready, long long cycles, long long too_late
) noexcept nogil
cdef long long transfer(
    State* state, long long slice_, long long source, long long destination, long long option, long long start, long long end
) noexcept nogil
cdef (long long, long long) write_down(
    State* state, long long slice_, long long source, long long destination, long long engine, long long start, long long end
) noexcept nogil
cdef void fill(State* state, long long residency, long long move) noexcept nogil
cdef long long store(State* state, long long held, long long dram) noexcept nogil
cdef long long earliest_finish_core(State* state, long long task) noexcept nogil
cdef long long end_of_predecessors(State* state, long long task) noexcept nogil
cdef void _count_loads_saved(State* state, long long task) noexcept nogil
cdef void _count_copies(State* state, long long held, long long size, long long now) noexcept nogil
cdef long long _cycles_of_all_reads(State* state, long long task, long long rate) noexcept nogil
cdef long long transfer_to_all(
    State* state, long long slice_, long long source, long long destination, long long option, long long start, long long end
) noexcept nogil
cdef (CMulticast*, long long) _found(
    State* state, long long slice_, long long source, long long destination, long long option, long long end
) noexcept nogil
cdef long long _memory_that_lacks(
    State* state, long long slice_, long long entry, long long here
) noexcept nogil
cdef long long _option_of(State* state, long long pair, long long engine) noexcept nogil
cdef CMulticast* _with_route(
    State* state, long long slice_, CMulticast* before, long long pair, long long option
) noexcept nogil
cdef long long _free_range(
    State* state, long long memory, long long size, long long by
) noexcept nogil
cdef long long _write(
    State* state, long long slice_, long long source, long long destination, long long first, CMulticast* found
) noexcept nogil
