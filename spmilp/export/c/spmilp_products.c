/* Sums of products of two operands, and the results that are made of them. */

#include <math.h>

#include "spmilp_kernels.h"

/* Whether the result is the sum of integers itself. */
static int gives_the_sum(const struct spmilp_call *call)
{
    const uint32_t kind = call->step->kind;
    return kind == SPMILP_OPERATOR_CONVINTEGER || kind == SPMILP_OPERATOR_MATMULINTEGER;
}

/* Whether integers are multiplied, and not the reals that they stand for. */
static int multiplies_integers(const struct spmilp_call *call)
{
    return gives_the_sum(call) || (call->inputs[0].scale && call->inputs[1].scale);
}

/* The zero point of an operand: of its scale, or of the input that gives it, if there is one. */
static int32_t zero_of(const struct spmilp_call *call, const struct spmilp_factor *factor,
                       uint32_t position)
{
    const struct spmilp_box *given = &call->inputs[2U + position];
    if (factor->operand->scale) {
        return spmilp_zero_at(call->words, factor->operand->scale, factor->channel);
    }
    if (call->step->inputs <= 2U + position || !given->data) {
        return 0;
    }
    const size_t index = spmilp_count(given) == 1U ? 0U : (size_t)(factor->channel - given->box[0]);
    return (int32_t)spmilp_load_integer(given, index);
}

/* Bytes as integers relative to a zero point: (byte ^ flip) - zero. */
static void add_bytes(const struct spmilp_factor *data, int32_t data_zero,
                      const struct spmilp_factor *weight, int32_t weight_zero, uint32_t count,
                      struct spmilp_total *total)
{
    const int is_signed[2] = {data->operand->type == SPMILP_TYPE_INT8,
                              weight->operand->type == SPMILP_TYPE_INT8};
    const uint8_t flip_a = is_signed[0] ? 0x80U : 0U, flip_b = is_signed[1] ? 0x80U : 0U;
    const int32_t zero_a = data_zero + flip_a, zero_b = weight_zero + flip_b;
    const uint8_t *a = data->operand->data + data->index;
    const uint8_t *b = weight->operand->data + weight->index;
    uint32_t sum = 0U;
    for (uint32_t i = 0; i < count; i++) {
        const int32_t x = (int32_t)(*(a + i * data->step) ^ flip_a) - zero_a;
        const int32_t y = (int32_t)(*(b + i * weight->step) ^ flip_b) - zero_b;
        sum += (uint32_t)x * (uint32_t)y;
    }
    total->integer += sum;
}

static void add_integers(const struct spmilp_call *call, const struct spmilp_factor *data,
                         const struct spmilp_factor *weight, uint32_t count,
                         struct spmilp_total *total)
{
    const int32_t data_zero = zero_of(call, data, 0U), weight_zero = zero_of(call, weight, 1U);
    if (spmilp_item(data->operand->type) == 1U && spmilp_item(weight->operand->type) == 1U) {
        add_bytes(data, data_zero, weight, weight_zero, count, total);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const int64_t x = spmilp_load_integer(data->operand, data->index + i * data->step);
        const int64_t y = spmilp_load_integer(weight->operand, weight->index + i * weight->step);
        total->integer += (uint32_t)(x - data_zero) * (uint32_t)(y - weight_zero);
    }
}

static float factor_real(const struct spmilp_call *call, const struct spmilp_factor *factor,
                         uint32_t number)
{
    const size_t index = factor->index + number * factor->step;
    const struct spmilp_scale *scale = factor->operand->scale;
    if (!scale) {
        return spmilp_load_real(factor->operand, index);
    }
    const int64_t zero = spmilp_zero_at(call->words, scale, factor->channel);
    return (float)(spmilp_load_integer(factor->operand, index) - zero) *
           spmilp_scale_at(call->words, scale, factor->channel);
}

void spmilp_add_products(const struct spmilp_call *call, const struct spmilp_factor *data,
                         const struct spmilp_factor *weight, uint32_t count,
                         struct spmilp_total *total)
{
    if (multiplies_integers(call)) {
        add_integers(call, data, weight, count, total);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        total->real += factor_real(call, data, i) * factor_real(call, weight, i);
    }
}

