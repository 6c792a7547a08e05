// The loader's thread has normal priority, because `settle` holds locks that others wait for;
// `work` runs on a background thread of low priority.
#include "serve/models/loader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "node/live/background.h"

enum {
    ROW_MOST = 4,      // urgent jobs in a row, before one that is not
    NICE_BESIDE = 10,  // niceness while models are served
    NICE_PACED = 19,
};

struct Loader {
    Loop           *loop;
    pthread_t       thread;
    pthread_mutex_t lock;
    pthread_cond_t  more;
    LoaderJob      *first[2], **last[2];  // urgent jobs; others
    double          share;
    uint32_t        in_a_row;  // urgent jobs taken while others wait
    bool            stop;
};

static LoaderJob *take(Loader *l, double *share) {
    CHECK(pthread_mutex_lock(&l->lock) == 0);
    while (l->first[0] == NULL && l->first[1] == NULL && !l->stop)
        CHECK(pthread_cond_wait(&l->more, &l->lock) == 0);
    bool       turn = l->first[1] != NULL && l->in_a_row >= ROW_MOST;
    uint32_t   k = l->first[0] != NULL && !turn ? 0 : 1;
    LoaderJob *j = l->stop ? NULL : l->first[k];
    if (j != NULL) {
        l->in_a_row = k == 0 && l->first[1] != NULL ? l->in_a_row + 1 : 0;
        l->first[k] = j->next;
        if (l->first[k] == NULL) l->last[k] = &l->first[k];
    }
    *share = l->share;
    CHECK(pthread_mutex_unlock(&l->lock) == 0);
    return j;
}

static Err do_work(LoaderJob *j, double share) {
    Background *b = NULL;
    if (j->work == NULL) return ERR_OK;
    if (j->quick) return j->work(j->self);
    // Niceness, not idle priority: on a busy machine an idle-priority thread might never run.
    if (j->paced)
        TRY(background_nice(&b, 1, NICE_PACED, j->work, j->self));
    else
        TRY(background_nice(&b, share, share < 1 ? NICE_BESIDE : 0, j->work, j->self));
    return background_join(b);
}

static void begin(void *self) {
    LoaderJob *j = self;
    j->begun(j->self);
}

static void finish(void *self) {
    LoaderJob *j = self;
    j->done(j->self, j->result, j->why);
}

static void *serve(void *self) {
    Loader    *l = self;
    LoaderJob *j = NULL;
    double     share = 1;
    while ((j = take(l, &share)) != NULL) {
        j->began = clock_monotonic_ns();
        j->begin_post = (LoopPost){.run = begin, .self = j};
        if (j->begun != NULL) loop_post(l->loop, &j->begin_post);
        Err e = do_work(j, share);
        if (j->settle != NULL) e = j->settle(j->self, e);
        j->result = e;
        (void)snprintf(j->why, sizeof j->why, "%s", e != ERR_OK ? err_why() : "");
        j->post = (LoopPost){.run = finish, .self = j};
        loop_post(l->loop, &j->post);
    }
    return NULL;
}

Err loader_create(Loader **out, Loop *loop) {
    Loader *l = calloc(1, sizeof *l);
    if (l == NULL) return err_set(ERR_LIMIT, "out of memory for the loader");
    l->loop = loop;
    l->share = 1;
    for (uint32_t k = 0; k < 2; k++) l->last[k] = &l->first[k];
    CHECK(pthread_mutex_init(&l->lock, NULL) == 0 && pthread_cond_init(&l->more, NULL) == 0);
    Err e = thread_start(&l->thread, "loader", serve, l);
    if (e == ERR_OK)
        *out = l;
    else
        free(l);
    return e;
}

void loader_destroy(Loader *l) {
    if (l == NULL) return;
    CHECK(pthread_mutex_lock(&l->lock) == 0);
    l->stop = true;
    CHECK(pthread_cond_signal(&l->more) == 0);
    CHECK(pthread_mutex_unlock(&l->lock) == 0);
    CHECK(pthread_join(l->thread, NULL) == 0);
    CHECK(pthread_cond_destroy(&l->more) == 0 && pthread_mutex_destroy(&l->lock) == 0);
    free(l);
}

void loader_put(Loader *l, LoaderJob *j) {
    j->next = NULL;
    CHECK(pthread_mutex_lock(&l->lock) == 0);
    uint32_t k = j->urgent ? 0 : 1;
    *l->last[k] = j;
    l->last[k] = &j->next;
    CHECK(pthread_cond_signal(&l->more) == 0);
    CHECK(pthread_mutex_unlock(&l->lock) == 0);
}

void loader_share(Loader *l, double of_core) {
    CHECK(pthread_mutex_lock(&l->lock) == 0);
    l->share = of_core;
    CHECK(pthread_mutex_unlock(&l->lock) == 0);
}
