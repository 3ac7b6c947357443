/* Quantised operators in fixed point, as TensorFlow Lite's reference kernels compute them. What they
 * need is in the attribute FIXED: the least and the greatest result, then factors and shifts; or a
 * table. */

#include <math.h>
#include <string.h>

#include "spmilp_kernels.h"

#define ADDEND_BITS 20U
#define ONE INT64_C(2147483647) /* with 31 bits behind the point */

const int32_t *spmilp_fixed_words(const struct spmilp_call *call)
{
    const struct spmilp_attribute *row = spmilp_attribute(call, SPMILP_ATTRIBUTE_FIXED);
    return row ? call->words + row->first : (const int32_t *)0;
}

/* Divided by a power of two and rounded down. */
static int64_t shifted(int64_t value, uint32_t bits)
{
    return value >= 0 ? value >> bits : -((-value + (INT64_C(1) << bits) - 1) >> bits);
}

/* The upper 32 bits of twice a product, a half rounded up. */
static int64_t high_product(int64_t a, int64_t b)
{
    return shifted(a * b + (INT64_C(1) << 30), 31U);
}

/* Divided by a power of two, a half rounded away from zero. */
static int64_t divided(int64_t value, uint32_t bits)
{
    const int64_t half = bits ? INT64_C(1) << (bits - 1U) : 0;
    return value < 0 ? -((half - value) >> bits) : (value + half) >> bits;
}

static int64_t scaled(int64_t value, const int32_t *factor_and_shift)
{
    const int32_t shift = factor_and_shift[1];
    const int64_t left = shift > 0 ? value * (INT64_C(1) << shift) : value;
    return divided(high_product(left, factor_and_shift[0]), shift < 0 ? (uint32_t)-shift : 0U);
}

static int64_t zero_of(const struct spmilp_call *call, const struct spmilp_box *operand)
{
    return operand->scale ? spmilp_zero_at(call->words, operand->scale, 0) : 0;
}

void spmilp_put_fixed(const struct spmilp_call *call, size_t index, int64_t value)
{
    const int32_t *words = spmilp_fixed_words(call);
    const int64_t high = value < words[1] ? value : words[1];
    spmilp_store_integer(&call->output, index, high > words[0] ? high : words[0]);
}

/* A real that two words are the bits of, the lower ones first. */
static double real_of(const int32_t *words)
{
    const uint64_t bits = (uint64_t)(uint32_t)words[1] << 32 | (uint32_t)words[0];
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const int32_t *spmilp_factor_words(const struct spmilp_call *call, int32_t channel)
{
    const uint32_t count = spmilp_attribute(call, SPMILP_ATTRIBUTE_FIXED)->count;
    return spmilp_fixed_words(call) + 2U + (count > 4U ? 2U * (uint32_t)channel : 0U);
}

void spmilp_requantise(const struct spmilp_call *call, size_t index, int32_t channel, int64_t sum)
{
    const int32_t *words = spmilp_factor_words(call, channel);
    int64_t result;
    if (call->step->kind == SPMILP_OPERATOR_GEMM) {
        /* LiteRT multiplies these in double precision, a half rounded away from zero. */
        const double real = (double)sum * real_of(words);
        result = real < 0.0 ? -(int64_t)(0.5 - real) : (int64_t)(real + 0.5);
    } else {
        result = scaled(sum, words);
    }
    spmilp_put_fixed(call, index, result + zero_of(call, &call->output));
}

static void of_two(const struct spmilp_call *call, const int32_t *words)
{
    const size_t count = spmilp_count(&call->output);
    const int64_t zero = zero_of(call, &call->output);
    const uint32_t kind = call->step->kind;
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK];
    int64_t x[2];
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < 2U; k++) {
            const struct spmilp_box *input = &call->inputs[k];
            spmilp_broadcast(input, at, call->output.rank, own);
            x[k] = spmilp_load_integer(input, spmilp_place(input, own)) - zero_of(call, input);
        }
        if (kind == SPMILP_OPERATOR_MUL) {
            x[0] = scaled(x[0] * x[1], &words[2]);
        } else {
            x[0] = scaled(x[0] * (INT64_C(1) << ADDEND_BITS), &words[2]);
            x[1] = scaled(x[1] * (INT64_C(1) << ADDEND_BITS), &words[4]);
            x[0] = scaled(kind == SPMILP_OPERATOR_SUB ? x[0] - x[1] : x[0] + x[1], &words[6]);
        }
        spmilp_put_fixed(call, i, x[0] + zero);
        spmilp_next(&call->output, at);
    }
}

