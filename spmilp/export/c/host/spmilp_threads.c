/* For POSIX threads under -std=c99. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdlib.h>

#include "spmilp_lists.h"

/* Each event has a lock of its own: what is ordered is ordered by the events alone, so that a race
   detector sees a wait that is missing. */
struct event {
    pthread_mutex_t lock;
    pthread_cond_t signalled;
};

enum gate { CLOSED, OPEN, CANCELLED };

struct crew {
    const struct spmilp_player *player;
    struct spmilp_events run;
    struct event *events;
    pthread_mutex_t lock;
    pthread_cond_t opened;
    enum gate gate; /* no list begins before all threads are there */
};

struct worker {
    struct crew *crew;
    uint32_t list;
    pthread_t thread;
};

static int wait_for(void *context, uint32_t number, uint32_t count)
{
    const struct crew *crew = context;
    struct event *event = &crew->events[number];
    uint32_t *value = &crew->player->events[number];
    pthread_mutex_lock(&event->lock);
    while (*value - count > UINT32_MAX / 2U) { /* it is less, modulo 2^32 */
        pthread_cond_wait(&event->signalled, &event->lock);
    }
    if (crew->player->tables->summary[0].scheme == SPMILP_SCHEME_SEMAPHORES) {
        *value -= count;
    }
    pthread_mutex_unlock(&event->lock);
    return 1;
}

static void signal_event(void *context, uint32_t number)
{
    const struct crew *crew = context;
    struct event *event = &crew->events[number];
    pthread_mutex_lock(&event->lock);
    crew->player->events[number]++;
    pthread_cond_broadcast(&event->signalled);
    pthread_mutex_unlock(&event->lock);
}

static enum gate pass_gate(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (crew->gate == CLOSED) {
        pthread_cond_wait(&crew->opened, &crew->lock);
    }
    const enum gate gate = crew->gate;
    pthread_mutex_unlock(&crew->lock);
    return gate;
}

static void set_gate(struct crew *crew, enum gate gate)
{
    pthread_mutex_lock(&crew->lock);
    crew->gate = gate;
    pthread_cond_broadcast(&crew->opened);
    pthread_mutex_unlock(&crew->lock);
}

static void *run_list(void *argument)
{
    const struct worker *worker = argument;
    struct crew *crew = worker->crew;
    if (pass_gate(crew) == OPEN) {
        (void)spmilp_advance(crew->player, worker->list, &crew->run);
    }
    return (void *)0;
}

/* Start a thread for each list that is not empty, and return how many there are. */
static uint32_t start_all(struct crew *crew, struct worker *workers, int *failed)
{
    uint32_t started = 0U;
    spmilp_rewind(crew->player, &crew->run);
    for (uint32_t i = 0; i < crew->player->tables->lists_count && !*failed; i++) {
        if (spmilp_has_commands(crew->player, i)) {
            struct worker *worker = &workers[started];
            worker->crew = crew;
            worker->list = i;
            *failed = pthread_create(&worker->thread, (pthread_attr_t *)0, run_list, worker);
            started += *failed ? 0U : 1U;
        }
    }
    return started;
}

const char *spmilp_play_threads(const struct spmilp_player *player)
{
    const struct spmilp_tables *tables = player->tables;
    const uint32_t count = tables->summary[0].events;
    struct crew crew = {.player = player, .gate = CLOSED};
    struct worker *workers = calloc(tables->lists_count + 1U, sizeof *workers);
    int failed = 0;
    crew.run = (struct spmilp_events){wait_for, signal_event, &crew};
    crew.events = calloc((size_t)count + 1U, sizeof *crew.events);
    if (!workers || !crew.events) {
        free(workers);
        free(crew.events);
        return "there is no memory for threads";
    }
    pthread_mutex_init(&crew.lock, (pthread_mutexattr_t *)0);
    pthread_cond_init(&crew.opened, (pthread_condattr_t *)0);
    for (uint32_t i = 0; i < count; i++) {
        pthread_mutex_init(&crew.events[i].lock, (pthread_mutexattr_t *)0);
        pthread_cond_init(&crew.events[i].signalled, (pthread_condattr_t *)0);
    }
    const uint32_t started = start_all(&crew, workers, &failed);
    set_gate(&crew, failed ? CANCELLED : OPEN);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(workers[i].thread, (void **)0);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_mutex_destroy(&crew.events[i].lock);
        pthread_cond_destroy(&crew.events[i].signalled);
    }
    pthread_mutex_destroy(&crew.lock);
    pthread_cond_destroy(&crew.opened);
    free(workers);
    free(crew.events);
    return failed ? "a thread cannot be started" : (const char *)0;
}
