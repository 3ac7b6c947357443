/* Command lists, transfers and tasks of a plan in bits. */

#include "spmilp_packed.h"

#include <string.h>

#include "spmilp_bits.h"
#include "spmilp_kernels.h"
#include "spmilp_lists.h"
#include "spmilp_memories.h"

/* A template and the numbers that fill its holes. */
struct decoder {
    const struct spmilp_player *player;
    uint32_t own; /* memory of the list's core, or of the owner of its engine */
    uint8_t *workspace;
    int32_t *numbers; /* free room in the workspace */
    struct reader shape, holes[1U + SPMILP_PACKED_GROUPS]; /* those of the command, and of tables */
    uint32_t group_bits;
    uint32_t raws[SPMILP_PACKED_HOLES], count;
};

/* Begin with a template: where the rows are of the tables that fill holes. */
static void open_template(struct decoder *decoder, struct reader shape)
{
    const uint32_t groups = take(&shape, 2U);
    decoder->group_bits = groups ? 2U : 0U;
    for (uint32_t i = 1U; i <= groups; i++) {
        const uint32_t at = number(&shape), width = number(&shape);
        decoder->holes[i].bits = shape.bits;
        decoder->holes[i].at = at + width * take(&decoder->holes[0], take(&shape, 5U));
    }
    decoder->shape = shape;
}

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
        const uint32_t width = take(shape, 5U);
        raw = take_wide(&decoder->holes[take(shape, decoder->group_bits)], width);
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
    operand->data = next_address(decoder);
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

enum operation { WAIT, SIGNAL, RUN, MOVE, APPLY, PASS };

/* The event, the event, the task's template, or the transfer's, or the application's inference;
   `count` of a wait, and where the bits begin that fill the holes of a template. */
struct command {
    enum operation operation;
    uint32_t argument, count, at;
};

struct head {
    uint32_t own, event, commands, start;
};

/* Where a list is: its next command; how many are left, and what is before it; and, once it has
   been read, where it ends, and what it is for the command behind it. Two bits each say what. */
enum position { AT, LEFT, BEHIND, WORDS };
#define CONTEXT_BITS 2U

/* Behind all these, the turns of a stream that each list has begun; 0 before its loop. */
static uint32_t *turn_of(const struct spmilp_player *player, uint32_t list)
{
    return &player->positions[WORDS * player->tables->lists_count + list];
}

static struct head head_of(const struct spmilp_player *player, uint32_t list)
{
    const struct spmilp_packed *packed = player->packed;
    const uint8_t *bits = packed->head_bits;
    const uint32_t width = (uint32_t)bits[0] + bits[1] + bits[2] + bits[3];
    const int in_loop = player->stream && *turn_of(player, list) > 0U;
    const uint32_t row = in_loop ? player->tables->lists_count + list : list;
    struct reader reader = {packed->bits, packed->lists + row * width};
    struct head head;
    head.own = take(&reader, bits[0]);
    head.event = take(&reader, bits[1]);
    head.commands = take_wide(&reader, bits[2]);
    head.start = packed->commands + take_wide(&reader, bits[3]);
    return head;
}

/* Codes of a kind of list: of commands by what is before them, and of what follows some. */
enum code { AFTER_SIGNAL, AFTER_WAIT, AFTER_WORK = 3, EVENT, COUNT, SIGNALLED = 7, CODES };

static uint32_t next_symbol(const struct spmilp_packed *packed, struct reader *reader,
                            uint32_t list, uint32_t code)
{
    const uint32_t own = list < packed->cores ? code : code + (uint32_t)CODES;
    return symbol(reader, at_row(packed, &packed->codes, own));
}

/* The count of a wait: how far it is from the share of the event's signals that is the list's own
   share of commands; 0, -1, 1, -2 and so on. In a stream the event's signals of each turn are
   added; of a semaphore the number is the first turn that waits, for 1. */
static uint32_t count_of(const struct spmilp_player *player, uint32_t list, uint32_t left,
                         uint32_t event, uint32_t folded)
{
    const uint32_t total = entry(player->packed, &player->packed->totals, event);
    const uint32_t turn = player->stream ? *turn_of(player, list) : 0U;
    uint32_t likely = 0U;
    if (total > 0U) {
        const uint32_t commands = head_of(player, list).commands;
        likely = total * (commands - left) / commands + total * turn;
    }
    const uint32_t count = folded % 2U ? likely - (folded + 1U) / 2U : likely + folded / 2U;
    const int takes = player->tables->summary[0].scheme == SPMILP_SCHEME_SEMAPHORES;
    return player->stream && takes ? (uint32_t)(turn >= count) : count;
}

const char *spmilp_prepare(const struct spmilp_player *player)
{
    spmilp_begin(player);
    return (const char *)0;
}

static void begin(const struct spmilp_player *player, uint32_t list)
{
    const struct head head = head_of(player, list);
    player->positions[WORDS * list + AT] = head.start;
    player->positions[WORDS * list + LEFT] = head.commands << CONTEXT_BITS | AFTER_SIGNAL;
}

void spmilp_rewind(const struct spmilp_player *player, const struct spmilp_events *events)
{
    (void)events;
    for (uint32_t list = 0; list < player->tables->lists_count; list++) {
        if (player->stream) {
            *turn_of(player, list) = 0U;
        }
        begin(player, list);
    }
}

