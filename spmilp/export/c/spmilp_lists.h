#ifndef SPMILP_LISTS_H
#define SPMILP_LISTS_H

/* Command lists as those who run them see them, whatever they are made of: packed bits
   (spmilp_packed.c), or functions (spmilp_host.c). */

#include "spmilp_player.h"

/* What waits and signals do in a run. */
struct spmilp_events {
    int (*wait)(void *context, uint32_t event, uint32_t count); /* 0: it is not over, come back */
    void (*signal)(void *context, uint32_t event);
    void *context;
};

/* Write the constants into the memories, and set all events to 0. */
void spmilp_begin(const struct spmilp_player *player);

/* Go to the beginning of every list, for a run with these events. */
void spmilp_rewind(const struct spmilp_player *player, const struct spmilp_events *events);

/* Whether there is anything to do in a list that has been rewound. */
int spmilp_has_commands(const struct spmilp_player *player, uint32_t list);

/* Run a list up to its end, or to a wait that is not over; 1 at the end. All lists of a run have the
   same events. */
int spmilp_advance(const struct spmilp_player *player, uint32_t list,
                   const struct spmilp_events *events);

#endif
