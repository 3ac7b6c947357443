uint32_t @NAME@_inferences = UINT32_MAX / 2U;
SPMILP_TABLE const struct spmilp_packed_stream @NAME@_stream = {
    .inferences = &@NAME@_inferences, .last_stage = @LAST_STAGE@U, .ways = @WAYS@,
    .hand_in = spmilp_hand_in, .take = spmilp_take
};

