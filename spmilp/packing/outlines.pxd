# The functions of outlines.py in C.

cimport cython
from spmilp.compiled cimport longs_at, whole
from spmilp.packing.arrays cimport COutline, outline_at, shorts_at
from spmilp.packing.kernel cimport next_free

cdef void _lay_all(COutline* outline, long long items, long long* offset) noexcept nogil
@cython.locals(total=cython.longlong)
cdef void _list_conflicts(
    COutline* outline,
    long long items,
    long long* filled,
    int* other,
    bint with_others,
    long long* extent,
    bint with_extents,
    long long limit,
) noexcept nogil
@cython.locals(needed=cython.longlong)
cdef inline long long extent_over(COutline* outline, long long lower, long long upper) noexcept nogil
cdef void _stack_all(
    COutline* outline,
    long long items,
    long long* rank,
    long long* heap,
    long long* offset,
    long long* top,
) noexcept nogil
cdef void _sift(
    long long* heap, long long size, long long slot, long long* offset, long long* rank
) noexcept nogil
cdef bint _goes_first(
    long long one, long long other, long long* offset, long long* rank
) noexcept nogil
cdef void _place_all(
    COutline* outline,
    long long items,
    long long* order,
    long long* offset,
    long long* by_offset,
    bint tightest,
) noexcept nogil
@cython.locals(floor=cython.longlong, best=cython.longlong, best_gap=cython.longlong)
cdef long long _gap_for(
    COutline* outline,
    long long item,
    long long* offset,
    long long* by_offset,
    long long count,
    bint tightest,
) noexcept nogil
