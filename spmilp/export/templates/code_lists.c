/*
 * A plan in straight code.
 *
@STAMP@
 */

#include "@NAME@.h"

@FUNCTIONS@
