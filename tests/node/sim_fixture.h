// SimFixture: a simulated machine, its tenants and a FIFO policy, for tests of the node simulator.
#pragma once

#include <stdlib.h>

#include "node/node_model.h"
#include "node/sim/node_sim.h"

typedef struct SimFixture {
    Arena           arena;
    NodeMachineSpec spec;
    NodeMachine     machine;
    NodeModel       models[8];
    NodeTenant      tenants[8];
    double          shares[8];
    uint32_t        n;
    RecordList      records;
} SimFixture;

typedef struct PlainSettings {
    int  cores;   // of every block
    int  layers;  // of every block; 0: all
    int  grow;    // cores added to a running block, once
    bool reject;  // requests past their deadlines
} PlainSettings;

static inline size_t plain_size(const NodeSetup *s, const void *settings) {
    (void)s, (void)settings;
    return sizeof(PlainSettings);
}

static inline void plain_init(void *state, const NodeSetup *s, const void *settings) {
    (void)s;
    *(PlainSettings *)state = *(const PlainSettings *)settings;
}

static inline Cores plain_take(Cores *from, uint32_t n) {
    Cores out = {0};
    for (uint32_t c = cores_next(from, 0); c < CORES_MAX && n > 0;
         c = cores_next(from, c + 1), n--) {
        cores_add(&out, c);
        cores_remove(from, c);
    }
    return out;
}

// In order of arrival, as long as there are cores.
static inline uint32_t plain_decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    const PlainSettings *p = state;
    uint32_t             n = 0, cores = (uint32_t)p->cores;
    Cores                left = v->free;
    for (uint32_t i = 0; i < v->n_running && n < max && p->grow > 0; i++) {
        const NodeRequest *r = &v->requests[v->running[i]];
        Cores              more = plain_take(&left, (uint32_t)p->grow);
        if (cores_count(&r->cores) > cores || cores_count(&more) == 0) continue;
        out[n++] = (NodeAction){.verb = NODE_GROW, .request = v->running[i], .cores = more};
    }
    for (uint32_t i = 0; i < v->n_waiting && n < max; i++) {
        const NodeRequest *r = &v->requests[v->waiting[i]];
        const NodeModel   *m = v->setup->tenants[r->tenant].model;
        uint32_t           layers = m->n_layers - r->next;
        if (p->reject && v->now > r->deadline) {
            out[n++] = (NodeAction){
                .verb = NODE_REJECT, .request = v->waiting[i], .reason = NODE_INFEASIBLE};
            continue;
        }
        if (cores_count(&left) < cores) break;
        if (p->layers > 0 && layers > (uint32_t)p->layers) layers = (uint32_t)p->layers;
        out[n++] =
            (NodeAction){.verb = NODE_START,
                         .request = v->waiting[i],
                         .n_layers = layers,
                         .wanted = cores,
                         .cores = plain_take(&left, cores),
                         .versions = node_best_versions(m, node_count_index(m, cores), v->level)};
    }
    return n;
}

static const NodePolicy plain_policy = {.name = "plain",
                                        .about = "in order of arrival",
                                        .state_size = plain_size,
                                        .init = plain_init,
                                        .decide = plain_decide};

static inline void sim_fixture_open(SimFixture *s, const char *machine) {
    *s = (SimFixture){.n = 0};
    if (arena_init(&s->arena, (size_t)1 << 36) != ERR_OK) abort();
    if (machine_load(machine, &s->arena, &s->spec) != ERR_OK) abort();
    s->machine = machine_view(&s->spec, &s->arena);
    s->records.arena = &s->arena;
}

static inline void sim_fixture_close(SimFixture *s) { arena_finish(&s->arena); }

static inline void sim_fixture_add(SimFixture *s, const char *network, double qos_ms,
                                   double share) {
    NodeModel *m = &s->models[s->n];
    if (model_of_zoo(network, &s->spec, &s->arena, m) != ERR_OK) abort();
    s->tenants[s->n] = (NodeTenant){m, network, (TimeNs)(qos_ms * 1e6), 1};
    s->shares[s->n++] = share;
}

static inline NodeRun sim_fixture_run(SimFixture *s, const PlainSettings *p, double rate,
                                      uint32_t n, uint64_t seed) {
    NodeRun run = {.setup = {&s->machine, s->tenants, s->n},
                   .policy = &plain_policy,
                   .settings = p,
                   .seed = seed,
                   .records = record_list(&s->records)};
    s->records.n = 0;
    if (arrivals_poisson(&s->arena, (Rng){seed}, rate, s->shares, s->n, n, &run.arrivals) != ERR_OK)
        abort();
    return run;
}
