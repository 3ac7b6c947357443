uint64_t @NAME@_workspace[SPMILP_WORKSPACES][WORDS(@UPPER@_WORKSPACE_BYTES)];
static struct spmilp_queue queues[@UPPER@_CHANNELS + 1U];
static const struct spmilp_code code = {@NAME@_lists, queues};
#define WORDS_OF_A_LIST 1U
#define RUNS .code = &code
