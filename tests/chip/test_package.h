// TestPackage: a package with given costs and requests, for tests of the simulator.
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "chip/sim/chip_run.h"

enum { TEST_PACKAGE_TENANTS = 4, TEST_PACKAGE_LAYERS = 8, TEST_PACKAGE_REQUESTS = 64 };

typedef struct TestPackage {
    Arena       arena;
    ChipKind    kinds[CHIP_KINDS];
    uint8_t     kind_of[CHIP_UNITS];
    ChipTenant  tenants[TEST_PACKAGE_TENANTS];
    ChipModel   models[TEST_PACKAGE_TENANTS];
    ChipCost    costs[TEST_PACKAGE_TENANTS][TEST_PACKAGE_LAYERS * CHIP_KINDS];
    float       rest[TEST_PACKAGE_TENANTS][TEST_PACKAGE_LAYERS + 1];
    uint8_t     fastest[TEST_PACKAGE_TENANTS][TEST_PACKAGE_LAYERS];
    const char *names[TEST_PACKAGE_LAYERS];
    ChipRequest requests[TEST_PACKAGE_REQUESTS];
    ChipRun     run;
} TestPackage;

// First come, first served: the first waiting task on the first free unit that can compute it.
static inline uint32_t test_package_decide(void *state, const ChipView *v, ChipAction *out,
                                           uint32_t max) {
    const ChipSetup *s = v->setup;
    bool             taken[CHIP_UNITS] = {0};
    uint32_t         n = 0, left = v->n_free;
    (void)state;
    for (uint32_t w = 0; w < v->n_waiting && n < max && left > 0; w++) {
        const ChipTask  *t = &v->tasks[v->waiting[w]];
        const ChipModel *m = s->tenants[t->request.tenant].model;
        for (uint32_t f = 0; f < v->n_free; f++) {
            if (taken[f] || !isfinite(chip_cost(m, t->layer, s->kind_of[v->free[f]])->ns)) continue;
            taken[f] = true;
            left--;
            out[n++] = (ChipAction){.verb = CHIP_START, .task = v->waiting[w], .unit = v->free[f]};
            break;
        }
    }
    return n;
}

static const ChipPolicy test_package_fcfs = {
    .name = "yard", .about = "by arrival", .decide = test_package_decide};

static inline void test_package_open(TestPackage *y, uint32_t n_kinds, const uint32_t *units,
                                     float bytes_ns) {
    memset(y, 0, sizeof *y);
    if (arena_init(&y->arena, (size_t)1 << 32) != ERR_OK) abort();
    for (uint32_t l = 0; l < TEST_PACKAGE_LAYERS; l++) y->names[l] = "layer";
    y->run = (ChipRun){.policy = &test_package_fcfs, .seed = 1};
    y->run.setup = (ChipSetup){.tenants = y->tenants,
                               .kinds = y->kinds,
                               .kind_of = y->kind_of,
                               .n_kinds = n_kinds,
                               .bytes_ns = bytes_ns,
                               .period = 1000};
    y->run.trace.at = y->requests;
    for (uint32_t k = 0; k < n_kinds; k++) {
        y->kinds[k] = (ChipKind){"kind", units[k]};
        for (uint32_t u = 0; u < units[k]; u++) y->kind_of[y->run.setup.n_units++] = (uint8_t)k;
    }
}

static inline void test_package_close(TestPackage *y) { arena_finish(&y->arena); }

// A tenant; costs[n_layers][n_kinds].
static inline uint32_t test_package_tenant(TestPackage *y, uint32_t n_layers,
                                           const ChipCost *costs) {
    uint32_t   t = y->run.setup.n_tenants++, n_kinds = y->run.setup.n_kinds;
    ChipModel *m = &y->models[t];
    memcpy(y->costs[t], costs, (size_t)n_layers * n_kinds * sizeof *costs);
    *m = (ChipModel){.name = "net",
                     .n_layers = n_layers,
                     .n_kinds = n_kinds,
                     .layers = y->names,
                     .costs = y->costs[t],
                     .rest_ns = y->rest[t],
                     .fastest = y->fastest[t]};
    for (uint32_t l = n_layers; l-- > 0;) {
        float best = INFINITY;
        for (uint32_t k = 0; k < n_kinds; k++)
            if (chip_cost(m, l, k)->ns < best) {
                best = chip_cost(m, l, k)->ns;
                y->fastest[t][l] = (uint8_t)k;
            }
        y->rest[t][l] = y->rest[t][l + 1] + best;
    }
    y->tenants[t] = (ChipTenant){.model = m, .name = "tenant", .priority = 1};
    return t;
}

static inline void test_package_ask(TestPackage *y, uint32_t tenant, TimeNs arrival,
                                    TimeNs deadline) {
    y->requests[y->run.trace.n++] =
        (ChipRequest){.arrival = arrival, .deadline = deadline, .tenant = tenant};
}

static inline void test_package_random(TestPackage *y, Rng *rng) {
    uint32_t n_kinds = 1 + (uint32_t)rng_below(rng, 3), units[3];
    for (uint32_t k = 0; k < n_kinds; k++) units[k] = 1 + (uint32_t)rng_below(rng, 3);
    test_package_open(y, n_kinds, units, 1 + 15 * rng_unit(rng));
    uint32_t n_tenants = 1 + (uint32_t)rng_below(rng, TEST_PACKAGE_TENANTS);
    for (uint32_t t = 0; t < n_tenants; t++) {
        ChipCost costs[TEST_PACKAGE_LAYERS * 3];
        uint32_t n_layers = 1 + (uint32_t)rng_below(rng, TEST_PACKAGE_LAYERS);
        for (uint32_t i = 0; i < n_layers * n_kinds; i++) {
            costs[i] = (ChipCost){1 + 99 * rng_unit(rng), 10 * rng_unit(rng), rng_unit(rng)};
            if (i % n_kinds > 0 && rng_below(rng, 5) == 0) costs[i].ns = INFINITY;
            if (rng_below(rng, 10) == 0) costs[i].bytes_ns = 0;
        }
        test_package_tenant(y, n_layers, costs);
    }
    TimeNs at = 0;
    for (uint32_t i = 0; i < 30; i++) {
        at += (TimeNs)rng_below(rng, 100);
        test_package_ask(y, (uint32_t)rng_below(rng, n_tenants), at,
                         at + (TimeNs)rng_below(rng, 2000));
    }
    y->run.setup.firm = rng_below(rng, 2) == 0;
    y->run.sharing = rng_below(rng, 2) == 0 ? CHIP_MAX_MIN : CHIP_EQUAL;
    y->run.controller.dispatch_ns = (TimeNs)rng_below(rng, 2) * (TimeNs)rng_below(rng, 20);
}
