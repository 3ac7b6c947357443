/* A stand-in for CMSIS-NN in tests: it refuses arguments outside the documented ranges, computes what
   is documented, and writes to the file "calls" how often each function was called and refused. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "arm_nnfunctions.h"

enum function { CONV, DEPTHWISE, CONNECTED, ADD, AVERAGE, MAXIMUM, SOFTMAX, FUNCTIONS };
static const char *const names[FUNCTIONS] = {"conv",    "depthwise", "connected", "add",
                                             "average", "maximum",   "softmax"};
static int called[FUNCTIONS], refused;

static void write_calls(void)
{
    FILE *file = fopen("calls", "w");
    for (int i = 0; i < FUNCTIONS; i++) {
        fprintf(file, "%s %d\n", names[i], called[i]);
    }
    fprintf(file, "refused %d\n", refused);
    fclose(file);
}

static void begin(enum function which)
{
    static int is_registered;
    if (!is_registered) {
        is_registered = 1;
        atexit(write_calls);
    }
    called[which]++;
}

static arm_cmsis_nn_status answer(int holds)
{
    refused += !holds;
    return holds ? ARM_CMSIS_NN_SUCCESS : ARM_CMSIS_NN_ARG_ERROR;
}

static int is_s8(int32_t value)
{
    return value >= -128 && value <= 127;
}

static int is_offset(int32_t value)
{
    return value >= -127 && value <= 128;
}

static int has_limits(const cmsis_nn_activation *activation)
{
    return is_s8(activation->min) && is_s8(activation->max) && activation->min <= activation->max;
}

static int has_size(const cmsis_nn_dims *dims)
{
    return dims->n > 0 && dims->h > 0 && dims->w > 0 && dims->c > 0;
}

static int is_multiplier(int32_t multiplier, int32_t shift)
{
    return multiplier >= 1 << 30 && shift > -32 && shift < 31;
}

/* value * multiplier * 2^(shift - 31): rounded to 31 bits behind the point, a half up, and where the
   shift is below 0 once more, a half away from zero. */
static int32_t scaled(int64_t value, int32_t multiplier, int32_t shift)
{
    const double left = ldexp((double)value, shift > 0 ? shift : 0);
    const double high = floor(ldexp(left * multiplier, -31) + 0.5);
    return (int32_t)round(ldexp(high, shift < 0 ? shift : 0));
}

static int8_t limited(int64_t value, const cmsis_nn_activation *activation)
{
    const int64_t low = value < activation->min ? activation->min : value;
    return (int8_t)(low > activation->max ? activation->max : low);
}

