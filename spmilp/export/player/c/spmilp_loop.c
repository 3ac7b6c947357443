#include "spmilp_lists.h"

/* Run one command; 0 if it is a wait that is not over. */
static int try_command(const struct spmilp_player *player, uint32_t list,
                       const struct spmilp_command *command)
{
    uint32_t *events = player->events;
    if (command->operation == SPMILP_COMMAND_WAIT) {
        if (events[command->argument] < command->count) {
            return 0;
        }
        if (player->tables->summary[0].scheme == SPMILP_SCHEME_SEMAPHORES) {
            events[command->argument] -= command->count;
        }
    } else if (command->operation == SPMILP_COMMAND_SIGNAL) {
        events[command->argument]++;
    }
    spmilp_do(player, list, command);
    return 1;
}

const char *spmilp_play_loop(const struct spmilp_player *player)
{
    const uint32_t lists = player->tables->lists_count;
    struct spmilp_command command;
    uint32_t done, waiting;
    spmilp_rewind(player);
    do {
        done = 0U;
        waiting = 0U;
        for (uint32_t list = 0; list < lists; list++) {
            while (spmilp_fetch(player, list, &command)) {
                if (!try_command(player, list, &command)) {
                    waiting++;
                    break;
                }
                done++;
            }
        }
    } while (done > 0U);
    return waiting == 0U ? (const char *)0 : "all lists wait: these are no command lists of a plan";
}
