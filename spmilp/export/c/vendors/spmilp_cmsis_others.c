/* Sums, pools and Softmax by CMSIS-NN. Pools work channel by channel, as operands lie. */

#include "spmilp_cmsis_nn.h"

enum { ADD_SHIFT = 20 }; /* of TensorFlow Lite: sums have this many bits below the point */

static arm_cmsis_nn_status add(const struct spmilp_call *call)
{
    const struct spmilp_box *one = &call->inputs[0], *other = &call->inputs[1];
    const double first = (double)unit_of(call, one), second = (double)unit_of(call, other);
    const double largest = 2.0 * (first > second ? first : second);
    const cmsis_nn_activation limits = activation_of(call);
    int32_t multipliers[3], shifts[3];
    set_multiplier(first / largest, &multipliers[0], &shifts[0]);
    set_multiplier(second / largest, &multipliers[1], &shifts[1]);
    set_multiplier(largest / ((double)unit_of(call, &call->output) * (double)(1 << ADD_SHIFT)),
                   &multipliers[2], &shifts[2]);
    if (shifts[2] > 0) {
        return ARM_CMSIS_NN_NO_IMPL_ERROR;
    }
    return arm_elementwise_add_s8(
        (const int8_t *)one->data, (const int8_t *)other->data, -zero_of(call, one), multipliers[0],
        shifts[0], -zero_of(call, other), multipliers[1], shifts[1], ADD_SHIFT,
        (int8_t *)call->output.data, zero_of(call, &call->output), multipliers[2], shifts[2],
        limits.min, limits.max, (int32_t)spmilp_count(&call->output));
}

void spmilp_cmsis_add(const struct spmilp_call *call)
{
    const size_t count = spmilp_count(&call->output);
    if (can_take(call) && has_one_scale(&call->inputs[1]) && spmilp_count(&call->inputs[0]) == count &&
        spmilp_count(&call->inputs[1]) == count && add(call) == ARM_CMSIS_NN_SUCCESS) {
        return;
    }
    spmilp_binary(call);
}

typedef arm_cmsis_nn_status pool_s8(const cmsis_nn_context *context,
                                    const cmsis_nn_pool_params *parameters,
                                    const cmsis_nn_dims *input_dims, const int8_t *input,
                                    const cmsis_nn_dims *filter, const cmsis_nn_dims *output_dims,
                                    int8_t *output);

static arm_cmsis_nn_status pool(const struct spmilp_call *call, pool_s8 *function, int32_t size)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    const struct spmilp_windows windows = spmilp_windows_of(call, data);
    const struct spmilp_window *high = &windows.axes[1], *wide = &windows.axes[2];
    const cmsis_nn_tile stride = {wide->stride, high->stride};
    const cmsis_nn_tile pad = {padding(call, wide, 3U), padding(call, high, 2U)};
    const cmsis_nn_pool_params own = {stride, pad, activation_of(call)};
    const cmsis_nn_dims from = {1, length(data, 2), length(data, 3), 1};
    const cmsis_nn_dims to = {1, length(output, 2), length(output, 3), 1};
    const cmsis_nn_dims filter = {1, high->kernel, wide->kernel, 1};
    struct scratch scratch;
    scratch.used = 0U;
    const cmsis_nn_context context = {take(&scratch, (size_t)size), size};
    arm_cmsis_nn_status status = ARM_CMSIS_NN_SUCCESS;
    if (pad.w < 0 || pad.h < 0 || wide->dilation != 1 || high->dilation != 1 || !context.buf) {
        return ARM_CMSIS_NN_NO_IMPL_ERROR;
    }
    for (int32_t i = 0; i < length(data, 0) * length(data, 1) && status == ARM_CMSIS_NN_SUCCESS;
         i++) {
        status = function(&context, &own, &from, (const int8_t *)data->data + i * from.h * from.w,
                          &filter, &to, (int8_t *)output->data + i * to.h * to.w);
    }
    return status;
}

/* Whether a pool's elements keep their scale, channel for channel. */
static int can_pool(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    return data->rank == 4U && is_whole_s8(call) && are_alike(data, output, 0U) &&
           are_alike(data, output, 1U) && zero_of(call, data) == zero_of(call, output) &&
           unit_of(call, data) == unit_of(call, output);
}

void spmilp_cmsis_max_pool(const struct spmilp_call *call)
{
    if (can_pool(call) && pool(call, arm_max_pool_s8, 0) == ARM_CMSIS_NN_SUCCESS) {
        return;
    }
    spmilp_max_pool(call);
}

void spmilp_cmsis_average_pool(const struct spmilp_call *call)
{
    if (can_take(call) && can_pool(call) &&
        spmilp_integer(call, SPMILP_ATTRIBUTE_COUNT_INCLUDE_PAD, 0U) == 0 &&
        pool(call, arm_avgpool_s8, arm_avgpool_s8_get_buffer_size(length(&call->output, 3), 1)) ==
            ARM_CMSIS_NN_SUCCESS) {
        return;
    }
    spmilp_average_pool(call);
}

enum { SOFTMAX_BITS = 5 }; /* of TensorFlow Lite: bits of a difference above the point */

void spmilp_cmsis_softmax(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    const uint32_t last = data->rank - 1U;
    if (!can_take(call) || spmilp_integer(call, SPMILP_ATTRIBUTE_AXIS, 0U) != (int32_t)last ||
        unit_of(call, output) != 1.0F / 256.0F || zero_of(call, output) != -128 ||
        call->step->limits != 0U) {
        spmilp_softmax(call);
        return;
    }
    const int32_t row = length(data, last), rows = (int32_t)spmilp_count(data) / row;
    const double scaled = (double)unit_of(call, data) * (double)(1 << (31 - SOFTMAX_BITS));
    int32_t multiplier, shift;
    set_multiplier(scaled < 2147483647.0 ? scaled : 2147483647.0, &multiplier, &shift);
    const int32_t range = (1 << SOFTMAX_BITS) - 1;
    const int32_t least = -(int32_t)(((int64_t)range << (31 - SOFTMAX_BITS)) >> shift);
    arm_softmax_s8((const int8_t *)data->data, rows, row, multiplier, shift, least,
                   (int8_t *)output->data);
}
