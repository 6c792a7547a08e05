// ClusterCase: a small cluster with a given or random trace, and runs of a policy on it.
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/profile/profiles.h"
#include "cluster/sim/cluster_run.h"
#include "policy/policies.h"

typedef struct ClusterCase {
    JobList          jobs;
    ServerList       servers;
    ClusterProfiles *profiles;  // NULL: none
    uint32_t        *class_of;
    ClusterSimParams params;
} ClusterCase;

enum {  // features of a random trace
    CLUSTER_CASE_PROFILES = 1,
    CLUSTER_CASE_PARTS = 2,
    CLUSTER_CASE_CPU = 4,
    CLUSTER_CASE_TYPES = 8,
    CLUSTER_CASE_WIDE = 16,
    CLUSTER_CASE_UNLIKE = 32,   // servers
    CLUSTER_CASE_DEMANDS = 64,  // of their own
    CLUSTER_CASE_KINDS = 128,
    CLUSTER_CASE_ELASTIC = 128,  // beside the others
};

static inline const void *cluster_case_settings(const ClusterPolicy *p, Arena *a, const char *set) {
    Settings s = {p->rows, p->n_rows, arena_alloc(a, 1, p->settings_size + 1, 64), a};
    if (p->n_rows > 0) settings_default(&s);
    if (set != NULL) assert_int_equal(settings_set(&s, set), ERR_OK);
    return s.values;
}

static inline Err cluster_case_run(const ClusterCase *x, const char *policy, const char *set,
                                   uint64_t seed, Arena *a, ClusterResult *out) {
    const ClusterPolicy *p = policies_cluster_find(policy);
    assert_non_null(p);
    ClusterRun   run = {.jobs = &x->jobs,
                        .servers = &x->servers,
                        .profiles = x->profiles,
                        .class_of = x->class_of,
                        .params = x->params,
                        .policy = p,
                        .settings = cluster_case_settings(p, a, set),
                        .knows = p->knows,
                        .seed = seed};
    ClusterSetup setup;
    TRY(cluster_setup(&run, a, &setup));
    if (p->load != NULL) TRY(p->load(&setup, run.settings, a, &run.loaded));
    return cluster_simulate(&run, a, out);
}

static inline ClusterCase cluster_case_servers(uint32_t n, uint32_t gpus, Arena *a) {
    ClusterCase x = {.params = {.restart = 10 * CLUSTER_SECOND,
                                .restart_wide = 20 * CLUSTER_SECOND,
                                .restart_by_class = true}};
    ServerSpec  like = {.gpus = gpus, .gpu_type = ""};
    assert_int_equal(server_list_equal(n, &like, a, &x.servers), ERR_OK);
    return x;
}

static inline void cluster_case_profiles(ClusterCase *x, Arena *a) {
    x->profiles = arena_new(a, ClusterProfiles, 1);
    assert_int_equal(profile_load(NULL, a, x->profiles), ERR_OK);
    x->class_of = arena_new(a, uint32_t, x->jobs.n);
    for (uint32_t i = 0; i < x->jobs.n; i++) x->class_of[i] = CLUSTER_NONE;
}

static inline Job cluster_case_job(double submit_s, double work_s, uint32_t gpus) {
    return (Job){.id = "j",
                 .submit = (TimeNs)(submit_s * 1e9),
                 .work = (TimeNs)(work_s * 1e9),
                 .gpus = gpus,
                 .gpu_milli = gpus > 0 ? 1000 : 0,
                 .cores_milli = gpus > 0 ? 0 : 2000,
                 .memory_mib = gpus > 0 ? 0 : 4096,
                 .model = JOB_NONE,
                 .tenant = JOB_NONE};
}

static inline void cluster_case_list(ClusterCase *x, const Job *jobs, uint32_t n, Arena *a) {
    x->jobs = (JobList){.at = arena_new(a, Job, n), .n = n};
    memcpy(x->jobs.at, jobs, n * sizeof *jobs);
}

static inline Job cluster_case_random_job(uint32_t with, Rng *r, TimeNs now) {
    static const uint32_t sizes[] = {1, 1, 1, 1, 1, 2, 2, 4, 3, 8};
    Job                   j = cluster_case_job(0, 1, sizes[rng_below(r, 10)]);
    double                long_s = rng_below(r, 4) == 0 ? 20000 : 1500;
    j.submit = now;
    j.work = 1 + (TimeNs)(rng_unit(r) * rng_unit(r) * long_s * 1e9);
    if ((with & CLUSTER_CASE_WIDE) != 0 && rng_below(r, 20) == 0)
        j.gpus = 9 + (uint32_t)rng_below(r, 8);
    if ((with & CLUSTER_CASE_PARTS) != 0 && rng_below(r, 3) == 0) {
        j.gpus = 1;
        j.gpu_milli = 10 + (uint32_t)rng_below(r, 900);
    }
    if ((with & CLUSTER_CASE_CPU) != 0 && rng_below(r, 8) == 0) j = cluster_case_job(0, 1, 0);
    j.submit = now;
    if ((with & CLUSTER_CASE_DEMANDS) != 0 && j.gpus > 0 && j.gpus <= 8 && rng_below(r, 2) == 0) {
        j.cores_milli = 500 + (uint32_t)rng_below(r, 12000);
        j.memory_mib = 1024 + (uint32_t)rng_below(r, 200000);
    }
    if ((with & CLUSTER_CASE_TYPES) != 0 && j.gpus <= 4 && rng_below(r, 3) == 0)
        j.gpu_types = 1 + (uint32_t)rng_below(r, 3);
    if ((with & CLUSTER_CASE_ELASTIC) != 0 && j.gpu_milli == 1000 && rng_below(r, 4) > 0) {
        j.gpus_min = 1 + (uint32_t)rng_below(r, j.gpus);
        j.gpus_max = j.gpus + 1 + (uint32_t)rng_below(r, 12);
    }
    return j;
}

static inline ClusterCase cluster_case_random(uint32_t with, uint32_t n, uint64_t seed, Arena *a) {
    static const char *types[2] = {"v100", "t4"};
    ClusterCase        x = cluster_case_servers(4, 8, a);
    Rng                r = {seed};
    TimeNs             now = 0;
    x.jobs = (JobList){.at = arena_new(a, Job, n), .n = n, .gpu_types = types};
    if ((with & CLUSTER_CASE_TYPES) != 0) x.jobs.n_gpu_types = 2;
    for (uint32_t i = 0; i < n; i++) {
        now += (TimeNs)rng_below(&r, 200 * (uint64_t)JOB_SECOND);
        x.jobs.at[i] = cluster_case_random_job(with, &r, now);
    }
    for (uint32_t i = 0; i < x.servers.n; i++) {
        if ((with & CLUSTER_CASE_TYPES) != 0) x.servers.at[i].gpu_type = types[i & 1];
        if ((with & CLUSTER_CASE_UNLIKE) == 0 || i < 3) continue;
        x.servers.at[i].gpus /= 2;
        x.servers.at[i].cores_milli /= 2;
        x.servers.at[i].memory_mib /= 2;
    }
    if ((with & CLUSTER_CASE_PROFILES) == 0) return x;
    cluster_case_profiles(&x, a);
    for (uint32_t i = 0; i < n; i++)
        if (rng_below(&r, 10) > 0) x.class_of[i] = (uint32_t)rng_below(&r, x.profiles->n);
    return x;
}
