/* Softmax and normalisations. Rows are read again for each statistic: nothing has to be kept. */

#include <math.h>
#include <string.h>

#include "spmilp_kernels.h"

/* Neighbours along one axis, or along all axes from one on. */
struct row {
    const struct spmilp_call *call;
    size_t first;   /* element of the packed input */
    size_t step;    /* elements to the next */
    uint32_t count;
    float centre;   /* what is taken off each element */
};

static float element(const struct row *row, uint32_t number)
{
    const struct spmilp_box *data = &row->call->inputs[0];
    const size_t index = row->first + number * row->step;
    if (!data->scale) {
        return spmilp_load_real(data, index);
    }
    const int64_t zero = spmilp_zero_at(row->call->words, data->scale, 0);
    return (float)(spmilp_load_integer(data, index) - zero) *
           spmilp_scale_at(row->call->words, data->scale, 0);
}

static float plain(const void *context, uint32_t number)
{
    return element(context, number);
}

static float exponential(const void *context, uint32_t number)
{
    const struct row *row = context;
    return (float)exp((double)(element(row, number) - row->centre));
}

static float square(const void *context, uint32_t number)
{
    const struct row *row = context;
    const float centred = element(row, number) - row->centre;
    return centred * centred;
}

static float greatest(const struct row *row)
{
    float found = element(row, 0U);
    for (uint32_t i = 1U; i < row->count; i++) {
        const float value = element(row, i);
        found = value > found || isnan(value) ? value : found;
    }
    return found;
}

static size_t elements_from(const struct spmilp_box *operand, uint32_t axis)
{
    size_t count = 1U;
    for (; axis < operand->rank; axis++) {
        count *= (size_t)operand->box[2U * axis + 1U];
    }
    return count;
}

/* Softmax and LogSoftmax: each row of the output, whose axis may be a part of the input's. */
void spmilp_softmax(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXIS, 0U);
    const size_t count = spmilp_count(output), step = elements_from(output, axis + 1U);
    const int32_t first = output->box[2U * axis], length = output->box[2U * axis + 1U];
    const int is_log = call->step->kind == SPMILP_OPERATOR_LOGSOFTMAX;
    int32_t at[SPMILP_MAX_RANK];
    if (spmilp_fixed(call)) {
        return;
    }
    spmilp_first(output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(output, at)) {
        if (at[axis] != first) {
            continue;
        }
        struct row row = {call, 0U, step, (uint32_t)data->box[2U * axis + 1U], 0.0F};
        at[axis] = data->box[2U * axis];
        row.first = spmilp_place(data, at);
        row.centre = greatest(&row);
        const float total = spmilp_sum(exponential, &row, row.count, step == 1U);
        const float log_of_total = (float)log((double)total);
        for (int32_t j = 0; j < length; j++) {
            const uint32_t number = (uint32_t)(first - data->box[2U * axis] + j);
            at[axis] = first + j;
            spmilp_put(call, i + (size_t)j * step, at,
                       is_log ? (element(&row, number) - row.centre) - log_of_total
                              : exponential(&row, number) / total);
        }
        at[axis] = first;
    }
}

/* LayerNormalization and RMSNormalization, over all axes from one on. */
void spmilp_layer_normalisation(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXIS, 0U);
    const float epsilon = spmilp_number(call, SPMILP_ATTRIBUTE_EPSILON);
    const int is_centred = call->step->kind == SPMILP_OPERATOR_LAYERNORMALIZATION;
    const size_t count = spmilp_count(output), inside = elements_from(output, axis);
    struct row row = {call, 0U, 1U, (uint32_t)elements_from(data, axis), 0.0F};
    float deviation = 1.0F;
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK];
    spmilp_first(output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(output, at)) {
        if (i % inside == 0U) {
            for (uint32_t other = 0; other < data->rank; other++) {
                own[other] = other < axis ? at[other] : data->box[2U * other];
            }
            row.first = spmilp_place(data, own);
            row.centre = 0.0F;
            if (is_centred) {
                row.centre = spmilp_sum(plain, &row, row.count, 1) / (float)row.count;
            }
            deviation = sqrtf(spmilp_sum(square, &row, row.count, 1) / (float)row.count + epsilon);
        }
        float value = (spmilp_real(call, data, at) - row.centre) / deviation;
        spmilp_broadcast(&call->inputs[1], at, output->rank, own);
        value *= spmilp_real(call, &call->inputs[1], own);
        if (call->step->inputs > 2U && call->inputs[2].data) {
            spmilp_broadcast(&call->inputs[2], at, output->rank, own);
            value += spmilp_real(call, &call->inputs[2], own);
        }
        spmilp_put(call, i, at, value);
    }
}

