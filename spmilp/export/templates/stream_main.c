/*
 * A program that runs a plan; @MAKEFILE@ builds it.
 *
@STAMP@
 */

/* Runs a stream on a host: PROGRAM [--loop] INPUT... OUTPUT... Files have those of all inferences,
   one behind the other; those of states, behind the others, have what the first one begins with. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "@NAME@.h"
#include "@PROGRAM@_program.h"

static const struct spmilp_player *const player = &@PROGRAM@_program;
static char *const *inputs, *const *outputs;
static uint64_t given[(@UPPER_PROGRAM@_PROGRAM_LARGEST_PORT_BYTES + 7U) / 8U];
static uint64_t taken[(@UPPER_PROGRAM@_PROGRAM_LARGEST_PORT_BYTES + 7U) / 8U];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static const struct spmilp_port *find(uint32_t direction, uint32_t number)
{
    return spmilp_find_port(player->tables, direction, number);
}

static FILE *open_at(const char *name, const char *mode, size_t place)
{
    FILE *file = fopen(name, mode);
    if (!file || fseek(file, (long)place, SEEK_SET) != 0) {
        fail(name);
    }
    return file;
}

int spmilp_hand_in(uint32_t inference)
{
    for (uint32_t i = 0; i < @INPUT_PORTS@U; i++) {
        const struct spmilp_port *port =
            find(SPMILP_PORT_INPUT, i + inference % @ROUNDS@U * @INPUT_PORTS@U);
        const size_t size = (size_t)port->bytes;
        FILE *file = open_at(inputs[i], "rb", size * inference);
        if (fread(given, 1U, size, file) != size) {
            fail(inputs[i]);
        }
        fclose(file);
        spmilp_write_input(player, port, (const uint8_t *)given);
    }
    return 1;
}

int spmilp_take(uint32_t inference)
{
    for (uint32_t i = 0; i < @OUTPUT_PORTS@U; i++) {
        const struct spmilp_port *port =
            find(SPMILP_PORT_OUTPUT, i + inference % @ROUNDS@U * @OUTPUT_PORTS@U);
        const size_t size = (size_t)port->bytes;
        FILE *file = open_at(outputs[i], inference > 0U ? "r+b" : "wb", size * inference);
        spmilp_read_output(player, port, (uint8_t *)taken);
        if (fwrite(taken, 1U, size, file) != size || fclose(file) != 0) {
            fail(outputs[i]);
        }
    }
    return 1;
}

int main(int count, char **arguments)
{
    const char *wrong = @PROGRAM@_program_prepare();
    const int in_loop = count > 1 && strcmp(arguments[1], "--loop") == 0;
    const struct spmilp_port *first = find(SPMILP_PORT_INPUT, 0U);
    inputs = arguments + 1 + in_loop;
    outputs = inputs + @INPUT_PORTS@ + @STATES@;
    if (wrong || !first || count != 1 + in_loop + @INPUT_PORTS@ + @STATES@ + @OUTPUT_PORTS@) {
        fprintf(stderr, "%s\n", wrong ? wrong : "expected a file for each input, then one for each output");
        return 1;
    }
    FILE *file = open_at(inputs[0], "rb", 0U);
    if (fseek(file, 0, SEEK_END) != 0) {
        fail(inputs[0]);
    }
    @NAME@_inferences = (uint32_t)((size_t)ftell(file) / (size_t)first->bytes);
    fclose(file);
@BEGIN@    wrong = in_loop ? spmilp_play_loop(player) : spmilp_play_threads(player);
    if (wrong) {
        fprintf(stderr, "plan: %s\n", wrong);
    }
    return wrong != (const char *)0;
}
