#define @UPPER@_IMAGE_BYTES UINT64_C(@IMAGE_COUNT@)
#define @UPPER@_EVENTS @EVENTS@U
#define @UPPER@_LISTS @LISTS@U
@MEMORY_SIZES@

#ifdef __cplusplus
extern "C" {
#endif

extern const struct spmilp_summary @NAME@_summary[1U];
extern const struct spmilp_port @NAME@_ports[@PORTS_ROOM@U];
extern const struct spmilp_segment @NAME@_segments[@SEGMENTS_ROOM@U];
extern const int32_t @NAME@_words[@WORDS_ROOM@U];
extern const uint8_t @NAME@_texts[@TEXTS_COUNT@U];
extern const uint8_t @IMAGE@[];

#ifdef __cplusplus
}
#endif

/* Initialises a struct spmilp_tables. */
#define @UPPER@_TABLES \
    { \
        .summary = @NAME@_summary, .summary_count = 1U, \
        .ports = @NAME@_ports, .ports_count = @PORTS_COUNT@U, \
        .segments = @NAME@_segments, .segments_count = @SEGMENTS_COUNT@U, \
        .lists_count = @LISTS@U, \
        .words = @NAME@_words, .words_count = @WORDS_COUNT@U, \
        .texts = @NAME@_texts, .texts_count = @TEXTS_COUNT@U, \
        .image = @IMAGE@, .image_count = UINT64_C(@IMAGE_COUNT@) \
    }
