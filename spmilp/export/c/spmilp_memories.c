#include "spmilp_memories.h"

#include <string.h>

#include "spmilp_kernels.h"
#include "spmilp_lists.h"

void spmilp_copy(uint8_t *to, const uint8_t *from, size_t run, const struct spmilp_loop *loops,
                 uint32_t count)
{
    size_t source = 0U, destination = 0U;
    uint32_t turns[SPMILP_MAX_RANK] = {0U};
    uint32_t level;
    do {
        memcpy(to + destination, from + source, run);
        /* The next turn of the innermost loop that has one left; those inside begin again. */
        for (level = count; level > 0U; level--) {
            const struct spmilp_loop *loop = &loops[level - 1U];
            source += loop->source_stride;
            destination += loop->destination_stride;
            if (++turns[level - 1U] < loop->count) {
                break;
            }
            turns[level - 1U] = 0U;
            source -= loop->source_stride * loop->count;
            destination -= loop->destination_stride * loop->count;
        }
    } while (level > 0U);
}

void spmilp_begin(const struct spmilp_player *player)
{
    const struct spmilp_tables *tables = player->tables;
    for (uint32_t i = 0; i < tables->segments_count; i++) {
        const struct spmilp_segment *segment = &tables->segments[i];
        memcpy(player->memories[segment->memory] + (size_t)segment->address,
               tables->image + (size_t)segment->image, (size_t)segment->bytes);
    }
    for (uint32_t i = 0; i < tables->summary[0].events; i++) {
        player->events[i] = 0U;
    }
}

const struct spmilp_port *spmilp_find_port(const struct spmilp_tables *tables, uint32_t direction,
                                           uint32_t number)
{
    for (uint32_t i = 0; i < tables->ports_count; i++) {
        if (tables->ports[i].direction == direction && number-- == 0U) {
            return &tables->ports[i];
        }
    }
    return (const struct spmilp_port *)0;
}

/* Where element `number` of a port, in row-major order, lies in its memory. */
static size_t place_in_port(const struct spmilp_tables *tables, const struct spmilp_port *port,
                            size_t number)
{
    size_t place = (size_t)port->address;
    for (uint32_t axis = port->rank; axis > 0U; axis--) {
        const size_t length = (size_t)tables->words[port->shape + axis - 1U];
        place += number % length * (size_t)tables->words[port->strides + axis - 1U];
        number /= length;
    }
    return place;
}

void spmilp_write_input(const struct spmilp_player *player, const struct spmilp_port *port,
                        const uint8_t *packed)
{
    const size_t item = spmilp_item(port->type);
    for (size_t i = 0; item > 0U && i < (size_t)port->bytes / item; i++) {
        memcpy(player->memories[port->memory] + place_in_port(player->tables, port, i),
               packed + i * item, item);
    }
}

void spmilp_read_output(const struct spmilp_player *player, const struct spmilp_port *port,
                        uint8_t *packed)
{
    const size_t item = spmilp_item(port->type);
    for (size_t i = 0; item > 0U && i < (size_t)port->bytes / item; i++) {
        memcpy(packed + i * item,
               player->memories[port->memory] + place_in_port(player->tables, port, i), item);
    }
}
