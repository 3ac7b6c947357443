/* Matrix products. */

#include "spmilp_kernels.h"

/* Elements between neighbours of an axis of a packed box. */
static size_t step_of(const struct spmilp_box *operand, uint32_t axis)
{
    size_t step = 1U;
    for (uint32_t inner = axis + 1U; inner < operand->rank; inner++) {
        step *= (size_t)operand->box[2U * inner + 1U];
    }
    return step;
}

void spmilp_gemm(const struct spmilp_call *call)
{
    const struct spmilp_box *left = &call->inputs[0], *right = &call->inputs[1];
    const uint32_t left_sum = spmilp_integer(call, SPMILP_ATTRIBUTE_TRANSA, 0U) ? 0U : 1U;
    const uint32_t right_sum = spmilp_integer(call, SPMILP_ATTRIBUTE_TRANSB, 0U) ? 1U : 0U;
    const size_t count = spmilp_count(&call->output);
    int32_t at[SPMILP_MAX_RANK], a_at[2], b_at[2];
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        struct spmilp_total total = {0U, 0.0F};
        a_at[left_sum] = left->box[2U * left_sum];
        a_at[1U - left_sum] = at[0];
        b_at[right_sum] = right->box[2U * right_sum];
        b_at[1U - right_sum] = at[1];
        const struct spmilp_factor a = {left, spmilp_place(left, a_at), step_of(left, left_sum), 0};
        const struct spmilp_factor b = {right, spmilp_place(right, b_at),
                                        step_of(right, right_sum), at[1]};
        spmilp_add_products(call, &a, &b, (uint32_t)left->box[2U * left_sum + 1U], &total);
        spmilp_finish(call, i, at, at[1], total);
        spmilp_next(&call->output, at);
    }
}

/* Where a row or column of an operand begins. Batch axes broadcast; `own` is its position along the
   axis that is not summed over, if it has one, `sum` the axis that is. */
static size_t beginning(const struct spmilp_box *operand, const int32_t *at, uint32_t batch,
                        uint32_t sum, int32_t own)
{
    int32_t place[SPMILP_MAX_RANK];
    const uint32_t leading = operand->rank > 2U ? operand->rank - 2U : 0U;
    for (uint32_t axis = 0; axis < leading; axis++) {
        place[axis] = operand->shape[axis] == 1 ? 0 : at[batch - leading + axis];
    }
    for (uint32_t axis = leading; axis < operand->rank; axis++) {
        place[axis] = axis == sum ? operand->box[2U * axis] : own;
    }
    return spmilp_place(operand, place);
}

void spmilp_matmul(const struct spmilp_call *call)
{
    const struct spmilp_box *left = &call->inputs[0], *right = &call->inputs[1];
    const uint32_t rows = left->rank > 1U ? 1U : 0U, columns = right->rank > 1U ? 1U : 0U;
    const uint32_t batch = call->output.rank - rows - columns;
    const uint32_t left_sum = left->rank - 1U, right_sum = columns ? right->rank - 2U : 0U;
    const uint32_t depth = (uint32_t)left->box[2U * left_sum + 1U];
    const size_t count = spmilp_count(&call->output);
    int32_t at[SPMILP_MAX_RANK + 1U] = {0};
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        struct spmilp_total total = {0U, 0.0F};
        const int32_t row = at[batch], column = columns ? at[batch + rows] : 0;
        const struct spmilp_factor a = {left, beginning(left, at, batch, left_sum, row), 1U, row};
        const struct spmilp_factor b = {right, beginning(right, at, batch, right_sum, column),
                                        step_of(right, right_sum), column};
        spmilp_add_products(call, &a, &b, depth, &total);
        spmilp_finish(call, i, at, column, total);
        spmilp_next(&call->output, at);
    }
}
