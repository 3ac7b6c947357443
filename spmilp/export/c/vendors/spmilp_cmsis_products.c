/* Convolutions and products of matrices by CMSIS-NN. Operands lie with their channels first, it wants
   them last: they are turned in scratch memory, if it suffices. */

#include "spmilp_cmsis_nn.h"

/* Sums of products: one multiplier for each output channel, and the bias. */
struct products {
    cmsis_nn_per_channel_quant_params quantisation;
    const int32_t *bias;
};

/* 0 if there is no room; `axis` is that of the output's channels. */
static int read_products(const struct spmilp_call *call, uint32_t axis, struct scratch *scratch,
                         struct products *products)
{
    const size_t channels = (size_t)length(&call->output, axis);
    /* Those of a Gemm are no integers. */
    const int32_t *words =
        call->step->kind == SPMILP_OPERATOR_GEMM ? (const int32_t *)0 : spmilp_fixed_words(call);
    products->bias = bias_of(call);
    products->quantisation.multiplier = take(scratch, channels * sizeof(int32_t));
    products->quantisation.shift = take(scratch, channels * sizeof(int32_t));
    if (!products->quantisation.multiplier || !products->quantisation.shift) {
        return 0;
    }
    for (size_t i = 0; i < channels; i++) {
        const int32_t channel = start(&call->output, axis) + (int32_t)i;
        if (words) {
            products->quantisation.multiplier[i] = spmilp_factor_words(call, channel)[0];
            products->quantisation.shift[i] = spmilp_factor_words(call, channel)[1];
        } else {
            set_multiplier(factor_of(call, channel), &products->quantisation.multiplier[i],
                           &products->quantisation.shift[i]);
        }
    }
    return 1;
}

/* An image of a convolution, and room to turn it if it does not lie with its channels last. */
struct image {
    cmsis_nn_dims dims;
    size_t channels, places;
    int8_t *lies, *turned;
};

/* 0 if there is no room. */
static int make_image(const struct spmilp_box *operand, struct scratch *scratch,
                      struct image *image)
{
    const cmsis_nn_dims dims = {1, length(operand, 2), length(operand, 3), length(operand, 1)};
    image->dims = dims;
    image->channels = (size_t)dims.c;
    image->places = (size_t)dims.h * (size_t)dims.w;
    image->lies = (int8_t *)operand->data;
    image->turned = (int8_t *)0;
    if (image->channels > 1U && image->places > 1U) {
        image->turned = take(scratch, image->channels * image->places);
        return image->turned != (int8_t *)0;
    }
    return 1;
}

