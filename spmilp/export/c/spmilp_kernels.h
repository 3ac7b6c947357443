#ifndef SPMILP_KERNELS_H
#define SPMILP_KERNELS_H

/* What a kernel is given, and how it reads and writes elements. */

#include <stddef.h>
#include <stdint.h>

#include "spmilp_types.h"

#define SPMILP_MAX_RANK 8U
#ifndef SPMILP_MAX_INPUTS /* player.mk says what the plan needs */
#define SPMILP_MAX_INPUTS 32U
#endif

/* An operator; reals are bits of float32. */
struct spmilp_step {
    uint32_t kind;       /* SPMILP_OPERATOR_... */
    uint32_t inputs;     /* how many */
    uint32_t attributes; /* how many */
    uint32_t quantised;  /* 1 on integers that stand for reals, or SPMILP_ROUNDS_... */
    uint32_t limits;     /* SPMILP_LIMIT_LOW and _HIGH of real results, before they are rounded */
    int32_t low, high;
    uint32_t part;       /* SPMILP_PART_... of the reduction */
};

/* An attribute, normalised: no defaults to know. */
struct spmilp_attribute {
    uint32_t name;  /* SPMILP_ATTRIBUTE_... */
    uint32_t type;  /* SPMILP_VALUE_... */
    uint32_t count; /* of words; 1 for a text */
    uint32_t first; /* position in words; in texts for a text */
};

/* A quantisation: real = scale * (integer - zero point). */
struct spmilp_scale {
    uint32_t type;        /* of the integers, SPMILP_TYPE_... */
    int32_t axis;         /* along which scales differ; -1 for one scale */
    uint32_t scales;      /* position in words, bits of float32 */
    uint32_t zeros;       /* how many zero points */
    uint32_t zero_points; /* position in words */
};

/* A box of a tensor, packed in row-major order. Boxes are pairs of first element and length. */
struct spmilp_box {
    uint8_t *data;                    /* null if nothing of it is read */
    uint32_t type;                    /* SPMILP_TYPE_... */
    uint32_t rank;
    const int32_t *box;
    const int32_t *shape;             /* of the whole tensor; null for partial sums */
    const struct spmilp_scale *scale; /* null if elements stand for themselves */
};

struct spmilp_call {
    const struct spmilp_step *step;
    const struct spmilp_attribute *attributes; /* of the step */
    const int32_t *words;                      /* what scales and attributes point into */
    const uint8_t *texts;
    struct spmilp_box inputs[SPMILP_MAX_INPUTS];
    struct spmilp_box output;
    struct spmilp_box previous; /* sums of the parts before; without data for the first part */
};

typedef void spmilp_kernel(const struct spmilp_call *call);

/* The kernel of an operator type; null if there is none. */
spmilp_kernel *spmilp_kernel_of(uint32_t kind);

/* Boxes: `at` has a position along each axis of the whole tensor. */
uint32_t spmilp_item(uint32_t type);
size_t spmilp_count(const struct spmilp_box *operand);
void spmilp_first(const struct spmilp_box *operand, int32_t *at);
void spmilp_next(const struct spmilp_box *operand, int32_t *at);
size_t spmilp_place(const struct spmilp_box *operand, const int32_t *at);
/* The position of an input that broadcasts to the output, for one of the output. */
void spmilp_broadcast(const struct spmilp_box *operand, const int32_t *at, uint32_t rank,
                      int32_t *own);

/* Elements: reals of integers that have a scale, and results that are rounded to integers. */
int spmilp_is_integer(uint32_t type);
int64_t spmilp_load_integer(const struct spmilp_box *operand, size_t index);
float spmilp_load_real(const struct spmilp_box *operand, size_t index);
float spmilp_real(const struct spmilp_call *call, const struct spmilp_box *operand,
                  const int32_t *at);
