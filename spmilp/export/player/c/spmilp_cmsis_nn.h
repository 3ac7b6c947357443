#ifndef SPMILP_CMSIS_NN_H
#define SPMILP_CMSIS_NN_H

/*
 * Kernels of CMSIS-NN (functions of its release 7 whose names end with _s8) for int8 tiles whose
 * scales and layout fit; the reference kernels compute all others. `make -f code.mk CMSIS_NN=DIR`
 * takes them. Results differ by at most one step, where fixed-point requantisation rounds to the
 * other side.
 */

#include <math.h>

#include "arm_nnfunctions.h"
#include "spmilp_windows.h"

spmilp_kernel spmilp_cmsis_add, spmilp_cmsis_average_pool, spmilp_cmsis_conv, spmilp_cmsis_gemm;
spmilp_kernel spmilp_cmsis_max_pool, spmilp_cmsis_softmax;

#ifndef SPMILP_CMSIS_SCRATCH
#define SPMILP_CMSIS_SCRATCH 32768U /* bytes of the stack of a core */
#endif

struct scratch {
    uint64_t words[SPMILP_CMSIS_SCRATCH / 8U];
    size_t used;
};

/* Null if there is not that much. */
static inline void *take(struct scratch *scratch, size_t bytes)
{
    const size_t first = scratch->used, words = bytes / 8U + 1U;
    if (words > SPMILP_CMSIS_SCRATCH / 8U - first) {
        return (void *)0;
    }
    scratch->used += words;
    return &scratch->words[first];
}

static inline int32_t start(const struct spmilp_box *operand, uint32_t axis)
{
    return operand->box[2U * axis];
}

static inline int32_t length(const struct spmilp_box *operand, uint32_t axis)
{
    return operand->box[2U * axis + 1U];
}

static inline int are_alike(const struct spmilp_box *one, const struct spmilp_box *other, uint32_t axis)
{
    return start(one, axis) == start(other, axis) && length(one, axis) == length(other, axis);
}

static inline int is_s8(const struct spmilp_box *operand)
{
    return operand->data && operand->type == SPMILP_TYPE_INT8 && operand->scale;
}

static inline int has_one_scale(const struct spmilp_box *operand)
{
    return is_s8(operand) && operand->scale->axis < 0;
}

static inline float unit_of(const struct spmilp_call *call, const struct spmilp_box *operand)
{
    return spmilp_scale_at(call->words, operand->scale, 0);
}

static inline int32_t zero_of(const struct spmilp_call *call, const struct spmilp_box *operand)
{
    return spmilp_zero_at(call->words, operand->scale, 0);
}

static inline int fits(const struct spmilp_call *call)
{
    return call->step->quantised == 1U && call->step->part == SPMILP_PART_WHOLE &&
           has_one_scale(&call->inputs[0]) && has_one_scale(&call->output);
}

/* real = multiplier * 2^(shift - 31); a float has 24 bits, so nothing is rounded. */
static inline void set_multiplier(float real, int32_t *multiplier, int32_t *shift)
{
    int exponent;
    *multiplier = (int32_t)(frexpf(real, &exponent) * 2147483648.0F);
    *shift = exponent;
}

static inline int32_t to_s8(float value, int32_t zero)
{
    return (int32_t)spmilp_saturate(rintf(value), zero, SPMILP_TYPE_INT8);
}

static inline cmsis_nn_activation activation_of(const struct spmilp_call *call)
{
    const float unit = unit_of(call, &call->output);
    const int32_t zero = zero_of(call, &call->output);
    const cmsis_nn_activation found = {to_s8(spmilp_limit(call->step, -1000.0F, unit), zero),
                                       to_s8(spmilp_limit(call->step, 1000.0F, unit), zero)};
    return found;
}

/* Padding in front of the box along a spatial axis; below 0 if the box begins before the window. */
static inline int32_t padding(const struct spmilp_call *call, const struct spmilp_window *window,
                       uint32_t axis)
{
    return window->first - (start(&call->output, axis) * window->stride - window->pad);
}

#endif
