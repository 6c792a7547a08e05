// RandomPolicy: takes legal actions at random, to test what must hold under any policy.
#pragma once

#include "base/rng.h"
#include "contract/node.h"

enum { RANDOM_TENANTS = 8, RANDOM_LAYERS = 64, RANDOM_MIXES = 4 };

typedef struct RandomPolicySettings {
    uint64_t seed;
    uint32_t rejects;  // per 100 waiting requests
} RandomPolicySettings;

typedef struct RandomPolicy {
    Rng      rng;
    uint32_t rejects;
    uint8_t  versions[RANDOM_TENANTS][RANDOM_MIXES][RANDOM_LAYERS];
} RandomPolicy;

static inline size_t random_policy_size(const NodeSetup *setup, const void *settings) {
    (void)setup, (void)settings;
    return sizeof(RandomPolicy);
}

static inline void random_policy_init(void *state, const NodeSetup *setup, const void *settings) {
    RandomPolicy               *c = state;
    const RandomPolicySettings *s = settings;
    *c = (RandomPolicy){.rng = {s->seed}, .rejects = s->rejects};
    for (uint32_t t = 0; t < setup->n_tenants; t++)
        for (uint32_t i = 0; i < RANDOM_MIXES; i++)
            for (uint32_t l = 0; l < setup->tenants[t].model->n_layers; l++)
                c->versions[t][i][l] =
                    (uint8_t)rng_below(&c->rng, setup->tenants[t].model->layers[l].n_versions);
}

static inline Cores random_policy_cores(RandomPolicy *c, Cores *free) {
    Cores    some = {0};
    uint32_t n = 1 + (uint32_t)rng_below(&c->rng, cores_count(free));
    for (uint32_t k = cores_next(free, 0); k < CORES_MAX && n > 0; k = cores_next(free, k + 1), n--)
        cores_add(&some, k);
    *free = cores_difference(*free, &some);
    return some;
}

static inline NodeAction random_policy_start(RandomPolicy *c, const NodeView *v, uint32_t i,
                                             Cores *free) {
    const NodeRequest *r = &v->requests[i];
    uint32_t           left = v->setup->tenants[r->tenant].model->n_layers - r->next;
    uint32_t           most = rng_below(&c->rng, 4) == 0 ? left : left < 5 ? left : 5;
    return (NodeAction){.verb = NODE_START,
                        .request = i,
                        .n_layers = 1 + (uint32_t)rng_below(&c->rng, most),
                        .wanted = 1 + (uint32_t)rng_below(&c->rng, 4),
                        .cores = random_policy_cores(c, free),
                        .versions = c->versions[r->tenant][rng_below(&c->rng, RANDOM_MIXES)]};
}

static inline uint32_t random_policy_decide(void *state, const NodeView *v, NodeAction *out,
                                            uint32_t max) {
    RandomPolicy *c = state;
    uint32_t      n = 0;
    Cores         free = v->free;
    for (uint32_t k = 0; k < v->n_waiting && n + 1 < max; k++) {
        if (rng_below(&c->rng, 100) < c->rejects)
            out[n++] = (NodeAction){
                .verb = NODE_REJECT, .request = v->waiting[k], .reason = NODE_OVERLOADED};
        else if (cores_count(&free) > 0 && rng_below(&c->rng, 4) > 0)
            out[n++] = random_policy_start(c, v, v->waiting[k], &free);
    }
    for (uint32_t k = 0; k < v->n_running && n + 1 < max; k++)
        if (cores_count(&free) > 0 && rng_below(&c->rng, 2) > 0)
            out[n++] = (NodeAction){.verb = NODE_GROW,
                                    .request = v->running[k],
                                    .cores = random_policy_cores(c, &free)};
    if (v->n_waiting > 0) out[n++] = (NodeAction){.verb = NODE_WAKE, .at = v->now + 100000};
    return n;
}

static const NodePolicy random_policy = {.name = "random_policy",
                                         .about = "legal actions at random",
                                         .state_size = random_policy_size,
                                         .init = random_policy_init,
                                         .decide = random_policy_decide};
