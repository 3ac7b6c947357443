/*
 * Types of what a plan keeps. Offsets and indices only, no pointers.
 *
 * format: @FORMAT@
 * tool: @TOOL@
 */
#ifndef SPMILP_TYPES_H
#define SPMILP_TYPES_H

#include <stdint.h>

@CODES@
/* One row: the plan as a whole. */
struct spmilp_summary {
    uint64_t makespan;  /* cycles of the plan; waits, not cycles, order the commands */
    uint64_t workspace; /* bytes of packed operands that the largest task needs */
    uint64_t frequency; /* cycles per second; 0 where unknown */
    uint32_t events;    /* events of the command lists, all 0 at the start */
    uint32_t scheme;    /* what a wait does: SCHEME_COUNTERS or SCHEME_SEMAPHORES */
};

/* Inputs and outputs of the network, in the model's order. */
struct spmilp_port {
    uint64_t address;   /* of the first byte in its memory */
    uint64_t bytes;     /* size */
    uint32_t memory;    /* a DRAM */
    uint32_t direction; /* PORT_INPUT or PORT_OUTPUT */
    uint32_t type;      /* of its elements, TYPE_... */
    uint32_t rank;      /* axes of the model's tensor */
    uint32_t shape;     /* position of the model's lengths in words */
    uint32_t strides;   /* position of the bytes between neighbours of each of its axes in words */
    uint32_t reserved0; /* 0 */
    uint32_t reserved1; /* 0 */
};

/* Constants: what to write into the memories before the start. */
struct spmilp_segment {
    uint64_t address;  /* of the first byte in its memory */
    uint64_t bytes;    /* size */
    uint64_t image;    /* position of the first byte in the image */
    uint32_t memory;   /* where it lies */
    uint32_t reserved; /* 0 */
};

/* What a plan keeps besides what runs. Counts are rows. */
struct spmilp_tables {
    const struct spmilp_summary *summary;
    uint32_t summary_count;
    const struct spmilp_port *ports;
    uint32_t ports_count;
    const struct spmilp_segment *segments;
    uint32_t segments_count;
    uint32_t lists_count; /* those of cores, then those of channels */
    const int32_t *words; /* signed integers, and reals as the bits of float32 */
    uint32_t words_count;
    const uint8_t *texts; /* UTF-8, each text with a zero behind it */
    uint32_t texts_count;
    const uint8_t *image; /* bytes of constants */
    uint64_t image_count;
};

#endif
