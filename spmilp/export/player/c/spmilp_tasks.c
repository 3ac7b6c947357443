/* A task is a number of steps: gather what a kernel reads, run it, scatter what it writes. */

#include <string.h>

#include "spmilp_kernels.h"
#include "spmilp_player.h"

struct place {
    const struct spmilp_player *player;
    uint8_t *workspace; /* of the core that runs the task */
};

static uint8_t *base(const struct place *place, uint32_t memory)
{
    return memory == SPMILP_NONE ? place->workspace : place->player->memories[memory];
}

/* Copy the elements that a piece shares with a view's box between it and the packed box. */
static void copy_piece(const struct place *place, const struct spmilp_view *view,
                       const struct spmilp_piece *piece, uint8_t *packed, int into_piece)
{
    const int32_t *words = place->player->tables->words;
    const int32_t *box = &words[view->box], *own = &words[piece->box];
    const int32_t *strides = &words[piece->strides];
    const uint32_t rank = view->rank;
    const size_t item = spmilp_item(view->type);
    uint8_t *lies = base(place, piece->memory) + (size_t)piece->offset;
    int32_t shared[2U * SPMILP_MAX_RANK + 1U], at[SPMILP_MAX_RANK];
    const struct spmilp_box whole = {.data = packed, .rank = rank, .box = box};
    const struct spmilp_box common = {.rank = rank, .box = shared};
    for (uint32_t axis = 0; axis < rank; axis++) {
        const int32_t end = box[2U * axis] + box[2U * axis + 1U];
        const int32_t own_end = own[2U * axis] + own[2U * axis + 1U];
        const int32_t first = box[2U * axis] > own[2U * axis] ? box[2U * axis] : own[2U * axis];
        const int32_t length = (end < own_end ? end : own_end) - first;
        if (length <= 0) {
            return;
        }
        shared[2U * axis] = first;
        shared[2U * axis + 1U] = length;
    }
    /* Rows that are contiguous in both are copied as a whole. */
    const int by_rows = rank > 0U && strides[rank - 1U] == (int32_t)item;
    const size_t run = by_rows ? (size_t)shared[2U * rank - 1U] : 1U;
    if (by_rows) {
        shared[2U * rank - 1U] = 1;
    }
    const size_t count = spmilp_count(&common);
    spmilp_first(&common, at);
    for (size_t i = 0; i < count; i++) {
        uint8_t *inside = packed + spmilp_place(&whole, at) * item;
        size_t offset = 0U;
        for (uint32_t axis = 0; axis < rank; axis++) {
            offset += (size_t)(at[axis] - own[2U * axis]) * (size_t)strides[axis];
        }
        if (into_piece) {
            memcpy(lies + offset, inside, run * item);
        } else {
            memcpy(inside, lies + offset, run * item);
        }
        spmilp_next(&common, at);
    }
}

static void copy_pieces(const struct place *place, uint32_t number, uint8_t *packed, int into)
{
    const struct spmilp_tables *tables = place->player->tables;
    const struct spmilp_view *view = &tables->views[number];
    for (uint32_t i = 0; i < view->pieces; i++) {
        copy_piece(place, view, &tables->pieces[view->first_piece + i], packed, into);
    }
}

/* The operand of a view: where its bytes are packed, in a memory or in the workspace. */
static struct spmilp_box box_of(const struct place *place, uint32_t number)
{
    const struct spmilp_tables *tables = place->player->tables;
    const struct spmilp_view *view = &tables->views[number];
    struct spmilp_box operand = {0};
    operand.type = view->type;
    operand.rank = view->rank;
    operand.box = &tables->words[view->box];
    if (view->value != SPMILP_NONE) {
        operand.shape = &tables->words[tables->values[view->value].shape];
    }
    if (view->direct) {
        const struct spmilp_piece *piece = &tables->pieces[view->first_piece];
        operand.data = base(place, piece->memory) + (size_t)view->offset;
    } else {
        operand.data = place->workspace + (size_t)view->slot;
    }
    return operand;
}

static struct spmilp_box read_box(const struct place *place, uint32_t number)
{
    const struct spmilp_box operand = box_of(place, number);
    if (!place->player->tables->views[number].direct) {
        copy_pieces(place, number, operand.data, 0);
    }
    return operand;
}

static const struct spmilp_scale *scale_of(const struct spmilp_tables *tables,
                                           const struct spmilp_step *step, uint32_t position)
{
    const int32_t number = tables->words[step->scales + position];
    return step->quantised && number >= 0 ? &tables->scales[number]
                                          : (const struct spmilp_scale *)0;
}

static void run_step(const struct place *place, const struct spmilp_step *step)
{
    const struct spmilp_tables *tables = place->player->tables;
    struct spmilp_call call = {.step = step,
                               .attributes = &tables->attributes[step->first_attribute],
                               .words = tables->words,
                               .texts = tables->texts};
    for (uint32_t i = 0; i < step->inputs; i++) {
        const int32_t view = tables->words[step->first_input + i];
        if (view >= 0) {
            call.inputs[i] = read_box(place, (uint32_t)view);
        }
        call.inputs[i].scale = scale_of(tables, step, i);
    }
    if (step->previous != SPMILP_NONE) {
        call.previous = read_box(place, step->previous);
    }
    call.output = box_of(place, step->output);
    call.output.scale = scale_of(tables, step, step->inputs);
    spmilp_kernel_of(step->kind)(&call);
    if (!tables->views[step->output].direct) {
        copy_pieces(place, step->output, call.output.data, 1);
    }
}

void spmilp_run_task(const struct spmilp_player *player, uint32_t task)
{
    const struct spmilp_task *row = &player->tables->tasks[task];
    const struct place place = {player, player->workspaces[row->core]};
    for (uint32_t i = 0; i < row->steps; i++) {
        run_step(&place, &player->tables->steps[row->first_step + i]);
    }
}
