cimport cython

from spmilp.compiled cimport longs_at, whole
from spmilp.solvers.justify.profiles cimport earliest_start, hold, taken
from spmilp.solvers.justify.schedule cimport CRows, CSchedule, schedule_in
from spmilp.solvers.schedule.kernels.records cimport NEVER, NONE
from spmilp.solvers.schedule.kernels.schedule_state cimport timeline_in
from spmilp.solvers.schedule.kernels.timeline cimport CTimeline, occupy, step_at

ctypedef struct Direction:
    CRows opens
    long long* late
    CRows closes
    long long* early
    CRows before
    CRows earlier
    long long* overwrites
    unsigned char* is_open
    unsigned char* stays

ctypedef struct Pass:
    CSchedule schedule
    Direction direction
    long long* limit
    CTimeline usage
    CTimeline occupancy
    unsigned char* stays_held
    long long* old
    long long* earliest
    long long* found
    long long* opened
    long long* released
    long long* unclosed
    long long* since
    long long* until
    long long residencies

cdef extern from *:
    Pass* pass_at "SPMILP_POINTER"(size_t address) noexcept nogil
    Direction* direction_in "&"(Direction direction) noexcept nogil

cdef bint _place(
    Pass* state, long long* sequence, long long count, long long* due
) noexcept nogil
cdef void _hold_as_before(Pass* state, long long act, long long sign) noexcept nogil
cdef void _count(
    Pass* state, long long residency, long long first, long long until, long long sign
) noexcept nogil
cdef long long _own_bytes(Pass* state, long long residency) noexcept nogil
cdef void _open(Pass* state, long long residency, long long start, long long end) noexcept nogil
cdef void _close(Pass* state, long long residency, long long end) noexcept nogil
cdef long long _precedence_ready(Pass* state, long long act) noexcept nogil
@cython.locals(need=cython.longlong, is_held=cython.bint, late="long long*")
cdef long long _capacity_ready(Pass* state, long long act, long long ready) noexcept nogil
