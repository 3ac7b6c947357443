from spmilp.compiled cimport whole

ctypedef struct CTasks:
    long long* alone
    long long* cycles
    long long* sharing
    long long* use
    long long* rate
    long long* over
    long long* apart

ctypedef struct CEdges:
    long long* first
    long long* earlier
    long long* lag
    long long* use

ctypedef struct CPorts:
    long long* first
    long long* buffer
    long long* use
    long long* rate
    long long* over
    long long* apart

ctypedef struct CWindow:
    long long* seen
    long long* lag
    long long* found

ctypedef struct CHeap:
    long long* keys
    long long* items

ctypedef struct CKnown:
    CTasks tasks
    CEdges edges
    CPorts ports
    long long* heads
    CWindow window
    CHeap heap
    long long* latest
    long long* wanted
    long long task_count
    long long port_count
    long long cores

cdef extern from *:
    """
    #define SPMILP_NEVER (1LL << 62)
    """
    const long long NEVER "SPMILP_NEVER"
    CKnown* known_at "SPMILP_POINTER"(size_t address) noexcept nogil

cdef void _raise_heads(CKnown* known, long long width, long long every) noexcept nogil
cdef long long _tasks_before(CKnown* known, long long t, long long width) noexcept nogil
cdef long long _reach(
    CKnown* known, long long t, long long x, long long after, long long size
) noexcept nogil
cdef long long _push(CKnown* known, long long size, long long key, long long item) noexcept nogil
cdef long long _pop(CKnown* known, long long size) noexcept nogil
cdef long long _end(CKnown* known, long long x) noexcept nogil
cdef long long _what_must_arrive(CKnown* known, long long t) noexcept nogil
cdef long long _until_arrived(
    CKnown* known, long long t, long long total, long long most, long long begin,
    long long release, long long shortest
) noexcept nogil
cdef long long _cut(CKnown* known, long long count, bint by_head) noexcept nogil
cdef long long _port(CKnown* known, long long t, long long port, long long found) noexcept nogil
cdef long long _note_jobs(
    CKnown* known, long long port, long long x, long long wait, long long count
) noexcept nogil