void spmilp_batch_normalisation(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0];
    const float epsilon = spmilp_number(call, SPMILP_ATTRIBUTE_EPSILON);
    const size_t count = spmilp_count(&call->output);
    int32_t at[SPMILP_MAX_RANK];
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(&call->output, at)) {
        const int32_t *channel = &at[1];
        const float scale = spmilp_real(call, &call->inputs[1], channel);
        const float bias = spmilp_real(call, &call->inputs[2], channel);
        const float mean = spmilp_real(call, &call->inputs[3], channel);
        const float deviation = sqrtf(spmilp_real(call, &call->inputs[4], channel) + epsilon);
        spmilp_put(call, i, at, (spmilp_real(call, data, at) - mean) / deviation * scale + bias);
    }
}

/* GroupNormalization and InstanceNormalization, where each channel is a group. */
void spmilp_group_normalisation(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    const float epsilon = spmilp_number(call, SPMILP_ATTRIBUTE_EPSILON);
    const size_t count = spmilp_count(output);
    int32_t size = 1;
    if (call->step->kind == SPMILP_OPERATOR_GROUPNORMALIZATION) {
        size = data->shape[1] / spmilp_integer(call, SPMILP_ATTRIBUTE_NUM_GROUPS, 0U);
    }
    struct row row = {call, 0U, 1U, (uint32_t)size * (uint32_t)elements_from(data, 2U), 0.0F};
    float deviation = 1.0F;
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK], batch = -1, group = -1;
    spmilp_first(output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(output, at)) {
        if (at[0] != batch || at[1] / size != group) {
            batch = at[0];
            group = at[1] / size;
            spmilp_first(data, own);
            own[0] = batch;
            own[1] = group * size;
            row.first = spmilp_place(data, own);
            row.centre = 0.0F;
            row.centre = spmilp_sum(plain, &row, row.count, 1) / (float)row.count;
            deviation = sqrtf(spmilp_sum(square, &row, row.count, 1) / (float)row.count + epsilon);
        }
        const float value = (spmilp_real(call, data, at) - row.centre) / deviation;
        spmilp_put(call, i, at,
                   value * spmilp_real(call, &call->inputs[1], &at[1]) +
                       spmilp_real(call, &call->inputs[2], &at[1]));
    }
}

/* LRN: the squares of the channels around each element's. */
void spmilp_lrn(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    const int32_t size = spmilp_integer(call, SPMILP_ATTRIBUTE_SIZE, 0U);
    const float alpha = spmilp_number(call, SPMILP_ATTRIBUTE_ALPHA);
    const float beta = spmilp_number(call, SPMILP_ATTRIBUTE_BETA);
    const float bias = spmilp_number(call, SPMILP_ATTRIBUTE_BIAS);
    const size_t count = spmilp_count(output), plane = elements_from(data, 2U);
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK];
    spmilp_first(output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(output, at)) {
        const int32_t low = at[1] - (size - 1) / 2, high = at[1] + size / 2 + 1;
        const int32_t first = low > data->box[2] ? low : data->box[2];
        const int32_t end = data->box[2] + data->box[3];
        memcpy(own, at, sizeof own);
        own[1] = first;
        struct row row = {call, spmilp_place(data, own), plane, 0U, 0.0F};
        row.count = (uint32_t)((high < end ? high : end) - first);
        const float total = spmilp_sum(square, &row, row.count, plane == 1U);
        const float below = bias + alpha / (float)size * total;
        spmilp_put(call, i, at,
                   spmilp_real(call, data, at) / (float)pow((double)below, (double)beta));
    }
}
