/* Einsum: sums of products over letters, each of which names an axis. */

#include "spmilp_kernels.h"

#define LETTERS 52U

/* What stands before the arrow names the axes of each operand, what stands behind it the result's. */
struct letters {
    const uint8_t *text; /* of the operand that is looked at next */
    int32_t first[LETTERS + 1U], length[LETTERS + 1U], at[LETTERS + 1U];
};

/* The number of the next letter; LETTERS where the operand, or the equation, ends. */
static uint32_t next_letter(struct letters *letters)
{
    while (*letters->text == ' ') {
        letters->text++;
    }
    const uint8_t letter = *letters->text;
    if (letter >= 'a' && letter <= 'z') {
        letters->text++;
        return (uint32_t)(letter - 'a');
    }
    if (letter >= 'A' && letter <= 'Z') {
        letters->text++;
        return (uint32_t)(letter - 'A') + 26U;
    }
    return LETTERS;
}

static const uint8_t *behind_comma(const uint8_t *text)
{
    return *text == ',' ? text + 1 : text;
}

static const uint8_t *equation_of(const struct spmilp_call *call)
{
    return call->texts + spmilp_attribute(call, SPMILP_ATTRIBUTE_EQUATION)->first;
}

/* Note the interval of each letter of the operands; return where the result's letters begin. */
static const uint8_t *measure(const struct spmilp_call *call, struct letters *letters)
{
    letters->text = equation_of(call);
    for (uint32_t i = 0; i < call->step->inputs; i++) {
        const int32_t *interval = call->inputs[i].box;
        for (uint32_t axis = 0; axis < call->inputs[i].rank; axis++, interval += 2) {
            const uint32_t letter = next_letter(letters);
            letters->first[letter] = interval[0];
            letters->length[letter] = interval[1];
        }
        (void)next_letter(letters);
        letters->text = behind_comma(letters->text);
    }
    return letters->text + 2;
}

/* Go on to the next positions of the letters that are summed over; 0 behind the last ones. */
static int advance(struct letters *letters, const int *is_summed)
{
    for (uint32_t letter = 0; letter < LETTERS; letter++) {
        if (is_summed[letter]) {
            if (++letters->at[letter] < letters->first[letter] + letters->length[letter]) {
                return 1;
            }
            letters->at[letter] = letters->first[letter];
        }
    }
    return 0;
}

/* Multiply the elements at the letters' positions; integers wrap around. */
static void add_product(const struct spmilp_call *call, struct letters *letters, float *real,
                        uint64_t *integer)
{
    const int integers = !call->step->quantised && spmilp_is_integer(call->inputs[0].type);
    float product = 1.0F;
    uint64_t whole = 1U;
    int32_t own[SPMILP_MAX_RANK + 1U];
    letters->text = equation_of(call);
    for (uint32_t i = 0; i < call->step->inputs; i++) {
        const struct spmilp_box *operand = &call->inputs[i];
        for (uint32_t axis = 0; axis < operand->rank; axis++) {
            own[axis] = letters->at[next_letter(letters)];
        }
        (void)next_letter(letters);
        letters->text = behind_comma(letters->text);
        if (integers) {
            whole *= (uint64_t)spmilp_load_integer(operand, spmilp_place(operand, own));
        } else {
            product *= spmilp_real(call, operand, own);
        }
    }
    *real += product;
    *integer += whole;
}

void spmilp_einsum(const struct spmilp_call *call)
{
    const struct spmilp_box *output = &call->output;
    const int integers = !call->step->quantised && spmilp_is_integer(call->inputs[0].type);
    const size_t count = spmilp_count(output);
    struct letters letters = {0};
    int32_t at[SPMILP_MAX_RANK + 1U] = {0};
    int is_summed[LETTERS + 1U];
    const uint8_t *result = measure(call, &letters);
    spmilp_first(output, at);
    for (size_t i = 0; i < count; i++, spmilp_next(output, at)) {
        float real = 0.0F;
        uint64_t integer = 0U;
        for (uint32_t letter = 0; letter < LETTERS; letter++) {
            letters.at[letter] = letters.first[letter];
            is_summed[letter] = letters.length[letter] > 1;
        }
        letters.text = result;
        for (uint32_t axis = 0; axis < output->rank; axis++) {
            const uint32_t letter = next_letter(&letters);
            letters.at[letter] = at[axis];
            is_summed[letter] = 0;
        }
        do {
            add_product(call, &letters, &real, &integer);
        } while (advance(&letters, is_summed));
        if (integers) {
            spmilp_store_integer(output, i, (int64_t)integer);
        } else {
            spmilp_put(call, i, at, real);
        }
    }
}
