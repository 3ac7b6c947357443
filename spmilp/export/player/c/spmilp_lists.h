#ifndef SPMILP_LISTS_H
#define SPMILP_LISTS_H

/* Command lists as those who run them see them, whatever they are made of: tables (spmilp_player.c)
   or packed bits (spmilp_packed.c). */

#include "spmilp_player.h"

/* Go to the beginning of every list. */
void spmilp_rewind(const struct spmilp_player *player);

/* Read the next command of a list and stay before it; 0 at the end. */
int spmilp_fetch(const struct spmilp_player *player, uint32_t list,
                 struct spmilp_command *command);

/* Run the task or the transfer that has been fetched, and go behind it; behind a wait or a signal
   that has been dealt with. */
void spmilp_do(const struct spmilp_player *player, uint32_t list,
               const struct spmilp_command *command);

#endif
