// RegistryFixture: a loop, an engine and a registry, configured by hand.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "node/host.h"
#include "serve/models/registry.h"

#define FIXTURE static __attribute__((unused))

enum { FIXTURE_MODELS = 64 };

static Host fixture_host;  // opened once, since opening measures the machine

typedef struct RegistryFixture {
    Loop          *loop;
    NodeLive      *engine;
    ModelRegistry *registry;
    Config         config;
    ConfigModel    models[FIXTURE_MODELS];
    uint32_t       changes;
    char           dir[64];
} RegistryFixture;

FIXTURE void check(Err e) {
    if (e != ERR_OK) fail_msg("%s", err_why());
}

// Every waiting request gets a core and runs to its end.
FIXTURE uint32_t fixture_decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    uint32_t n = 0;
    Cores    free = v->free;
    (void)state;
    for (uint32_t k = 0; k < v->n_waiting && n < max; k++) {
        const NodeRequest *r = &v->requests[v->waiting[k]];
        const NodeModel   *m = v->setup->tenants[r->tenant].model;
        uint32_t           core = cores_next(&free, 0);
        Cores              one = {0};
        if (core == CORES_MAX) break;
        cores_add(&one, core);
        cores_remove(&free, core);
        out[n++] = (NodeAction){.verb = NODE_START,
                                .request = v->waiting[k],
                                .n_layers = m->n_layers - r->next,
                                .cores = one,
                                .versions = node_best_versions(m, 0, v->level)};
    }
    return n;
}

static const NodePolicy fixture_policy = {.name = "all", .decide = fixture_decide};

FIXTURE void fixture_changed(void *self, const ModelInfo *s) {
    (void)s;
    ((RegistryFixture *)self)->changes++;
}

FIXTURE TenantSettings fixture_settings(void) {
    TenantSettings set;
#define DEFAULT(name, kind, def, lo, hi, about) set.name = (def);
    TENANT_SETTINGS(DEFAULT)
#undef DEFAULT
    return set;
}

FIXTURE ConfigModel *fixture_model(RegistryFixture *g, const char *name, const char *version,
                                   const char *path) {
    ConfigModel *m = &g->models[g->config.n_models++];
    *m = (ConfigModel){.name = name, .path = path, .version = version, .set = fixture_settings()};
    g->config.models = g->models;
    return m;
}

static char fixture_store[64] = "/tmp/cotenant_registry_store_XXXXXX";

FIXTURE int fixture_begin(void **state) {
    int fd = mkstemp(fixture_store);
    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    check(host_open(&fixture_host, 2, fixture_store));
    return 0;
}

FIXTURE int fixture_end(void **state) {
    char command[160];
    (void)state;
    host_close(&fixture_host);
    (void)snprintf(command, sizeof command, "rm -f %s*", fixture_store);
    assert_int_equal(system(command), 0);
    return 0;
}

FIXTURE void fixture_open(RegistryFixture *g) {
    *g = (RegistryFixture){0};
#define DEFAULT(name, kind, def, lo, hi, about) g->config.serve.name = (def);
    SERVE_SETTINGS(DEFAULT)
#undef DEFAULT
    g->config.serve.tune = "off";
    check(loop_create(&g->loop));
    check(node_live_create(
        &g->engine,
        &(NodeLiveOptions){
            .cores = 2, .fixed = true, .tenants = 64, .requests = 64, .watchdog_ns = 2000000000}));
    (void)snprintf(g->dir, sizeof g->dir, "/tmp/cotenant_registry_XXXXXX");
    assert_non_null(mkdtemp(g->dir));
}

FIXTURE void fixture_start(RegistryFixture *g) {
    check(registry_create(&g->registry, &(ModelRegistryOptions){.loop = g->loop,
                                                                .engine = g->engine,
                                                                .host = &fixture_host,
                                                                .config = &g->config,
                                                                .policy = &fixture_policy,
                                                                .changed = fixture_changed,
                                                                .self = g}));
}

FIXTURE void fixture_close(RegistryFixture *g) {
    char command[96];
    registry_destroy(g->registry);
    node_live_destroy(g->engine);
    loop_destroy(g->loop);
    (void)snprintf(command, sizeof command, "rm -rf %s", g->dir);
    assert_int_equal(system(command), 0);
}

typedef struct FixtureWait {
    RegistryFixture *g;
    bool (*over)(RegistryFixture *g, void *ctx);
    void     *ctx;
    LoopTimer timer;
    TimeNs    until;
    bool      came;
} FixtureWait;

FIXTURE void fixture_look(void *self) {
    FixtureWait *w = self;
    TimeNs       t = clock_now(clock_monotonic());
    w->came = w->over(w->g, w->ctx);
    if (w->came || t > w->until)
        loop_stop(w->g->loop);
    else
        check(loop_arm(w->g->loop, &w->timer, t + 500000));
}

