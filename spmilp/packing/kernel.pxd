# The search's functions in C.

cimport cython
from spmilp.compiled cimport whole
from spmilp.packing.arrays cimport (
    AGENDA_HEAD,
    CAgenda,
    CFrames,
    CMemo,
    COutline,
    CState,
    CTables,
    DEPTH,
    EXHAUSTED,
    NODES,
    PACKED,
    PAUSED,
    POOL,
    STARTED,
    TRAIL,
    agenda_in,
    arrays_at,
    frames_in,
    memo_at,
    memo_in,
    outline_in,
    state_in,
    tables_in,
)

cdef extern from *:
    """
    #define SPMILP_NO_LIMIT (1LL << 62)
    #define SPMILP_WORTH_REMEMBERING 3LL
    #define SPMILP_PROBES 4LL
    #define SPMILP_MULTIPLIER_1 0xBF58476D1CE4E5B9ULL
    #define SPMILP_MULTIPLIER_2 0x94D049BB133111EBULL
    #define SPMILP_STRIDE_1 0x9E3779B97F4A7C15ULL
    #define SPMILP_STRIDE_2 0xD1342543DE82EF95ULL
    #define SPMILP_WRAPPED(value) ((unsigned long long)(value))
    """
    const long long NO_LIMIT "SPMILP_NO_LIMIT"
    const long long WORTH_REMEMBERING "SPMILP_WORTH_REMEMBERING"
    const long long PROBES "SPMILP_PROBES"
    const unsigned long long MULTIPLIER_1 "SPMILP_MULTIPLIER_1"
    const unsigned long long MULTIPLIER_2 "SPMILP_MULTIPLIER_2"
    const unsigned long long STRIDE_1 "SPMILP_STRIDE_1"
    const unsigned long long STRIDE_2 "SPMILP_STRIDE_2"
    unsigned long long wrapped "SPMILP_WRAPPED"(unsigned long long value) noexcept nogil

@cython.locals(opened=cython.bint)
cdef bint put(CTables* tables, CState* state, long long item, long long offset) noexcept nogil
cdef void leave(
    CTables* tables, CState* state, long long section, long long incidence
) noexcept nogil
@cython.locals(bottom=cython.longlong, stacked=cython.bint, fits=cython.bint)
cdef bint lift_neighbours(CTables* tables, CState* state, long long item) noexcept nogil
cdef void bar(CState* state, long long item) noexcept nogil
cdef void take_back(CTables* tables, CState* state, long long item, long long mark) noexcept nogil
cdef void fill_state(
    CTables* tables, CState* state, long long items, long long section_from, long long section_until
) noexcept nogil
cdef inline long long next_free(COutline* outline, long long item, long long offset) noexcept nogil
cdef long long highest_floor(
    CTables* tables, long long section, long long remaining, long long capacity
) noexcept nogil
cdef bint can_lie(
    CTables* tables, CState* state, long long item, long long section, long long bound,
    long long step, long long highest
) noexcept nogil
@cython.locals(low=cython.longlong, extent=cython.longlong)
cdef bint can_be_lifted(
    CTables* tables, CState* state, long long item, long long section, long long bound,
    long long step, long long highest
) noexcept nogil
cdef bint lives_in(CTables* tables, long long item, long long section) noexcept nogil
cdef bint section_fits(
    CTables* tables, CState* state, long long section, long long bound, long long step,
    long long capacity
) noexcept nogil
cdef bint items_sections_fit(
    CTables* tables, CState* state, long long item, long long bound, long long step,
    long long capacity
) noexcept nogil
cdef unsigned long long scramble(unsigned long long value) noexcept nogil
cdef bint is_in_slot(
    CMemo* memo, long long slot, unsigned long long key, unsigned long long check
) noexcept nogil
cdef bint is_known_to_fail(
    CMemo* memo, unsigned long long key, unsigned long long check, long long bound
) noexcept nogil
cdef void remember(CMemo* memo, CFrames* frames, long long frame) noexcept nogil
cdef void keep(
    CMemo* memo, unsigned long long key, unsigned long long check, long long bound
) noexcept nogil
cdef void keep_all(CMemo* memo, CMemo* failed) noexcept nogil
@cython.locals(step=cython.longlong, lowest_top=cython.longlong, large=cython.bint)
cdef bint open_frame(CTables* tables, CState* state, CFrames* frames, CMemo* memo) noexcept nogil
@cython.locals(best=cython.longlong, best_offset=cython.longlong)
cdef long long next_choice(CState* state, CFrames* frames, long long frame) noexcept nogil
cdef void back_to(CTables* tables, CState* state, CFrames* frames, long long frame) noexcept nogil
cdef void bar_with_twins(
    CTables* tables, CState* state, CFrames* frames, long long frame, long long item
) noexcept nogil
cdef bint choice_failed(
    CTables* tables, CState* state, CFrames* frames, CMemo* memo, long long frame,
    long long capacity
) noexcept nogil
cdef void move_behind(CState* state, long long item, long long last) noexcept nogil
@cython.locals(lives=cython.bint, section_until=cython.longlong)
cdef void split_at_cuts(
    CTables* tables, CState* state, CFrames* frames, CAgenda* agenda, long long frame,
    long long last
) noexcept nogil
cdef void take_from_agenda(CState* state, CFrames* frames, CAgenda* agenda) noexcept nogil
cdef bint place_next(
    CTables* tables, CState* state, CFrames* frames, CAgenda* agenda, long long item,
    long long capacity
) noexcept nogil
cdef long long _search(
    CTables* tables, CState* state, CFrames* frames, CAgenda* agenda, CMemo* memo,
    long long capacity, long long node_limit
) noexcept nogil
