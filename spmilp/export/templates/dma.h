#ifndef @UPPER@_H
#define @UPPER@_H

/*
 * DMA descriptors for @CONTROLLER@ (@SOURCE@).
 *
@STAMP@
 */

#include <stdint.h>

@DESCRIPTOR@
#ifndef SPMILP_DMA_INFO
#define SPMILP_DMA_INFO
/* What a descriptor belongs to, and what its addresses are relative to. */
struct spmilp_dma_info {
    uint32_t transfer;           /* number in the plan */
    uint32_t engine;             /* that has it */
    uint32_t channel;            /* of the engine */
    uint32_t source_memory;      /* add its base to the source address */
    uint32_t destination_memory; /* add its base to the destination address */
    uint32_t last;               /* 1 for the last descriptor of its transfer */
};
#endif

#define @UPPER@_COUNT @COUNT@U

#ifdef __cplusplus
extern "C" {
#endif

extern const struct spmilp_dma_@CONTROLLER@ @NAME@[@ROOM@U];
extern const struct spmilp_dma_info @NAME@_info[@ROOM@U];

#ifdef __cplusplus
}
#endif

#endif
