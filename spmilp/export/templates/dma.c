/*
 * DMA descriptors for @CONTROLLER@ (@SOURCE@); the header says what firmware does with them.
 *
@STAMP@
 */

#include "@NAME@.h"

/* What comes before each definition, for example a section. */
#ifndef SPMILP_TABLE
#define SPMILP_TABLE
#endif

SPMILP_TABLE const struct spmilp_dma_@CONTROLLER@ @NAME@[@ROOM@U] = {
@WORDS@
};

SPMILP_TABLE const struct spmilp_dma_info @NAME@_info[@ROOM@U] = {
@INFO@
};
