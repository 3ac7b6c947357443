from spmilp.compiled cimport whole

ctypedef struct Step:
    long long time
    long long load

ctypedef struct Profile:
    long long begin
    long long length
    long long slots

ctypedef struct CTimeline:
    Step* steps
    Profile* resources
    long long* used
    long long pool

cdef extern from *:
    Profile* profile_at "SPMILP_AT"(Profile* table, long long index) noexcept nogil

cdef long long earliest_gap(
    CTimeline* timeline, long long resource, long long ready, long long cycles, long long spare
) noexcept nogil
cdef long long step_at(CTimeline* timeline, long long resource, long long cycle) noexcept nogil
cdef bint occupy(
    CTimeline* timeline, long long resource, long long start, long long end, long long demand
) noexcept nogil
cdef long long _cut(CTimeline* timeline, long long resource, long long cycle) noexcept nogil
cdef void _merge(CTimeline* timeline, long long resource, long long step) noexcept nogil
cdef bint _grow(CTimeline* timeline, long long resource) noexcept nogil
