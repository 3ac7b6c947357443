/*
 * What the functions of a plan have in common.
 *
@STAMP@
 */

#include "@NAME@.h"
#include "@NAME@_kernels.h"

/* What comes before each definition, for example a section. */
#ifndef SPMILP_TABLE
#define SPMILP_TABLE
#endif

@STREAM_C@@KEPT_C@
@CONSTANTS_DEFINED@

spmilp_function *const @NAME@_lists[] = {
@LISTS_NAMED@
};
