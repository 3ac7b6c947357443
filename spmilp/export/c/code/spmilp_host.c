/* Straight code on a host or on one core: events are those of spmilp_loop.c or spmilp_threads.c, and
   transfers are copied as late as can be, when their completion is waited for or a queue is full. */

#include "spmilp_host.h"

#include <stdlib.h>

#include "spmilp_lists.h"
#include "spmilp_memories.h"

static const struct spmilp_events *run; /* all lists of a run have the same functions */
static struct spmilp_queue *queues;

int spmilp_wait(uint32_t event, uint32_t count)
{
    const int is_over = run->wait(run->context, event, count);
#ifdef SPMILP_BLOCKING
    if (!is_over) {
        abort(); /* one loop cannot run lists that block: it would go on too early */
    }
#endif
    return is_over;
}

void spmilp_signal(uint32_t event)
{
    run->signal(run->context, event);
}

void spmilp_core_copy(uint8_t *to, const uint8_t *from, const spmilp_shape *shape)
{
    struct spmilp_loop loops[SPMILP_MAX_RANK];
    for (uint32_t i = 0; i < shape[1]; i++) {
        loops[i].count = shape[2U + 3U * i];
        loops[i].source_stride = shape[3U + 3U * i];
        loops[i].destination_stride = shape[4U + 3U * i];
    }
    spmilp_copy(to, from, shape[0], loops, shape[1]);
}

int spmilp_dma_wait(uint32_t channel)
{
    struct spmilp_queue *queue = &queues[channel];
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct spmilp_queued *each = &queue->transfers[i];
        spmilp_core_copy(each->to, each->from, each->shape);
    }
    queue->count = 0U;
    return 1;
}

void spmilp_dma_start(uint32_t channel, uint8_t *to, const uint8_t *from,
                      const spmilp_shape *shape)
{
    struct spmilp_queue *queue = &queues[channel];
    const struct spmilp_queued transfer = {to, from, shape};
    if (queue->count == SPMILP_QUEUE) {
        (void)spmilp_dma_wait(channel);
    }
    queue->transfers[queue->count++] = transfer;
}

const char *spmilp_prepare(const struct spmilp_player *player)
{
    spmilp_begin(player);
    return (const char *)0;
}

void spmilp_rewind(const struct spmilp_player *player, const struct spmilp_events *events)
{
    run = events;
    queues = player->code->queues;
    for (uint32_t list = 0; list < player->tables->lists_count; list++) {
        player->positions[list] = 0U;
    }
}

int spmilp_has_commands(const struct spmilp_player *player, uint32_t list)
{
    return player->code->lists[list] != (spmilp_function *)0;
}

int spmilp_advance(const struct spmilp_player *player, uint32_t list,
                   const struct spmilp_events *events)
{
    spmilp_function *code = player->code->lists[list];
    (void)events;
    if (!code) {
        return 1;
    }
#ifdef SPMILP_BLOCKING
    code();
    return 1;
#else
    player->positions[list] = code(player->positions[list]);
    return player->positions[list] == SPMILP_ENDED;
#endif
}