/* Input [1, H, W, C], filter [C_OUT, KH, KW, C] or [1, KH, KW, C_OUT], output [1, H, W, C_OUT]. */
static arm_cmsis_nn_status convolve(const cmsis_nn_context *ctx, const cmsis_nn_conv_params *own,
                                    const cmsis_nn_per_channel_quant_params *quant,
                                    const cmsis_nn_dims *in, const int8_t *input,
                                    const cmsis_nn_dims *filter, const int8_t *weights,
                                    const cmsis_nn_dims *bias_dims, const int32_t *bias,
                                    const cmsis_nn_dims *out, int8_t *output, int is_depthwise)
{
    const int agree = is_depthwise ? filter->n == 1 && filter->c == out->c && in->c == out->c
                                   : filter->n == out->c && filter->c == in->c;
    int holds = agree && has_size(in) && has_size(out) && has_size(filter) && in->n == out->n &&
                bias_dims->c == out->c && ctx->buf && is_offset(own->input_offset) &&
                is_s8(own->output_offset) && has_limits(&own->activation) && own->stride.w > 0 &&
                own->stride.h > 0 && own->dilation.w > 0 && own->dilation.h > 0 &&
                own->padding.w >= 0 && own->padding.h >= 0;
    for (int32_t c = 0; holds && c < out->c; c++) {
        holds = is_multiplier(quant->multiplier[c], quant->shift[c]);
    }
    for (int32_t i = 0; holds && i < out->h * out->w * out->c; i++) {
        const int32_t c = i % out->c, x = i / out->c % out->w, y = i / out->c / out->w;
        const int32_t depth = is_depthwise ? 1 : in->c;
        int32_t sum = bias ? bias[c] : 0;
        for (int32_t k = 0; k < filter->h * filter->w * depth; k++) {
            const int32_t channel = is_depthwise ? c : k % depth;
            const int32_t kx = k / depth % filter->w, ky = k / depth / filter->w;
            const int32_t at_x = x * own->stride.w - own->padding.w + kx * own->dilation.w;
            const int32_t at_y = y * own->stride.h - own->padding.h + ky * own->dilation.h;
            if (at_x >= 0 && at_x < in->w && at_y >= 0 && at_y < in->h) {
                sum += (input[(at_y * in->w + at_x) * in->c + channel] + own->input_offset) *
                       weights[is_depthwise ? k * out->c + c
                                            : c * filter->h * filter->w * depth + k];
            }
        }
        output[i] = limited((int64_t)scaled(sum, quant->multiplier[c], quant->shift[c]) +
                                own->output_offset,
                            &own->activation);
    }
    return answer(holds);
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *conv_params,
                                                const cmsis_nn_dims *input_dims,
                                                const cmsis_nn_dims *filter_dims,
                                                const cmsis_nn_dims *output_dims)
{
    return 4 * filter_dims->h * filter_dims->w * filter_dims->c;
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_conv_params *conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims,
    const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
    const cmsis_nn_dims *bias_dims, const int32_t *bias_data, const cmsis_nn_dims *output_dims,
    int8_t *output_data)
{
    begin(CONV);
    return convolve(ctx, conv_params, quant_params, input_dims, input_data, filter_dims,
                    filter_data, bias_dims, bias_data, output_dims, output_data, 0);
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *dw_conv_params,
                                                      const cmsis_nn_dims *input_dims,
                                                      const cmsis_nn_dims *filter_dims,
                                                      const cmsis_nn_dims *output_dims)
{
    return 0;
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *dw_conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims,
    const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
    const cmsis_nn_dims *bias_dims, const int32_t *bias_data, const cmsis_nn_dims *output_dims,
    int8_t *output_data)
{
    const cmsis_nn_conv_params same = {dw_conv_params->input_offset, dw_conv_params->output_offset,
                                       dw_conv_params->stride,       dw_conv_params->padding,
                                       dw_conv_params->dilation,     dw_conv_params->activation};
    begin(DEPTHWISE);
    if (dw_conv_params->ch_mult * input_dims->c != output_dims->c) {
        return answer(0);
    }
    return convolve(ctx, &same, quant_params, input_dims, input_data, filter_dims, filter_data,
                    bias_dims, bias_data, output_dims, output_data, 1);
}

int32_t arm_fully_connected_s8_get_buffer_size(const cmsis_nn_dims *filter_dims)
{
    return 0;
}

arm_cmsis_nn_status arm_fully_connected_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_fc_params *fc_params,
    const cmsis_nn_quant_params *quant_params, const cmsis_nn_dims *input_dims,
    const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
    const cmsis_nn_dims *bias_dims, const int32_t *bias_data, const cmsis_nn_dims *output_dims,
    int8_t *output_data)
{
    const int32_t depth = filter_dims->n, columns = output_dims->c;
    int holds = input_dims->h * input_dims->w * input_dims->c == depth || input_dims->c == depth;
    begin(CONNECTED);
    holds = holds && filter_dims->c == columns && input_dims->n == output_dims->n &&
            bias_dims->c == columns && is_offset(fc_params->input_offset) &&
            fc_params->filter_offset == 0 && is_s8(fc_params->output_offset) &&
            has_limits(&fc_params->activation);
    for (int32_t i = 0; holds && i < input_dims->n * columns; i++) {
        const int32_t c = i % columns, q = quant_params->is_per_channel ? c : 0;
        int32_t sum = bias_data ? bias_data[c] : 0;
        for (int32_t k = 0; k < depth; k++) {
            sum += (input_data[i / columns * depth + k] + fc_params->input_offset) *
                   filter_data[c * depth + k];
        }
        holds = is_multiplier(quant_params->multiplier[q], quant_params->shift[q]);
        output_data[i] = limited((int64_t)scaled(sum, quant_params->multiplier[q],
                                                 quant_params->shift[q]) +
                                     fc_params->output_offset,
                                 &fc_params->activation);
    }
    return answer(holds);
}

