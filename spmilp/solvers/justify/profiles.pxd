cimport cython

from spmilp.compiled cimport longs_at, whole
from spmilp.solvers.justify.schedule cimport CDemands, CSchedule
from spmilp.solvers.justify.transfer_options cimport (
    AT_PLACE,
    PART,
    CBooking,
    CCopy,
    COptionTables,
    options_at,
    use_at,
)
from spmilp.solvers.schedule.kernels.records cimport NONE
from spmilp.solvers.schedule.kernels.schedule_state cimport (
    Option,
    option_at,
    pair_row_at,
    resource_at,
    slice_at,
)
from spmilp.solvers.schedule.kernels.timeline cimport (
    CTimeline,
    earliest_gap,
    occupy,
    profile_at,
    step_at,
)
from spmilp.solvers.schedule.kernels.transfers cimport can_copy, cycles_of_copy

cdef long long taken(CSchedule* schedule, long long residency, long long memory) noexcept nogil
cdef bint has_capacity(
    CTimeline* occupancy,
    long long* limit,
    long long memory,
    long long first,
    long long until,
    long long need,
) noexcept nogil
@cython.locals(agreed=cython.longlong)
cdef long long earliest_start(
    CDemands demands,
    long long* capacity,
    CTimeline* usage,
    long long one,
    long long cycles,
    long long ready,
) noexcept nogil
cdef void hold(
    CDemands demands,
    CTimeline* usage,
    long long one,
    long long start,
    long long end,
    long long sign,
) noexcept nogil
cdef CBooking earliest_option(
    COptionTables* tables, long long* capacity, CTimeline* usage, CCopy copy
) noexcept nogil
@cython.locals(offset=cython.longlong)
cdef long long _cycles(
    COptionTables* tables, Option* option, long long what, long long form
) noexcept nogil
@cython.locals(count=cython.longlong)
cdef long long _pass_on(
    long long* sequence,
    long long size,
    long long* first,
    long long* past,
    long long* owner,
    long long* before,
    long long* after,
) noexcept nogil
