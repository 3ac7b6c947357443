/* Element-wise operators. Functions such as exp are computed in double and rounded once; all other
   arithmetic on reals is float, in the order of the value replay. */

#include <math.h>

#include "spmilp_kernels.h"

static float larger(float a, float b)
{
    return a > b || isnan(a) ? a : b;
}

static float smaller(float a, float b)
{
    return a < b || isnan(a) ? a : b;
}

static float sigmoid(float x)
{
    return 1.0F / (1.0F + (float)exp(-(double)x));
}

static float softplus(float x)
{
    return larger(x, 0.0F) + (float)log1p(exp(-fabs((double)x)));
}

/* exp(x) - 1 of what is below 0. */
static float exp_below(float x)
{
    return (float)expm1((double)smaller(x, 0.0F));
}

static float gelu(const struct spmilp_call *call, float x)
{
    if (spmilp_is_text(call, SPMILP_ATTRIBUTE_APPROXIMATE, "tanh")) {
        const float inner = 0.7978845608028654F * (x + 0.044715F * x * x * x);
        return 0.5F * x * (1.0F + (float)tanh((double)inner));
    }
    return 0.5F * x * (1.0F + (float)erf((double)(x / 1.4142135623730951F)));
}

static float clip(const struct spmilp_call *call, float x)
{
    if (spmilp_attribute(call, SPMILP_ATTRIBUTE_MIN)) {
        x = larger(x, spmilp_number(call, SPMILP_ATTRIBUTE_MIN));
    }
    if (spmilp_attribute(call, SPMILP_ATTRIBUTE_MAX)) {
        x = smaller(x, spmilp_number(call, SPMILP_ATTRIBUTE_MAX));
    }
    return x;
}

static float sign(float x)
{
    return isnan(x) ? x : (float)((x > 0.0F) - (x < 0.0F));
}

static float parametric(const struct spmilp_call *call, float x)
{
    const float alpha = spmilp_number(call, SPMILP_ATTRIBUTE_ALPHA);
    switch (call->step->kind) {
    case SPMILP_OPERATOR_CELU:
        return larger(x, 0.0F) + smaller(0.0F, alpha * exp_below(x / alpha));
    case SPMILP_OPERATOR_ELU:
        return x > 0.0F ? x : alpha * exp_below(x);
    case SPMILP_OPERATOR_HARDSIGMOID:
        return smaller(larger(alpha * x + spmilp_number(call, SPMILP_ATTRIBUTE_BETA), 0.0F), 1.0F);
    case SPMILP_OPERATOR_LEAKYRELU:
        return x >= 0.0F ? x : alpha * x;
    case SPMILP_OPERATOR_SELU:
        return spmilp_number(call, SPMILP_ATTRIBUTE_GAMMA) * (x > 0.0F ? x : alpha * exp_below(x));
    case SPMILP_OPERATOR_SWISH:
        return x * sigmoid(alpha * x);
    default: /* ThresholdedRelu */
        return x > alpha ? x : 0.0F;
    }
}

