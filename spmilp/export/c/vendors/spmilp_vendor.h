#ifndef SPMILP_VENDOR_H
#define SPMILP_VENDOR_H

/* What kernels of other libraries have in common: which tiles of int8 fit, and scratch memory to turn
   operands, which lie with their channels first. */

#include <math.h>

#include "spmilp_windows.h"

#ifndef SPMILP_SCRATCH
#define SPMILP_SCRATCH 32768U /* bytes of the stack of a core */
#endif

struct scratch {
    uint64_t words[SPMILP_SCRATCH / 8U];
    size_t used;
};

/* Null if there is not that much. */
static inline void *take(struct scratch *scratch, size_t bytes)
{
    const size_t first = scratch->used, words = bytes / 8U + 1U;
    if (words > SPMILP_SCRATCH / 8U - first) {
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

/* Whether a tile is whole, with one scale for its data and one for its results. */
static inline int is_whole_s8(const struct spmilp_call *call)
{
    return call->step->part == SPMILP_PART_WHOLE && has_one_scale(&call->inputs[0]) &&
           has_one_scale(&call->output);
}

/* The same, and results are rounded from reals. */
static inline int fits(const struct spmilp_call *call)
{
    return call->step->quantised == 1U && is_whole_s8(call);
}

static inline int32_t to_s8(float value, int32_t zero)
{
    return (int32_t)spmilp_saturate(rintf(value), zero, SPMILP_TYPE_INT8);
}

/* Whether weights without zero points, and a bias of integers if there is one, belong to the output's
   channels, which are along `axis`. */
static inline int has_fitting_weights(const struct spmilp_call *call, uint32_t axis)
{
    const struct spmilp_box *weight = &call->inputs[1], *bias = &call->inputs[2];
    const struct spmilp_box *output = &call->output;
    if (!is_s8(weight) || weight->scale->axis > 0 || weight->scale->zeros != 1U ||
        zero_of(call, weight) != 0 || start(weight, 0) != start(output, axis) ||
        length(weight, 0) != length(output, axis)) {
        return 0;
    }
    return call->step->inputs < 3U || !bias->data ||
           (bias->type == SPMILP_TYPE_INT32 && bias->rank == 1U &&
            start(bias, 0) == start(output, axis) && length(bias, 0) == length(output, axis) &&
            (uintptr_t)bias->data % 4U == 0U);
}

static inline const int32_t *bias_of(const struct spmilp_call *call)
{
    return call->step->inputs > 2U ? (const int32_t *)(const void *)call->inputs[2].data
                                   : (const int32_t *)0;
}

/* Whether a Gemm is rows of data times rows of weights. */
static inline int is_rows_times_rows(const struct spmilp_call *call)
{
    return spmilp_integer(call, SPMILP_ATTRIBUTE_TRANSA, 0U) == 0 &&
           spmilp_integer(call, SPMILP_ATTRIBUTE_TRANSB, 0U) == 1 &&
           spmilp_number(call, SPMILP_ATTRIBUTE_ALPHA) == 1.0F &&
           spmilp_number(call, SPMILP_ATTRIBUTE_BETA) == 1.0F &&
           are_alike(&call->inputs[0], &call->output, 0U) && has_fitting_weights(call, 1U);
}

/* Whether all input channels of a convolution are there. */
static inline int has_all_channels(const struct spmilp_call *call)
{
    return spmilp_integer(call, SPMILP_ATTRIBUTE_GROUP, 0U) == 1 &&
           length(&call->inputs[0], 1U) == call->inputs[1].shape[1];
}

/* The real factor between sums of products and results, of one output channel. */
static inline double factor_of(const struct spmilp_call *call, int32_t channel)
{
    const double step = (double)unit_of(call, &call->inputs[0]) *
                        (double)spmilp_scale_at(call->words, call->inputs[1].scale, channel);
    return step / (double)unit_of(call, &call->output);
}

/* Padding in front of the box along a spatial axis; below 0 if the box begins before the window. */
static inline int32_t padding(const struct spmilp_call *call, const struct spmilp_window *window,
                       uint32_t axis)
{
    return window->first - (start(&call->output, axis) * window->stride - window->pad);
}

/* Turn rows into columns: (channels, places) to (places, channels), or back. */
static inline void turn(int8_t *to, const int8_t *from, size_t rows, size_t columns)
{
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < columns; column++) {
            to[column * rows + row] = from[row * columns + column];
        }
    }
}

static inline const int8_t *turned_weights(const struct spmilp_call *call, int is_depthwise,
                                    struct scratch *scratch)
{
    const struct spmilp_box *weight = &call->inputs[1];
    const int8_t *lies = (const int8_t *)weight->data;
    const size_t outputs = (size_t)length(weight, 0), depth = (size_t)length(weight, 1);
    const size_t taps = (size_t)(length(weight, 2) * length(weight, 3));
    if (taps == 1U || (depth == 1U && !is_depthwise)) {
        return lies;
    }
    int8_t *made = take(scratch, outputs * depth * taps);
    if (made && is_depthwise) {
        turn(made, lies, outputs, taps);
    }
    for (size_t i = 0; made && !is_depthwise && i < outputs; i++) {
        turn(made + i * depth * taps, lies + i * depth * taps, depth, taps);
    }
    return made;
}

#endif
