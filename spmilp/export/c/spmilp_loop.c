#include "spmilp_lists.h"

struct turn {
    const struct spmilp_player *player;
    int has_changed; /* whether an event has been signalled or waited for */
};

static int try_wait(void *context, uint32_t event, uint32_t count)
{
    struct turn *turn = context;
    uint32_t *value = &turn->player->events[event];
    if (*value - count > UINT32_MAX / 2U) { /* it is less, modulo 2^32 */
        return 0;
    }
    if (turn->player->tables->summary[0].scheme == SPMILP_SCHEME_SEMAPHORES) {
        *value -= count;
    }
    turn->has_changed = 1;
    return 1;
}

static void signal_event(void *context, uint32_t event)
{
    struct turn *turn = context;
    turn->player->events[event]++;
    turn->has_changed = 1;
}

const char *spmilp_play_loop(const struct spmilp_player *player)
{
    struct turn turn = {player, 0};
    const struct spmilp_events events = {try_wait, signal_event, &turn};
    uint32_t waiting;
    spmilp_rewind(player, &events);
    do {
        turn.has_changed = 0;
        waiting = 0U;
        for (uint32_t list = 0; list < player->tables->lists_count; list++) {
            waiting += spmilp_advance(player, list, &events) ? 0U : 1U;
        }
    } while (waiting > 0U && turn.has_changed);
    return waiting == 0U ? (const char *)0 : "all lists wait: these are no command lists of a plan";
}