/* Go to the next turn of a stream; 0 if there is none, or the list has nothing to do in it. */
static int next_turn(const struct spmilp_player *player, uint32_t list)
{
    const struct spmilp_packed_stream *stream = player->stream;
    if (!stream || *turn_of(player, list) >= *stream->inferences + stream->last_stage) {
        return 0;
    }
    ++*turn_of(player, list);
    begin(player, list);
    return head_of(player, list).commands > 0U;
}

/* What a task or transfer of a stream does in this turn, if its inference is there. */
static void in_round(const struct spmilp_player *player, uint32_t list, struct reader *reader,
                     struct command *command)
{
    const uint32_t inference = *turn_of(player, list) - number(reader);
    const uint32_t rounds = number(reader), first = number(reader);
    if (inference >= *player->stream->inferences) {
        command->operation = PASS;
    } else if (rounds == 0U) {
        command->operation = APPLY;
        command->argument = inference;
    } else {
        struct reader way = {reader->bits, entry(player->packed, &player->stream->ways,
                                                 first + inference % rounds)};
        command->argument = number(&way);
        command->at = way.at;
    }
}

/* Read the next command of a list and stay before it; 0 at the end. */
static int fetch(const struct spmilp_player *player, uint32_t list, struct command *command)
{
    const struct spmilp_packed *packed = player->packed;
    uint32_t *position = &player->positions[WORDS * list];
    uint32_t kind, context;
    if (position[LEFT] >> CONTEXT_BITS == 0U && !next_turn(player, list)) {
        return 0;
    }
    const uint32_t left = position[LEFT] >> CONTEXT_BITS;
    struct reader reader = {packed->bits, position[AT]};
    kind = next_symbol(packed, &reader, list, position[LEFT] % (1U << CONTEXT_BITS));
    command->count = 0U;
    if (kind == 0U) {
        const uint32_t event = next_symbol(packed, &reader, list, EVENT);
        const uint32_t is_other = event < packed->cores ? 0U : 1U;
        const uint32_t folded = next_symbol(packed, &reader, list, COUNT + is_other);
        command->operation = WAIT;
        command->argument = event;
        command->count = count_of(player, list, left, event, folded);
        context = AFTER_WAIT + is_other;
    } else if (kind == 1U) {
        const uint32_t own_event = head_of(player, list).event;
        command->operation = SIGNAL;
        command->argument =
            own_event ? own_event - 1U : next_symbol(packed, &reader, list, SIGNALLED);
        context = AFTER_SIGNAL;
    } else {
        command->operation = list < packed->cores ? RUN : MOVE;
        command->argument = kind - 2U;
        command->at = reader.at;
        if (player->stream) {
            in_round(player, list, &reader, command);
        }
        context = AFTER_WORK;
    }
    position[BEHIND] = reader.at << CONTEXT_BITS | context;
    return 1;
}

/* Run a task or move a transfer; return where the bits end that fill its holes. */
static uint32_t work(const struct spmilp_player *player, uint32_t list,
                     const struct command *command)
{
    const struct spmilp_packed *packed = player->packed;
    struct decoder decoder = {.player = player, .own = head_of(player, list).own};
    decoder.holes[0].bits = packed->bits;
    decoder.holes[0].at = command->at;
    if (command->operation == RUN) {
        decoder.workspace = player->workspaces[list];
        open_template(&decoder, at_row(packed, &packed->tasks, command->argument));
        run(&decoder);
    } else {
        open_template(&decoder, at_row(packed, &packed->transfers, command->argument));
        move(&decoder);
    }
    return decoder.holes[0].at;
}

/* Run the task or the transfer that has been fetched, and go behind it; behind a wait or a signal
   that has been dealt with. */
static void finish(const struct spmilp_player *player, uint32_t list,
                   const struct command *command)
{
    uint32_t *position = &player->positions[WORDS * list];
    const uint32_t context = position[BEHIND] % (1U << CONTEXT_BITS);
    position[AT] = position[BEHIND] >> CONTEXT_BITS;
    position[LEFT] = ((position[LEFT] >> CONTEXT_BITS) - 1U) << CONTEXT_BITS | context;
    if (command->operation == RUN || command->operation == MOVE) {
        const uint32_t behind = work(player, list, command);
        position[AT] = player->stream ? position[AT] : behind;
    }
}

int spmilp_has_commands(const struct spmilp_player *player, uint32_t list)
{
    struct command first;
    return fetch(player, list, &first);
}

int spmilp_advance(const struct spmilp_player *player, uint32_t list,
                   const struct spmilp_events *events)
{
    struct command command;
    while (fetch(player, list, &command)) {
        if (command.operation == WAIT &&
            !events->wait(events->context, command.argument, command.count)) {
            return 0;
        }
        if (command.operation == APPLY &&
            !(list + 2U == player->packed->cores ? player->stream->hand_in
                                                 : player->stream->take)(command.argument)) {
            return 0;
        }
        if (command.operation == SIGNAL) {
            events->signal(events->context, command.argument);
        }
        finish(player, list, &command);
    }
    return 1;
}
