/* ScatterND, ScatterElements: elements of input 0, changed by updates whose indices name them. */

#include <math.h>
#include <string.h>

#include "spmilp_kernels.h"

enum reduction { NONE, ADD, MUL, MAX, MIN };

struct value {
    float real;
    int64_t integer;
};

static enum reduction reduction_of(const struct spmilp_call *call)
{
    static const char *const names[] = {"none", "add", "mul", "max"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (spmilp_is_text(call, SPMILP_ATTRIBUTE_REDUCTION, names[i])) {
            return (enum reduction)i;
        }
    }
    return MIN;
}

static struct value changed(enum reduction how, struct value old, struct value update)
{
    const uint64_t a = (uint64_t)old.integer, b = (uint64_t)update.integer;
    switch (how) {
    case NONE:
        return update;
    case ADD:
        old.real += update.real;
        old.integer = (int64_t)(a + b);
        return old;
    case MUL:
        old.real *= update.real;
        old.integer = (int64_t)(a * b);
        return old;
    case MAX:
        old.real = old.real >= update.real || isnan(old.real) ? old.real : update.real;
        old.integer = old.integer > update.integer ? old.integer : update.integer;
        return old;
    default:
        old.real = old.real <= update.real || isnan(old.real) ? old.real : update.real;
        old.integer = old.integer < update.integer ? old.integer : update.integer;
        return old;
    }
}

static struct value value_at(const struct spmilp_call *call, const struct spmilp_box *operand,
                             const int32_t *at)
{
    struct value value = {0.0F, 0};
    if (!call->step->quantised && spmilp_is_integer(operand->type)) {
        value.integer = spmilp_load_integer(operand, spmilp_place(operand, at));
    } else {
        value.real = spmilp_real(call, operand, at);
    }
    return value;
}

/* Whether the indices that lie at `own` name the element at `at`; negative ones count from the end. */
static int names(const struct spmilp_call *call, int32_t *own, const int32_t *at)
{
    const struct spmilp_box *data = &call->inputs[0], *indices = &call->inputs[1];
    const uint32_t last = indices->rank - 1U;
    for (int32_t axis = 0; axis < indices->shape[last]; axis++) {
        own[last] = axis;
        const int64_t index = spmilp_load_integer(indices, spmilp_place(indices, own));
        if ((index < 0 ? index + data->shape[axis] : index) != at[axis]) {
            return 0;
        }
    }
    return 1;
}

static void store(const struct spmilp_call *call, size_t index, const int32_t *at,
                  struct value value)
{
    if (!call->step->quantised && spmilp_is_integer(call->output.type)) {
        spmilp_store_integer(&call->output, index, value.integer);
    } else {
        spmilp_put(call, index, at, value.real);
    }
}

void spmilp_scatter(const struct spmilp_call *call)
{
    const struct spmilp_box *output = &call->output, *indices = &call->inputs[1];
    const uint32_t leading = indices->rank - 1U;
    const uint32_t indexed = (uint32_t)indices->shape[leading];
    const enum reduction how = reduction_of(call);
    const struct spmilp_box cells = {.rank = leading, .box = indices->box};
    const size_t count = spmilp_count(output), updates = spmilp_count(&cells);
    int32_t at[SPMILP_MAX_RANK + 1U] = {0}, own[SPMILP_MAX_RANK + 1U] = {0};
    spmilp_first(output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(output, at)) {
        struct value value = value_at(call, &call->inputs[0], at);
        int32_t cell[SPMILP_MAX_RANK + 1U] = {0};
        spmilp_first(&cells, cell);
        for (size_t j = 0; j < updates; j++, spmilp_next(&cells, cell)) {
            if (names(call, cell, at)) {
                memcpy(own, cell, leading * sizeof *own);
                memcpy(own + leading, at + indexed, (output->rank - indexed) * sizeof *own);
                value = changed(how, value, value_at(call, &call->inputs[2], own));
            }
        }
        store(call, i, at, value);
    }
}

void spmilp_scatter_elements(const struct spmilp_call *call)
{
    const struct spmilp_box *output = &call->output, *indices = &call->inputs[1];
    const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXIS, 0U);
    const enum reduction how = reduction_of(call);
    const size_t count = spmilp_count(output);
    int32_t at[SPMILP_MAX_RANK + 1U] = {0}, own[SPMILP_MAX_RANK + 1U] = {0};
    spmilp_first(output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(output, at)) {
        struct value value = value_at(call, &call->inputs[0], at);
        /* Indices may be fewer than elements along the other axes. */
        int32_t updates = indices->data ? indices->shape[axis] : 0;
        for (uint32_t other = 0; updates > 0 && other < output->rank; other++) {
            if (other != axis && at[other] >= indices->shape[other]) {
                updates = 0;
            }
        }
        memcpy(own, at, output->rank * sizeof *own);
        for (own[axis] = 0; own[axis] < updates; own[axis]++) {
            const int64_t index = spmilp_load_integer(indices, spmilp_place(indices, own));
            if ((index < 0 ? index + output->shape[axis] : index) == at[axis]) {
                value = changed(how, value, value_at(call, &call->inputs[2], own));
            }
        }
        store(call, i, at, value);
    }
}
