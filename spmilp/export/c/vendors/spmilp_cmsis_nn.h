#ifndef SPMILP_CMSIS_NN_H
#define SPMILP_CMSIS_NN_H

/*
 * Kernels of CMSIS-NN (functions of its release 7 whose names end with _s8) for int8 tiles whose
 * scales and layout fit; the reference kernels compute all others. `make -f code.mk CMSIS_NN=DIR`
 * takes them. Results differ by at most one step, where fixed-point requantisation rounds to the
 * other side.
 */

#include "arm_nnfunctions.h"
#include "spmilp_vendor.h"

spmilp_kernel spmilp_cmsis_add, spmilp_cmsis_average_pool, spmilp_cmsis_conv, spmilp_cmsis_gemm;
spmilp_kernel spmilp_cmsis_max_pool, spmilp_cmsis_softmax;

/* real = multiplier * 2^(shift - 31); a float has 24 bits, so nothing is rounded. */
static inline void set_multiplier(float real, int32_t *multiplier, int32_t *shift)
{
    int exponent;
    *multiplier = (int32_t)(frexpf(real, &exponent) * 2147483648.0F);
    *shift = exponent;
}

static inline cmsis_nn_activation activation_of(const struct spmilp_call *call)
{
    const float unit = unit_of(call, &call->output);
    const int32_t zero = zero_of(call, &call->output);
    const cmsis_nn_activation found = {to_s8(spmilp_limit(call->step, -1000.0F, unit), zero),
                                       to_s8(spmilp_limit(call->step, 1000.0F, unit), zero)};
    return found;
}

#endif
