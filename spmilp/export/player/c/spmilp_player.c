#include "spmilp_player.h"

#include "spmilp_kernels.h"
#include "spmilp_lists.h"
#include "spmilp_memories.h"

static const char *check_step(const struct spmilp_step *step)
{
    if (!spmilp_kernel_of(step->kind)) {
        return "there is no kernel for an operator of the plan";
    }
    if (step->inputs > SPMILP_MAX_INPUTS) {
        return "an operator has more inputs than SPMILP_MAX_INPUTS";
    }
    return (const char *)0;
}

static const char *check_view(const struct spmilp_view *view)
{
    if (view->rank > SPMILP_MAX_RANK) {
        return "a tensor has more axes than SPMILP_MAX_RANK";
    }
    if (spmilp_item(view->type) == 0U) {
        return "there are no kernels for a type of elements of the plan";
    }
    return (const char *)0;
}

const char *spmilp_check_tables(const struct spmilp_tables *tables)
{
    const char *wrong = (const char *)0;
    if (tables->image_count > 0U && !tables->image) {
        return "the image is not in the program: set tables.image";
    }
    for (uint32_t i = 0; i < tables->memories_count; i++) {
        if (tables->memories[i].used > SIZE_MAX) {
            return "a memory is larger than what this machine can address";
        }
    }
    for (uint32_t i = 0; i < tables->copies_count; i++) {
        if (tables->copies[i].loops > SPMILP_MAX_RANK) {
            return "a transfer has more loops than SPMILP_MAX_RANK";
        }
    }
    for (uint32_t i = 0; i < tables->tasks_count; i++) {
        if (tables->tasks[i].steps == 0U) {
            return "the tables do not say what tasks compute: export them with --model";
        }
    }
    for (uint32_t i = 0; i < tables->views_count && !wrong; i++) {
        wrong = check_view(&tables->views[i]);
    }
    for (uint32_t i = 0; i < tables->steps_count && !wrong; i++) {
        wrong = check_step(&tables->steps[i]);
    }
    return wrong;
}

const char *spmilp_prepare(const struct spmilp_player *player)
{
    const struct spmilp_tables *tables = player->tables;
    const char *wrong = spmilp_check_tables(tables);
    if (!wrong) {
        spmilp_begin(player);
    }
    return wrong;
}

void spmilp_move(const struct spmilp_player *player, uint32_t transfer)
{
    const struct spmilp_tables *tables = player->tables;
    const struct spmilp_transfer *move = &tables->transfers[transfer];
    for (uint32_t i = 0; i < move->copies; i++) {
        const struct spmilp_copy *copy = &tables->copies[move->first_copy + i];
        spmilp_copy(player->memories[copy->destination_memory] + (size_t)copy->destination,
                    player->memories[copy->source_memory] + (size_t)copy->source, copy->run,
                    &tables->loops[copy->first_loop], copy->loops);
    }
}

void spmilp_rewind(const struct spmilp_player *player, const struct spmilp_events *events)
{
    (void)events;
    for (uint32_t list = 0; list < player->tables->lists_count; list++) {
        player->positions[list] = 0U;
    }
}

int spmilp_fetch(const struct spmilp_player *player, uint32_t list,
                 struct spmilp_command *command)
{
    const struct spmilp_list *row = &player->tables->lists[list];
    if (player->positions[list] == row->commands) {
        return 0;
    }
    *command = player->tables->commands[row->first_command + player->positions[list]];
    return 1;
}

void spmilp_do(const struct spmilp_player *player, uint32_t list,
               const struct spmilp_command *command)
{
    if (command->operation == SPMILP_COMMAND_RUN) {
        spmilp_run_task(player, command->argument);
    } else if (command->operation == SPMILP_COMMAND_MOVE) {
        spmilp_move(player, command->argument);
    }
    player->positions[list]++;
}
