/* Resize: along each axis an output is made of a few positions of the input, each with a weight. */

#include <math.h>
#include <string.h>

#include "spmilp_kernels.h"

#define MOST_TAPS 4U
#define PLACES 1024 /* in fixed point weights are multiples of 1 / PLACES */

struct taps {
    uint32_t count;
    int32_t positions[MOST_TAPS]; /* inside what there is of the input */
    float weights[MOST_TAPS];
    int is_outside; /* the output takes the extrapolation value */
};

static int has_coordinates(const struct spmilp_call *call, const char *name)
{
    return spmilp_is_text(call, SPMILP_ATTRIBUTE_COORDINATE_TRANSFORMATION_MODE, name);
}

/* Where an output lies between the positions of the input; ONNX, Resize. */
static float coordinate(const struct spmilp_call *call, uint32_t axis, float output)
{
    const float length = (float)call->inputs[0].shape[axis];
    const float size = (float)call->output.shape[axis];
    const float scale = spmilp_number_at(call, SPMILP_ATTRIBUTE_SCALES, axis);
    const int32_t *words = spmilp_fixed_words(call);
    if (words) {
        return (output * (float)words[2U * axis] + (float)words[2U * axis + 1U]) / (float)PLACES;
    }
    if (has_coordinates(call, "asymmetric")) {
        return output / scale;
    }
    if (has_coordinates(call, "align_corners")) {
        return size > 1.0F ? output * (length - 1.0F) / (size - 1.0F) : 0.0F;
    }
    if (has_coordinates(call, "pytorch_half_pixel") && !(size > 1.0F)) {
        return 0.0F;
    }
    if (has_coordinates(call, "tf_half_pixel_for_nn")) {
        return (output + 0.5F) / scale;
    }
    if (has_coordinates(call, "half_pixel_symmetric")) {
        const float adjustment = size / (scale * length), centre = length / 2.0F;
        return centre * (1.0F - adjustment) + (output + 0.5F) / scale - 0.5F;
    }
    if (has_coordinates(call, "tf_crop_and_resize")) {
        const uint32_t rank = call->output.rank;
        const float begin = spmilp_number_at(call, SPMILP_ATTRIBUTE_ROI, axis);
        const float end = spmilp_number_at(call, SPMILP_ATTRIBUTE_ROI, axis + rank);
        if (!(size > 1.0F)) {
            return 0.5F * (begin + end) * (length - 1.0F);
        }
        return begin * (length - 1.0F) + output * (end - begin) * (length - 1.0F) / (size - 1.0F);
    }
    return (output + 0.5F) / scale - 0.5F;
}

static float nearest(const struct spmilp_call *call, float source)
{
    if (spmilp_is_text(call, SPMILP_ATTRIBUTE_NEAREST_MODE, "floor")) {
        return floorf(source);
    }
    if (spmilp_is_text(call, SPMILP_ATTRIBUTE_NEAREST_MODE, "ceil")) {
        return ceilf(source);
    }
    if (spmilp_is_text(call, SPMILP_ATTRIBUTE_NEAREST_MODE, "round_prefer_ceil")) {
        return floorf(source + 0.5F);
    }
    return ceilf(source - 0.5F);
}

/* Keys' kernel (IEEE Trans. ASSP 29, 1981, equation 15) for a distance up to 1, and from 1 on. */
static float near_weight(float a, float x)
{
    return ((a + 2.0F) * x - (a + 3.0F)) * x * x + 1.0F;
}

static float far_weight(float a, float x)
{
    return ((a * x - 5.0F * a) * x + 8.0F * a) * x - 4.0F * a;
}

static void cubic(const struct spmilp_call *call, float source, int32_t length, struct taps *made)
{
    const float a = spmilp_number(call, SPMILP_ATTRIBUTE_CUBIC_COEFF_A);
    const float low = floorf(source), rest = source - low;
    float total = 0.0F;
    made->count = 4U;
    made->weights[0] = far_weight(a, 1.0F + rest);
    made->weights[1] = near_weight(a, rest);
    made->weights[2] = near_weight(a, 1.0F - rest);
    made->weights[3] = far_weight(a, 2.0F - rest);
    for (uint32_t i = 0; i < 4U; i++) {
        made->positions[i] = (int32_t)low - 1 + (int32_t)i;
    }
    if (!spmilp_integer(call, SPMILP_ATTRIBUTE_EXCLUDE_OUTSIDE, 0U)) {
        return;
    }
    for (uint32_t i = 0; i < 4U; i++) {
        if (made->positions[i] < 0 || made->positions[i] >= length) {
            made->weights[i] = 0.0F;
        }
        total += made->weights[i];
    }
    for (uint32_t i = 0; i < 4U && (total > 0.0F || total < 0.0F); i++) {
        made->weights[i] /= total;
    }
}

