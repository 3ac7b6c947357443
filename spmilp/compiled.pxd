# What all kernels have in common in C. Each name is a Python function of compiled.py, or of
# solvers/schedule/kernels/records.py, too.

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

cdef inline size_t first_byte(object array) except? 0:
    # A call of a kernel has up to a hundred arrays; __array_interface__ takes a microsecond each.
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    PyBuffer_Release(&view)
    return <size_t>view.buf

cdef extern from *:
    """
    #define SPMILP_AT(table, index) (&(table)[index])
    #define SPMILP_POINTER(address) ((void *)(size_t)(address))
    #define SPMILP_WHOLE(value) ((long long)(value))
    """
    long long whole "SPMILP_WHOLE"(long long value) noexcept nogil
    long long* longs_at "SPMILP_POINTER"(size_t address) noexcept nogil