/* The index of the bias for a position of the output. */
static size_t place_of_bias(const struct spmilp_call *call, const int32_t *at)
{
    const struct spmilp_box *bias = &call->inputs[2];
    const uint32_t kind = call->step->kind;
    int32_t own[SPMILP_MAX_RANK];
    if (kind == SPMILP_OPERATOR_CONV || kind == SPMILP_OPERATOR_CONVTRANSPOSE) {
        return spmilp_place(bias, &at[1]);
    }
    spmilp_broadcast(bias, at, call->output.rank, own);
    return spmilp_place(bias, own);
}

/* The sum as the int32 that its bits are. */
static int64_t wrapped(uint32_t sum)
{
    return (int64_t)(sum ^ 0x80000000U) - INT64_C(2147483648);
}

static void finish_integers(const struct spmilp_call *call, size_t index, const int32_t *at,
                            int32_t channel, uint32_t sum)
{
    const int32_t *words = call->words;
    const struct spmilp_scale *scale = call->output.scale;
    const struct spmilp_box *bias = &call->inputs[2];
    const int32_t position = scale && scale->axis >= 0 ? at[scale->axis] : 0;
    const float unit = scale ? spmilp_scale_at(words, scale, position) : 1.0F;
    const float step = spmilp_scale_at(words, call->inputs[0].scale, 0) *
                       spmilp_scale_at(words, call->inputs[1].scale, channel);
    const int has_bias = call->step->inputs > 2U && bias->data;
    if (has_bias && spmilp_is_integer(bias->type)) {
        sum += (uint32_t)spmilp_load_integer(bias, place_of_bias(call, at));
    }
    if (spmilp_fixed_words(call)) {
        spmilp_requantise(call, index, channel, wrapped(sum));
        return;
    }
    float value = (float)wrapped(sum) * (step / unit);
    if (has_bias && !spmilp_is_integer(bias->type)) {
        value += spmilp_load_real(bias, place_of_bias(call, at)) / unit;
    }
    value = spmilp_limit(call->step, value, unit);
    if (!scale) {
        spmilp_store_real(&call->output, index, value);
        return;
    }
    const int32_t zero = spmilp_zero_at(words, scale, position);
    spmilp_store_integer(&call->output, index, spmilp_saturate(rintf(value), zero, scale->type));
}

static void finish_reals(const struct spmilp_call *call, size_t index, const int32_t *at,
                         float value)
{
    const struct spmilp_box *bias = &call->inputs[2];
    const int is_gemm = call->step->kind == SPMILP_OPERATOR_GEMM;
    if (is_gemm) {
        value *= spmilp_number(call, SPMILP_ATTRIBUTE_ALPHA);
    }
    if (call->step->inputs > 2U && bias->data) {
        const struct spmilp_scale *scale = bias->scale;
        const size_t place = place_of_bias(call, at);
        float added = spmilp_load_real(bias, place);
        if (scale) {
            const int32_t channel = at[1];
            added = (float)(spmilp_load_integer(bias, place) -
                            spmilp_zero_at(call->words, scale, channel)) *
                    spmilp_scale_at(call->words, scale, channel);
        }
        value += is_gemm ? added * spmilp_number(call, SPMILP_ATTRIBUTE_BETA) : added;
    }
    spmilp_put(call, index, at, value);
}

void spmilp_finish(const struct spmilp_call *call, size_t index, const int32_t *at,
                   int32_t weight_channel, struct spmilp_total total)
{
    const int integers = multiplies_integers(call);
    if (call->previous.data && integers) {
        total.integer += (uint32_t)spmilp_load_integer(&call->previous, index);
    } else if (call->previous.data) {
        total.real = spmilp_load_real(&call->previous, index) + total.real;
    }
    if (call->step->part == SPMILP_PART_PARTIAL) {
        if (integers) {
            spmilp_store_integer(&call->output, index, (int64_t)total.integer);
        } else {
            spmilp_store_real(&call->output, index, total.real);
        }
    } else if (gives_the_sum(call)) {
        spmilp_store_integer(&call->output, index, wrapped(total.integer));
    } else if (integers) {
        finish_integers(call, index, at, weight_channel, total.integer);
    } else {
        finish_reals(call, index, at, total.real);
    }
}