static void linear(float source, int32_t length, struct taps *made)
{
    const float last = (float)(length - 1);
    const float inside = source < 0.0F ? 0.0F : source > last ? last : source;
    const float low = floorf(inside);
    made->count = 2U;
    made->positions[0] = (int32_t)low;
    made->positions[1] = (int32_t)low + 1;
    made->weights[1] = inside - low;
    made->weights[0] = 1.0F - made->weights[1];
}

static struct taps taps_of(const struct spmilp_call *call, uint32_t axis, int32_t output)
{
    const int32_t *interval = &call->inputs[0].box[2U * axis];
    const int32_t length = call->inputs[0].shape[axis], size = call->output.shape[axis];
    const int crops = has_coordinates(call, "tf_crop_and_resize");
    const float scale = spmilp_number_at(call, SPMILP_ATTRIBUTE_SCALES, axis);
    struct taps made = {1U, {output}, {1.0F}, 0};
    if (crops || length != size || scale < 1.0F || scale > 1.0F) {
        const float source = coordinate(call, axis, (float)output);
        made.is_outside = crops && (source < 0.0F || source > (float)(length - 1));
        if (spmilp_is_text(call, SPMILP_ATTRIBUTE_MODE, "nearest")) {
            made.positions[0] = (int32_t)nearest(call, source);
        } else if (spmilp_is_text(call, SPMILP_ATTRIBUTE_MODE, "linear")) {
            linear(source, length, &made);
        } else {
            cubic(call, source, length, &made);
        }
    }
    for (uint32_t i = 0; call->inputs[0].data && i < made.count; i++) {
        const int32_t last = interval[0] + interval[1] - 1, position = made.positions[i];
        made.positions[i] = position < interval[0] ? interval[0] : position > last ? last : position;
    }
    return made;
}

/* The sum along the first `axes` axes; `own` has the positions along the others. */
static float interpolated(const struct spmilp_call *call, const struct taps *taps, uint32_t axes,
                          int32_t *own)
{
    float total = 0.0F;
    if (axes == 0U) {
        return spmilp_real(call, &call->inputs[0], own);
    }
    const struct taps *along = &taps[axes - 1U];
    for (uint32_t i = 0; i < along->count; i++) {
        own[axes - 1U] = along->positions[i];
        const float value = interpolated(call, taps, axes - 1U, own);
        if (along->count == 1U) {
            return value;
        }
        total += value * along->weights[i];
    }
    return total;
}

/* The same of integers as they are, times PLACES for each axis. */
static int64_t interpolated_integers(const struct spmilp_call *call, const struct taps *taps,
                                     uint32_t axes, int32_t *own)
{
    int64_t total = 0;
    if (axes == 0U) {
        return spmilp_load_integer(&call->inputs[0], spmilp_place(&call->inputs[0], own));
    }
    const struct taps *along = &taps[axes - 1U];
    for (uint32_t i = 0; i < along->count; i++) {
        own[axes - 1U] = along->positions[i];
        total += interpolated_integers(call, taps, axes - 1U, own) *
                 (int64_t)(along->weights[i] * (float)PLACES);
    }
    return total;
}

/* Divided by PLACES for each axis, a half rounded away from zero. */
static void put_fixed(const struct spmilp_call *call, size_t index, int64_t total)
{
    const int64_t one = INT64_C(1) << (10U * call->output.rank);
    spmilp_store_integer(&call->output, index, (total + (total < 0 ? -one : one) / 2) / one);
}

void spmilp_resize(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0];
    const uint32_t rank = call->output.rank;
    const int copies = spmilp_is_text(call, SPMILP_ATTRIBUTE_MODE, "nearest");
    const size_t count = spmilp_count(&call->output), item = spmilp_item(call->output.type);
    struct taps taps[SPMILP_MAX_RANK + 1U];
    int32_t at[SPMILP_MAX_RANK + 1U] = {0}, own[SPMILP_MAX_RANK + 1U] = {0};
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(&call->output, at)) {
        int is_outside = !data->data;
        for (uint32_t axis = 0; axis < rank; axis++) {
            taps[axis] = taps_of(call, axis, at[axis]);
            own[axis] = taps[axis].positions[0];
            is_outside = is_outside || taps[axis].is_outside;
        }
        if (is_outside) {
            spmilp_put(call, i, at, spmilp_number(call, SPMILP_ATTRIBUTE_EXTRAPOLATION_VALUE));
        } else if (spmilp_fixed_words(call)) {
            put_fixed(call, i, interpolated_integers(call, taps, rank, own));
        } else if (copies && !call->step->quantised) {
            memcpy(call->output.data + i * item, data->data + spmilp_place(data, own) * item, item);
        } else {
            spmilp_put(call, i, at, interpolated(call, taps, rank, own));
        }
    }
}
