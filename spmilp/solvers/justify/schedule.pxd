# Structs with the fields of the tuples of schedule.py, in the same order.

ctypedef struct CRows:
    long long* begin
    long long* items

ctypedef struct CDemands:
    long long* begin
    long long* items
    long long* amounts
    long long* late
    long long* early

ctypedef struct CSchedule:
    long long* cycles
    long long* latency
    CDemands demands
    long long* capacity
    CRows reads
    CRows fills
    CRows before
    CRows after
    CRows readers
    long long* filler
    long long* memory
    long long* offset
    long long* bytes
    long long* alignment
    long long* lasting
    long long* slice
    long long* moved_slice
    long long* overwrites
    long long* overwritten_by

cdef extern from *:
    CSchedule* schedule_in "&"(CSchedule schedule) noexcept nogil
