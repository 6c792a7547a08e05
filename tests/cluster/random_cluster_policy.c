#include "tests/cluster/random_cluster_policy.h"

#include <string.h>

#include "base/err.h"

enum { SLICES = 16384, STARTS = 200 };

typedef struct RandomPolicy {
    Rng                  rng;
    RandomPolicySettings with;
    ClusterSlice         slices[SLICES];
    uint32_t             n;
    uint32_t             cores[RANDOM_SERVERS], memory[RANDOM_SERVERS];
    uint32_t             parts[RANDOM_SERVERS][RANDOM_GPUS];
    uint64_t             there[RANDOM_SERVERS][RANDOM_GPUS];  // classes of those there, as bits
} RandomPolicy;

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)s;
    (void)settings;
    return sizeof(RandomPolicy);
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    RandomPolicy *w = state;
    w->rng = s->rng;
    w->with = *(const RandomPolicySettings *)settings;
    CHECK(s->n_servers == RANDOM_SERVERS && s->most_gpus == RANDOM_GPUS);
}

static bool chance(RandomPolicy *w, uint64_t in) { return rng_below(&w->rng, in) == 0; }

// `there` keeps classes that left the GPU until the next call.
static bool may_join(const ClusterSetup *s, uint64_t there, const ClusterJob *j) {
    if (s->profiles == NULL || j->class == CLUSTER_NONE) return true;
    for (uint32_t c = 0; c < s->profiles->n; c++)
        if ((there >> c & 1) != 0 && !(profile_pair(s->profiles, j->class, c) > 0)) return false;
    return true;
}

static void move_in(RandomPolicy *w, const ClusterJob *j, const ClusterSlice *s) {
    for (uint32_t g = 0; g < RANDOM_GPUS; g++) {
        if ((s->mask >> g & 1) == 0) continue;
        w->parts[s->server][g] -= s->gpu_milli;
        if (j->class != CLUSTER_NONE) w->there[s->server][g] |= UINT64_C(1) << j->class;
    }
    w->cores[s->server] -= s->cores_milli;
    w->memory[s->server] -= s->memory_mib;
}

static void move_out(RandomPolicy *w, const ClusterSlice *s) {
    for (uint32_t g = 0; g < RANDOM_GPUS; g++)
        if ((s->mask >> g & 1) != 0) w->parts[s->server][g] += s->gpu_milli;
    w->cores[s->server] += s->cores_milli;
    w->memory[s->server] += s->memory_mib;
}

static void look(RandomPolicy *w, const ClusterView *v) {
    memset(w->there, 0, sizeof w->there);
    w->n = 0;
    for (uint32_t i = 0; i < RANDOM_SERVERS; i++) {
        w->cores[i] = v->servers[i].cores_milli;
        w->memory[i] = v->servers[i].memory_mib;
        for (uint32_t g = 0; g < RANDOM_GPUS; g++) w->parts[i][g] = v->servers[i].parts[g];
    }
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        for (uint32_t k = 0; k < t->n_slices; k++)
            for (uint32_t g = 0; t->job.class != CLUSTER_NONE && g < RANDOM_GPUS; g++)
                if ((t->slices[k].mask >> g & 1) != 0)
                    w->there[t->slices[k].server][g] |= UINT64_C(1) << t->job.class;
    }
}

// Rarely 0, so that jobs end.
static uint32_t some(RandomPolicy *w, uint32_t most) {
    if (chance(w, 100)) return 0;
    return chance(w, 3) ? most : most / 4 + (uint32_t)rng_below(&w->rng, most - most / 4 + 1);
}

static uint32_t share(RandomPolicy *w, const ClusterView *v, const ClusterJob *j) {
    bool may = v->setup->profiles != NULL && j->gpus > 0;
    return may && chance(w, 2) ? 1 + some(w, j->gpu_milli - 1) : j->gpu_milli;
}

static bool suits(const ClusterView *v, const ClusterJob *j, uint32_t server) {
    return j->gpu_types == 0 || (j->gpu_types >> v->setup->servers[server].type & 1) != 0;
}

static uint32_t gpus_of(RandomPolicy *w, const ClusterJob *j) {
    if (j->gpus_max == 0) return j->gpus;
    return j->gpus_min + (uint32_t)rng_below(&w->rng, j->gpus_max - j->gpus_min + 1);
}

