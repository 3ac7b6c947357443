#ifndef SPMILP_PLAYER_H
#define SPMILP_PLAYER_H

/*
 * Runs a plan: memories are arrays of bytes, DMA transfers are copies, tasks are reference kernels.
 * Nothing is allocated here except by spmilp_play_threads.
 */

#include <stdint.h>

#include "spmilp_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct spmilp_packed;
struct spmilp_packed_stream;
struct spmilp_code;

struct spmilp_player {
    const struct spmilp_tables *tables;
    uint8_t *const *memories;   /* base of each memory; behind them that of the image if packed */
    uint8_t *const *workspaces; /* for each core, if packed; cores that never run at the same time
                                   (all, in one loop) may have the same one */
    uint32_t *events;           /* as many as the summary says; may be null if there are none */
    uint32_t *positions;        /* where each list is: a word of each; three of each if packed, and
                                   behind them one more of each in a stream */
    const struct spmilp_packed *packed; /* of a plan in bits; else null */
    const struct spmilp_packed_stream *stream; /* of a stream in bits; else null */
    const struct spmilp_code *code;     /* of a plan in straight code; else null */
};

/*
 * Functions that can fail return null, or a text that says why. Once spmilp_prepare has returned
 * null, only files, threads and command lists that are no lists of spmilp can make others fail.
 */

/* Write the constants into the memories, and set all events to 0. */
const char *spmilp_prepare(const struct spmilp_player *player);

/* Copy packed elements, row major, to an input or from an output. Counted are ports of `direction`,
   in the model's order; null if there is no such port. */
const struct spmilp_port *spmilp_find_port(const struct spmilp_tables *tables, uint32_t direction,
                                           uint32_t number);
void spmilp_write_input(const struct spmilp_player *player, const struct spmilp_port *port,
                        const uint8_t *packed);
void spmilp_read_output(const struct spmilp_player *player, const struct spmilp_port *port,
                        uint8_t *packed);

/* Run all lists in turn, in one loop: for bare metal, and for debugging. */
const char *spmilp_play_loop(const struct spmilp_player *player);

/* Run each list in a thread of its own (POSIX threads). */
const char *spmilp_play_threads(const struct spmilp_player *player);

#ifdef __cplusplus
}
#endif

#endif
