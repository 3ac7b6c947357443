# Structs with the fields of the tuples of transfer_options.py, in the same order; its constants.

from spmilp.compiled cimport whole
from spmilp.solvers.justify.schedule cimport CDemands
from spmilp.solvers.schedule.kernels.schedule_state cimport Option, Pair, Resource, SliceRow

ctypedef struct COptionTables:
    long long* pair_at
    Pair* pairs
    Option* options
    CDemands demands
    Resource* limits
    SliceRow* slices
    long long scale
    long long first_engine
    long long memories

ctypedef struct CCopy:
    long long pair
    long long what
    long long form
    long long ready
    long long by

ctypedef struct CBooking:
    long long option
    long long start
    long long end

cdef extern from *:
    """
    enum { SPMILP_FORM_WHOLE, SPMILP_FORM_PART, SPMILP_FORM_AT_PLACE };
    """
    const long long WHOLE "SPMILP_FORM_WHOLE"
    const long long PART "SPMILP_FORM_PART"
    const long long AT_PLACE "SPMILP_FORM_AT_PLACE"
    COptionTables* options_at "SPMILP_POINTER"(size_t address) noexcept nogil
    COptionTables* options_in "&"(COptionTables options) noexcept nogil
    Option* use_at "SPMILP_POINTER"(size_t address) noexcept nogil
