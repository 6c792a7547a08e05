// ClusterSample: small clusters and random traces, and runs of a policy that record shared GPUs.
#pragma once

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "cluster/profile/profiles.h"
#include "cluster/sim/cluster_run.h"
#include "policy/policies.h"

typedef struct ClusterSample {
    JobList         jobs;
    ServerList      servers;
    ClusterProfiles profiles;
    uint32_t       *class_of;  // [jobs.n]; every job has its own model
    uint64_t        shared;    // GPUs seen with several tasks
} ClusterSample;

static const char *const cluster_sample_types[] = {"T4", "V100", ""};

// n servers of `gpus` GPUs, of two alternating types.
static inline ServerList cluster_sample_servers(Arena *a, uint32_t n, uint32_t gpus) {
    ServerList l;
    ServerSpec like = {.gpus = gpus, .gpu_type = ""};
    CHECK(server_list_equal(n, &like, a, &l) == ERR_OK);
    for (uint32_t i = 0; i < n; i++) l.at[i].gpu_type = cluster_sample_types[i % 2];
    return l;
}

// Every kind of job a trace may hold: parts of GPUs, no GPUs, GPU types, gangs wider than a server,
// demands other than the share, jobs without a class.
static inline Job cluster_sample_job(Rng *r, uint32_t gpus) {
    static const uint32_t sizes[] = {1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 12, 16};
    uint32_t              kind = (uint32_t)rng_below(r, 10);
    Job                   j = {.id = "j", .gpus = 1, .gpu_milli = 1000, .tenant = JOB_NONE};
    j.work = 1 + (TimeNs)rng_below(r, 900 * (uint64_t)JOB_SECOND);
    if (kind < 2) {
        j.gpu_milli = 1 + (uint32_t)rng_below(r, 999);
    } else if (kind == 2) {
        j.gpus = 0;
    } else {
        j.gpus = sizes[rng_below(r, sizeof sizes / sizeof *sizes)];
        if (j.gpus > gpus) j.gpus = gpus;
    }
    if (kind == 2 || rng_below(r, 4) == 0) {
        uint32_t n = j.gpus > 0 ? j.gpus : 1;
        j.cores_milli = n * (1 + (uint32_t)rng_below(r, 3000));
        j.memory_mib = n * (1 + (uint32_t)rng_below(r, 60000));
    }
    if (j.gpus <= 4 && rng_below(r, 6) == 0) j.gpu_types = 1U << rng_below(r, 2);
    return j;
}

static inline void cluster_sample_random(ClusterSample *s, Arena *a, uint64_t seed, uint32_t n) {
    Rng    r = {seed};
    TimeNs now = 0;
    CHECK(profile_load(NULL, a, &s->profiles) == ERR_OK);
    s->servers = cluster_sample_servers(a, 6, 8);
    s->jobs = (JobList){.at = arena_new(a, Job, n),
                        .n = n,
                        .n_models = n,
                        .n_gpu_types = 2,
                        .gpu_types = (const char **)cluster_sample_types};
    s->class_of = arena_new(a, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        now += (TimeNs)rng_below(&r, 60 * (uint64_t)JOB_SECOND);
        s->jobs.at[i] = cluster_sample_job(&r, 24);
        s->jobs.at[i].submit = now;
        s->jobs.at[i].model = i;
        s->class_of[i] = (uint32_t)rng_below(&r, s->profiles.n);
        if (rng_below(&r, 10) == 0) s->class_of[i] = CLUSTER_NONE;
    }
}

static inline bool cluster_sample_meet(const ClusterTask *a, const ClusterTask *b, uint32_t on) {
    for (uint32_t i = 0; i < a->n_slices; i++)
        for (uint32_t k = 0; k < b->n_slices; k++)
            if (a->slices[i].server == on && b->slices[k].server == on &&
                (a->slices[i].mask & b->slices[k].mask) != 0)
                return true;
    return false;
}

// Tasks that share a GPU fit into its memory.
static inline void cluster_sample_watch(void *self, const ClusterView *v, const void *state) {
    ClusterSample *s = self;
    (void)state;
    for (uint32_t i = 0; i < v->setup->n_servers; i++) {
        const ServerState *x = &v->servers[i];
        for (uint32_t a = 0; a < x->n_residents; a++)
            for (uint32_t b = 0; b < a; b++) {
                const ClusterTask *t = &v->tasks[x->residents[a]], *u = &v->tasks[x->residents[b]];
                if (!cluster_sample_meet(t, u, i)) continue;
                s->shared++;
                if (t->job.class == CLUSTER_NONE || u->job.class == CLUSTER_NONE) continue;
                CHECK(profile_pair(&s->profiles, t->job.class, u->job.class) > 0);
                CHECK(profile_pair(&s->profiles, u->job.class, t->job.class) > 0);
            }
    }
}

// with: "key=value" lines for the policy, ended by NULL.
static inline ClusterResult cluster_sample_run(ClusterSample *s, Arena *a, const char *policy,
                                               const char *const *with) {
    const ClusterPolicy *p = policies_cluster_find(policy);
    ClusterResult        r;
    ClusterSetup         setup;
    CHECK(p != NULL);
    Settings   set = {p->rows, p->n_rows, arena_alloc(a, 1, p->settings_size + 1, 64), a};
    ClusterRun run = {.jobs = &s->jobs,
                      .servers = &s->servers,
                      .profiles = s->profiles.n > 0 ? &s->profiles : NULL,
                      .class_of = s->profiles.n > 0 ? s->class_of : NULL,
                      .policy = p,
                      .settings = set.values,
                      .knows = p->knows,
                      .seed = 1,
                      .watch = cluster_sample_watch,
                      .watcher = s};
    CHECK(cluster_sim_params("own", p, &run.params) == ERR_OK);
    run.params.stops = (ClusterStopLimits){0};
    if (p->n_rows > 0) settings_default(&set);
    for (; with != NULL && *with != NULL; with++) CHECK(settings_set(&set, *with) == ERR_OK);
    CHECK(cluster_setup(&run, a, &setup) == ERR_OK);
    if (p->load != NULL) CHECK(p->load(&setup, set.values, a, &run.loaded) == ERR_OK);
    CHECK(cluster_simulate(&run, a, &r) == ERR_OK);
    return r;
}
