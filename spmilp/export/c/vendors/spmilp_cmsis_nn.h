#ifndef SPMILP_CMSIS_NN_H
#define SPMILP_CMSIS_NN_H

/*
 * Kernels of CMSIS-NN (functions of its release 7 whose names end with _s8) for int8 tiles whose
 * scales and layout fit; the reference kernels compute all others. `make -f code.mk CMSIS_NN=DIR`
 * takes them. Operators in fixed point have the same results, but for Gemm (in double precision here)
 * and Softmax; others differ by at most one step, where fixed-point requantisation rounds to the
 * other side.
 */

#include "arm_nnfunctions.h"
#include "spmilp_vendor.h"

spmilp_kernel spmilp_cmsis_add, spmilp_cmsis_average_pool, spmilp_cmsis_conv, spmilp_cmsis_gemm;
spmilp_kernel spmilp_cmsis_max_pool, spmilp_cmsis_softmax;

/* Whether results are rounded from reals, or in fixed point, which is how CMSIS-NN rounds. */
static inline int can_take(const struct spmilp_call *call)
{
    return fits(call) || (spmilp_fixed_words(call) && is_whole_s8(call));
}

/* real = multiplier * 2^(shift - 31), rounded. */
static inline void set_multiplier(double real, int32_t *multiplier, int32_t *shift)
{
    int exponent;
    const int64_t rounded = (int64_t)(frexp(real, &exponent) * 2147483648.0 + 0.5);
    const int is_one = rounded == INT64_C(2147483648);
    *multiplier = (int32_t)(is_one ? rounded / 2 : rounded);
    *shift = exponent + is_one;
}

/* Of results; words in fixed point begin with them. */
static inline cmsis_nn_activation activation_of(const struct spmilp_call *call)
{
    const int32_t *words = spmilp_fixed_words(call);
    const float unit = unit_of(call, &call->output);
    const int32_t zero = zero_of(call, &call->output);
    const cmsis_nn_activation found = {
        words ? words[0] : to_s8(spmilp_limit(call->step, -1000.0F, unit), zero),
        words ? words[1] : to_s8(spmilp_limit(call->step, 1000.0F, unit), zero)};
    return found;
}

#endif
