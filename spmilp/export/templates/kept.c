/* makespan, workspace, frequency, events, scheme */
SPMILP_TABLE const struct spmilp_summary @NAME@_summary[1U] = {
@SUMMARY@
};

/* address, bytes, memory, direction, type, rank, shape, strides, reserved0, reserved1 */
SPMILP_TABLE const struct spmilp_port @NAME@_ports[@PORTS_ROOM@U] = {
@PORTS@
};

/* address, bytes, image, memory, reserved */
SPMILP_TABLE const struct spmilp_segment @NAME@_segments[@SEGMENTS_ROOM@U] = {
@SEGMENTS@
};

SPMILP_TABLE const int32_t @NAME@_words[@WORDS_ROOM@U] = {
@WORDS@
};

SPMILP_TABLE const uint8_t @NAME@_texts[@TEXTS_COUNT@U] = {
@TEXTS@
};
