/* As many as cores run at the same time. */
#ifndef SPMILP_WORKSPACES
#define SPMILP_WORKSPACES @RUNNING@U
#endif
static uint64_t workspace[SPMILP_WORKSPACES][WORDS(@UPPER@_WORKSPACE_BYTES)];
#define WORKSPACE(number) (uint8_t *)workspace[(number) % SPMILP_WORKSPACES]
static uint8_t *const workspaces[] = {
@WORKSPACES_OF_CORES@
};
#define WORDS_OF_A_LIST @WORDS_OF_A_LIST@U
#define RUNS .workspaces = workspaces, .packed = &@NAME@_packed@STREAM@
