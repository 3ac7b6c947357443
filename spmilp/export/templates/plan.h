#ifndef @UPPER@_H
#define @UPPER@_H

/*
 * A plan as bits.
 *
@STAMP@
 */

/*
@FOOTPRINT@
 */

#include <stdint.h>

#include "spmilp_packed.h"
#include "spmilp_types.h"

#define @UPPER@_WORKSPACE_BYTES UINT64_C(@WORKSPACE@)
#define @UPPER@_TASKS @TASK_COUNT@U
#define @UPPER@_TRANSFERS @TRANSFER_COUNT@U

#ifdef __cplusplus
extern "C" {
#endif

extern const struct spmilp_packed @NAME@_packed;
extern const uint8_t @NAME@_bits[@BITS_COUNT@U];
@STREAM_H@
#ifdef __cplusplus
}
#endif

@KEPT_H@
#endif