// Runs the loop until a condition holds, for at most a minute.
FIXTURE void fixture_until(RegistryFixture *g, bool (*over)(RegistryFixture *g, void *ctx),
                           void            *ctx) {
    TimeNs      t = clock_now(clock_monotonic());
    FixtureWait w = {.g = g, .over = over, .ctx = ctx, .until = t + INT64_C(60000000000)};
    w.timer = (LoopTimer){.fire = fixture_look, .self = &w};
    check(loop_arm(g->loop, &w.timer, t));
    check(loop_run(g->loop));
    if (!w.came) fail_msg("it did not happen within a minute");
}

FIXTURE bool fixture_settled(RegistryFixture *g, void *ctx) {
    (void)ctx;
    for (uint32_t i = 0; i < registry_count(g->registry); i++) {
        ModelState s = registry_at(g->registry, i)->state;
        if (s == MODEL_LOADING || s == MODEL_UNLOADING) return false;
    }
    return true;
}

FIXTURE void fixture_settle(RegistryFixture *g) { fixture_until(g, fixture_settled, NULL); }

FIXTURE ModelInfo *fixture_find(RegistryFixture *g, const char *name, const char *version) {
    return registry_find(g->registry, (Str){name, strlen(name)},
                         version != NULL ? (Str){version, strlen(version)} : (Str){0});
}

typedef struct FixtureCall {
    RegistryFixture *g;
    ModelInfo       *s;
    const Tensor    *inputs;
    LoopPost         when;
    _Atomic uint32_t answered;
    LiveEnd          end;
    Tensor           out[8];
    double           first[8];  // element of each output, while it is a float
    bool             never, held;
    char             why[512];
    ServedShape      shape;
    uint32_t         waits;
    ShapeLookup      found;
} FixtureCall;

FIXTURE void fixture_answer(void *self, const EngineResult *a) {
    FixtureCall *k = self;
    uint32_t     n = k->s->signature.n_outputs < 8 ? k->s->signature.n_outputs : 8;
    k->end = a->end;
    for (uint32_t i = 0; a->outputs != NULL && i < n; i++) {
        k->out[i] = a->outputs[i];
        if (k->out[i].dtype == DT_F32 && tensor_count(&k->out[i]) > 0)
            k->first[i] = (double)*(const float *)k->out[i].data;
    }
    if (a->failed != NULL) (void)snprintf(k->why, sizeof k->why, "%s", a->failed);
    atomic_store(&k->answered, 1);
}

FIXTURE void fixture_try(void *self) {
    FixtureCall *k = self;
    TimeNs       t = clock_now(clock_monotonic());
    k->when.run = fixture_try;
    k->when.self = k;
    k->found = registry_find_shape(k->g->registry, k->s, k->inputs, 0, &k->when, &k->shape);
    switch (k->found) {
    case SHAPE_READY:
        assert_true(node_live_submit(k->g->engine, &(EngineRequest){.tenant = k->shape.tenant,
                                                                    .program = k->shape.program,
                                                                    .arrival = t,
                                                                    .deadline = t + 1000000000,
                                                                    .on_miss = ON_MISS_SERVE_LATE,
                                                                    .inputs = k->inputs,
                                                                    .done = fixture_answer,
                                                                    .self = k}));
        break;
    case SHAPE_COMPILING: k->waits++; break;
    case SHAPE_INVALID:
    case SHAPE_TOO_LARGE:
    case SHAPE_CROWDED:
        (void)snprintf(k->why, sizeof k->why, "%s", err_why());
        k->never = true;
        atomic_store(&k->answered, 1);
        break;
    }
}

FIXTURE void fixture_submit(RegistryFixture *g, FixtureCall *k, ModelInfo *s,
                            const Tensor *inputs) {
    *k = (FixtureCall){.g = g, .s = s, .inputs = inputs, .held = true};
    registry_pin(s);
    fixture_try(k);
}

FIXTURE bool fixture_answered(RegistryFixture *g, void *ctx) {
    (void)g;
    return atomic_load(&((FixtureCall *)ctx)->answered) != 0;
}

FIXTURE void fixture_finish(FixtureCall *k) {
    fixture_until(k->g, fixture_answered, k);
    if (!k->never) registry_release_shape(k->g->registry, k->s, &k->shape);
    if (!k->never) registry_note_result(k->g->registry, k->s, k->end != LIVE_DONE);
    registry_release(k->g->registry, k->s);
    k->held = false;
}

// One request from its shape to its result.
FIXTURE void fixture_ask(RegistryFixture *g, FixtureCall *k, ModelInfo *s, const Tensor *inputs) {
    fixture_submit(g, k, s, inputs);
    fixture_finish(k);
}
