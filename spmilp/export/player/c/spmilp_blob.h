#ifndef SPMILP_BLOB_H
#define SPMILP_BLOB_H

/* Tables in a binary file (plan.spmb) that has been loaded into memory. */

#include <stddef.h>
#include <stdint.h>

#include "spmilp_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Point `tables` at the rows of a file. `data` must be aligned to 8 bytes and stay where it is.
 * Returns null, or a text that says what is wrong with the file.
 */
const char *spmilp_open_blob(const uint8_t *data, size_t size, struct spmilp_tables *tables);

#ifdef __cplusplus
}
#endif

#endif
