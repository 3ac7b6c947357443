/* Convolutions, grouped and depthwise ones too; the inner loop runs over input channels. */

#include "spmilp_windows.h"

/* The sum for one output element; `weight` has channels [first, ...) of its second axis. */
static struct spmilp_total convolve(const struct spmilp_call *call,
                                    const struct spmilp_windows *windows, const int32_t *at)
{
    const struct spmilp_box *data = &call->inputs[0], *weight = &call->inputs[1];
    const int32_t group = spmilp_integer(call, SPMILP_ATTRIBUTE_GROUP, 0U);
    const int32_t outputs_of_group = weight->shape[0] / group;
    const int32_t depth = weight->box[3];
    int32_t channel = data->box[2], spatial[SPMILP_WINDOW_AXES], k[SPMILP_WINDOW_AXES] = {0};
    const size_t taps = spmilp_count(weight) / ((size_t)weight->box[1] * (size_t)depth);
    const size_t plane = spmilp_per_channel(windows);
    struct spmilp_total total = {0U, 0.0F};
    if (group > 1) {
        channel = at[1] / outputs_of_group * weight->shape[1];
    }
    spmilp_spatial(call, at, spatial);
    const size_t row = ((size_t)(at[0] - data->box[0]) * (size_t)data->box[3] +
                        (size_t)(channel - data->box[2])) *
                       plane;
    size_t tap = (size_t)(at[1] - weight->box[0]) * (size_t)depth * taps;
    do {
        const int64_t under = spmilp_under_window(windows, spatial, k);
        if (under >= 0) {
            const struct spmilp_factor a = {data, row + (size_t)under, plane, 0};
            const struct spmilp_factor b = {weight, tap, taps, at[1]};
            spmilp_add_products(call, &a, &b, (uint32_t)depth, &total);
        }
        tap++;
    } while (spmilp_next_position(windows, k));
    return total;
}

void spmilp_conv(const struct spmilp_call *call)
{
    const size_t count = spmilp_count(&call->output);
    const int is_there = call->inputs[0].data != (uint8_t *)0;
    struct spmilp_windows windows = {{{0, 0, 0, 0, 0, 0, 0, 0}}};
    int32_t at[SPMILP_MAX_RANK];
    if (is_there) {
        windows = spmilp_windows_of(call, &call->inputs[0]);
    }
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        struct spmilp_total total = {0U, 0.0F};
        if (is_there) {
            total = convolve(call, &windows, at);
        }
        spmilp_finish(call, i, at, at[1], total);
        spmilp_next(&call->output, at);
    }
}

/* Input i adds to the outputs i * stride - pad + k * dilation: find it for an output and a k.
   -1 where there is none in the box. */
static int64_t above_window(const struct spmilp_windows *windows, const int32_t *spatial,
                            const int32_t *k)
{
    int64_t place = 0;
    for (uint32_t i = 0; i < SPMILP_WINDOW_AXES; i++) {
        const struct spmilp_window *window = &windows->axes[i];
        const int32_t scaled = spatial[i] + window->pad - k[i] * window->dilation;
        const int32_t position = scaled / window->stride - window->first;
        if (scaled < 0 || scaled % window->stride != 0 || position < 0 ||
            position >= window->length) {
            return -1;
        }
        place = place * window->length + position;
    }
    return place;
}

/* Weights are (input channels, output channels of a group, kernel...). */
static struct spmilp_total convolve_transposed(const struct spmilp_call *call,
                                               const struct spmilp_windows *windows,
                                               const int32_t *at)
{
    const struct spmilp_box *data = &call->inputs[0], *weight = &call->inputs[1];
    const int32_t group = spmilp_integer(call, SPMILP_ATTRIBUTE_GROUP, 0U);
    const int32_t size = weight->shape[1], output = at[1] % size;
    int32_t depth = data->box[3], channel = data->box[2];
    int32_t spatial[SPMILP_WINDOW_AXES], k[SPMILP_WINDOW_AXES] = {0};
    if (group > 1) {
        depth = weight->shape[0] / group;
        channel = at[1] / size * depth;
    }
    const size_t per_input = spmilp_count(weight) / (size_t)weight->box[1];
    const size_t taps = per_input / (size_t)weight->box[3], plane = spmilp_per_channel(windows);
    struct spmilp_total total = {0U, 0.0F};
    spmilp_spatial(call, at, spatial);
    const size_t row = ((size_t)(at[0] - data->box[0]) * (size_t)data->box[3] +
                        (size_t)(channel - data->box[2])) *
                       plane;
    size_t tap = (size_t)(channel - weight->box[0]) * per_input +
                 (size_t)(output - weight->box[2]) * taps;
    do {
        const int64_t above = above_window(windows, spatial, k);
        if (above >= 0) {
            const struct spmilp_factor a = {data, row + (size_t)above, plane, 0};
            const struct spmilp_factor b = {weight, tap, per_input, output};
            spmilp_add_products(call, &a, &b, (uint32_t)depth, &total);
        }
        tap++;
    } while (spmilp_next_position(windows, k));
    return total;
}

void spmilp_conv_transpose(const struct spmilp_call *call)
{
    const size_t count = spmilp_count(&call->output);
    const int is_there = call->inputs[0].data != (uint8_t *)0;
    struct spmilp_windows windows = {{{0, 0, 0, 0, 0, 0, 0, 0}}};
    int32_t at[SPMILP_MAX_RANK];
    if (is_there) {
        windows = spmilp_windows_of(call, &call->inputs[0]);
    }
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        struct spmilp_total total = {0U, 0.0F};
        if (is_there) {
            total = convolve_transposed(call, &windows, at);
        }
        spmilp_finish(call, i, at, at[1] % call->inputs[1].shape[1], total);
        spmilp_next(&call->output, at);
    }
}
