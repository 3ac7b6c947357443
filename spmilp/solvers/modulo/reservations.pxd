cimport cython

from spmilp.compiled cimport longs_at, whole
from spmilp.solvers.justify.schedule cimport CRows
from spmilp.solvers.schedule.kernels.records cimport NEVER, NONE
from spmilp.solvers.schedule.kernels.schedule_state cimport timeline_in
from spmilp.solvers.schedule.kernels.timeline cimport CTimeline, occupy, profile_at, step_at

ctypedef struct CBusy:
    long long resource
    long long start
    long long end
    long long amount

ctypedef struct CReservations:
    long long* ways
    long long* begin
    CBusy* busy
    long long* capacity
    long long* left
    long long* cycles
    CRows before
    CRows after
    CTimeline timeline
    long long* release
    long long* start
    long long* way
    long long period

cdef extern from *:
    CReservations* loop_at "SPMILP_POINTER"(size_t address) noexcept nogil
    CBusy* busy_at "SPMILP_AT"(CBusy* table, long long index) noexcept nogil

@cython.locals(ready=cython.longlong, best=cython.longlong, chosen=cython.longlong, is_new=cython.bint)
cdef long long _place_all(CReservations* loop, long long count) noexcept nogil
@cython.locals(last=cython.longlong)
cdef void _delay(
    CReservations* loop, long long* some, long long* latest, long long count
) noexcept nogil
@cython.locals(agreed=cython.longlong)
cdef long long _first_from(CReservations* loop, long long way, long long ready) noexcept nogil
@cython.locals(agreed=cython.longlong)
cdef long long _last_until(
    CReservations* loop, long long way, long long latest, long long least
) noexcept nogil
@cython.locals(
    longest=cython.longlong,
    second=cython.longlong,
    at=cython.longlong,
    begun=cython.longlong,
    first=cython.longlong,
    time=cython.longlong,
    room=cython.longlong,
    is_end=cython.bint,
)
cdef long long _unbroken(
    CReservations* loop, long long resource, long long ready, long long cycles, long long spare
) noexcept nogil
@cython.locals(start=cython.longlong)
cdef long long _first_gap(
    CReservations* loop, long long resource, long long ready, long long cycles, long long amount
) noexcept nogil
cdef long long _last_gap(
    CReservations* loop, long long resource, long long end, long long cycles, long long amount
) noexcept nogil
cdef void _hold(
    CReservations* loop, long long way, long long start, long long sign
) noexcept nogil
