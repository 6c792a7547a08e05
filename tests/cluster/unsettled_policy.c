#include "tests/cluster/unsettled_policy.h"

#include <string.h>

static void begin(UnsettledPolicy *x, uint32_t at) {
    const ClusterPolicy *p = x->inner[at];
    x->at = at;
    memset(x->state, 0, x->bytes);
    if (p->init != NULL) p->init(x->state, x->setup, x->settings[at], x->loaded[at]);
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)settings;
    UnsettledPolicy *x = (UnsettledPolicy *)(uintptr_t)loaded;
    *(UnsettledPolicy **)state = x;
    x->setup = s;
    begin(x, 0);
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)s;
    (void)settings;
    return sizeof(UnsettledPolicy *);
}

static void scramble(UnsettledPolicy *x, const ClusterView *v) {
    uint32_t classes = x->setup->profiles->n;
    memcpy(x->tasks, v->tasks, x->setup->n_slots * sizeof *x->tasks);
    for (uint32_t i = 0; i < x->setup->n_slots; i++) {
        ClusterTask *t = &x->tasks[i];
        Rng          r = rng_fork(x->rng, t->job.id);
        if (t->job.class != CLUSTER_NONE) t->job.class = (uint32_t)rng_below(&r, classes);
    }
    if (rng_below(&x->rng, 8) == 0) (void)rng_u64(&x->rng);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    UnsettledPolicy *x = *(UnsettledPolicy **)state;
    ClusterView      seen = *v;
    if (x->stay > 0 && rng_below(&x->rng, x->stay) == 0) {
        begin(x, (uint32_t)rng_below(&x->rng, x->n));
        x->switches++;
    }
    if (x->scramble) {
        scramble(x, v);
        seen.tasks = x->tasks;
    }
    return x->inner[x->at]->decide(x->state, &seen, out, max);
}

static ClusterPolicy unsettled = {.name = "unsettled",
                                  .about = "policies that take over from each other",
                                  .knows = CLUSTER_ORACLE,
                                  .preempts = true,
                                  .state_size = state_size,
                                  .init = init,
                                  .decide = decide};

void unsettled_policy_open(UnsettledPolicy *x, ClusterRun *run, Arena *a) {
    ClusterSetup setup;
    if (cluster_setup(run, a, &setup) != ERR_OK) return;
    for (uint32_t i = 0; i < x->n; i++) {
        const ClusterPolicy *p = x->inner[i];
        size_t bytes = p->state_size != NULL ? p->state_size(&setup, x->settings[i]) : 1;
        if (bytes > x->bytes) x->bytes = bytes;
    }
    x->state = arena_alloc(a, x->bytes, 1, 64);
    x->tasks = arena_new(a, ClusterTask, setup.n_slots);
    run->policy = &unsettled;
    run->settings = NULL;
    run->loaded = x;
}
