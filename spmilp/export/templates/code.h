#ifndef @UPPER@_H
#define @UPPER@_H

/*
 * A plan in straight code: functions, memories and constants.
 *
@STAMP@
 */

#include "spmilp_straight.h"

#define @UPPER@_CHANNELS @CHANNELS@U
#define @UPPER@_WORKSPACE_BYTES UINT64_C(@WORKSPACE@)
#define @UPPER@_SCHEME SPMILP_SCHEME_@SCHEME@

/* As many as cores run at the same time. */
#ifndef SPMILP_WORKSPACES
#define SPMILP_WORKSPACES @RUNNING@U
#endif

@KEPT_H@
#ifdef __cplusplus
extern "C" {
#endif

extern uint64_t @NAME@_workspace[SPMILP_WORKSPACES][@UPPER@_WORKSPACE_BYTES / 8U + 1U];
#define @BASE@_WORKSPACE(number) ((uint8_t *)@NAME@_workspace[(number) % SPMILP_WORKSPACES])
#define @BASE@_IMAGE @IMAGE@
@MEMORIES@

@STREAM_H@@LISTS_DECLARED@
/* In the order of cores and channels; null for one without commands. */
extern spmilp_function *const @NAME@_lists[];

@CONSTANTS@

#ifdef __cplusplus
}
#endif

#endif
