#include "spmilp_player.h"

#include <string.h>

#include "spmilp_kernels.h"

static const char *check_step(const struct spmilp_step *step)
{
    if (!spmilp_kernel_of(step->kind)) {
        return "there is no kernel for an operator of the plan";
    }
    if (step->inputs > SPMILP_MAX_INPUTS) {
        return "an operator has more inputs than SPMILP_MAX_INPUTS";
    }
    return (const char *)0;
}

static const char *check_view(const struct spmilp_view *view)
{
    if (view->rank > SPMILP_MAX_RANK) {
        return "a tensor has more axes than SPMILP_MAX_RANK";
    }
    if (spmilp_item(view->type) == 0U) {
        return "there are no kernels for a type of elements of the plan";
    }
    return (const char *)0;
}

const char *spmilp_check_tables(const struct spmilp_tables *tables)
{
    const char *wrong = (const char *)0;
    if (tables->image_count > 0U && !tables->image) {
        return "the image is not in the program: set tables.image";
    }
    for (uint32_t i = 0; i < tables->memories_count; i++) {
        if (tables->memories[i].used > SIZE_MAX) {
            return "a memory is larger than what this machine can address";
        }
    }
    for (uint32_t i = 0; i < tables->copies_count; i++) {
        if (tables->copies[i].loops > SPMILP_MAX_RANK) {
            return "a transfer has more loops than SPMILP_MAX_RANK";
        }
    }
    for (uint32_t i = 0; i < tables->tasks_count; i++) {
        if (tables->tasks[i].steps == 0U) {
            return "the tables do not say what tasks compute: export them with --model";
        }
    }
    for (uint32_t i = 0; i < tables->views_count && !wrong; i++) {
        wrong = check_view(&tables->views[i]);
    }
    for (uint32_t i = 0; i < tables->steps_count && !wrong; i++) {
        wrong = check_step(&tables->steps[i]);
    }
    return wrong;
}

const char *spmilp_prepare(const struct spmilp_player *player)
{
    const struct spmilp_tables *tables = player->tables;
    const char *wrong = spmilp_check_tables(tables);
    if (wrong) {
        return wrong;
    }
    for (uint32_t i = 0; i < tables->segments_count; i++) {
        const struct spmilp_segment *segment = &tables->segments[i];
        memcpy(player->memories[segment->memory] + (size_t)segment->address,
               tables->image + (size_t)segment->image, (size_t)segment->bytes);
    }
    for (uint32_t i = 0; i < tables->summary[0].events; i++) {
        player->events[i] = 0U;
    }
    return (const char *)0;
}

void spmilp_move(const struct spmilp_player *player, uint32_t transfer)
{
    const struct spmilp_tables *tables = player->tables;
    const struct spmilp_transfer *move = &tables->transfers[transfer];
    for (uint32_t i = 0; i < move->copies; i++) {
        const struct spmilp_copy *copy = &tables->copies[move->first_copy + i];
        const struct spmilp_loop *loops = &tables->loops[copy->first_loop];
        const uint8_t *source = player->memories[copy->source_memory];
        uint8_t *destination = player->memories[copy->destination_memory];
        size_t from = (size_t)copy->source, to = (size_t)copy->destination;
        uint32_t turns[SPMILP_MAX_RANK] = {0U};
        uint32_t level;
        do {
            memcpy(destination + to, source + from, copy->run);
            /* The next turn of the innermost loop that has one left; those inside begin again. */
            for (level = copy->loops; level > 0U; level--) {
                const struct spmilp_loop *loop = &loops[level - 1U];
                from += (size_t)loop->source_stride;
                to += (size_t)loop->destination_stride;
                if (++turns[level - 1U] < loop->count) {
                    break;
                }
                turns[level - 1U] = 0U;
                from -= (size_t)loop->source_stride * loop->count;
                to -= (size_t)loop->destination_stride * loop->count;
            }
        } while (level > 0U);
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
