/* Command lists, transfers and tasks of a plan in the release profile. */

#include "spmilp_packed.h"

#include <string.h>

#include "spmilp_kernels.h"
#include "spmilp_lists.h"
#include "spmilp_memories.h"

struct reader {
    const uint8_t *bits;
    uint32_t at;
};

/* The next `width` bits, the lowest first; at most 32. Four bytes are read at once, on a processor
   whose words begin with their lowest byte; three bytes behind the last are there for that. */
static uint32_t take(struct reader *reader, uint32_t width)
{
    const uint32_t first = reader->at % 8U;
    uint32_t window;
    if (width > 24U) {
        const uint32_t low = take(reader, 16U);
        return low | take(reader, width - 16U) << 16;
    }
    memcpy(&window, reader->bits + reader->at / 8U, sizeof window);
    reader->at += width;
    return window >> first & ((1U << width) - 1U);
}

/* A number of any size: how many bits it has, and those below the highest. */
static uint32_t number(struct reader *reader)
{
    const uint32_t width = take(reader, 5U);
    return width < 2U ? width : 1U << (width - 1U) | take(reader, width - 1U);
}

static struct reader at_row(const struct spmilp_packed *packed,
                            const struct spmilp_packed_table *table, uint32_t row)
{
    struct reader index = {packed->bits, table->at + row * table->width};
    const struct reader found = {packed->bits, take(&index, table->width)};
    return found;
}

/* A template and the numbers that fill its holes. */
struct decoder {
    const struct spmilp_player *player;
    uint32_t own; /* memory of the list's core, or of the owner of its engine */
    uint8_t *workspace;
    int32_t *numbers; /* free room in the workspace */
    struct reader shape, holes;
    uint32_t raws[SPMILP_PACKED_HOLES], count;
};

/* A field: a constant of the template, or base + factor * what fills a new or an earlier hole. */
static uint32_t next(struct decoder *decoder)
{
    struct reader *shape = &decoder->shape;
    uint32_t raw;
    if (!take(shape, 1U)) {
        return number(shape);
    }
    if (take(shape, 1U)) {
        raw = decoder->raws[number(shape)];
    } else {
        raw = take(&decoder->holes, take(shape, 5U));
        if (decoder->count < SPMILP_PACKED_HOLES) {
            decoder->raws[decoder->count++] = raw;
        }
    }
    const uint32_t base = number(shape);
    return base + raw * number(shape);
}

static int32_t *next_numbers(struct decoder *decoder, uint32_t count)
{
    int32_t *first = decoder->numbers;
    for (uint32_t i = 0; i < count; i++) {
        first[i] = (int32_t)next(decoder);
    }
    decoder->numbers += count;
    return first;
}

/* A memory (0: the own one, 1: the workspace), and an offset. */
static uint8_t *next_address(struct decoder *decoder)
{
    const uint32_t space = next(decoder), offset = next(decoder);
    if (space == 1U) {
        return decoder->workspace + offset;
    }
    return decoder->player->memories[space == 0U ? decoder->own : space - 2U] + offset;
}

static void copy_runs(struct decoder *decoder, uint8_t *to, const uint8_t *from)
{
    struct spmilp_loop loops[SPMILP_MAX_RANK];
    const uint32_t run = next(decoder), count = next(decoder);
    for (uint32_t i = 0; i < count; i++) {
        loops[i].count = next(decoder);
        loops[i].source_stride = next(decoder);
        loops[i].destination_stride = next(decoder);
    }
    spmilp_copy(to, from, run, loops, count);
}

static void move(struct decoder *decoder)
{
    const uint32_t copies = next(decoder);
    for (uint32_t i = 0; i < copies; i++) {
        const uint8_t *from = next_address(decoder);
        uint8_t *to = next_address(decoder);
        copy_runs(decoder, to, from);
    }
}

/* What an operator says of an operand: type, shape, scale. An input that is not read has none. */
static void describe(struct decoder *decoder, struct reader *operator_, struct spmilp_box *operand,
                     struct spmilp_scale *scale)
{
    const uint32_t rank = number(operator_);
    if (rank > 0U) {
        operand->type = number(operator_);
        operand->rank = rank - 1U;
        operand->shape = decoder->numbers;
        for (uint32_t i = 0; i < operand->rank; i++) {
            *decoder->numbers++ = (int32_t)number(operator_);
        }
    }
    if (number(operator_)) {
        scale->type = number(operator_);
        scale->axis = (int32_t)number(operator_) - 1;
        scale->scales = number(operator_);
        scale->zeros = number(operator_);
        scale->zero_points = number(operator_);
        operand->scale = scale;
    }
}

/* Box and place of an operand; 1 if it is to be gathered from pieces, or scattered to them. */
static int place(struct decoder *decoder, struct spmilp_box *operand)
{
    const uint32_t is_packed = next(decoder), sums = next(decoder);
    if (sums != 0U) {
        operand->type = sums;
        operand->shape = (const int32_t *)0;
    }
    operand->box = next_numbers(decoder, 2U * operand->rank);
    operand->data = is_packed ? decoder->workspace + next(decoder) : next_address(decoder);
    return is_packed != 0U;
}

static void copy_pieces(struct decoder *decoder, uint8_t *packed, int into_pieces)
{
    const uint32_t pieces = next(decoder);
    for (uint32_t i = 0; i < pieces; i++) {
        uint8_t *piece = next_address(decoder), *inside = packed + next(decoder);
        copy_runs(decoder, into_pieces ? piece : inside, into_pieces ? inside : piece);
    }
}

static void read_operand(struct decoder *decoder, struct spmilp_box *operand)
{
    if (place(decoder, operand)) {
        copy_pieces(decoder, operand->data, 0);
    }
}

