/*
 * Reading the command register gives a transfer identifier; then write the words of the descriptors
 * of one transfer, in order, and wait for the identifier. local is in the engine's own memory, the
 * source of a store and the destination of a load.
 */

/* A command: write its first words to the command register, in order. */
struct spmilp_dma_@CONTROLLER@ {
    uint32_t count;    /* how many of the following words are written */
    uint32_t command;  /* length, direction, flags */
    uint32_t local;    /* offset in the scratchpad; add its base */
    uint32_t external; /* offset in the other memory; add its base */
    uint32_t argument0, argument1, argument2, argument3; /* sizes and strides of 2D sides */
};
