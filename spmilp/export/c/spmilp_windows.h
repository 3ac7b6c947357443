#ifndef SPMILP_WINDOWS_H
#define SPMILP_WINDOWS_H

/* Sliding windows over up to three spatial axes; missing ones, in front, have one position. */

#include "spmilp_kernels.h"

#define SPMILP_WINDOW_AXES 3U

struct spmilp_window {
    int32_t kernel, stride, dilation, pad, pad_end;
    int32_t first, length; /* of the operand's box along the axis */
    int32_t whole;         /* length of the tensor's axis */
};

struct spmilp_windows {
    struct spmilp_window axes[SPMILP_WINDOW_AXES];
};

/* Read the windows of an operator on an operand (with batch and channels first). */
static inline struct spmilp_windows spmilp_windows_of(const struct spmilp_call *call,
                                                      const struct spmilp_box *operand)
{
    struct spmilp_windows found;
    const uint32_t rank = operand->rank - 2U, missing = SPMILP_WINDOW_AXES - rank;
    for (uint32_t i = 0; i < SPMILP_WINDOW_AXES; i++) {
        struct spmilp_window *window = &found.axes[i];
        *window = (struct spmilp_window){1, 1, 1, 0, 0, 0, 1, 1};
        if (i >= missing) {
            const uint32_t axis = i - missing;
            window->kernel = spmilp_integer(call, SPMILP_ATTRIBUTE_KERNEL_SHAPE, axis);
            window->stride = spmilp_integer(call, SPMILP_ATTRIBUTE_STRIDES, axis);
            window->dilation = spmilp_integer(call, SPMILP_ATTRIBUTE_DILATIONS, axis);
            window->pad = spmilp_integer(call, SPMILP_ATTRIBUTE_PADS, axis);
            window->pad_end = spmilp_integer(call, SPMILP_ATTRIBUTE_PADS, axis + rank);
            window->first = operand->box[2U * (axis + 2U)];
            window->length = operand->box[2U * (axis + 2U) + 1U];
            window->whole = operand->shape[axis + 2U];
        }
    }
    return found;
}

/* The spatial positions of the output at `at`, with zeros in front. */
static inline void spmilp_spatial(const struct spmilp_call *call, const int32_t *at,
                                  int32_t *spatial)
{
    const uint32_t missing = SPMILP_WINDOW_AXES - (call->output.rank - 2U);
    for (uint32_t i = 0; i < SPMILP_WINDOW_AXES; i++) {
        spatial[i] = i < missing ? 0 : at[i - missing + 2U];
    }
}

/* The element of a window, counted in the box's spatial axes; -1 on padding. */
static inline int64_t spmilp_under_window(const struct spmilp_windows *windows,
                                          const int32_t *spatial, const int32_t *k)
{
    int64_t place = 0;
    for (uint32_t i = 0; i < SPMILP_WINDOW_AXES; i++) {
        const struct spmilp_window *window = &windows->axes[i];
        const int32_t position =
            spatial[i] * window->stride - window->pad + k[i] * window->dilation - window->first;
        if (position < 0 || position >= window->length) {
            return -1;
        }
        place = place * window->length + position;
    }
    return place;
}

/* Step to the next position of a window; 0 when it was the last. */
static inline int spmilp_next_position(const struct spmilp_windows *windows, int32_t *k)
{
    for (uint32_t i = SPMILP_WINDOW_AXES; i > 0U; i--) {
        if (++k[i - 1U] < windows->axes[i - 1U].kernel) {
            return 1;
        }
        k[i - 1U] = 0;
    }
    return 0;
}

/* Elements of the box that one channel has. */
static inline size_t spmilp_per_channel(const struct spmilp_windows *windows)
{
    size_t count = 1U;
    for (uint32_t i = 0; i < SPMILP_WINDOW_AXES; i++) {
        count *= (size_t)windows->axes[i].length;
    }
    return count;
}

#endif
