from spmilp.compiled cimport whole

ctypedef struct CTraffic:
    long long* first
    long long* links
    double* limit
    double* left
    double* rate
    long long* active
    double* capacity
    double* free
    long long* users
    long long* used

cdef extern from *:
    """
    #include <math.h>
    #define SPMILP_FULL 1e-9
    #define SPMILP_REST 1e-6
    """
    const double NEVER "HUGE_VAL"
    const double FULL "SPMILP_FULL"
    const double REST "SPMILP_REST"
    CTraffic* traffic_at "SPMILP_POINTER"(size_t address) noexcept nogil

cdef double _share(CTraffic* traffic, long long count) noexcept nogil
cdef long long _raise_rates(CTraffic* traffic, long long count, long long used) noexcept nogil
cdef bint _is_held(CTraffic* traffic, long long t, double level) noexcept nogil
cdef long long _pass(CTraffic* traffic, long long count, double cycles) noexcept nogil