void spmilp_store_integer(const struct spmilp_box *operand, size_t index, int64_t value);
void spmilp_store_real(const struct spmilp_box *operand, size_t index, float value);
void spmilp_put(const struct spmilp_call *call, size_t index, const int32_t *at, float value);
float spmilp_scale_at(const int32_t *words, const struct spmilp_scale *scale,
                      int32_t position);
int32_t spmilp_zero_at(const int32_t *words, const struct spmilp_scale *scale,
                       int32_t position);
int64_t spmilp_saturate(float rounded, int32_t zero, uint32_t type);

/* What a step's field quantised is where the zero point is added before the result is rounded, and
 * where a half is rounded away from zero. */
#define SPMILP_ROUNDS_WITH_ZERO 2U
#define SPMILP_ROUNDS_AWAY 3U
float spmilp_limit(const struct spmilp_step *step, float value, float unit);

/* Attributes; `position` counts the words of one. */
const struct spmilp_attribute *spmilp_attribute(const struct spmilp_call *call, uint32_t name);
int32_t spmilp_integer(const struct spmilp_call *call, uint32_t name, uint32_t position);
float spmilp_number(const struct spmilp_call *call, uint32_t name);
float spmilp_number_at(const struct spmilp_call *call, uint32_t name, uint32_t position);
int spmilp_is_text(const struct spmilp_call *call, uint32_t name, const char *text);

/* The sum of `count` terms in the order of NumPy: in pairs for neighbours in memory. */
typedef float spmilp_term(const void *context, uint32_t number);
float spmilp_sum(spmilp_term *term, const void *context, uint32_t count, int are_neighbours);

/* Sums of products, whole or a part of them. */
struct spmilp_total {
    uint32_t integer; /* wraps around, as int32 */
    float real;
};
struct spmilp_factor {
    const struct spmilp_box *operand;
    size_t index; /* of the first element */
    size_t step;  /* elements to the next */
    int32_t channel; /* position along the axis of its scales */
};
void spmilp_add_products(const struct spmilp_call *call, const struct spmilp_factor *data,
                         const struct spmilp_factor *weight, uint32_t count,
                         struct spmilp_total *total);
void spmilp_finish(const struct spmilp_call *call, size_t index, const int32_t *at,
                   int32_t weight_channel, struct spmilp_total total);

/* Operators in fixed point. Words are null, and nothing is done, where a step is none; a value is
 * stored between its limits; a sum of products is scaled by the two words of its channel. */
const int32_t *spmilp_fixed_words(const struct spmilp_call *call);
const int32_t *spmilp_factor_words(const struct spmilp_call *call, int32_t channel);
int spmilp_fixed(const struct spmilp_call *call);
void spmilp_put_fixed(const struct spmilp_call *call, size_t index, int64_t value);
void spmilp_requantise(const struct spmilp_call *call, size_t index, int32_t channel, int64_t sum);

/* Kernels. */
spmilp_kernel spmilp_average_pool, spmilp_batch_normalisation, spmilp_binary, spmilp_concat;
spmilp_kernel spmilp_conv, spmilp_conv_transpose, spmilp_cumulative_sum;
spmilp_kernel spmilp_depth_to_space, spmilp_einsum, spmilp_gather, spmilp_gather_elements;
spmilp_kernel spmilp_gather_nd, spmilp_gemm, spmilp_global_pool, spmilp_group_normalisation;
spmilp_kernel spmilp_layer_normalisation, spmilp_lp_pool, spmilp_lrn, spmilp_matmul;
spmilp_kernel spmilp_max_pool, spmilp_pad, spmilp_position_of_extreme, spmilp_reduce;
spmilp_kernel spmilp_repeat, spmilp_reshape, spmilp_resize;
spmilp_kernel spmilp_scatter, spmilp_scatter_elements, spmilp_slice, spmilp_softmax, spmilp_space_to_depth;
spmilp_kernel spmilp_top, spmilp_transpose, spmilp_trilu, spmilp_unary, spmilp_variadic;
spmilp_kernel spmilp_where;

#endif
