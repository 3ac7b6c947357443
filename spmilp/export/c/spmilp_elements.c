/* Boxes, elements, scales and attributes: what all kernels use. */

#include <math.h>
#include <string.h>

#include "spmilp_kernels.h"

uint32_t spmilp_item(uint32_t type)
{
    switch (type) {
    case SPMILP_TYPE_INT8:
    case SPMILP_TYPE_UINT8:
    case SPMILP_TYPE_BOOL:
        return 1U;
    case SPMILP_TYPE_INT16:
    case SPMILP_TYPE_UINT16:
    case SPMILP_TYPE_FLOAT16:
        return 2U;
    case SPMILP_TYPE_INT32:
    case SPMILP_TYPE_UINT32:
    case SPMILP_TYPE_FLOAT32:
        return 4U;
    case SPMILP_TYPE_INT64:
        return 8U;
    default:
        return 0U;
    }
}

int spmilp_is_integer(uint32_t type)
{
    return type != SPMILP_TYPE_FLOAT32 && type != SPMILP_TYPE_FLOAT16;
}

size_t spmilp_count(const struct spmilp_box *operand)
{
    size_t count = 1U;
    for (uint32_t axis = 0; axis < operand->rank; axis++) {
        count *= (size_t)operand->box[2U * axis + 1U];
    }
    return count;
}

void spmilp_first(const struct spmilp_box *operand, int32_t *at)
{
    for (uint32_t axis = 0; axis < operand->rank; axis++) {
        at[axis] = operand->box[2U * axis];
    }
}

void spmilp_next(const struct spmilp_box *operand, int32_t *at)
{
    for (uint32_t axis = operand->rank; axis > 0U; axis--) {
        const int32_t *interval = &operand->box[2U * (axis - 1U)];
        if (++at[axis - 1U] < interval[0] + interval[1]) {
            return;
        }
        at[axis - 1U] = interval[0];
    }
}

size_t spmilp_place(const struct spmilp_box *operand, const int32_t *at)
{
    size_t place = 0U;
    for (uint32_t axis = 0; axis < operand->rank; axis++) {
        const int32_t *interval = &operand->box[2U * axis];
        place = place * (size_t)interval[1] + (size_t)(at[axis] - interval[0]);
    }
    return place;
}

