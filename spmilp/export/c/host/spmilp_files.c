#include "spmilp_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

uint8_t *spmilp_read_file(const char *name, size_t *size)
{
    FILE *file = fopen(name, "rb");
    uint8_t *data = (uint8_t *)0;
    long end = -1;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        end = ftell(file);
    }
    if (end >= 0 && fseek(file, 0, SEEK_SET) == 0) {
        *size = (size_t)end;
        data = malloc(*size + 1U);
        if (data && fread(data, 1U, *size, file) != *size) {
            free(data);
            data = (uint8_t *)0;
        }
    }
    if (file) {
        fclose(file);
    }
    return data;
}

static int give_input(const struct spmilp_player *player, const struct spmilp_port *port,
                      const char *name)
{
    size_t size = 0U;
    uint8_t *data = spmilp_read_file(name, &size);
    if (!data) {
        return fail(name, "cannot be read");
    }
    if (size != port->bytes) {
        fprintf(stderr, "%s: %lu B, but the input has %lu B\n", name, (unsigned long)size,
                (unsigned long)port->bytes);
        free(data);
        return 1;
    }
    spmilp_write_input(player, port, data);
    free(data);
    return 0;
}

static int take_output(const struct spmilp_player *player, const struct spmilp_port *port,
                       const char *name)
{
    const size_t size = (size_t)port->bytes;
    uint8_t *data = malloc(size + 1U);
    if (!data) {
        return fail(name, "no memory for an output");
    }
    spmilp_read_output(player, port, data);
    FILE *file = fopen(name, "wb");
    int failed = !file || fwrite(data, 1U, size, file) != size;
    if (file && fclose(file) != 0) {
        failed = 1;
    }
    free(data);
    return failed ? fail(name, "cannot be written") : 0;
}

/* Do the same with the file of each port of a direction. */
typedef int exchange(const struct spmilp_player *player, const struct spmilp_port *port,
                     const char *name);

static int with_all(const struct spmilp_player *player, uint32_t direction, exchange *with,
                    char *const **arguments, char *const *end)
{
    const struct spmilp_port *port;
    for (uint32_t i = 0; (port = spmilp_find_port(player->tables, direction, i)); i++) {
        if (*arguments == end) {
            return fail("arguments", "expected a file for each input, then one for each output");
        }
        if (with(player, port, *(*arguments)++)) {
            return 1;
        }
    }
    return 0;
}

int spmilp_play_files(const struct spmilp_player *player, int count, char *const *arguments)
{
    char *const *end = arguments + count;
    char *const *next = arguments + 1;
    const int in_loop = next < end && strcmp(*next, "--loop") == 0;
    next += in_loop;
    if (with_all(player, SPMILP_PORT_INPUT, give_input, &next, end)) {
        return 1;
    }
    const char *wrong = in_loop ? spmilp_play_loop(player) : spmilp_play_threads(player);
    if (wrong) {
        return fail("plan", wrong);
    }
    if (with_all(player, SPMILP_PORT_OUTPUT, take_output, &next, end)) {
        return 1;
    }
    return next == end ? 0 : fail(*next, "is a file too many");
}
