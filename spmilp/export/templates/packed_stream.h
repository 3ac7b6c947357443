/* How many inferences there are, less than 2^31, to be set before lists begin. */
extern uint32_t @NAME@_inferences;
extern const struct spmilp_packed_stream @NAME@_stream;