static float unary(const struct spmilp_call *call, float x)
{
    switch (call->step->kind) {
    case SPMILP_OPERATOR_ABS:
        return fabsf(x);
    case SPMILP_OPERATOR_CAST:
    case SPMILP_OPERATOR_DEQUANTIZELINEAR:
    case SPMILP_OPERATOR_IDENTITY:
    case SPMILP_OPERATOR_QUANTIZELINEAR:
        return x;
    case SPMILP_OPERATOR_CEIL:
        return ceilf(x);
    case SPMILP_OPERATOR_CLIP:
        return clip(call, x);
    case SPMILP_OPERATOR_COS:
        return (float)cos((double)x);
    case SPMILP_OPERATOR_ERF:
        return (float)erf((double)x);
    case SPMILP_OPERATOR_EXP:
        return (float)exp((double)x);
    case SPMILP_OPERATOR_FLOOR:
        return floorf(x);
    case SPMILP_OPERATOR_GELU:
        return gelu(call, x);
    case SPMILP_OPERATOR_HARDSWISH:
        return x * smaller(larger(x / 6.0F + 0.5F, 0.0F), 1.0F);
    case SPMILP_OPERATOR_ISINF:
        return isinf(x) ? 1.0F : 0.0F;
    case SPMILP_OPERATOR_ISNAN:
        return isnan(x) ? 1.0F : 0.0F;
    case SPMILP_OPERATOR_LOG:
        return (float)log((double)x);
    case SPMILP_OPERATOR_MISH:
        return x * (float)tanh((double)softplus(x));
    case SPMILP_OPERATOR_NEG:
        return -x;
    case SPMILP_OPERATOR_NOT:
        return x > 0.0F || x < 0.0F ? 0.0F : 1.0F;
    case SPMILP_OPERATOR_RECIPROCAL:
        return 1.0F / x;
    case SPMILP_OPERATOR_RELU:
        return larger(x, 0.0F);
    case SPMILP_OPERATOR_ROUND:
        return rintf(x);
    case SPMILP_OPERATOR_SIGMOID:
        return sigmoid(x);
    case SPMILP_OPERATOR_SIGN:
        return sign(x);
    case SPMILP_OPERATOR_SIN:
        return (float)sin((double)x);
    case SPMILP_OPERATOR_SOFTPLUS:
        return softplus(x);
    case SPMILP_OPERATOR_SOFTSIGN:
        return x / (1.0F + fabsf(x));
    case SPMILP_OPERATOR_SQRT:
        return sqrtf(x);
    case SPMILP_OPERATOR_TAN:
        return (float)tan((double)x);
    case SPMILP_OPERATOR_TANH:
        return (float)tanh((double)x);
    default:
        return parametric(call, x);
    }
}

/* The remainder with the sign of the divisor; of the dividend for fmod. */
static float remainder_of(const struct spmilp_call *call, float a, float b)
{
    const float rest = fmodf(a, b);
    if (spmilp_integer(call, SPMILP_ATTRIBUTE_FMOD, 0U)) {
        return rest;
    }
    const int is_zero = rest >= 0.0F && rest <= 0.0F;
    return is_zero ? copysignf(0.0F, b) : (rest < 0.0F) != (b < 0.0F) ? rest + b : rest;
}

