/*
 * A program that runs a plan; @MAKEFILE@ builds it.
 *
@STAMP@
 */

/* Runs the plan on a host: PROGRAM [--loop] INPUT... OUTPUT... (see spmilp_files.h). */

#include <stdio.h>

#include "@PROGRAM@_program.h"
#include "spmilp_files.h"

int main(int count, char **arguments)
{
    const char *wrong = @PROGRAM@_program_prepare();
    if (wrong) {
        fprintf(stderr, "plan: %s\n", wrong);
        return 1;
    }
    return spmilp_play_files(&@PROGRAM@_program, count, arguments);
}
