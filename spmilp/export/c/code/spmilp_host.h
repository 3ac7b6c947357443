#ifndef SPMILP_HOST_H
#define SPMILP_HOST_H

/* Straight code on a host: its lists, and a queue for each DMA channel. */

#include "spmilp_straight.h"

#define SPMILP_QUEUE 4U /* transfers that a channel may have started */

struct spmilp_queue {
    uint32_t count;
    struct spmilp_queued {
        uint8_t *to;
        const uint8_t *from;
        const spmilp_shape *shape;
    } transfers[SPMILP_QUEUE];
};

struct spmilp_code {
    spmilp_function *const *lists; /* null for one without commands */
    struct spmilp_queue *queues; /* of each channel */
};

#endif
