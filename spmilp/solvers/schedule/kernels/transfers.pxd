# The kernels of transfers.py in C.

cimport cython

from spmilp.compiled cimport whole
from spmilp.solvers.schedule.kernels.memories cimport (
    free_range,
    is_counted,
    new_residency,
    residency_in,
    take,
)
from spmilp.solvers.schedule.kernels.records cimport NEVER, NONE
from spmilp.solvers.schedule.kernels.schedule_state cimport (
    COUNT_RESIDENCIES,
    COUNT_TRANSFERS,
    DOES_NOT_FIT,
    DONE,
    RESIDENCIES_FULL,
    TIMELINE_FULL,
    TRANSFERS_FULL,
    UNREACHABLE,
    Option,
    Resource,
    State,
    core_at,
    memory_at,
    option_at,
    pair_row_at,
    residency_at,
    resource_at,
    slice_at,
    task_at,
    timeline_in,
    transfer_at,
)
from spmilp.solvers.schedule.kernels.timeline cimport earliest_gap, occupy

ctypedef struct CMulticast:
    long long engine
    long long setup
    long long latency
    long long rate
    long long links
    long long start
    long long end

cdef long long LATER

@cython.locals(fits=cython.bint)
cdef bint can_copy(
    Resource* engine, long long size, long long shape, long long offset
) noexcept nogil
@cython.locals(sending=cython.longlong)
cdef long long cycles_of_copy(Option* option, long long size, long long scale) noexcept nogil
cdef long long busy_for(Resource* engine, long long cycles, long long latency) noexcept nogil
cdef long long cycles_on_idle_hardware(
    State* state, long long source, long long target, long long size
) noexcept nogil
cdef long long _pair(State* state, long long source, long long target) noexcept nogil

@cython.locals(
    best=cython.longlong, best_start=cython.longlong, best_end=cython.longlong,
    shape=cython.longlong, offset=cython.longlong,
)
cdef (long long, long long, long long) earliest_transfer(
    State* state, long long slice_, long long source, long long memory, long long ready,
    long long before
) noexcept nogil

cdef (long long, long long) _layout(
    State* state, long long slice_, long long source, long long memory
) noexcept nogil

@cython.locals(start=cython.longlong, asked=cython.longlong, agreed=cython.longlong)
cdef long long _first_start(
    State* state, long long pair, long long option, long long ready, long long cycles,
    long long too_late
) noexcept nogil

@cython.locals(_=cython.longlong, stop=cython.longlong)
cdef long long transfer(
    State* state, long long slice_, long long source, long long destination, long long option,
    long long start, long long end
) noexcept nogil
cdef (long long, long long) write_down(
    State* state, long long slice_, long long source, long long destination, long long engine,
    long long start, long long sent, long long end
) noexcept nogil
cdef void fill(State* state, long long residency, long long move) noexcept nogil

@cython.locals(aside=cython.longlong, new=cython.longlong, stop=cython.longlong)
cdef long long spill(State* state, long long held, long long dram) noexcept nogil

@cython.locals(new=cython.longlong, stop=cython.longlong)
cdef long long store(State* state, long long held, long long dram) noexcept nogil

@cython.locals(
    ready=cython.longlong, option=cython.longlong, start=cython.longlong, end=cython.longlong,
    new=cython.longlong, free=cython.longlong, stop=cython.longlong
)
cdef (long long, long long) copy_to(
    State* state, long long held, long long memory, long long before
) noexcept nogil

@cython.locals(
    best=cython.longlong, best_end=cython.longlong, rate=cython.longlong, moving=cython.longlong,
    loads=cython.longlong, end=cython.longlong,
)
cdef long long earliest_finish_core(State* state, long long task) noexcept nogil

@cython.locals(end=cython.longlong)
cdef long long end_of_predecessors(State* state, long long task) noexcept nogil
cdef void _count_loads_saved(State* state, long long task) noexcept nogil
cdef void _count_copies(
    State* state, long long held, long long size, long long now
) noexcept nogil

@cython.locals(cycles=cython.longlong)
cdef long long _cycles_of_all_reads(State* state, long long task, long long rate) noexcept nogil

@cython.locals(
    shape=cython.longlong, offset=cython.longlong, found=CMulticast, stop=cython.longlong
)
cdef long long transfer_to_all(
    State* state, long long slice_, long long source, long long destination, long long option,
    long long start, long long end
) noexcept nogil

@cython.locals(now=cython.longlong, _=cython.longlong, stop=cython.longlong)
cdef (CMulticast, long long) _found(
    State* state, long long slice_, long long source, long long destination, long long option,
    long long end
) noexcept nogil
cdef long long _memory_that_lacks(
    State* state, long long slice_, long long entry, long long here
) noexcept nogil
cdef long long _option_of(State* state, long long pair, long long engine) noexcept nogil

@cython.locals(links=cython.longlong, is_new=cython.bint)
cdef CMulticast _with_route(
    State* state, long long slice_, CMulticast before, long long pair, long long option
) noexcept nogil

@cython.locals(new=cython.longlong, stop=cython.longlong)
cdef long long _write(
    State* state, long long slice_, long long source, long long destination, long long first,
    CMulticast found
) noexcept nogil
