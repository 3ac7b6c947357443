/*
 * A program that runs a plan; @MAKEFILE@ builds it.
 *
@STAMP@
 */

#include "@NAME@.h"
#include "@PROGRAM@_program.h"
@HOST@
/* Whole words: every element is aligned where its offset is. SPMILP_MEMORY, if it is
   defined, stands before each definition, for example a section. */
#ifndef SPMILP_MEMORY
#define SPMILP_MEMORY
#endif
#define WORDS(bytes) ((bytes) / 8U + 1U)
@MEMORIES@

static uint8_t *const memories[] = {
@BASES@
};

@RUNS@
static uint32_t events[@UPPER@_EVENTS + 1U];
static uint32_t positions[WORDS_OF_A_LIST * @UPPER@_LISTS + 1U];
static const struct spmilp_tables tables = @UPPER@_TABLES;

const struct spmilp_player @PROGRAM@_program = {
    .tables = &tables, .memories = memories, .events = events, .positions = positions,
    RUNS
};

const char *@PROGRAM@_program_prepare(void)
{
    return spmilp_prepare(&@PROGRAM@_program);
}
