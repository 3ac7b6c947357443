/*
 * Copy the descriptors of a transfer to the core's memory at a multiple of 8 B, add the global
 * addresses of the memories to src_addr and dst_addr, and the local address of the copy to the upper
 * halves of config that have CHAIN; then start it with e_dma_start.
 */

/* Descriptor of a transfer, 24 B. */
struct spmilp_dma_epiphany {
    uint32_t config; /* bits; if CHAIN, the upper half is the next one's offset from the first */
    uint32_t inner_stride; /* bytes between items: source in the lower, destination in the upper half */
    uint32_t count;        /* items of a row in the lower, rows in the upper half */
    uint32_t outer_stride; /* bytes from a row's last item to the next row, as above */
    uint32_t src_addr;     /* offset in the source memory; add its global address */
    uint32_t dst_addr;     /* offset in the destination memory; add its global address */
};
