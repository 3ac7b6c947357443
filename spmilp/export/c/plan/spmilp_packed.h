#ifndef SPMILP_PACKED_H
#define SPMILP_PACKED_H

/* What runs of a plan, as a string of bits, without times, names and what nothing reads.
   spmilp_packed.c and spmilp_bits.h, which --format player writes, read them. */

#include <stdint.h>

/* Numbers that later fields of one template can be made of; tables that fill several at once. */
#define SPMILP_PACKED_HOLES 64U
#define SPMILP_PACKED_GROUPS 3U
#define SPMILP_PACKED_ATTRIBUTES 16U

/* A table of equally wide numbers in the bits. */
struct spmilp_packed_table {
    uint32_t at;
    uint8_t width;
};

/* A stream: lists have a second head each, of their commands in a turn of the loop. */
struct spmilp_packed_stream {
    const uint32_t *inferences; /* how many there are, less than 2^31 */
    uint32_t last_stage;        /* turns that an inference goes on for beyond its first */
    struct spmilp_packed_table ways; /* positions of what tasks and transfers do in each round */
    int (*hand_in)(uint32_t inference), (*take)(uint32_t inference);
};

/* Written by the application, which has two lists of a stream: write the inputs of an inference
   (counted from 0), and read its outputs, at the addresses of its round. 0: not yet, and the list
   is to be resumed later; in a thread they block and return 1. */
int spmilp_hand_in(uint32_t inference);
int spmilp_take(uint32_t inference);

struct spmilp_packed {
    const uint8_t *bits;
    uint32_t lists;    /* where the heads of the command lists begin */
    uint32_t commands; /* where the commands begin */
    uint32_t cores;    /* lists of cores; those of channels follow */
    uint32_t numbers;  /* where a workspace has room for the numbers of a step */
    struct spmilp_packed_table tasks, transfers, operators, codes; /* positions */
    struct spmilp_packed_table totals; /* signals of each event */
    uint8_t head_bits[4]; /* of own memory, own event, number of commands, first command */
};

#endif