static arm_cmsis_nn_status convolve(const struct spmilp_call *call, int is_depthwise,
                                    struct scratch *scratch)
{
    const struct spmilp_box *data = &call->inputs[0], *weight = &call->inputs[1];
    const struct spmilp_windows windows = spmilp_windows_of(call, data);
    const struct spmilp_window *high = &windows.axes[1], *wide = &windows.axes[2];
    const cmsis_nn_tile stride = {wide->stride, high->stride};
    const cmsis_nn_tile pad = {padding(call, wide, 3U), padding(call, high, 2U)};
    const cmsis_nn_tile dilation = {wide->dilation, high->dilation};
    const cmsis_nn_conv_params own = {-zero_of(call, data), zero_of(call, &call->output), stride,
                                      pad, dilation, activation_of(call)};
    const cmsis_nn_dw_conv_params depthwise = {own.input_offset, own.output_offset, 1, stride,
                                               pad, dilation, own.activation};
    const cmsis_nn_dims filter = {is_depthwise ? 1 : length(weight, 0), high->kernel, wide->kernel,
                                  is_depthwise ? length(weight, 0) : length(weight, 1)};
    const cmsis_nn_dims bias = {1, 1, 1, length(weight, 0)};
    struct products products;
    struct image input, output;
    if (pad.w < 0 || pad.h < 0 || !read_products(call, 1U, scratch, &products) ||
        !make_image(data, scratch, &input) || !make_image(&call->output, scratch, &output)) {
        return ARM_CMSIS_NN_NO_IMPL_ERROR;
    }
    const int8_t *weights = turned_weights(call, is_depthwise, scratch);
    const int32_t size = is_depthwise ? arm_depthwise_conv_wrapper_s8_get_buffer_size(
                                            &depthwise, &input.dims, &filter, &output.dims)
                                      : arm_convolve_wrapper_s8_get_buffer_size(
                                            &own, &input.dims, &filter, &output.dims);
    const cmsis_nn_context context = {take(scratch, (size_t)size), size};
    arm_cmsis_nn_status status = weights && context.buf ? ARM_CMSIS_NN_SUCCESS
                                                        : ARM_CMSIS_NN_NO_IMPL_ERROR;
    for (int32_t i = 0; i < length(data, 0) && status == ARM_CMSIS_NN_SUCCESS; i++) {
        int8_t *from = input.lies + (size_t)i * input.channels * input.places;
        int8_t *to = output.lies + (size_t)i * output.channels * output.places;
        if (input.turned) {
            turn(input.turned, from, input.channels, input.places);
            from = input.turned;
        }
        int8_t *made = output.turned ? output.turned : to;
        status = is_depthwise
                     ? arm_depthwise_conv_wrapper_s8(&context, &depthwise, &products.quantisation,
                                                     &input.dims, from, &filter, weights, &bias,
                                                     products.bias, &output.dims, made)
                     : arm_convolve_wrapper_s8(&context, &own, &products.quantisation, &input.dims,
                                               from, &filter, weights, &bias, products.bias,
                                               &output.dims, made);
        if (output.turned) {
            turn(to, output.turned, output.places, output.channels);
        }
    }
    return status;
}

void spmilp_cmsis_conv(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *weight = &call->inputs[1];
    struct scratch scratch;
    scratch.used = 0U;
    if (can_take(call) && data->rank == 4U && are_alike(data, &call->output, 0U) &&
        has_fitting_weights(call, 1U)) {
        const int32_t group = spmilp_integer(call, SPMILP_ATTRIBUTE_GROUP, 0U);
        const int is_depthwise = group > 1 && group == weight->shape[0] && weight->shape[1] == 1 &&
                                 are_alike(data, &call->output, 1U);
        if ((is_depthwise || has_all_channels(call)) &&
            convolve(call, is_depthwise, &scratch) == ARM_CMSIS_NN_SUCCESS) {
            return;
        }
    }
    spmilp_conv(call);
}

static arm_cmsis_nn_status connect(const struct spmilp_call *call, struct scratch *scratch)
{
    const struct spmilp_box *data = &call->inputs[0], *weight = &call->inputs[1];
    const cmsis_nn_fc_params own = {-zero_of(call, data), 0, zero_of(call, &call->output),
                                    activation_of(call)};
    const cmsis_nn_dims input = {length(data, 0), 1, 1, length(data, 1)};
    const cmsis_nn_dims filter = {length(data, 1), 1, 1, length(weight, 0)};
    const cmsis_nn_dims bias = {1, 1, 1, length(weight, 0)};
    const cmsis_nn_dims output = {length(data, 0), 1, 1, length(weight, 0)};
    const cmsis_nn_context context = {(void *)0, 0};
    struct products products;
    /* A processor with vectors wants sums of the weights that nobody has made. */
    if (arm_fully_connected_s8_get_buffer_size(&filter) != 0 ||
        !read_products(call, 1U, scratch, &products)) {
        return ARM_CMSIS_NN_NO_IMPL_ERROR;
    }
    const cmsis_nn_quant_params quantisation = {products.quantisation.multiplier,
                                                products.quantisation.shift, 1};
    return arm_fully_connected_wrapper_s8(&context, &own, &quantisation, &input,
                                          (const int8_t *)data->data, &filter,
                                          (const int8_t *)weight->data, &bias, products.bias,
                                          &output, (int8_t *)call->output.data);
}

void spmilp_cmsis_gemm(const struct spmilp_call *call)
{
    struct scratch scratch;
    scratch.used = 0U;
    if (can_take(call) && is_rows_times_rows(call) && connect(call, &scratch) == ARM_CMSIS_NN_SUCCESS) {
        return;
    }
    spmilp_gemm(call);
}