void spmilp_broadcast(const struct spmilp_box *operand, const int32_t *at, uint32_t rank,
                      int32_t *own)
{
    for (uint32_t axis = 0; axis < operand->rank; axis++) {
        own[axis] = operand->shape[axis] == 1 ? 0 : at[rank - operand->rank + axis];
    }
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of_half(uint32_t half)
{
    const uint32_t sign = (half & 0x8000U) << 16, exponent = half >> 10 & 31U;
    const uint32_t mantissa = half & 1023U;
    if (exponent == 31U) {
        return float_of_bits(sign | 0x7F800000U | mantissa << 13);
    }
    if (exponent == 0U) {
        const float value = (float)mantissa / 16777216.0F; /* in steps of 2^-24 */
        return sign ? -value : value;
    }
    return float_of_bits(sign | (exponent + 112U) << 23 | mantissa << 13);
}

/* Round to nearest, ties to even. */
static uint32_t half_of_float(float value)
{
    const uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000U;
    const uint32_t rest = bits & 0x7FFFFFFFU;
    if (rest > 0x7F800000U) {
        return sign | 0x7E00U;
    }
    if (rest >= 0x477FF000U) { /* 65520 and above round to infinity */
        return sign | 0x7C00U;
    }
    if (rest < 0x38800000U) { /* below 2^-14: steps of 2^-24 */
        return sign | (uint32_t)rintf(float_of_bits(rest) * 16777216.0F);
    }
    return sign | (rest - 0x38000000U + 0xFFFU + (rest >> 13 & 1U)) >> 13;
}

int64_t spmilp_load_integer(const struct spmilp_box *operand, size_t index)
{
    const uint8_t *data = operand->data + index * spmilp_item(operand->type);
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    switch (operand->type) {
    case SPMILP_TYPE_INT8:
        return (int64_t)(data[0] ^ 0x80U) - 128;
    case SPMILP_TYPE_UINT8:
    case SPMILP_TYPE_BOOL:
        return data[0];
    case SPMILP_TYPE_INT16:
        memcpy(&i16, data, sizeof i16);
        return i16;
    case SPMILP_TYPE_UINT16:
        memcpy(&u16, data, sizeof u16);
        return u16;
    case SPMILP_TYPE_INT32:
        memcpy(&i32, data, sizeof i32);
        return i32;
    case SPMILP_TYPE_UINT32:
        memcpy(&u32, data, sizeof u32);
        return u32;
    default:
        memcpy(&i64, data, sizeof i64);
        return i64;
    }
}

float spmilp_load_real(const struct spmilp_box *operand, size_t index)
{
    uint16_t half;
    float value;
    switch (operand->type) {
    case SPMILP_TYPE_FLOAT32:
        memcpy(&value, operand->data + index * sizeof value, sizeof value);
        return value;
    case SPMILP_TYPE_FLOAT16:
        memcpy(&half, operand->data + index * sizeof half, sizeof half);
        return float_of_half(half);
    default:
        return (float)spmilp_load_integer(operand, index);
    }
}

void spmilp_store_integer(const struct spmilp_box *operand, size_t index, int64_t value)
{
    const uint32_t item = spmilp_item(operand->type);
    uint8_t *data = operand->data + index * item;
    const uint64_t bits = (uint64_t)value;
    const uint8_t u8 = operand->type == SPMILP_TYPE_BOOL ? (uint8_t)(value != 0) : (uint8_t)bits;
    const uint16_t u16 = (uint16_t)bits;
    const uint32_t u32 = (uint32_t)bits;
    switch (item) {
    case 1U:
        data[0] = u8;
        break;
    case 2U:
        memcpy(data, &u16, sizeof u16);
        break;
    case 4U:
        memcpy(data, &u32, sizeof u32);
        break;
    default:
        memcpy(data, &bits, sizeof bits);
        break;
    }
}

/* Toward zero; what does not fit is cut off, so that nothing is undefined. */
static int64_t truncated(float value)
{
    if (!(value > -9.2e18F)) {
        return INT64_MIN;
    }
    return value < 9.2e18F ? (int64_t)value : INT64_MAX;
}

void spmilp_store_real(const struct spmilp_box *operand, size_t index, float value)
{
    uint16_t half;
    switch (operand->type) {
    case SPMILP_TYPE_FLOAT32:
        memcpy(operand->data + index * sizeof value, &value, sizeof value);
        break;
    case SPMILP_TYPE_FLOAT16:
        half = (uint16_t)half_of_float(value);
        memcpy(operand->data + index * sizeof half, &half, sizeof half);
        break;
    case SPMILP_TYPE_BOOL:
        /* A NaN is no zero. */
        operand->data[index] = (uint8_t)!(value >= 0.0F && value <= 0.0F);
        break;
    default:
        spmilp_store_integer(operand, index, truncated(value));
        break;
    }
}

float spmilp_scale_at(const int32_t *words, const struct spmilp_scale *scale,
                      int32_t position)
{
    const uint32_t index = scale->axis < 0 ? 0U : (uint32_t)position;
    return float_of_bits((uint32_t)words[scale->scales + index]);
}

int32_t spmilp_zero_at(const int32_t *words, const struct spmilp_scale *scale,
                       int32_t position)
{
    const uint32_t index = scale->zeros == 1U ? 0U : (uint32_t)position;
    return words[scale->zero_points + index];
}

/* The position that a scale is taken at. */
static int32_t along(const struct spmilp_scale *scale, const int32_t *at)
{
    return scale->axis < 0 ? 0 : at[scale->axis];
}

float spmilp_real(const struct spmilp_call *call, const struct spmilp_box *operand,
                  const int32_t *at)
{
    const size_t index = spmilp_place(operand, at);
    const struct spmilp_scale *scale = operand->scale;
    if (!scale) {
        return spmilp_load_real(operand, index);
    }
    const int32_t position = along(scale, at);
    const int64_t zero = spmilp_zero_at(call->words, scale, position);
    return (float)(spmilp_load_integer(operand, index) - zero) *
           spmilp_scale_at(call->words, scale, position);
}

int64_t spmilp_saturate(float rounded, int32_t zero, uint32_t type)
{
    static const struct {
        uint32_t type;
        double low, high;
    } limits[] = {
        {SPMILP_TYPE_INT8, -128.0, 127.0},
        {SPMILP_TYPE_UINT8, 0.0, 255.0},
        {SPMILP_TYPE_INT16, -32768.0, 32767.0},
        {SPMILP_TYPE_UINT16, 0.0, 65535.0},
        {SPMILP_TYPE_INT32, -2147483648.0, 2147483647.0},
    };
    const double moved = (double)rounded + (double)zero;
    uint32_t row = 0U;
    while (row < sizeof limits / sizeof limits[0] - 1U && limits[row].type != type) {
        row++;
    }
    if (!(moved > limits[row].low)) {
        return (int64_t)limits[row].low;
    }
    return (int64_t)(moved < limits[row].high ? moved : limits[row].high);
}

float spmilp_limit(const struct spmilp_step *step, float value, float unit)
{
    const float low = float_of_bits((uint32_t)step->low) / unit;
    const float high = float_of_bits((uint32_t)step->high) / unit;
    if ((step->limits & SPMILP_LIMIT_LOW) && value < low) {
        value = low;
    }
    if ((step->limits & SPMILP_LIMIT_HIGH) && value > high) {
        value = high;
    }
    return value;
}

/* Store a result; a quantised operator's is limited and rounded before. */
void spmilp_put(const struct spmilp_call *call, size_t index, const int32_t *at, float value)
{
    const struct spmilp_scale *scale = call->output.scale;
    if (call->step->quantised) {
        value = spmilp_limit(call->step, value, 1.0F);
    }
    if (!scale) {
        spmilp_store_real(&call->output, index, value);
        return;
    }
    const int32_t position = along(scale, at);
    const float scaled = value / spmilp_scale_at(call->words, scale, position);
    const int32_t zero = spmilp_zero_at(call->words, scale, position);
    int64_t stored;
    if (call->step->quantised == SPMILP_ROUNDS_WITH_ZERO) {
        stored = spmilp_saturate(rintf(scaled + (float)zero), 0, scale->type);
    } else if (call->step->quantised == SPMILP_ROUNDS_AWAY) {
        const float away = floorf(fabsf(scaled) + 0.5F);
        stored = spmilp_saturate(scaled < 0.0F ? -away : away, zero, scale->type);
    } else {
        stored = spmilp_saturate(rintf(scaled), zero, scale->type);
    }
    spmilp_store_integer(&call->output, index, stored);
}

const struct spmilp_attribute *spmilp_attribute(const struct spmilp_call *call, uint32_t name)
{
    const struct spmilp_attribute *rows = call->attributes;
    for (uint32_t i = 0; i < call->step->attributes; i++) {
        if (rows[i].name == name) {
            return &rows[i];
        }
    }
    return (const struct spmilp_attribute *)0;
}

int32_t spmilp_integer(const struct spmilp_call *call, uint32_t name, uint32_t position)
{
    const struct spmilp_attribute *row = spmilp_attribute(call, name);
    return row && position < row->count ? call->words[row->first + position] : 0;
}

float spmilp_number_at(const struct spmilp_call *call, uint32_t name, uint32_t position)
{
    const struct spmilp_attribute *row = spmilp_attribute(call, name);
    const int32_t word = spmilp_integer(call, name, position);
    const int is_real =
        row && (row->type == SPMILP_VALUE_REAL || row->type == SPMILP_VALUE_REALS);
    return is_real ? float_of_bits((uint32_t)word) : (float)word;
}

float spmilp_number(const struct spmilp_call *call, uint32_t name)
{
    return spmilp_number_at(call, name, 0U);
}

int spmilp_is_text(const struct spmilp_call *call, uint32_t name, const char *text)
{
    const struct spmilp_attribute *row = spmilp_attribute(call, name);
    return row && strcmp((const char *)(call->texts + row->first), text) == 0;
}

/* NumPy's pairwise sum: eight running sums for up to 128 terms, halves for more. */
static float sum_in_pairs(spmilp_term *term, const void *context, uint32_t first, uint32_t count)
{
    float sums[8], total = 0.0F;
    uint32_t i = 0U;
    if (count > 128U) {
        const uint32_t half = count / 2U - count / 2U % 8U;
        return sum_in_pairs(term, context, first, half) +
               sum_in_pairs(term, context, first + half, count - half);
    }
    if (count >= 8U) {
        for (i = 0U; i < 8U; i++) {
            sums[i] = term(context, first + i);
        }
        for (; i < count - count % 8U; i++) {
            sums[i % 8U] += term(context, first + i);
        }
        total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    }
    for (; i < count; i++) {
        total += term(context, first + i);
    }
    return total;
}

float spmilp_sum(spmilp_term *term, const void *context, uint32_t count, int are_neighbours)
{
    float total = 0.0F;
    if (are_neighbours) {
        return sum_in_pairs(term, context, 0U, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        total += term(context, i);
    }
    return total;
}