static bool place(RandomPolicy *w, const ClusterView *v, const ClusterJob *j, ClusterAction *out) {
    uint32_t first = w->n, left = gpus_of(w, j),
             turn = (uint32_t)rng_below(&w->rng, RANDOM_SERVERS);
    uint32_t milli = share(w, v, j);
    for (uint32_t k = 0; k < RANDOM_SERVERS && (left > 0 || w->n == first); k++) {
        ClusterSlice s = {.server = (turn + k) % RANDOM_SERVERS, .gpu_milli = milli};
        if (!suits(v, j, s.server)) continue;
        for (uint32_t g = 0; g < RANDOM_GPUS && s.gpus < left; g++) {
            if (w->parts[s.server][g] < milli || chance(w, 4)) continue;
            if (!may_join(v->setup, w->there[s.server][g], j)) continue;
            s.mask |= UINT64_C(1) << g;
            s.gpus++;
        }
        if (s.gpus == 0 && j->gpus > 0) continue;
        s.cores_milli = some(w, w->cores[s.server] / 2);
        s.memory_mib = some(w, w->memory[s.server] / 2);
        left -= s.gpus;
        move_in(w, j, &s);
        w->slices[w->n++] = s;
    }
    if (left > 0)
        while (w->n > first) move_out(w, &w->slices[--w->n]);
    *out = (ClusterAction){
        .verb = CLUSTER_START, .slices = w->slices + first, .n_slices = w->n - first};
    return left == 0;
}

static uint32_t spare(const RandomPolicy *w, const ClusterSlice *s) {
    uint32_t least = CLUSTER_WHOLE_GPU;
    for (uint32_t g = 0; g < RANDOM_GPUS; g++)
        if ((s->mask >> g & 1) != 0 && w->parts[s->server][g] < least)
            least = w->parts[s->server][g];
    return least;
}

static void level(RandomPolicy *w, const ClusterView *v, const ClusterTask *t, ClusterAction *out) {
    uint32_t first = w->n;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        ClusterSlice s = t->slices[i];
        move_out(w, &s);
        s.cores_milli = some(w, w->cores[s.server]);
        s.memory_mib = some(w, w->memory[s.server]);
        if (s.gpus > 0 && v->setup->profiles != NULL && chance(w, 2)) {
            uint32_t most = spare(w, &s);
            if (most > t->job.gpu_milli) most = t->job.gpu_milli;
            s.gpu_milli = 1 + some(w, most - 1);
        }
        move_in(w, &t->job, &s);
        w->slices[w->n++] = s;
    }
    *out = (ClusterAction){
        .verb = CLUSTER_RESIZE, .slices = w->slices + first, .n_slices = w->n - first};
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    RandomPolicy *w = state;
    uint32_t      n = 0;
    CHECK(max >= v->n_waiting + v->n_running);
    look(w, v);
    for (uint32_t i = 0; i < v->n_running && w->n + RANDOM_SERVERS < SLICES; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        uint64_t           what = rng_below(&w->rng, w->with.busy ? 8 : 40);
        if (what > 5) continue;
        if (what > 0) level(w, v, t, &out[n]);
        if (what == 0) {
            for (uint32_t k = 0; k < t->n_slices; k++) move_out(w, &t->slices[k]);
            out[n] = (ClusterAction){.verb = CLUSTER_PREEMPT};
        }
        out[n++].task = v->running[i];
        if (what == 0 && t->job.gpus_max > 0 && place(w, v, &t->job, &out[n]))
            out[n++].task = v->running[i];
    }
    for (uint32_t i = 0; i < v->n_waiting && i < STARTS; i++) {
        if (!place(w, v, &v->tasks[v->waiting[i]].job, &out[n])) continue;
        out[n++].task = v->waiting[i];
    }
    out[n++] = (ClusterAction){.verb = CLUSTER_WAKE,
                               .at = v->now + (w->with.busy ? 7 : 60) * CLUSTER_SECOND};
    return n;
}

const ClusterPolicy random_cluster_policy = {.name = "random",
                                             .knows = CLUSTER_ORACLE,
                                             .preempts = true,
                                             .settings_size = sizeof(RandomPolicySettings),
                                             .state_size = state_size,
                                             .init = init,
                                             .decide = decide};
