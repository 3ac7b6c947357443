#ifndef SPMILP_PACKED_H
#define SPMILP_PACKED_H

/* A plan of the release profile: what runs, as a string of bits, without times, names and what
   nothing reads. docs/player.md says what the bits are. */

#include <stdint.h>

/* Numbers that later fields of one template can be made of. */
#define SPMILP_PACKED_HOLES 64U
#define SPMILP_PACKED_ATTRIBUTES 16U

/* A table of equally wide positions in the bits. */
struct spmilp_packed_table {
    uint32_t at;
    uint8_t width, index_bits; /* of a position; of a position's number in a command */
};

struct spmilp_packed {
    const uint8_t *bits;
    uint32_t lists;    /* where the heads of the command lists begin */
    uint32_t commands; /* where the commands begin */
    uint32_t cores;    /* lists of cores; those of channels follow */
    uint32_t numbers;  /* where a workspace has room for the numbers of a step */
    struct spmilp_packed_table tasks, transfers, operators;
    uint8_t own_bits, event_bits, count_bits, length_bits, start_bits;
};

#endif
