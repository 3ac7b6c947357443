/*
 * A program that runs a plan; @MAKEFILE@ builds it.
 *
@STAMP@
 */

#ifndef @UPPER_PROGRAM@_PROGRAM_H
#define @UPPER_PROGRAM@_PROGRAM_H

/* The plan with the memories that it runs in, as one object. */

#include "spmilp_player.h"

/* Bytes of the largest input or output. */
#define @UPPER_PROGRAM@_PROGRAM_LARGEST_PORT_BYTES @LARGEST_PORT@U

extern const struct spmilp_player @PROGRAM@_program;

/* Prepare it for a run: null, or a text that says why it cannot run. */
const char *@PROGRAM@_program_prepare(void);

#endif
