/* Runs the plan on a host: PROGRAM [--loop] INPUT... OUTPUT... (see spmilp_files.h). */

#include <stdio.h>

#include "@PREFIX@_program.h"
#include "spmilp_files.h"

int main(int count, char **arguments)
{
    const char *wrong = @PREFIX@_program_prepare();
    if (wrong) {
        fprintf(stderr, "plan: %s\n", wrong);
        return 1;
    }
    return spmilp_play_files(&@PREFIX@_program, count, arguments);
}
