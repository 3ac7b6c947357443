/*
 * A plan as bits.
 *
@STAMP@
 */

#include "@NAME@.h"

/* What comes before each definition, for example a section. */
#ifndef SPMILP_TABLE
#define SPMILP_TABLE
#endif

SPMILP_TABLE const struct spmilp_packed @NAME@_packed = {
    .bits = @NAME@_bits,
    .lists = @LISTS_AT@U, .commands = @COMMANDS_AT@U,
    .cores = @CORES@U, .numbers = @NUMBERS_AT@U,
    .tasks = @TASKS@,
    .transfers = @TRANSFERS@,
    .operators = @OPERATORS@,
    .codes = @CODES@, .totals = @TOTALS@,
    .head_bits = @HEAD_BITS@
};

SPMILP_TABLE const uint8_t @NAME@_bits[@BITS_COUNT@U] = {
@BITS@
};

@STREAM_C@@KEPT_C@