/* The mean of all elements whose axes that are not reduced are those of the result's element. */
static void mean(const struct spmilp_call *call, const int32_t *words)
{
    const struct spmilp_box *data = &call->inputs[0];
    const struct spmilp_attribute *axes = spmilp_attribute(call, SPMILP_ATTRIBUTE_AXES);
    const int keeps = spmilp_integer(call, SPMILP_ATTRIBUTE_KEEPDIMS, 0U) != 0;
    const size_t count = spmilp_count(&call->output);
    int32_t at[SPMILP_MAX_RANK + 1U] = {0}, own[SPMILP_MAX_RANK], box[2U * SPMILP_MAX_RANK];
    uint32_t reduced = 0U;
    for (uint32_t i = 0; axes && i < axes->count; i++) {
        reduced |= 1U << spmilp_integer(call, SPMILP_ATTRIBUTE_AXES, i);
    }
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        struct spmilp_box cell = *data;
        int64_t total = 0;
        uint32_t next = 0U;
        memcpy(box, data->box, 2U * data->rank * sizeof *box);
        for (uint32_t axis = 0; axis < data->rank; axis++) {
            const int is_reduced = (reduced >> axis & 1U) != 0U;
            if (!is_reduced) {
                box[2U * axis] = at[next];
                box[2U * axis + 1U] = 1;
            }
            next += !is_reduced || keeps ? 1U : 0U;
        }
        cell.box = box;
        spmilp_first(&cell, own);
        for (size_t left = spmilp_count(&cell); left > 0U; left--) {
            total += spmilp_load_integer(data, spmilp_place(data, own)) - zero_of(call, data);
            spmilp_next(&cell, own);
        }
        spmilp_put_fixed(call, i, scaled(total, &words[2]) + zero_of(call, &call->output));
        spmilp_next(&call->output, at);
    }
}

/* Times a power of two, cut off at 32 bits. */
static int64_t times_power(int64_t value, uint32_t bits)
{
    const int64_t product = value * (INT64_C(1) << bits), low = -ONE - 1;
    return product > ONE ? ONE : product < low ? low : product;
}

/* 1 / (1 + x), three steps of Newton and Raphson's method. */
static int64_t reciprocal(int64_t value)
{
    const int64_t half = (value + ONE + 1) >> 1;
    int64_t x = INT64_C(1515870810) + high_product(half, -INT64_C(1010580540));
    for (uint32_t i = 0; i < 3U; i++) {
        const int64_t rest = (INT64_C(1) << 29) - high_product(half, x);
        x += times_power(high_product(x, rest), 2U);
    }
    return times_power(x, 1U);
}

/* Each row of the output, whose axis may be a part of the input's. */
static void softmax(const struct spmilp_call *call, const int32_t *table)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXIS, 0U);
    const int32_t *row = &data->box[2U * axis], *part = &output->box[2U * axis];
    const int64_t least = output->type == SPMILP_TYPE_INT8 ? -128 : 0;
    const size_t count = spmilp_count(output);
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK];
    spmilp_first(output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(output, at)) {
        int64_t greatest = INT64_MIN, total = 0, inverse;
        uint32_t above = 0U;
        if (at[axis] != part[0]) {
            continue;
        }
        memcpy(own, at, sizeof own);
        for (own[axis] = row[0]; own[axis] < row[0] + row[1]; own[axis]++) {
            const int64_t value = spmilp_load_integer(data, spmilp_place(data, own));
            greatest = value > greatest ? value : greatest;
        }
        for (own[axis] = row[0]; own[axis] < row[0] + row[1]; own[axis]++) {
            const int64_t value = spmilp_load_integer(data, spmilp_place(data, own));
            total += divided(table[greatest - value], 12U);
        }
        while (above < 31U && !(total >> (31U - above) & 1)) {
            above++;
        }
        inverse = reciprocal(total * (INT64_C(1) << above) - (INT64_C(1) << 31));
        for (own[axis] = part[0]; own[axis] < part[0] + part[1]; own[axis]++) {
            const int64_t value = spmilp_load_integer(data, spmilp_place(data, own));
            const int64_t share = high_product(inverse, table[greatest - value]);
            const int64_t result = divided(share, 12U - above + 31U - 8U) + least;
            spmilp_store_integer(output, spmilp_place(output, own),
                                 result < least + 255 ? result : least + 255);
        }
    }
}

static void look_up(const struct spmilp_call *call, const int32_t *table)
{
    const struct spmilp_box *data = &call->inputs[0];
    const size_t count = spmilp_count(&call->output);
    const int64_t least = data->type == SPMILP_TYPE_INT8 ? -128 : 0;
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK];
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        spmilp_broadcast(data, at, call->output.rank, own);
        const int64_t value = spmilp_load_integer(data, spmilp_place(data, own));
        spmilp_store_integer(&call->output, i, table[value - least]);
        spmilp_next(&call->output, at);
    }
}

int spmilp_fixed(const struct spmilp_call *call)
{
    const int32_t *words = spmilp_fixed_words(call);
    if (!words) {
        return 0;
    }
    switch (call->step->kind) {
    case SPMILP_OPERATOR_ADD:
    case SPMILP_OPERATOR_MUL:
    case SPMILP_OPERATOR_SUB:
        of_two(call, words);
        break;
    case SPMILP_OPERATOR_REDUCEMEAN:
        mean(call, words);
        break;
    case SPMILP_OPERATOR_SOFTMAX:
        softmax(call, words);
        break;
    default:
        look_up(call, words);
        break;
    }
    return 1;
}
