/* Operators that move elements: for each of the output, which of the input it is. */

#include <string.h>

#include "spmilp_kernels.h"

/* Store an element of an input, of which `own` is the position, at `index` of the output. */
static void take(const struct spmilp_call *call, const struct spmilp_box *from,
                 const int32_t *own, size_t index, const int32_t *at)
{
    if (call->step->quantised) {
        spmilp_put(call, index, at, spmilp_real(call, from, own));
        return;
    }
    const size_t item = spmilp_item(call->output.type);
    memcpy(call->output.data + index * item, from->data + spmilp_place(from, own) * item, item);
}

/* Finds the position in input 0 for one of the output; 0 if there is none. */
typedef int source(const struct spmilp_call *call, const int32_t *at, int32_t *own);

static void take_all(const struct spmilp_call *call, source *find, float otherwise)
{
    const size_t count = spmilp_count(&call->output);
    int32_t at[SPMILP_MAX_RANK + 1U] = {0}, own[SPMILP_MAX_RANK + 1U] = {0};
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        if (find(call, at, own)) {
            take(call, &call->inputs[0], own, i, at);
        } else {
            spmilp_put(call, i, at, otherwise);
        }
        spmilp_next(&call->output, at);
    }
}

static int same_flat_position(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const struct spmilp_box *data = &call->inputs[0];
    uint64_t flat = 0U;
    for (uint32_t axis = 0; axis < call->output.rank; axis++) {
        flat = flat * (uint64_t)call->output.shape[axis] + (uint64_t)at[axis];
    }
    for (uint32_t axis = data->rank; axis > 0U; axis--) {
        const uint64_t length = (uint64_t)data->shape[axis - 1U];
        own[axis - 1U] = (int32_t)(flat % length);
        flat /= length;
    }
    return 1;
}

static int permuted(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    for (uint32_t axis = 0; axis < call->output.rank; axis++) {
        own[spmilp_integer(call, SPMILP_ATTRIBUTE_PERM, axis)] = at[axis];
    }
    return 1;
}

/* Expand, and Tile: positions begin again after the input's length. */
static int repeated(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const struct spmilp_box *data = &call->inputs[0];
    for (uint32_t axis = 0; axis < data->rank; axis++) {
        own[axis] = at[call->output.rank - data->rank + axis] % data->shape[axis];
    }
    return 1;
}

static int32_t between(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Starts as in ONNX: negative ones count from the end, those outside are clamped. */
static int sliced(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const struct spmilp_box *data = &call->inputs[0];
    const struct spmilp_attribute *axes = spmilp_attribute(call, SPMILP_ATTRIBUTE_AXES);
    for (uint32_t axis = 0; axis < data->rank; axis++) {
        own[axis] = at[axis];
    }
    for (uint32_t i = 0; axes && i < axes->count; i++) {
        const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXES, i);
        const int32_t step = spmilp_integer(call, SPMILP_ATTRIBUTE_STEPS, i);
        const int32_t length = data->shape[axis];
        int32_t start = spmilp_integer(call, SPMILP_ATTRIBUTE_STARTS, i);
        start = start < 0 ? start + length : start;
        start = between(start, step > 0 ? 0 : -1, step > 0 ? length : length - 1);
        own[axis] = start + at[axis] * step;
    }
    return 1;
}

static int32_t modulo(int32_t value, int32_t length)
{
    const int32_t rest = value % length;
    return rest < 0 ? rest + length : rest;
}

static int padded(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const struct spmilp_box *output = &call->output;
    const int edge = spmilp_is_text(call, SPMILP_ATTRIBUTE_MODE, "edge");
    const int wrap = spmilp_is_text(call, SPMILP_ATTRIBUTE_MODE, "wrap");
    const int reflect = spmilp_is_text(call, SPMILP_ATTRIBUTE_MODE, "reflect");
    for (uint32_t axis = 0; axis < output->rank; axis++) {
        const int32_t before = spmilp_integer(call, SPMILP_ATTRIBUTE_PADS, axis);
        const int32_t behind = spmilp_integer(call, SPMILP_ATTRIBUTE_PADS, axis + output->rank);
        const int32_t length = output->shape[axis] - before - behind, last = length - 1;
        int32_t place = at[axis] - before;
        if (edge) {
            place = between(place, 0, last);
        } else if (wrap) {
            place = modulo(place, length);
        } else if (reflect) {
            place = place < 0 ? -place : place;
            place = last - (place > last ? place - last : last - place);
        } else if (place < 0 || place >= length) {
            return 0;
        }
        own[axis] = place;
    }
    return 1;
}

static int from_channels(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const int32_t block = spmilp_integer(call, SPMILP_ATTRIBUTE_BLOCKSIZE, 0U);
    const int32_t inner = at[2] % block * block + at[3] % block;
    own[0] = at[0];
    own[1] = at[1] * block * block + inner;
    if (spmilp_is_text(call, SPMILP_ATTRIBUTE_MODE, "DCR")) {
        own[1] = inner * (call->inputs[0].shape[1] / (block * block)) + at[1];
    }
    own[2] = at[2] / block;
    own[3] = at[3] / block;
    return 1;
}

static int into_channels(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const int32_t block = spmilp_integer(call, SPMILP_ATTRIBUTE_BLOCKSIZE, 0U);
    const int32_t channels = call->inputs[0].shape[1], inner = at[1] / channels;
    own[0] = at[0];
    own[1] = at[1] % channels;
    own[2] = at[2] * block + inner / block;
    own[3] = at[3] * block + inner % block;
    return 1;
}

