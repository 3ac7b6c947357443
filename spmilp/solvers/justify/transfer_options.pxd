# The struct with the fields of the tuple of transfer_options.py, in the same order; its constants.

from spmilp.solvers.schedule.kernels.schedule_state cimport Option, Resource, SliceRow

ctypedef struct COptionTables:
    Resource* limits
    SliceRow* slices
    long long scale

cdef extern from *:
    """
    enum { SPMILP_FORM_PART = 1, SPMILP_FORM_AT_PLACE };
    """
    const long long PART "SPMILP_FORM_PART"
    const long long AT_PLACE "SPMILP_FORM_AT_PLACE"
    COptionTables* options_at "SPMILP_POINTER"(size_t address) noexcept nogil
    Option* use_at "SPMILP_POINTER"(size_t address) noexcept nogil
