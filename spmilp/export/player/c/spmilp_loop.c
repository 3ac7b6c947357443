#include "spmilp_player.h"

/* Run one command; 0 if it is a wait that is not over. */
static int try_command(const struct spmilp_player *player, const struct spmilp_command *command)
{
    uint32_t *events = player->events;
    switch (command->operation) {
    case SPMILP_COMMAND_WAIT:
        if (events[command->argument] < command->count) {
            return 0;
        }
        if (player->tables->summary[0].scheme == SPMILP_SCHEME_SEMAPHORES) {
            events[command->argument] -= command->count;
        }
        break;
    case SPMILP_COMMAND_SIGNAL:
        events[command->argument]++;
        break;
    case SPMILP_COMMAND_RUN:
        spmilp_run_task(player, command->argument);
        break;
    default:
        spmilp_move(player, command->argument);
        break;
    }
    return 1;
}

/* Run a list up to its end or to a wait that is not over, and return how many commands that was. */
static uint32_t run_on(const struct spmilp_player *player, uint32_t number)
{
    const struct spmilp_list *list = &player->tables->lists[number];
    const struct spmilp_command *commands = &player->tables->commands[list->first_command];
    const uint32_t before = player->positions[number];
    while (player->positions[number] < list->commands &&
           try_command(player, &commands[player->positions[number]])) {
        player->positions[number]++;
    }
    return player->positions[number] - before;
}

const char *spmilp_play_loop(const struct spmilp_player *player)
{
    const struct spmilp_tables *tables = player->tables;
    uint32_t left = 0U, done;
    for (uint32_t number = 0; number < tables->lists_count; number++) {
        player->positions[number] = 0U;
        left += tables->lists[number].commands;
    }
    do {
        done = 0U;
        for (uint32_t number = 0; number < tables->lists_count; number++) {
            done += run_on(player, number);
        }
        left -= done;
    } while (done > 0U);
    return left == 0U ? (const char *)0 : "all lists wait: these are no command lists of a plan";
}
