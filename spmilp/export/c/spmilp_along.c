/* Operators along one axis: running sums, positions of extremes, the first in order. */

#include <math.h>
#include <string.h>

#include "spmilp_kernels.h"

/* The elements of an input along an axis; those of the output that they give begin at `first`. */
struct row {
    const struct spmilp_call *call;
    uint32_t axis;
    int integers;                /* compared and added as integers, not as reals */
    int32_t at[SPMILP_MAX_RANK]; /* of the input */
};

struct value {
    float real;
    int64_t integer;
};

static struct value value_at(struct row *row, int32_t position)
{
    const struct spmilp_box *data = &row->call->inputs[0];
    struct value value = {0.0F, 0};
    row->at[row->axis] = position;
    if (row->integers) {
        value.integer = spmilp_load_integer(data, spmilp_place(data, row->at));
    } else {
        value.real = spmilp_real(row->call, data, row->at);
    }
    return value;
}

static struct row row_along(const struct spmilp_call *call, uint32_t axis)
{
    struct row row = {.call = call, .axis = axis};
    row.integers = !call->step->quantised && spmilp_is_integer(call->inputs[0].type);
    return row;
}

/* Store a value of a row at a position of the output, if the output's box has it. */
static void store(const struct row *row, int32_t position, struct value value)
{
    const struct spmilp_box *output = &row->call->output;
    const int32_t *interval = &output->box[2U * row->axis];
    int32_t at[SPMILP_MAX_RANK];
    if (position < interval[0] || position >= interval[0] + interval[1]) {
        return;
    }
    memcpy(at, row->at, sizeof at);
    at[row->axis] = position;
    if (row->integers) {
        spmilp_store_integer(output, spmilp_place(output, at), value.integer);
    } else {
        spmilp_put(row->call, spmilp_place(output, at), at, value.real);
    }
}

typedef void along(struct row *row, int32_t first, int32_t length);

/* Do something with each row of the input that the output has elements of. */
static void for_each_row(const struct spmilp_call *call, along *work)
{
    const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXIS, 0U);
    const int32_t *own = &call->inputs[0].box[2U * axis];
    const size_t count = spmilp_count(&call->output);
    struct row row = row_along(call, axis);
    int32_t at[SPMILP_MAX_RANK] = {0};
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(&call->output, at)) {
        if (at[axis] == call->output.box[2U * axis]) {
            memcpy(row.at, at, sizeof at);
            work(&row, own[0], own[1]);
        }
    }
}

static void add_along(struct row *row, int32_t first, int32_t length)
{
    const int reverse = spmilp_integer(row->call, SPMILP_ATTRIBUTE_REVERSE, 0U) != 0;
    const int exclusive = spmilp_integer(row->call, SPMILP_ATTRIBUTE_EXCLUSIVE, 0U) != 0;
    struct value total = {0.0F, 0};
    for (int32_t i = 0; i < length; i++) {
        const int32_t position = first + (reverse ? length - 1 - i : i);
        const struct value value = value_at(row, position);
        struct value result;
        total.real += value.real;
        total.integer = (int64_t)((uint64_t)total.integer + (uint64_t)value.integer);
        result = total;
        if (exclusive) {
            result.real -= value.real;
            result.integer = (int64_t)((uint64_t)result.integer - (uint64_t)value.integer);
        }
        store(row, position, result);
    }
}

void spmilp_cumulative_sum(const struct spmilp_call *call)
{
    for_each_row(call, add_along);
}

/* Whether one value comes before another; a NaN before every number, as in NumPy. */
static int is_before(const struct row *row, struct value one, struct value other, int largest)
{
    if (row->integers) {
        return largest ? one.integer > other.integer : one.integer < other.integer;
    }
    if (isnan(one.real) || isnan(other.real)) {
        return isnan(one.real) && !isnan(other.real);
    }
    return largest ? one.real > other.real : one.real < other.real;
}

/* The first `k` in order: each is the first of those that come behind the one before. */
static void order_along(struct row *row, int32_t first, int32_t length)
{
    const struct spmilp_call *call = row->call;
    const int largest = spmilp_integer(call, SPMILP_ATTRIBUTE_LARGEST, 0U) != 0;
    const int positions = spmilp_integer(call, SPMILP_ATTRIBUTE_POSITIONS, 0U) != 0;
    const int32_t k = spmilp_integer(call, SPMILP_ATTRIBUTE_K, 0U);
    struct value last = {0.0F, 0};
    int32_t last_at = -1;
    for (int32_t i = 0; i < k; i++) {
        struct value best = {0.0F, 0};
        int32_t best_at = -1;
        for (int32_t j = 0; j < length; j++) {
            const struct value value = value_at(row, first + j);
            const int is_behind =
                last_at < 0 || is_before(row, last, value, largest) ||
                (j > last_at && !is_before(row, value, last, largest));
            if (is_behind && (best_at < 0 || is_before(row, value, best, largest))) {
                best = value;
                best_at = j;
            }
        }
        last = best;
        last_at = best_at;
        if (positions) {
            struct row as_integers = *row;
            const struct value found = {0.0F, first + best_at};
            as_integers.integers = 1;
            store(&as_integers, i, found);
        } else {
            store(row, i, best);
        }
    }
}

void spmilp_top(const struct spmilp_call *call)
{
    for_each_row(call, order_along);
}

/* ArgMax and ArgMin: the position of the greatest or least, the first or the last of equals. */
void spmilp_position_of_extreme(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0], *output = &call->output;
    const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXES, 0U);
    const int largest = call->step->kind == SPMILP_OPERATOR_ARGMAX;
    const int takes_last = spmilp_integer(call, SPMILP_ATTRIBUTE_SELECT_LAST_INDEX, 0U) != 0;
    const int keeps = spmilp_integer(call, SPMILP_ATTRIBUTE_KEEPDIMS, 0U) != 0;
    const size_t count = spmilp_count(output);
    struct row row = row_along(call, axis);
    int32_t at[SPMILP_MAX_RANK + 1U] = {0};
    spmilp_first(output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(output, at)) {
        for (uint32_t own = 0; own < data->rank; own++) {
            row.at[own] = at[own > axis && !keeps ? own - 1U : own];
        }
        struct value best = value_at(&row, 0);
        int32_t found = 0;
        for (int32_t j = 1; j < data->shape[axis]; j++) {
            const struct value value = value_at(&row, j);
            if (takes_last ? !is_before(&row, best, value, largest)
                           : is_before(&row, value, best, largest)) {
                best = value;
                found = j;
            }
        }
        spmilp_store_integer(output, i, found);
    }
}
