/* Reductions over whole axes. */

#include <math.h>

#include "spmilp_kernels.h"

/* The elements that are reduced to one of the output. */
struct cell {
    const struct spmilp_call *call;
    int32_t first[SPMILP_MAX_RANK];
    uint32_t axes; /* bit per axis that is reduced */
    uint32_t count;
    float centre;
};

static void position(const struct cell *cell, uint32_t number, int32_t *at)
{
    const struct spmilp_box *data = &cell->call->inputs[0];
    for (uint32_t axis = data->rank; axis > 0U; axis--) {
        at[axis - 1U] = cell->first[axis - 1U];
        if (cell->axes >> (axis - 1U) & 1U) {
            const uint32_t length = (uint32_t)data->box[2U * axis - 1U];
            at[axis - 1U] += (int32_t)(number % length);
            number /= length;
        }
    }
}

static float value_of(const void *context, uint32_t number)
{
    const struct cell *cell = context;
    int32_t at[SPMILP_MAX_RANK];
    position(cell, number, at);
    return spmilp_real(cell->call, &cell->call->inputs[0], at);
}

static float magnitude(const void *context, uint32_t number)
{
    return fabsf(value_of(context, number));
}

static float square(const void *context, uint32_t number)
{
    const float value = value_of(context, number);
    return value * value;
}

static float exponential(const void *context, uint32_t number)
{
    const struct cell *cell = context;
    return (float)exp((double)(value_of(context, number) - cell->centre));
}

/* The greatest value, the least or the product. */
static float extreme(const struct cell *cell, uint32_t kind)
{
    float found = value_of(cell, 0U);
    for (uint32_t i = 1U; i < cell->count; i++) {
        const float value = value_of(cell, i);
        if (kind == SPMILP_OPERATOR_REDUCEPROD) {
            found *= value;
        } else if (isnan(value) ||
                   (kind == SPMILP_OPERATOR_REDUCEMIN ? value < found : value > found)) {
            found = value;
        }
    }
    return found;
}

/* Whether the elements lie next to each other: all axes from the first reduced one on are. */
static int are_neighbours(const struct cell *cell)
{
    const uint32_t rank = cell->call->inputs[0].rank;
    uint32_t axis = rank;
    while (axis > 0U && cell->axes >> (axis - 1U) & 1U) {
        axis--;
    }
    return (cell->axes & ((1U << axis) - 1U)) == 0U;
}

static float reduced(struct cell *cell)
{
    const uint32_t kind = cell->call->step->kind, count = cell->count;
    const int near = are_neighbours(cell);
    switch (kind) {
    case SPMILP_OPERATOR_REDUCEL1:
        return spmilp_sum(magnitude, cell, count, near);
    case SPMILP_OPERATOR_REDUCEL2:
        return sqrtf(spmilp_sum(square, cell, count, near));
    case SPMILP_OPERATOR_REDUCELOGSUM:
        return (float)log((double)spmilp_sum(value_of, cell, count, near));
    case SPMILP_OPERATOR_REDUCELOGSUMEXP:
        cell->centre = extreme(cell, SPMILP_OPERATOR_REDUCEMAX);
        cell->centre = isinf(cell->centre) ? 0.0F : cell->centre;
        return (float)log((double)spmilp_sum(exponential, cell, count, near)) + cell->centre;
    case SPMILP_OPERATOR_REDUCEMEAN:
        return spmilp_sum(value_of, cell, count, near) / (float)count;
    case SPMILP_OPERATOR_REDUCESUM:
        return spmilp_sum(value_of, cell, count, near);
    case SPMILP_OPERATOR_REDUCESUMSQUARE:
        return spmilp_sum(square, cell, count, near);
    default:
        return extreme(cell, kind);
    }
}

/* The position of the input that an output's cell begins at. */
static void begin(struct cell *cell, const int32_t *at)
{
    const struct spmilp_call *call = cell->call;
    const struct spmilp_box *data = &call->inputs[0];
    const int keeps = spmilp_integer(call, SPMILP_ATTRIBUTE_KEEPDIMS, 0U) != 0;
    uint32_t next = 0U;
    for (uint32_t axis = 0; axis < data->rank; axis++) {
        const int is_reduced = (cell->axes >> axis & 1U) != 0U;
        cell->first[axis] = is_reduced ? 0 : at[next];
        next += !is_reduced || keeps ? 1U : 0U;
    }
}

void spmilp_reduce(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0];
    const struct spmilp_attribute *axes = spmilp_attribute(call, SPMILP_ATTRIBUTE_AXES);
    const size_t count = spmilp_count(&call->output);
    struct cell cell = {.call = call, .count = 1U};
    int32_t at[SPMILP_MAX_RANK + 1U] = {0};
    if (spmilp_fixed(call)) {
        return;
    }
    for (uint32_t i = 0; axes && i < axes->count; i++) {
        const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXES, i);
        cell.axes |= 1U << axis;
        cell.count *= (uint32_t)data->box[2U * axis + 1U];
    }
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        begin(&cell, at);
        spmilp_put(call, i, at, reduced(&cell));
        spmilp_next(&call->output, at);
    }
}
