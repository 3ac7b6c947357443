#ifndef @UPPER@_KERNELS_H
#define @UPPER@_KERNELS_H

/*
 * Kernels of a plan: define a macro to put another one in place.
 *
@STAMP@
 */

#include "spmilp_kernels.h"

@KERNELS@

#endif
