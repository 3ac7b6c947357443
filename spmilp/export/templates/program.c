#include "@HEADER@"
#include "@PREFIX@_program.h"
@HOST@
@EXTERN@/* Whole words: every element is aligned where its offset is. SPMILP_MEMORY, if it is
   defined, stands before each definition, for example a section. */
#ifndef SPMILP_MEMORY
#define SPMILP_MEMORY
#endif
#define WORDS(bytes) ((bytes) / 8U + 1U)
@MEMORIES@
static uint8_t *const memories[] = {
@BASES@
};

@WORKSPACES@
static uint32_t events[@SIZES@_EVENTS + 1U];
static uint32_t positions[@POSITIONS@U * @SIZES@_LISTS + 1U];
static @CONST@struct spmilp_tables tables = @SIZES@_TABLES;

const struct spmilp_player @PREFIX@_program = {
    .tables = &tables, .memories = memories, .events = events, .positions = positions,
    @RUNS@};

const char *@PREFIX@_program_prepare(void)
{
@SET_IMAGE@    return spmilp_prepare(&@PREFIX@_program);
}
