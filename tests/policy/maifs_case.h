// MaifsCase: runs of maifs on random traces with rules, shipped weights or random weights, and the
// agents' rates of running tasks.
#pragma once

#include "cluster/cluster_scenario.h"
#include "learn/float_vec.h"
#include "policy/cluster/maifs/maifs.h"
#include "tests/learn/gradient.h"
#include "tests/policy/cluster_case.h"

typedef enum MaifsMind { MAIFS_RULES, MAIFS_SHIPPED, MAIFS_RANDOM, MAIFS_MINDS } MaifsMind;

typedef void MaifsWatch(void *self, const ClusterView *v, const void *state);

typedef struct MaifsCase {
    MaifsMind          mind;
    uint32_t           row;  // stance of all agents from `from` on
    TimeNs             from;
    bool               recompute;  // nothing is kept from one round to the next
    const char *const *set;        // ends with NULL; or NULL
    uint64_t           seed;
    const char        *told;  // information, with a shared estimator; NULL: perfect
    MaifsWatch        *watch;
    void (*after)(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n);
    void *watcher;
} MaifsCase;

static inline const void *maifs_case_mind(const MaifsCase *c, Arena *a) {
    MaifsNet     n = maifs_net_default();
    MaifsLoaded *l = arena_new(a, MaifsLoaded, 1);
    Rng          rng = {c->seed + 77};
    float       *w = float_vec_new(a, maifs_net_params(&n)).at;
    gradient_fill(&rng, w, maifs_net_params(&n), 0.5f);
    l->w = w;
    return l;
}

static inline Err maifs_case_tell(const MaifsCase *c, Arena *a, ClusterRun *run) {
    if (c->told == NULL) return ERR_OK;
    TRY(information_read(c->told, a, &run->info));
    TRY(information_set_estimator(&run->info, "shared"));
    run->knows = information_knows(&run->info, run->knows);
    return cluster_scenario_beliefs(&run->info, run->profiles, run->class_of, run->jobs->n, c->seed,
                                    a, &run->profiles, &run->beliefs);
}

static inline Err maifs_case_run(const ClusterCase *x, const MaifsCase *c, Arena *a,
                                 ClusterResult *out) {
    const ClusterPolicy *p = policies_cluster_find("maifs");
    Settings             s = {p->rows, p->n_rows, arena_alloc(a, 1, p->settings_size + 1, 64), a};
    ClusterRun           run = {.jobs = &x->jobs,
                                .servers = &x->servers,
                                .profiles = x->profiles,
                                .class_of = x->class_of,
                                .params = x->params,
                                .policy = p,
                                .settings = s.values,
                                .knows = p->knows,
                                .seed = c->seed,
                                .watch = c->watch,
                                .after = c->after,
                                .watcher = c->watcher};
    ClusterSetup         setup;
    TRY(maifs_case_tell(c, a, &run));
    settings_default(&s);
    for (const char *const *k = c->set; k != NULL && *k != NULL; k++) TRY(settings_set(&s, *k));
    if (c->mind == MAIFS_RULES) TRY(settings_set(&s, "weights=none"));
    TRY(cluster_setup(&run, a, &setup));
    if (c->mind == MAIFS_RANDOM)
        run.loaded = maifs_case_mind(c, a);
    else
        TRY(p->load(&setup, s.values, a, &run.loaded));
    MaifsLoaded *l = arena_new(a, MaifsLoaded, 1);
    *l = *(const MaifsLoaded *)run.loaded;
    l->recompute = c->recompute;
    l->forced = (StanceForced){c->from, INT64_MAX, c->row};
    run.loaded = l;
    return cluster_simulate(&run, a, out);
}
