/* A stand-in for PULP-NN in tests: it checks arguments, computes what they say, and writes to the file
   "calls" how often each function was called, and how often with arguments that do not agree. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "pulp_nn_kernels.h"

static int convolutions, connected, refused;

static void write_calls(void)
{
    FILE *file = fopen("calls", "w");
    fprintf(file, "conv %d\nconnected %d\nrefused %d\n", convolutions, connected, refused);
    fclose(file);
}

static int begin(int *called, int agree)
{
    static int is_registered;
    if (!is_registered) {
        is_registered = 1;
        atexit(write_calls);
    }
    ++*called;
    refused += !agree;
    return agree;
}

static uint8_t quantised(int32_t sum, int64_t k, int64_t lambda, int shift)
{
    const int64_t value = (k * sum + lambda) >> shift;
    refused += value != (int32_t)value; /* it is cut off as 32 bits */
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void pulp_nn_conv_Ho_parallel(const uint8_t *pInBuffer, const uint16_t dim_in_x,
                              const uint16_t dim_in_y, const uint16_t ch_in, const int8_t *pWeight,
                              const uint16_t ch_out, const uint16_t dim_kernel_x,
                              const uint16_t dim_kernel_y, const uint16_t padding_y_top,
                              const uint16_t padding_y_bottom, const uint16_t padding_x_left,
                              const uint16_t padding_x_right, const uint16_t stride_x,
                              const uint16_t stride_y, const int8_t *bias,
                              const uint16_t bias_shift, const uint16_t out_shift,
                              const uint16_t out_mult, uint8_t *pOutBuffer,
                              const uint16_t dim_out_x, const uint16_t dim_out_y, int64_t *k,
                              int64_t *lambda, uint8_t *pIm2ColBuffer, int flag_relu,
                              int flag_batch_norm, unsigned int *memory_chan)
{
    const int high = dim_in_y + padding_y_top + padding_y_bottom - dim_kernel_y;
    const int wide = dim_in_x + padding_x_left + padding_x_right - dim_kernel_x;
    if (!begin(&convolutions, flag_relu && flag_batch_norm && pIm2ColBuffer && out_shift < 63 &&
                                  stride_x > 0 && stride_y > 0 && high / stride_y + 1 == dim_out_y &&
                                  wide / stride_x + 1 == dim_out_x)) {
        return;
    }
    for (int i = 0; i < dim_out_y * dim_out_x * ch_out; i++) {
        const int c = i % ch_out, x = i / ch_out % dim_out_x, y = i / ch_out / dim_out_x;
        int32_t sum = 0;
        for (int j = 0; j < dim_kernel_y * dim_kernel_x * ch_in; j++) {
            const int at_x = x * stride_x - padding_x_left + j / ch_in % dim_kernel_x;
            const int at_y = y * stride_y - padding_y_top + j / ch_in / dim_kernel_x;
            if (at_x >= 0 && at_x < dim_in_x && at_y >= 0 && at_y < dim_in_y) {
                sum += pInBuffer[(at_y * dim_in_x + at_x) * ch_in + j % ch_in] *
                       pWeight[c * dim_kernel_y * dim_kernel_x * ch_in + j];
            }
        }
        pOutBuffer[i] = quantised(sum, k[c], lambda[c], out_shift);
    }
}

void pulp_nn_linear(uint8_t *pInBuffer, int8_t *pWeights, uint16_t dim_vec, uint16_t num_o_neurons,
                    int8_t *bias, uint16_t bias_shift, int8_t out_shift, uint16_t out_mult,
                    int64_t *k, int64_t *lambda, uint8_t *pOutBuffer, int flag_relu,
                    int flag_batch_norm, unsigned int *memory_chan)
{
    if (!begin(&connected, flag_relu && flag_batch_norm && dim_vec > 0 && out_shift >= 0)) {
        return;
    }
    for (int i = 0; i < num_o_neurons; i++) {
        int32_t sum = 0;
        for (int j = 0; j < dim_vec; j++) {
            sum += pInBuffer[j] * pWeights[i * dim_vec + j];
        }
        pOutBuffer[i] = quantised(sum, k[i], lambda[i], out_shift);
    }
}
