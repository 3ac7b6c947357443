/* Pooling. */

#include <math.h>

#include "spmilp_windows.h"

/* How many positions of a window count along one axis, with or without the padding. */
static int32_t positions_that_count(const struct spmilp_window *window, int32_t output, int padding)
{
    const int32_t low = padding ? -window->pad : 0;
    const int32_t high = padding ? window->whole + window->pad_end : window->whole;
    int32_t count = 0;
    for (int32_t k = 0; k < window->kernel; k++) {
        const int32_t position = output * window->stride - window->pad + k * window->dilation;
        count += position >= low && position < high;
    }
    return count;
}

/* The position of a place of the plane of the output's batch and channel. */
static void locate(const struct spmilp_call *call, const struct spmilp_windows *windows,
                   const int32_t *at, int64_t place, int32_t *own)
{
    const struct spmilp_box *data = &call->inputs[0];
    own[0] = at[0];
    own[1] = at[1];
    for (uint32_t axis = data->rank; axis > 2U; axis--) {
        const struct spmilp_window *window =
            &windows->axes[SPMILP_WINDOW_AXES + axis - 1U - data->rank];
        own[axis - 1U] = window->first + (int32_t)(place % window->length);
        place /= window->length;
    }
}

/* The real at such a place. */
static float under(const struct spmilp_call *call, const struct spmilp_windows *windows,
                   const int32_t *at, int64_t place)
{
    int32_t own[SPMILP_MAX_RANK];
    locate(call, windows, at, place, own);
    return spmilp_real(call, &call->inputs[0], own);
}

/* Combine the values under each window. */
typedef float combine(float total, float value, int32_t p);
typedef float complete(const struct spmilp_call *call, const struct spmilp_windows *windows,
                       const int32_t *spatial, float total);

static void pool(const struct spmilp_call *call, float start, combine *add, complete *finish)
{
    const struct spmilp_windows windows = spmilp_windows_of(call, &call->inputs[0]);
    const size_t count = spmilp_count(&call->output);
    const int32_t p = spmilp_integer(call, SPMILP_ATTRIBUTE_P, 0U);
    int32_t at[SPMILP_MAX_RANK];
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        int32_t spatial[SPMILP_WINDOW_AXES], k[SPMILP_WINDOW_AXES] = {0};
        float total = start;
        spmilp_spatial(call, at, spatial);
        do {
            const int64_t place = spmilp_under_window(&windows, spatial, k);
            if (place >= 0) {
                total = add(total, under(call, &windows, at, place), p);
            }
        } while (spmilp_next_position(&windows, k));
        spmilp_put(call, i, at, finish(call, &windows, spatial, total));
        spmilp_next(&call->output, at);
    }
}

static float larger(float total, float value, int32_t p)
{
    (void)p;
    return value > total || isnan(value) ? value : total;
}

static float plus(float total, float value, int32_t p)
{
    (void)p;
    return total + value;
}

static float plus_power(float total, float value, int32_t p)
{
    return total + powf(fabsf(value), (float)p);
}

static float as_it_is(const struct spmilp_call *call, const struct spmilp_windows *windows,
                      const int32_t *spatial, float total)
{
    (void)call;
    (void)windows;
    (void)spatial;
    return total;
}

/* Divided axis by axis, as the value replay does. */
static float average(const struct spmilp_call *call, const struct spmilp_windows *windows,
                     const int32_t *spatial, float total)
{
    const int padding = spmilp_integer(call, SPMILP_ATTRIBUTE_COUNT_INCLUDE_PAD, 0U) != 0;
    for (uint32_t i = 0; i < SPMILP_WINDOW_AXES; i++) {
        total /= (float)positions_that_count(&windows->axes[i], spatial[i], padding);
    }
    return total;
}

static float root(const struct spmilp_call *call, const struct spmilp_windows *windows,
                  const int32_t *spatial, float total)
{
    (void)windows;
    (void)spatial;
    return powf(total, (float)(1.0 / (double)spmilp_integer(call, SPMILP_ATTRIBUTE_P, 0U)));
}

void spmilp_max_pool(const struct spmilp_call *call)
{
    pool(call, -INFINITY, larger, as_it_is);
}

/* Averages of integers as they are, a half rounded away from zero; padding does not count. */
static void average_integers(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0];
    const struct spmilp_windows windows = spmilp_windows_of(call, data);
    const size_t count = spmilp_count(&call->output);
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK];
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        int32_t spatial[SPMILP_WINDOW_AXES], k[SPMILP_WINDOW_AXES] = {0};
        int64_t total = 0, under_it = 0;
        spmilp_spatial(call, at, spatial);
        do {
            const int64_t place = spmilp_under_window(&windows, spatial, k);
            if (place >= 0) {
                locate(call, &windows, at, place, own);
                total += spmilp_load_integer(data, spmilp_place(data, own));
                under_it++;
            }
        } while (spmilp_next_position(&windows, k));
        total += total < 0 ? -(under_it / 2) : under_it / 2;
        spmilp_put_fixed(call, i, total / under_it);
        spmilp_next(&call->output, at);
    }
}

void spmilp_average_pool(const struct spmilp_call *call)
{
    if (spmilp_fixed_words(call)) {
        average_integers(call);
    } else {
        pool(call, 0.0F, plus, average);
    }
}

void spmilp_lp_pool(const struct spmilp_call *call)
{
    pool(call, 0.0F, plus_power, root);
}

struct plane {
    const struct spmilp_call *call;
    int32_t at[SPMILP_MAX_RANK]; /* the first element of the plane */
};

static float in_plane(const void *context, uint32_t number)
{
    const struct plane *plane = context;
    const struct spmilp_box *data = &plane->call->inputs[0];
    int32_t at[SPMILP_MAX_RANK];
    at[0] = plane->at[0];
    at[1] = plane->at[1];
    for (uint32_t axis = data->rank; axis > 2U; axis--) {
        const uint32_t length = (uint32_t)data->box[2U * axis - 1U];
        at[axis - 1U] = (int32_t)(number % length) + data->box[2U * (axis - 1U)];
        number /= length;
    }
    return spmilp_real(plane->call, data, at);
}

void spmilp_global_pool(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0];
    const size_t count = spmilp_count(&call->output);
    const uint32_t size =
        (uint32_t)(spmilp_count(data) / ((size_t)data->box[1] * (size_t)data->box[3]));
    struct plane plane = {.call = call};
    spmilp_first(&call->output, plane.at);
    for (size_t i = 0; i < count; i++) {
        float result = in_plane(&plane, 0U);
        if (call->step->kind == SPMILP_OPERATOR_GLOBALAVERAGEPOOL) {
            result = spmilp_sum(in_plane, &plane, size, 1) / (float)size;
        } else {
            for (uint32_t number = 1U; number < size; number++) {
                result = larger(result, in_plane(&plane, number), 0);
            }
        }
        spmilp_put(call, i, plane.at, result);
        spmilp_next(&call->output, plane.at);
    }
}
