#ifndef SPMILP_PLATFORM_H
#define SPMILP_PLATFORM_H

/*
 * What straight code needs of a chip: these five functions, and memories (the plan's header says
 * which). spmilp_host.c has them for one loop and for threads; firmware brings its own.
 *
 * Events are 0 at the start, all transfers and writes before a signal are visible after the wait
 * that it ends. The functions may be macros.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs of bytes at the strides of nested loops: bytes of a run, number of loops, and of each loop,
   the outermost first, its turns, the source's stride and the destination's, in bytes. */
typedef uint32_t spmilp_shape;

/* Go on when the event has reached `count`, modulo 2^32 and no more than 2^31 ago; where events are semaphores, take `count` off it.
   0: it has not, and the list is to be resumed later. A function that blocks returns 1. */
int spmilp_wait(uint32_t event, uint32_t count);

/* Of a stream, called by the application's two lists, and written by the application: write the
   inputs of an inference (counted from 0), and read its outputs, at the addresses of its round.
   0: not yet, and the list is to be resumed later. A function that blocks returns 1. */
int spmilp_hand_in(uint32_t inference);
int spmilp_take(uint32_t inference);

/* Add 1 to the event. */
void spmilp_signal(uint32_t event);

/* Queue a transfer behind those before it on the channel: it begins when these have arrived or, if
   the engine is pipelined, have been read. `shape` is constant. */
void spmilp_dma_start(uint32_t channel, uint8_t *to, const uint8_t *from,
                      const spmilp_shape *shape);

/* Whether all transfers of the channel have completed. 0: not yet, as for spmilp_wait. */
int spmilp_dma_wait(uint32_t channel);

/* Copy on the core itself. */
void spmilp_core_copy(uint8_t *to, const uint8_t *from, const spmilp_shape *shape);

#ifdef __cplusplus
}
#endif

#endif
