cimport cython

from spmilp.compiled cimport longs_at, whole
from spmilp.solvers.justify.profiles cimport earliest_option, has_capacity, hold, taken
from spmilp.solvers.justify.schedule cimport CRows, CSchedule, schedule_in
from spmilp.solvers.justify.transfer_options cimport (
    AT_PLACE,
    PART,
    WHOLE,
    CBooking,
    CCopy,
    COptionTables,
    options_in,
)
from spmilp.solvers.schedule.kernels.records cimport NEVER, NONE
from spmilp.solvers.schedule.kernels.schedule_state cimport timeline_in
from spmilp.solvers.schedule.kernels.timeline cimport CTimeline, occupy

ctypedef struct Bypass:
    CSchedule schedule
    COptionTables options
    long long* limit
    CRows holders
    unsigned char* is_dram
    CTimeline usage
    CTimeline occupancy
    long long* start
    long long* cycles
    long long* source
    long long* option
    long long* begins
    long long* valid
    long long* first_use
    long long* ends
    long long activities
    long long residencies

cdef extern from *:
    Bypass* bypass_at "SPMILP_POINTER"(size_t address) noexcept nogil

@cython.locals(changes=cython.longlong, from_dram=cython.bint, is_load=cython.bint)
cdef long long _bypass_dram(
    Bypass* state, long long* moves, long long count, long long most
) noexcept nogil
cdef void _hold(Bypass* state, long long act, long long sign) noexcept nogil
cdef void _fill(
    Bypass* state, long long residency, long long first, long long until, long long sign
) noexcept nogil
cdef long long _load_from_scratchpad(Bypass* state, long long act, long long new) noexcept nogil
