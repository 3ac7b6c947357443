#ifndef @UPPER@_PROGRAM_H
#define @UPPER@_PROGRAM_H

/* The plan with the memories that it runs in, as one object. */

#include "spmilp_player.h"

/* Bytes of the largest input or output. */
#define @UPPER@_PROGRAM_LARGEST_PORT_BYTES @LARGEST_PORT@U

extern const struct spmilp_player @PREFIX@_program;

/* Prepare it for a run: null, or a text that says why it cannot run. */
const char *@PREFIX@_program_prepare(void);

#endif