static struct spmilp_step step_of(struct reader *operator_, const int32_t *words,
                                  struct spmilp_attribute *attributes)
{
    struct spmilp_step step = {0};
    step.kind = number(operator_);
    step.inputs = number(operator_);
    step.quantised = number(operator_);
    step.limits = number(operator_);
    if (step.limits) {
        const uint32_t first = number(operator_);
        step.low = words[first];
        step.high = words[first + 1U];
    }
    step.attributes = number(operator_);
    for (uint32_t i = 0; i < step.attributes; i++) {
        attributes[i].name = number(operator_);
        attributes[i].type = number(operator_);
        attributes[i].count = number(operator_);
        attributes[i].first = number(operator_);
    }
    return step;
}

static void run_step(struct decoder *decoder, int32_t *numbers)
{
    const struct spmilp_player *player = decoder->player;
    struct spmilp_attribute attributes[SPMILP_PACKED_ATTRIBUTES];
    struct spmilp_scale scales[SPMILP_MAX_INPUTS + 1U];
    const struct spmilp_packed *packed = player->packed;
    struct reader operator_ = at_row(packed, &packed->operators, next(decoder));
    struct spmilp_step step = step_of(&operator_, player->tables->words, attributes);
    struct spmilp_call call = {.step = &step,
                               .attributes = attributes,
                               .words = player->tables->words,
                               .texts = player->tables->texts};
    decoder->numbers = numbers;
    describe(decoder, &operator_, &call.output, &scales[step.inputs]);
    step.part = next(decoder);
    for (uint32_t i = 0; i < step.inputs; i++) {
        describe(decoder, &operator_, &call.inputs[i], &scales[i]);
        if (call.inputs[i].shape) {
            read_operand(decoder, &call.inputs[i]);
        }
    }
    if (next(decoder)) {
        call.previous.rank = call.output.rank;
        read_operand(decoder, &call.previous);
    }
    const int is_packed = place(decoder, &call.output);
    spmilp_kernel_of(step.kind)(&call);
    if (is_packed) {
        copy_pieces(decoder, call.output.data, 1);
    }
}

static void run(struct decoder *decoder)
{
    int32_t *numbers = (int32_t *)(void *)(decoder->workspace + decoder->player->packed->numbers);
    const uint32_t steps = next(decoder);
    for (uint32_t i = 0; i < steps; i++) {
        run_step(decoder, numbers);
    }
}

struct head {
    uint32_t own, event, commands, start;
};

static struct head head_of(const struct spmilp_packed *packed, uint32_t list)
{
    const uint32_t width =
        (uint32_t)packed->own_bits + packed->event_bits + packed->length_bits + packed->start_bits;
    struct reader reader = {packed->bits, packed->lists + list * width};
    struct head head;
    head.own = take(&reader, packed->own_bits);
    head.event = take(&reader, packed->event_bits);
    head.commands = take(&reader, packed->length_bits);
    head.start = packed->commands + take(&reader, packed->start_bits);
    return head;
}

/* Read a command, or what of it stands before the numbers that fill holes. */
static struct reader read_command(const struct spmilp_player *player, uint32_t list,
                                  struct spmilp_command *command)
{
    const struct spmilp_packed *packed = player->packed;
    struct reader reader = {packed->bits, player->positions[2U * list]};
    const int is_core = list < packed->cores;
    command->count = 0U;
    if (!take(&reader, 1U)) {
        command->operation = SPMILP_COMMAND_WAIT;
        command->argument = take(&reader, packed->event_bits);
        command->count = take(&reader, packed->count_bits);
    } else if (take(&reader, 1U)) {
        const uint32_t own_event = head_of(packed, list).event;
        command->operation = SPMILP_COMMAND_SIGNAL;
        command->argument = own_event ? own_event - 1U : take(&reader, packed->event_bits);
    } else {
        command->operation = is_core ? SPMILP_COMMAND_RUN : SPMILP_COMMAND_MOVE;
        command->argument =
            take(&reader, is_core ? packed->tasks.index_bits : packed->transfers.index_bits);
    }
    return reader;
}

const char *spmilp_prepare(const struct spmilp_player *player)
{
    spmilp_begin(player);
    return (const char *)0;
}

void spmilp_rewind(const struct spmilp_player *player, const struct spmilp_events *events)
{
    (void)events;
    for (uint32_t list = 0; list < player->tables->lists_count; list++) {
        const struct head head = head_of(player->packed, list);
        player->positions[2U * list] = head.start;
        player->positions[2U * list + 1U] = head.commands;
    }
}

int spmilp_fetch(const struct spmilp_player *player, uint32_t list,
                 struct spmilp_command *command)
{
    if (player->positions[2U * list + 1U] == 0U) {
        return 0;
    }
    (void)read_command(player, list, command);
    return 1;
}

void spmilp_do(const struct spmilp_player *player, uint32_t list,
               const struct spmilp_command *command)
{
    const struct spmilp_packed *packed = player->packed;
    struct spmilp_command same;
    struct decoder decoder = {.player = player, .own = head_of(packed, list).own};
    decoder.holes = read_command(player, list, &same);
    if (command->operation == SPMILP_COMMAND_RUN) {
        decoder.workspace = player->workspaces[list];
        decoder.shape = at_row(packed, &packed->tasks, command->argument);
        run(&decoder);
    } else if (command->operation == SPMILP_COMMAND_MOVE) {
        decoder.shape = at_row(packed, &packed->transfers, command->argument);
        move(&decoder);
    }
    player->positions[2U * list] = decoder.holes.at;
    player->positions[2U * list + 1U]--;
}