static int64_t integer_remainder(const struct spmilp_call *call, int64_t a, int64_t b)
{
    const int64_t rest = b == 0 || b == -1 ? 0 : a % b;
    const int follows = !spmilp_integer(call, SPMILP_ATTRIBUTE_FMOD, 0U);
    return follows && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static float binary(const struct spmilp_call *call, float a, float b)
{
    switch (call->step->kind) {
    case SPMILP_OPERATOR_ADD:
    case SPMILP_OPERATOR_MEAN:
    case SPMILP_OPERATOR_SUM:
        return a + b;
    case SPMILP_OPERATOR_DIV:
        return a / b;
    case SPMILP_OPERATOR_EQUAL:
        return a >= b && a <= b ? 1.0F : 0.0F;
    case SPMILP_OPERATOR_GREATER:
        return a > b ? 1.0F : 0.0F;
    case SPMILP_OPERATOR_GREATEROREQUAL:
        return a >= b ? 1.0F : 0.0F;
    case SPMILP_OPERATOR_LESS:
        return a < b ? 1.0F : 0.0F;
    case SPMILP_OPERATOR_LESSOREQUAL:
        return a <= b ? 1.0F : 0.0F;
    case SPMILP_OPERATOR_MAX:
        return larger(a, b);
    case SPMILP_OPERATOR_MIN:
        return smaller(a, b);
    case SPMILP_OPERATOR_MOD:
        return remainder_of(call, a, b);
    case SPMILP_OPERATOR_MUL:
        return a * b;
    case SPMILP_OPERATOR_PRELU:
        return a >= 0.0F ? a : b * a;
    case SPMILP_OPERATOR_SUB:
        return a - b;
    default: /* Pow */
        return (float)pow((double)a, (double)b);
    }
}

static int64_t clip_integer(const struct spmilp_call *call, int64_t x)
{
    if (spmilp_attribute(call, SPMILP_ATTRIBUTE_MIN)) {
        const int64_t low = (int64_t)spmilp_number(call, SPMILP_ATTRIBUTE_MIN);
        x = x < low ? low : x;
    }
    if (spmilp_attribute(call, SPMILP_ATTRIBUTE_MAX)) {
        const int64_t high = (int64_t)spmilp_number(call, SPMILP_ATTRIBUTE_MAX);
        x = x > high ? high : x;
    }
    return x;
}

/* Integers that stand for themselves, and booleans. Sums wrap around. */
static int64_t unary_integer(const struct spmilp_call *call, int64_t x)
{
    switch (call->step->kind) {
    case SPMILP_OPERATOR_ABS:
        return x < 0 ? (int64_t)(0U - (uint64_t)x) : x;
    case SPMILP_OPERATOR_CLIP:
        return clip_integer(call, x);
    case SPMILP_OPERATOR_NEG:
        return (int64_t)(0U - (uint64_t)x);
    case SPMILP_OPERATOR_NOT:
        return x == 0;
    case SPMILP_OPERATOR_RELU:
        return x > 0 ? x : 0;
    case SPMILP_OPERATOR_SIGN:
        return (x > 0) - (x < 0);
    default: /* Cast, Identity */
        return x;
    }
}

static int64_t binary_integer(const struct spmilp_call *call, int64_t a, int64_t b)
{
    switch (call->step->kind) {
    case SPMILP_OPERATOR_ADD:
    case SPMILP_OPERATOR_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case SPMILP_OPERATOR_AND:
        return a != 0 && b != 0;
    case SPMILP_OPERATOR_DIV:
        return b == 0 ? 0 : b == -1 ? (int64_t)(0U - (uint64_t)a) : a / b;
    case SPMILP_OPERATOR_EQUAL:
        return a == b;
    case SPMILP_OPERATOR_GREATER:
        return a > b;
    case SPMILP_OPERATOR_GREATEROREQUAL:
        return a >= b;
    case SPMILP_OPERATOR_LESS:
        return a < b;
    case SPMILP_OPERATOR_LESSOREQUAL:
        return a <= b;
    case SPMILP_OPERATOR_MAX:
        return a > b ? a : b;
    case SPMILP_OPERATOR_MIN:
        return a < b ? a : b;
    case SPMILP_OPERATOR_MOD:
        return integer_remainder(call, a, b);
    case SPMILP_OPERATOR_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case SPMILP_OPERATOR_OR:
        return a != 0 || b != 0;
    case SPMILP_OPERATOR_SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    default: /* Xor */
        return (a != 0) != (b != 0);
    }
}

static int on_integers(const struct spmilp_call *call)
{
    return !call->step->quantised && spmilp_is_integer(call->inputs[0].type);
}

void spmilp_unary(const struct spmilp_call *call)
{
    const struct spmilp_box *data = &call->inputs[0];
    const size_t count = spmilp_count(&call->output);
    const int integers = on_integers(call);
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK];
    if (spmilp_fixed(call)) {
        return;
    }
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        spmilp_broadcast(data, at, call->output.rank, own);
        if (integers && spmilp_is_integer(call->output.type)) {
            const int64_t x = spmilp_load_integer(data, spmilp_place(data, own));
            spmilp_store_integer(&call->output, i, unary_integer(call, x));
        } else {
            spmilp_put(call, i, at, unary(call, spmilp_real(call, data, own)));
        }
        spmilp_next(&call->output, at);
    }
}

/* The inputs of one output element, combined from the first to the last. */
static float fold(const struct spmilp_call *call, const int32_t *at)
{
    float total = 0.0F;
    int32_t own[SPMILP_MAX_RANK];
    for (uint32_t i = 0; i < call->step->inputs; i++) {
        spmilp_broadcast(&call->inputs[i], at, call->output.rank, own);
        const float value = spmilp_real(call, &call->inputs[i], own);
        total = i == 0U ? value : binary(call, total, value);
    }
    return total;
}

