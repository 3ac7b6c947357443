/*
 * Kernels of PULP-NN (pulp_nn_conv_Ho_parallel and pulp_nn_linear of its folder 64bit) for int8 tiles
 * that fit; the reference kernels compute all others. `make -f code.mk PULP_NN=DIR` takes them.
 *
 * PULP-NN has bytes without sign and no zero points: bytes are moved by 128, the zero points go into
 * its lambda; a window over padding fits only where the input's zero is then 0. Operands are turned to
 * channels last. Its functions divide their work among the cores of a cluster; here a core has a tile
 * of its own, so they must be built with NUM_CORES 1 and a pi_core_id() that is 0.
 */

#include "spmilp_vendor.h"

#include "pulp_nn_kernels.h"

spmilp_kernel spmilp_pulp_conv, spmilp_pulp_gemm;

enum { SHIFT = 24, SIGN = 128, LARGEST = 64 }; /* results are (k * sum + lambda) >> SHIFT */

struct requantisation {
    int64_t *k, *lambda;
};

/* 0 if there is no room; `axis` is that of the output's channels, a channel has `count` weights. */
static int requantise(const struct spmilp_call *call, uint32_t axis, size_t count,
                      struct scratch *scratch, struct requantisation *made)
{
    const int8_t *weights = (const int8_t *)call->inputs[1].data;
    const int32_t *bias = bias_of(call);
    const size_t channels = (size_t)length(&call->output, axis);
    const int64_t zero = zero_of(call, &call->inputs[0]) + SIGN;
    const int64_t result = zero_of(call, &call->output) + SIGN;
    made->k = take(scratch, channels * sizeof(int64_t));
    made->lambda = take(scratch, channels * sizeof(int64_t));
    for (size_t i = 0; made->k && made->lambda && i < channels; i++) {
        const double factor = factor_of(call, start(&call->output, axis) + (int32_t)i);
        int64_t sum = 0;
        if (factor >= (double)LARGEST) {
            return 0;
        }
        for (size_t j = 0; j < count; j++) {
            sum += weights[i * count + j];
        }
        made->k[i] = (int64_t)(factor * (double)(1 << SHIFT) + 0.5);
        made->lambda[i] = made->k[i] * ((bias ? bias[i] : 0) - zero * sum) +
                          result * (1 << SHIFT) + (1 << (SHIFT - 1));
    }
    return made->k && made->lambda;
}

/* Move bytes to those without sign, or back with the limits of results. */
static void move_to_bytes(uint8_t *to, const int8_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = (uint8_t)(from[i] + SIGN);
    }
}

static void move_to_s8(const struct spmilp_call *call, int8_t *to, const uint8_t *from,
                       size_t count)
{
    const float unit = unit_of(call, &call->output);
    const int32_t zero = zero_of(call, &call->output);
    const int32_t low = to_s8(spmilp_limit(call->step, -1000.0F, unit), zero);
    const int32_t high = to_s8(spmilp_limit(call->step, 1000.0F, unit), zero);
    for (size_t i = 0; i < count; i++) {
        const int32_t value = from[i] - SIGN, above = value < low ? low : value;
        to[i] = (int8_t)(above > high ? high : above);
    }
}

static int connect(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *weight = &call->inputs[1];
    const size_t depth = (size_t)length(data, 1), columns = (size_t)length(weight, 0);
    struct requantisation made;
    struct scratch scratch;
    scratch.used = 0U;
    if (depth > UINT16_MAX || columns > UINT16_MAX ||
        !requantise(call, 1U, depth, &scratch, &made)) {
        return 0;
    }
    uint8_t *from = take(&scratch, depth), *to = take(&scratch, columns);
    for (int32_t row = 0; from && to && row < length(data, 0); row++) {
        move_to_bytes(from, (const int8_t *)data->data + (size_t)row * depth, depth);
        pulp_nn_linear(from, (int8_t *)weight->data, (uint16_t)depth, (uint16_t)columns,
                       (int8_t *)0, 0U, SHIFT, 1U, made.k, made.lambda, to, 1, 1,
                       (unsigned int *)0);
        move_to_s8(call, (int8_t *)call->output.data + (size_t)row * columns, to, columns);
    }
    return from && to;
}

