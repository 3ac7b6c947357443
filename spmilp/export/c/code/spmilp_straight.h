#ifndef SPMILP_STRAIGHT_H
#define SPMILP_STRAIGHT_H

/*
 * Straight code: a function for each core and each DMA channel, which runs from its first line to
 * its last.
 *
 * With SPMILP_BLOCKING a list is `void list(void)`, and its waits block: a core or a thread for each.
 * Without, a wait that is not over ends the function, which returns where it is to be resumed: an
 * interrupt handler or one loop can run several lists. Begin with 0; SPMILP_ENDED is the end.
 */

#include "spmilp_kernels.h"
#include "spmilp_platform.h"

#define SPMILP_ENDED UINT32_MAX

#ifdef SPMILP_BLOCKING
typedef void spmilp_function(void);
#define SPMILP_LIST(name) void name(void)
#define SPMILP_BEGIN
#define SPMILP_WAIT(event, count) (void)spmilp_wait(event, count)
#define SPMILP_DMA_WAIT(channel) (void)spmilp_dma_wait(channel)
#define SPMILP_UNLESS(is_over) (void)(is_over)
#define SPMILP_END
#else
typedef uint32_t spmilp_function(uint32_t at);
#define SPMILP_LIST(name) uint32_t name(uint32_t at)
#define SPMILP_BEGIN switch (at) { case 0U:
/* The label stands where nothing falls into it, which compilers would warn about. */
#define SPMILP_UNLESS(is_over) \
    do { if (0) { case __LINE__:; } if (!(is_over)) { return __LINE__; } } while (0)
#define SPMILP_WAIT(event, count) SPMILP_UNLESS(spmilp_wait(event, count))
#define SPMILP_DMA_WAIT(channel) SPMILP_UNLESS(spmilp_dma_wait(channel))
#define SPMILP_END break; default: break; } return SPMILP_ENDED;
#endif

/* What all tiles of an operator have in common. */
struct spmilp_described {
    const struct spmilp_scale *scale; /* null if elements stand for themselves */
    const int32_t *shape;             /* of the whole tensor; null for partial sums */
    uint8_t type, rank;               /* type 0: nothing of it is read */
};

struct spmilp_operator {
    spmilp_kernel *kernel;
    const int32_t *words; /* what the others point into */
    const uint8_t *texts;
    const struct spmilp_attribute *attributes;
    const struct spmilp_described *operands; /* inputs, sums of the part before if there are, output */
    uint32_t low_and_high;                 /* position in words, if there are limits */
    uint16_t kind, inputs;
    uint8_t attribute_count, quantised, limits, part, has_previous;
    uint8_t width; /* bytes of each number of a box */
};

/* Copy operands into the workspace of a core before a call, or out of it. */
struct spmilp_piece_copy {
    uint8_t *to;
    const uint8_t *from;
    const spmilp_shape *shape;
};

void spmilp_copy_pieces(const struct spmilp_piece_copy *copies, uint32_t count);
#define SPMILP_COPY(...) \
    do { \
        static const struct spmilp_piece_copy copies[] = {__VA_ARGS__}; \
        spmilp_copy_pieces(copies, (uint32_t)(sizeof copies / sizeof copies[0])); \
    } while (0)

/* Run a kernel. `boxes` has first element and length along each axis of each operand that is there;
   addresses are those of all operands, null for one of which nothing is read. */
void spmilp_call_kernel(const struct spmilp_operator *operator_, const void *boxes,
                        const uint8_t *const *addresses);
#define SPMILP_RUN(operator_, boxes, ...) \
    do { \
        static const uint8_t *const addresses[] = {__VA_ARGS__}; \
        spmilp_call_kernel(operator_, boxes, addresses); \
    } while (0)

#endif