static int64_t fold_integers(const struct spmilp_call *call, const int32_t *at)
{
    int64_t total = 0;
    int32_t own[SPMILP_MAX_RANK];
    for (uint32_t i = 0; i < call->step->inputs; i++) {
        const struct spmilp_box *input = &call->inputs[i];
        spmilp_broadcast(input, at, call->output.rank, own);
        const int64_t value = spmilp_load_integer(input, spmilp_place(input, own));
        total = i == 0U ? value : binary_integer(call, total, value);
    }
    return total;
}

/* Whether a step is onnxruntime's QLinearAdd or QLinearMul. */
static int is_qlinear(const struct spmilp_call *call)
{
    const uint32_t kind = call->step->kind;
    return call->step->quantised == SPMILP_ROUNDS_WITH_ZERO && call->output.scale &&
           (kind == SPMILP_OPERATOR_ADD || kind == SPMILP_OPERATOR_MUL) &&
           call->inputs[0].scale && call->inputs[1].scale;
}

/* In the order of onnxruntime's vectors: a product is scaled once; a sum begins with all zero
 * points, and each term is added and rounded at once. */
static void put_qlinear(const struct spmilp_call *call, size_t index, const int32_t *at)
{
    const struct spmilp_scale *scale = call->output.scale;
    const float step = spmilp_scale_at(call->words, scale, 0);
    const float zero = (float)spmilp_zero_at(call->words, scale, 0);
    float x[2], steps[2], zeros[2], result;
    int32_t own[SPMILP_MAX_RANK];
    for (uint32_t i = 0; i < 2U; i++) {
        const struct spmilp_box *input = &call->inputs[i];
        spmilp_broadcast(input, at, call->output.rank, own);
        x[i] = (float)spmilp_load_integer(input, spmilp_place(input, own));
        steps[i] = spmilp_scale_at(call->words, input->scale, 0);
        zeros[i] = (float)spmilp_zero_at(call->words, input->scale, 0);
    }
    if (call->step->kind == SPMILP_OPERATOR_MUL) {
        result = (x[0] - zeros[0]) * (x[1] - zeros[1]) * (steps[0] * steps[1] / step) + zero;
    } else {
        const float first = steps[0] / step, second = steps[1] / step;
        const float start = zero - fmaf(first, zeros[0], second * zeros[1]);
        result = fmaf(x[0], first, fmaf(x[1], second, start));
    }
    spmilp_store_integer(&call->output, index, spmilp_saturate(rintf(result), 0, scale->type));
}

void spmilp_variadic(const struct spmilp_call *call)
{
    const size_t count = spmilp_count(&call->output);
    const int integers = on_integers(call), qlinear = is_qlinear(call);
    int32_t at[SPMILP_MAX_RANK];
    if (spmilp_fixed(call)) {
        return;
    }
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        if (integers) {
            spmilp_store_integer(&call->output, i, fold_integers(call, at));
        } else if (qlinear) {
            put_qlinear(call, i, at);
        } else {
            float total = fold(call, at);
            if (call->step->kind == SPMILP_OPERATOR_MEAN) {
                total /= (float)call->step->inputs;
            }
            spmilp_put(call, i, at, total);
        }
        spmilp_next(&call->output, at);
    }
}

void spmilp_binary(const struct spmilp_call *call)
{
    spmilp_variadic(call);
}

void spmilp_where(const struct spmilp_call *call)
{
    const struct spmilp_box *condition = &call->inputs[0];
    const size_t count = spmilp_count(&call->output);
    int32_t at[SPMILP_MAX_RANK], own[SPMILP_MAX_RANK];
    spmilp_first(&call->output, at);
    for (size_t i = 0; i < count; i++) {
        spmilp_broadcast(condition, at, call->output.rank, own);
        const int holds = spmilp_load_integer(condition, spmilp_place(condition, own)) != 0;
        const struct spmilp_box *chosen = &call->inputs[holds ? 1 : 2];
        spmilp_broadcast(chosen, at, call->output.rank, own);
        if (call->step->quantised || !spmilp_is_integer(chosen->type)) {
            spmilp_put(call, i, at, spmilp_real(call, chosen, own));
        } else {
            spmilp_store_integer(&call->output, i,
                                 spmilp_load_integer(chosen, spmilp_place(chosen, own)));
        }
        spmilp_next(&call->output, at);
    }
}