static int in_triangle(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const uint32_t rank = call->output.rank;
    const int32_t k = spmilp_integer(call, SPMILP_ATTRIBUTE_K, 0U);
    const int32_t right = at[rank - 1U] - at[rank - 2U];
    memcpy(own, at, rank * sizeof *own);
    return spmilp_integer(call, SPMILP_ATTRIBUTE_UPPER, 0U) ? right >= k : right <= k;
}

/* The index at a position of input 1, for an axis of input 0. */
static int32_t index_at(const struct spmilp_call *call, const int32_t *own, uint32_t axis)
{
    const struct spmilp_box *indices = &call->inputs[1];
    const int32_t length = call->inputs[0].shape[axis];
    int64_t index = spmilp_load_integer(indices, spmilp_place(indices, own));
    index = index < 0 ? index + length : index;
    /* What is outside stays inside the table: indices are data, and no reason to read elsewhere. */
    return index < 0 ? 0 : index < length ? (int32_t)index : length - 1;
}

/* The index of a Gather for the position `at` of the output; indices have `taken` axes there. */
static int32_t chosen(const struct spmilp_call *call, const int32_t *at, uint32_t axis,
                      uint32_t taken)
{
    if (spmilp_attribute(call, SPMILP_ATTRIBUTE_INDICES)) {
        uint32_t flat = 0U;
        for (uint32_t i = 0; i < taken; i++) {
            flat = flat * (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_INDICES_SHAPE, i) +
                   (uint32_t)at[axis + i];
        }
        return spmilp_integer(call, SPMILP_ATTRIBUTE_INDICES, flat);
    }
    return index_at(call, &at[axis], axis);
}

static int gathered(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const uint32_t rank = call->inputs[0].rank;
    const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXIS, 0U);
    const uint32_t taken = call->output.rank + 1U - rank;
    for (uint32_t i = 0; i < rank; i++) {
        own[i] = i < axis ? at[i] : i > axis ? at[i + taken - 1U] : 0;
    }
    own[axis] = chosen(call, at, axis, taken);
    return 1;
}

static int gathered_along(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXIS, 0U);
    memcpy(own, at, call->output.rank * sizeof *own);
    own[axis] = index_at(call, at, axis);
    return 1;
}

/* The last axis of the indices has a position along some axes behind those of the batch. */
static int gathered_many(const struct spmilp_call *call, const int32_t *at, int32_t *own)
{
    const struct spmilp_box *indices = &call->inputs[1];
    const uint32_t batch = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_BATCH_DIMS, 0U);
    const uint32_t leading = indices->rank - 1U, indexed = (uint32_t)indices->shape[leading];
    int32_t cell[SPMILP_MAX_RANK + 1U] = {0};
    memcpy(cell, at, leading * sizeof *cell);
    for (uint32_t axis = 0; axis < call->inputs[0].rank; axis++) {
        if (axis >= batch && axis < batch + indexed) {
            cell[leading] = (int32_t)(axis - batch);
            own[axis] = index_at(call, cell, axis);
        } else {
            own[axis] = axis < batch ? at[axis] : at[leading + axis - batch - indexed];
        }
    }
    return 1;
}

void spmilp_reshape(const struct spmilp_call *call)
{
    take_all(call, same_flat_position, 0.0F);
}

void spmilp_transpose(const struct spmilp_call *call)
{
    take_all(call, permuted, 0.0F);
}

void spmilp_repeat(const struct spmilp_call *call)
{
    take_all(call, repeated, 0.0F);
}

void spmilp_slice(const struct spmilp_call *call)
{
    take_all(call, sliced, 0.0F);
}

void spmilp_pad(const struct spmilp_call *call)
{
    take_all(call, padded, spmilp_number(call, SPMILP_ATTRIBUTE_VALUE));
}

void spmilp_depth_to_space(const struct spmilp_call *call)
{
    take_all(call, from_channels, 0.0F);
}

void spmilp_space_to_depth(const struct spmilp_call *call)
{
    take_all(call, into_channels, 0.0F);
}

void spmilp_trilu(const struct spmilp_call *call)
{
    take_all(call, in_triangle, 0.0F);
}

void spmilp_gather(const struct spmilp_call *call)
{
    take_all(call, gathered, 0.0F);
}

void spmilp_gather_elements(const struct spmilp_call *call)
{
    take_all(call, gathered_along, 0.0F);
}

void spmilp_gather_nd(const struct spmilp_call *call)
{
    take_all(call, gathered_many, 0.0F);
}

/* What is read of the inputs lies one behind the other along an axis; of some nothing is read. */
void spmilp_concat(const struct spmilp_call *call)
{
    const uint32_t axis = (uint32_t)spmilp_integer(call, SPMILP_ATTRIBUTE_AXIS, 0U);
    const size_t count = spmilp_count(&call->output);
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK];
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        const struct spmilp_box *from = call->inputs;
        int32_t place = at[axis] - call->output.box[2U * axis];
        while (!from->data || place >= from->box[2U * axis + 1U]) {
            place -= from->data ? from->box[2U * axis + 1U] : 0;
            from++;
        }
        memcpy(own, at, call->output.rank * sizeof *own);
        own[axis] = from->box[2U * axis] + place;
        take(call, from, own, i, at);
        spmilp_next(&call->output, at);
    }
}
