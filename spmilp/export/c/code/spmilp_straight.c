/* Calls of kernels in straight code, and what comes before and after them. */

#include "spmilp_straight.h"

void spmilp_copy_pieces(const struct spmilp_piece_copy *copies, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        spmilp_core_copy(copies[i].to, copies[i].from, copies[i].shape);
    }
}

/* Numbers of a box in 1, 2 or 4 bytes. */
static const uint8_t *read_box(const uint8_t *from, uint32_t width, uint32_t count, int32_t *box)
{
    for (uint32_t i = 0; i < count; i++) {
        if (width == 1U) {
            box[i] = from[i];
        } else if (width == 2U) {
            box[i] = ((const uint16_t *)(const void *)from)[i];
        } else {
            box[i] = ((const int32_t *)(const void *)from)[i];
        }
    }
    return from + (size_t)count * width;
}

void spmilp_call_kernel(const struct spmilp_operator *operator_, const void *boxes,
                        const uint8_t *const *addresses)
{
    const uint32_t operands = operator_->inputs + operator_->has_previous + 1U;
    struct spmilp_step step = {.kind = operator_->kind,
                                     .inputs = operator_->inputs,
                                     .attributes = operator_->attribute_count,
                                     .quantised = operator_->quantised,
                                     .limits = operator_->limits,
                                     .part = operator_->part};
    struct spmilp_call call = {.step = &step,
                               .attributes = operator_->attributes,
                               .words = operator_->words,
                               .texts = operator_->texts};
    int32_t numbers[(SPMILP_MAX_INPUTS + 2U) * 2U * SPMILP_MAX_RANK];
    int32_t *next = numbers;
    const uint8_t *from = boxes;
    if (step.limits) {
        step.low = call.words[operator_->low_and_high];
        step.high = call.words[operator_->low_and_high + 1U];
    }
    for (uint32_t i = 0; i < operands; i++) {
        const struct spmilp_described *given = &operator_->operands[i];
        struct spmilp_box *operand = &call.output;
        if (i < operator_->inputs) {
            operand = &call.inputs[i];
        } else if (i + 1U < operands) {
            operand = &call.previous;
        }
        operand->scale = given->scale;
        if (given->type != 0U) {
            operand->data = (uint8_t *)(uintptr_t)addresses[i];
            operand->type = given->type;
            operand->rank = given->rank;
            operand->shape = given->shape;
            operand->box = next;
            from = read_box(from, operator_->width, 2U * given->rank, next);
            next += 2U * given->rank;
        }
    }
    operator_->kernel(&call);
}
