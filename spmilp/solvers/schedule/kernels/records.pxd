# Constants of records.py.

cdef extern from *:
    """
    #define SPMILP_NONE (-1LL)
    #define SPMILP_NEVER (1LL << 62)
    """
    const long long NONE "SPMILP_NONE"
    const long long NEVER "SPMILP_NEVER"
