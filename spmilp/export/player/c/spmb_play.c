/* Runs any plan: plan.spmb, then the arguments of spmilp_play_files. */

#include <stdio.h>
#include <stdlib.h>

#include "spmilp_blob.h"
#include "spmilp_files.h"

/* Rows of bytes, each as long as `sizes` says; null if there is no memory for them. */
struct rows {
    uint8_t **each;
    uint32_t count;
};

static void release(struct rows *rows)
{
    for (uint32_t i = 0; rows->each && i < rows->count; i++) {
        free(rows->each[i]);
    }
    free(rows->each);
}

static int reserve(struct rows *rows, uint32_t row, uint64_t size)
{
    rows->each[row] = size < SIZE_MAX ? calloc((size_t)size + 1U, 1U) : (void *)0;
    return rows->each[row] != (uint8_t *)0;
}

static int play(const struct spmilp_player *player, int count, char *const *arguments)
{
    const char *wrong = spmilp_prepare(player);
    if (wrong) {
        fprintf(stderr, "plan: %s\n", wrong);
        return 1;
    }
    return spmilp_play_files(player, count, arguments);
}

static int reserve_and_play(const struct spmilp_tables *tables, int count, char *const *arguments)
{
    struct rows memories = {calloc(tables->memories_count + 1U, sizeof(uint8_t *)),
                            tables->memories_count};
    struct rows workspaces = {calloc(tables->cores_count + 1U, sizeof(uint8_t *)),
                              tables->cores_count};
    uint32_t *events = calloc((size_t)tables->summary[0].events + 1U, sizeof *events);
    uint32_t *positions = calloc((size_t)tables->lists_count + 1U, sizeof *positions);
    int there = memories.each && workspaces.each && events && positions;
    for (uint32_t i = 0; there && i < memories.count; i++) {
        there = reserve(&memories, i, tables->memories[i].used);
    }
    for (uint32_t i = 0; there && i < workspaces.count; i++) {
        if (tables->lists[tables->cores[i].list].commands > 0U) {
            there = reserve(&workspaces, i, tables->summary[0].workspace);
        }
    }
    int result = 1;
    if (there) {
        const struct spmilp_player player = {.tables = tables,
                                         .memories = memories.each,
                                         .workspaces = workspaces.each,
                                         .events = events,
                                         .positions = positions};
        result = play(&player, count, arguments);
    } else {
        fprintf(stderr, "plan: there is no memory for it\n");
    }
    release(&memories);
    release(&workspaces);
    free(events);
    free(positions);
    return result;
}

int main(int count, char **arguments)
{
    struct spmilp_tables tables;
    size_t size = 0U;
    uint8_t *blob = count > 1 ? spmilp_read_file(arguments[1], &size) : (uint8_t *)0;
    const char *wrong = "usage: spmb_play plan.spmb [--loop] INPUT... OUTPUT...";
    if (blob) {
        wrong = spmilp_open_blob(blob, size, &tables);
    }
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        free(blob);
        return 1;
    }
    const int result = reserve_and_play(&tables, count - 1, arguments + 1);
    free(blob);
    return result;
}
