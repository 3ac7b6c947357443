/* The functions of PULP-NN that spmilp_pulp_nn.c calls, as its header declares them
   (github.com/pulp-platform/pulp-nn at fd29dee, 64bit/include/pulp_nn_kernels.h). */

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
                              int flag_batch_norm, unsigned int *memory_chan);

void pulp_nn_linear(uint8_t *pInBuffer, int8_t *pWeights, uint16_t dim_vec, uint16_t num_o_neurons,
                    int8_t *bias, uint16_t bias_shift, int8_t out_shift, uint16_t out_mult,
                    int64_t *k, int64_t *lambda, uint8_t *pOutBuffer, int flag_relu,
                    int flag_batch_norm, unsigned int *memory_chan);
