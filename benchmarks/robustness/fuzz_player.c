/*
 * A target of libFuzzer for the C player. The first byte of a case says what the others are:
 *
 *   0          a binary file of a plan, of which size and checksum are put right before it is opened
 *   n          the inputs of plan n, which then runs
 *
 * Plans are the files that the environment names in SPMILP_PLANS, with colons between. The process ends
 * after SPMILP_SECONDS of processor time, and says how often it has done what.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spmilp_blob.c"
#include "spmilp_files.h"
#include "spmilp_player.h"

#define MOST_PLANS 16U

struct plan {
    uint8_t *blob;
    struct spmilp_tables tables;
    uint8_t **memories, **workspaces;
    uint32_t *events, *positions;
};

static struct plan plans[MOST_PLANS];
static uint32_t plans_count;
static double seconds = 1e9;
static unsigned long opened, refused, runs;

static void *reserved(size_t size)
{
    void *made = calloc(size ? size : 1U, 1U);
    if (!made) {
        abort();
    }
    return made;
}

static void load(struct plan *plan, const char *name)
{
    size_t size = 0U;
    plan->blob = spmilp_read_file(name, &size);
    const char *wrong = plan->blob ? spmilp_open_blob(plan->blob, size, &plan->tables) : "no file";
    if (wrong) {
        fprintf(stderr, "%s: %s\n", name, wrong);
        exit(1);
    }
    const struct spmilp_tables *tables = &plan->tables;
    plan->memories = reserved(tables->memories_count * sizeof(uint8_t *));
    plan->workspaces = reserved(tables->cores_count * sizeof(uint8_t *));
    for (uint32_t i = 0; i < tables->memories_count; i++) {
        plan->memories[i] = reserved((size_t)tables->memories[i].used);
    }
    uint8_t *workspace = reserved((size_t)tables->summary[0].workspace);
    for (uint32_t i = 0; i < tables->cores_count; i++) {
        plan->workspaces[i] = workspace;
    }
    plan->events = reserved(tables->summary[0].events * sizeof(uint32_t));
    plan->positions = reserved(tables->lists_count * sizeof(uint32_t));
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    if (getenv("SPMILP_SECONDS")) {
        seconds = atof(getenv("SPMILP_SECONDS"));
    }
    char *names = strdup(getenv("SPMILP_PLANS"));
    for (char *name = strtok(names, ":"); name; name = strtok((char *)0, ":")) {
        load(&plans[plans_count++], name);
    }
    free(names);
    return 0;
}

/* Open a file, and check what a player checks before it runs one. */
static void open_file(const uint8_t *data, size_t size)
{
    uint8_t *blob = reserved(size);
    struct spmilp_tables tables;
    memcpy(blob, data, size);
    if (size >= HEAD_BYTES + 4U) {
        for (size_t i = 0; i < 4U; i++) {
            blob[12U + i] = (uint8_t)(size >> 8U * i);
        }
        const uint32_t crc = checksum(blob, size - 4U);
        for (size_t i = 0; i < 4U; i++) {
            blob[size - 4U + i] = (uint8_t)(crc >> 8U * i);
        }
    }
    if (spmilp_open_blob(blob, size, &tables) || spmilp_check_tables(&tables)) {
        refused++;
    } else {
        opened++;
    }
    free(blob);
}

static void run(struct plan *plan, const uint8_t *data, size_t size)
{
    const struct spmilp_player player = {&plan->tables, plan->memories, plan->workspaces,
                                         plan->events, plan->positions,
                                         (const struct spmilp_packed *)0};
    const struct spmilp_port *port;
    if (spmilp_prepare(&player)) {
        abort();
    }
    for (uint32_t i = 0; (port = spmilp_find_port(&plan->tables, SPMILP_PORT_INPUT, i)); i++) {
        uint8_t *packed = reserved((size_t)port->bytes);
        const size_t part = size < port->bytes ? size : (size_t)port->bytes;
        memcpy(packed, data, part);
        data += part;
        size -= part;
        spmilp_write_input(&player, port, packed);
        free(packed);
    }
    if (spmilp_play_loop(&player)) {
        abort();
    }
    for (uint32_t i = 0; (port = spmilp_find_port(&plan->tables, SPMILP_PORT_OUTPUT, i)); i++) {
        uint8_t *packed = reserved((size_t)port->bytes);
        spmilp_read_output(&player, port, packed);
        free(packed);
    }
    runs++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if ((double)clock() / CLOCKS_PER_SEC > seconds) {
        printf("%lu files opened, %lu refused, %lu runs\n", opened, refused, runs);
        fflush(stdout);
        _Exit(0);
    }
    if (size == 0U) {
        return 0;
    }
    if (data[0] % (plans_count + 1U) == 0U) {
        open_file(data + 1, size - 1U);
    } else {
        run(&plans[data[0] % (plans_count + 1U) - 1U], data + 1, size - 1U);
    }
    return 0;
}
