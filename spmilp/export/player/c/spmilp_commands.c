/* Lists of commands that are fetched one by one. */

#include "spmilp_lists.h"

int spmilp_has_commands(const struct spmilp_player *player, uint32_t list)
{
    struct spmilp_command first;
    return spmilp_fetch(player, list, &first);
}

int spmilp_advance(const struct spmilp_player *player, uint32_t list,
                   const struct spmilp_events *events)
{
    struct spmilp_command command;
    while (spmilp_fetch(player, list, &command)) {
        if (command.operation == SPMILP_COMMAND_WAIT &&
            !events->wait(events->context, command.argument, command.count)) {
            return 0;
        }
        if (command.operation == SPMILP_COMMAND_SIGNAL) {
            events->signal(events->context, command.argument);
        }
        spmilp_do(player, list, &command);
    }
    return 1;
}
