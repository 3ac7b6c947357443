#ifndef SPMILP_FILES_H
#define SPMILP_FILES_H

/* A program of a host that takes inputs from files and writes outputs to files. */

#include <stddef.h>

#include "spmilp_player.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Run a prepared player. Arguments: `--loop` for one loop in place of threads, then a file for each
 * input and one for each output, in the model's order; a file is packed elements, row major, of the
 * machine's byte order. Returns what main returns; what went wrong is on stderr.
 */
int spmilp_play_files(const struct spmilp_player *player, int count, char *const *arguments);

/* Return a whole file in memory that the caller frees, and its size; null if it cannot be read. */
uint8_t *spmilp_read_file(const char *name, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
