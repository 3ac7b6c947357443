# Structs with the fields of the tuples of arrays.py, in the same order.

from spmilp.compiled cimport whole

ctypedef struct COutline:
    long long* run_start
    long long* run_from
    long long* run_until
    long long* run_units
    long long* units
    long long* alignment
    long long* blocked_start
    long long* blocked_from
    long long* blocked_until

ctypedef struct CTables:
    COutline outline
    long long is_uniform
    long long* pair_start
    int* pair_item
    long long* pair_extent
    long long* incidence_start
    long long* member_start
    int* member
    int* member_incidence
    int* incidence_position
    long long* hull_from
    long long* hull_until
    long long* lift
    long long* lowest
    long long* obstacle_start
    long long* obstacle_from
    long long* obstacle_until
    long long* exchange_class
    long long* twin_class

ctypedef struct CState:
    long long* rank
    long long* weight
    long long* latest
    long long* low
    long long* barred
    long long* offset
    long long* order
    long long* position
    long long* remaining
    long long* alive
    long long* witness
    int* member
    int* member_incidence
    int* incidence_position
    long long* spanning
    long long* trail_item
    long long* trail_low
    long long* counters

ctypedef struct CFrames:
    long long* first
    long long* last
    long long* section_from
    long long* section_until
    long long* bound
    long long* highest
    long long* step
    long long* placed
    long long* mark
    long long* back_to
    long long* agenda
    long long* pool
    unsigned long long* key
    unsigned long long* check

ctypedef struct CAgenda:
    long long* first
    long long* last
    long long* section_from
    long long* section_until
    long long* bound
    long long* back_to
    long long* rest

ctypedef struct CMemo:
    long long size
    unsigned long long* key
    unsigned long long* check
    long long* bound

ctypedef struct CArrays:
    CTables tables
    CState state
    CFrames frames
    CAgenda agenda
    CMemo memo
    long long capacity

cdef extern from *:
    """
    enum {
        SPMILP_DEPTH, SPMILP_AGENDA_HEAD, SPMILP_POOL, SPMILP_TRAIL, SPMILP_NODES, SPMILP_STARTED
    };
    enum { SPMILP_PACKED, SPMILP_EXHAUSTED, SPMILP_PAUSED };
    """
    const long long DEPTH "SPMILP_DEPTH"
    const long long AGENDA_HEAD "SPMILP_AGENDA_HEAD"
    const long long POOL "SPMILP_POOL"
    const long long TRAIL "SPMILP_TRAIL"
    const long long NODES "SPMILP_NODES"
    const long long STARTED "SPMILP_STARTED"
    const long long PACKED "SPMILP_PACKED"
    const long long EXHAUSTED "SPMILP_EXHAUSTED"
    const long long PAUSED "SPMILP_PAUSED"
    int* shorts_at "SPMILP_POINTER"(size_t address) noexcept nogil
    COutline* outline_at "SPMILP_POINTER"(size_t address) noexcept nogil
    CArrays* arrays_at "SPMILP_POINTER"(size_t address) noexcept nogil
    CMemo* memo_at "SPMILP_POINTER"(size_t address) noexcept nogil
    COutline* outline_in "&"(COutline outline) noexcept nogil
    CTables* tables_in "&"(CTables tables) noexcept nogil
    CState* state_in "&"(CState state) noexcept nogil
    CFrames* frames_in "&"(CFrames frames) noexcept nogil
    CAgenda* agenda_in "&"(CAgenda agenda) noexcept nogil
    CMemo* memo_in "&"(CMemo memo) noexcept nogil