arm_cmsis_nn_status arm_elementwise_add_s8(
    const int8_t *input_1_vect, const int8_t *input_2_vect, const int32_t input_1_offset,
    const int32_t input_1_mult, const int32_t input_1_shift, const int32_t input_2_offset,
    const int32_t input_2_mult, const int32_t input_2_shift, const int32_t left_shift,
    int8_t *output, const int32_t out_offset, const int32_t out_mult, const int32_t out_shift,
    const int32_t out_activation_min, const int32_t out_activation_max, const int32_t block_size)
{
    const cmsis_nn_activation activation = {out_activation_min, out_activation_max};
    const int holds = is_offset(input_1_offset) && is_offset(input_2_offset) &&
                      is_s8(out_offset) && has_limits(&activation) && block_size > 0 &&
                      is_multiplier(input_1_mult, input_1_shift) && input_1_shift <= 0 &&
                      is_multiplier(input_2_mult, input_2_shift) && input_2_shift <= 0 &&
                      is_multiplier(out_mult, out_shift) && out_shift <= 0 && left_shift == 20;
    begin(ADD);
    for (int32_t i = 0; holds && i < block_size; i++) {
        const int32_t one = (input_1_vect[i] + input_1_offset) * (1 << left_shift);
        const int32_t other = (input_2_vect[i] + input_2_offset) * (1 << left_shift);
        const int64_t sum = (int64_t)scaled(one, input_1_mult, input_1_shift) +
                            scaled(other, input_2_mult, input_2_shift);
        output[i] = limited((int64_t)scaled(sum, out_mult, out_shift) + out_offset, &activation);
    }
    return answer(holds);
}

static arm_cmsis_nn_status pool(const cmsis_nn_pool_params *own, const cmsis_nn_dims *in,
                                const int8_t *input, const cmsis_nn_dims *filter,
                                const cmsis_nn_dims *out, int8_t *output, int is_average)
{
    const int holds = has_size(in) && has_size(out) && filter->h > 0 && filter->w > 0 &&
                      in->c == out->c && in->n == out->n && own->stride.w > 0 &&
                      own->stride.h > 0 && own->padding.w >= 0 && own->padding.h >= 0 &&
                      has_limits(&own->activation);
    for (int32_t i = 0; holds && i < out->h * out->w * out->c; i++) {
        const int32_t c = i % out->c, x = i / out->c % out->w, y = i / out->c / out->w;
        int32_t sum = 0, count = 0, largest = -128;
        for (int32_t k = 0; k < filter->h * filter->w; k++) {
            const int32_t at_x = x * own->stride.w - own->padding.w + k % filter->w;
            const int32_t at_y = y * own->stride.h - own->padding.h + k / filter->w;
            if (at_x >= 0 && at_x < in->w && at_y >= 0 && at_y < in->h) {
                const int32_t value = input[(at_y * in->w + at_x) * in->c + c];
                sum += value;
                count++;
                largest = value > largest ? value : largest;
            }
        }
        output[i] = limited(is_average ? (int64_t)round((double)sum / count) : largest,
                            &own->activation);
    }
    return answer(holds);
}

int32_t arm_avgpool_s8_get_buffer_size(const int output_x, const int ch_src)
{
    return 4 * ch_src;
}

arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context *ctx,
                                   const cmsis_nn_pool_params *pool_params,
                                   const cmsis_nn_dims *input_dims, const int8_t *input_data,
                                   const cmsis_nn_dims *filter_dims,
                                   const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    begin(AVERAGE);
    if (!ctx->buf || ctx->size < 4 * input_dims->c) {
        return answer(0);
    }
    return pool(pool_params, input_dims, input_data, filter_dims, output_dims, output_data, 1);
}

arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *ctx,
                                    const cmsis_nn_pool_params *pool_params,
                                    const cmsis_nn_dims *input_dims, const int8_t *input_data,
                                    const cmsis_nn_dims *filter_dims,
                                    const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    begin(MAXIMUM);
    return pool(pool_params, input_dims, input_data, filter_dims, output_dims, output_data, 0);
}

/* Differences to the largest of a row have 5 bits above the point once they are scaled. */
void arm_softmax_s8(const int8_t *input, const int32_t num_rows, const int32_t row_size,
                    const int32_t mult, const int32_t shift, const int32_t diff_min,
                    int8_t *output)
{
    const cmsis_nn_activation whole = {-128, 127};
    begin(SOFTMAX);
    answer(num_rows > 0 && row_size > 0 && is_multiplier(mult, shift) && shift >= 0 &&
           diff_min < 0);
    for (int32_t row = 0; row < num_rows; row++) {
        const int8_t *from = input + row * row_size;
        double sum = 0.0;
        int8_t largest = -128;
        for (int32_t i = 0; i < row_size; i++) {
            largest = from[i] > largest ? from[i] : largest;
        }
        for (int pass = 0; pass < 2; pass++) {
            for (int32_t i = 0; i < row_size; i++) {
                const int32_t difference = from[i] - largest;
                const double real = ldexp((double)difference * mult, shift - 31 - 26);
                const double power = difference < diff_min ? 0.0 : exp(real);
                if (pass == 0) {
                    sum += power;
                } else {
                    output[row * row_size + i] = limited((int64_t)round(power / sum * 256.0) - 128,
                                                         &whole);
                }
            }
        }
    }
}
