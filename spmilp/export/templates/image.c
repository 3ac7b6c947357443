/*
 * Bytes of the constants, as they lie in flash.
 *
@STAMP@
 */

#include <stdint.h>

/* What comes before each definition, for example a section. */
#ifndef SPMILP_TABLE
#define SPMILP_TABLE
#endif

extern const uint8_t @IMAGE@[@IMAGE_ROOM@U];
SPMILP_TABLE const uint8_t @IMAGE@[@IMAGE_ROOM@U] = {
@BYTES@
};