void spmilp_pulp_gemm(const struct spmilp_call *call)
{
    if (!fits(call) || !is_rows_times_rows(call) || !connect(call)) {
        spmilp_gemm(call);
    }
}

/* Padding behind the box along a spatial axis. */
static int32_t behind(const struct spmilp_call *call, const struct spmilp_window *window,
                      uint32_t axis, int32_t before)
{
    const int32_t last = (length(&call->output, axis) - 1) * window->stride + window->kernel;
    return last > window->length + before ? last - before - window->length : 0;
}

static int convolve(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    const struct spmilp_windows windows = spmilp_windows_of(call, data);
    const struct spmilp_window *high = &windows.axes[1], *wide = &windows.axes[2];
    const int32_t top = padding(call, high, 2U), left = padding(call, wide, 3U);
    const size_t depth = (size_t)length(data, 1), channels = (size_t)length(output, 1);
    const size_t from_places = (size_t)length(data, 2) * (size_t)length(data, 3);
    const size_t to_places = (size_t)length(output, 2) * (size_t)length(output, 3);
    const size_t count = depth * (size_t)high->kernel * (size_t)wide->kernel;
    struct requantisation made;
    struct scratch scratch;
    scratch.used = 0U;
    if (top < 0 || left < 0 || high->dilation != 1 || wide->dilation != 1 ||
        !requantise(call, 1U, count, &scratch, &made)) {
        return 0;
    }
    const int32_t bottom = behind(call, high, 2U, top), right = behind(call, wide, 3U, left);
    const int8_t *weights = turned_weights(call, 0, &scratch);
    int8_t *turned = take(&scratch, depth * from_places);
    uint8_t *from = take(&scratch, depth * from_places);
    uint8_t *to = take(&scratch, channels * to_places), *columns = take(&scratch, 2U * count);
    if (!weights || !turned || !from || !to || !columns ||
        (top + left + bottom + right > 0 && zero_of(call, data) != -SIGN)) {
        return 0;
    }
    for (int32_t i = 0; i < length(data, 0); i++) {
        int8_t *result = (int8_t *)output->data + (size_t)i * channels * to_places;
        turn(turned, (const int8_t *)data->data + (size_t)i * depth * from_places, depth,
             from_places);
        move_to_bytes(from, turned, depth * from_places);
        pulp_nn_conv_Ho_parallel(
            from, (uint16_t)length(data, 3), (uint16_t)length(data, 2), (uint16_t)depth, weights,
            (uint16_t)channels, (uint16_t)wide->kernel, (uint16_t)high->kernel, (uint16_t)top,
            (uint16_t)bottom, (uint16_t)left, (uint16_t)right, (uint16_t)wide->stride,
            (uint16_t)high->stride, (const int8_t *)0, 0U, SHIFT, 1U, to,
            (uint16_t)length(output, 3), (uint16_t)length(output, 2), made.k, made.lambda, columns,
            1, 1, (unsigned int *)0);
        for (size_t place = 0; place < to_places; place++) {
            for (size_t channel = 0; channel < channels; channel++) {
                move_to_s8(call, &result[channel * to_places + place],
                           &to[place * channels + channel], 1U);
            }
        }
    }
    return 1;
}

void spmilp_pulp_conv(const struct spmilp_call *call)
{
    if (!fits(call) || call->inputs[0].rank != 4U ||
        !are_alike(&call->inputs[0], &call->output, 0U) || !has_fitting_weights(call, 1U) ||
        !has_all_channels(call) || !convolve(call)) {
        spmilp_conv(call);
    }
}
