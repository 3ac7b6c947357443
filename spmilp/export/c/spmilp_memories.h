#ifndef SPMILP_MEMORIES_H
#define SPMILP_MEMORIES_H

/* Bytes between memories. */

#include <stddef.h>
#include <stdint.h>

/* Turns of a loop, and bytes from one turn to the next. */
struct spmilp_loop {
    size_t source_stride, destination_stride;
    uint32_t count;
};

/* Copy runs of bytes at the strides of nested loops, the outermost first. */
void spmilp_copy(uint8_t *to, const uint8_t *from, size_t run, const struct spmilp_loop *loops,
                 uint32_t count);

#endif
