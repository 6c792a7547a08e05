// Fleet ground: a loop, an engine and a fleet, configured by hand.
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
#include "serve/fleet.h"

#define GROUND static __attribute__((unused))

enum { GROUND_MODELS = 64 };

static Host ground_host;  // opened once: it is measured

typedef struct Ground {
    Loop       *loop;
    NodeLive   *engine;
    Fleet      *fleet;
    Config      config;
    ConfigModel models[GROUND_MODELS];
    uint32_t    changes;
    char        dir[64];
} Ground;

GROUND void check(Err e) {
    if (e != ERR_OK) fail_msg("%s", err_why());
}

// Whoever waits gets a core and runs to its end.
GROUND uint32_t ground_decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
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
                                .versions = node_pick(m, 0, v->level)};
    }
    return n;
}

static const NodePolicy ground_policy = {.name = "all", .decide = ground_decide};

GROUND void ground_changed(void *self, const Served *s) {
    (void)s;
    ((Ground *)self)->changes++;
}

GROUND TenantSettings ground_settings(void) {
    TenantSettings set;
#define DEFAULT(name, kind, def, lo, hi, about) set.name = (def);
    TENANT_SETTINGS(DEFAULT)
#undef DEFAULT
    return set;
}

GROUND ConfigModel *ground_model(Ground *g, const char *name, const char *version,
                                 const char *path) {
    ConfigModel *m = &g->models[g->config.n_models++];
    *m = (ConfigModel){.name = name, .path = path, .version = version, .set = ground_settings()};
    g->config.models = g->models;
    return m;
}

static char ground_store[64] = "/tmp/cotenant_fleet_store_XXXXXX";

GROUND int ground_begin(void **state) {
    int fd = mkstemp(ground_store);
    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    check(host_open(&ground_host, 2, ground_store));
    return 0;
}

GROUND int ground_end(void **state) {
    char command[160];
    (void)state;
    host_close(&ground_host);
    (void)snprintf(command, sizeof command, "rm -f %s*", ground_store);
    assert_int_equal(system(command), 0);
    return 0;
}

GROUND void ground_open(Ground *g) {
    *g = (Ground){0};
#define DEFAULT(name, kind, def, lo, hi, about) g->config.serve.name = (def);
    SERVE_SETTINGS(DEFAULT)
#undef DEFAULT
    check(loop_create(&g->loop));
    check(node_live_create(
        &g->engine,
        &(NodeLiveOptions){
            .cores = 2, .fixed = true, .tenants = 64, .requests = 64, .watchdog_ns = 2000000000}));
    (void)snprintf(g->dir, sizeof g->dir, "/tmp/cotenant_fleet_XXXXXX");
    assert_non_null(mkdtemp(g->dir));
}

GROUND void ground_start(Ground *g) {
    check(fleet_create(&g->fleet, &(FleetOptions){.loop = g->loop,
                                                  .engine = g->engine,
                                                  .host = &ground_host,
                                                  .config = &g->config,
                                                  .policy = &ground_policy,
                                                  .changed = ground_changed,
                                                  .self = g}));
}

GROUND void ground_close(Ground *g) {
    char command[96];
    fleet_destroy(g->fleet);
    node_live_destroy(g->engine);
    loop_destroy(g->loop);
    (void)snprintf(command, sizeof command, "rm -rf %s", g->dir);
    assert_int_equal(system(command), 0);
}

typedef struct GroundWait {
    Ground *g;
    bool (*over)(Ground *g, void *ctx);
    void     *ctx;
    LoopTimer timer;
    TimeNs    until;
    bool      came;
} GroundWait;

GROUND void ground_look(void *self) {
    GroundWait *w = self;
    TimeNs      t = clock_now(clock_steady());
    w->came = w->over(w->g, w->ctx);
    if (w->came || t > w->until)
        loop_stop(w->g->loop);
    else
        check(loop_arm(w->g->loop, &w->timer, t + 500000));
}

// Runs the loop until something is true; a minute is too long for anything.
GROUND void ground_until(Ground *g, bool (*over)(Ground *g, void *ctx), void *ctx) {
    TimeNs     t = clock_now(clock_steady());
    GroundWait w = {.g = g, .over = over, .ctx = ctx, .until = t + INT64_C(60000000000)};
    w.timer = (LoopTimer){.fire = ground_look, .self = &w};
    check(loop_arm(g->loop, &w.timer, t));
    check(loop_run(g->loop));
    if (!w.came) fail_msg("it did not happen within a minute");
}

GROUND bool ground_settled(Ground *g, void *ctx) {
    (void)ctx;
    for (uint32_t i = 0; i < fleet_count(g->fleet); i++) {
        FleetState s = fleet_at(g->fleet, i)->state;
        if (s == FLEET_LOADING || s == FLEET_UNLOADING) return false;
    }
    return true;
}

GROUND void ground_settle(Ground *g) { ground_until(g, ground_settled, NULL); }

GROUND Served *ground_find(Ground *g, const char *name, const char *version) {
    return fleet_find(g->fleet, (Str){name, strlen(name)},
                      version != NULL ? (Str){version, strlen(version)} : (Str){0});
}

typedef struct GroundAsk {
    Ground          *g;
    Served          *s;
    const Tensor    *inputs;
    LoopPost         when;
    _Atomic uint32_t answered;
    LiveEnd          end;
    Tensor           out[8];
    double           first[8];  // element of each output, while it is a float
    bool             never, held;
    char             why[512];
    uint32_t         tenant, waits;
} GroundAsk;

GROUND void ground_answer(void *self, const LiveAnswer *a) {
    GroundAsk *k = self;
    uint32_t   n = k->s->port.n_outputs < 8 ? k->s->port.n_outputs : 8;
    k->end = a->end;
    for (uint32_t i = 0; a->outputs != NULL && i < n; i++) {
        k->out[i] = a->outputs[i];
        if (k->out[i].dtype == DT_F32 && tensor_count(&k->out[i]) > 0)
            k->first[i] = (double)*(const float *)k->out[i].data;
    }
    if (a->failed != NULL) (void)snprintf(k->why, sizeof k->why, "%s", a->failed);
    atomic_store(&k->answered, 1);
}

GROUND void ground_try(void *self) {
    GroundAsk *k = self;
    TimeNs     t = clock_now(clock_steady());
    k->when.run = ground_try;
    k->when.self = k;
    switch (fleet_fit(k->g->fleet, k->s, k->inputs, &k->when, &k->tenant)) {
    case FLEET_FITS:
        assert_true(node_live_submit(k->g->engine, &(LiveAsk){.tenant = k->tenant,
                                                              .arrival = t,
                                                              .deadline = t + 1000000000,
                                                              .late_ok = true,
                                                              .inputs = k->inputs,
                                                              .done = ground_answer,
                                                              .self = k}));
        break;
    case FLEET_LATER: k->waits++; break;
    case FLEET_NEVER:
    case FLEET_LARGE:
        (void)snprintf(k->why, sizeof k->why, "%s", err_why());
        k->never = true;
        atomic_store(&k->answered, 1);
        break;
    }
}

GROUND void ground_submit(Ground *g, GroundAsk *k, Served *s, const Tensor *inputs) {
    *k = (GroundAsk){.g = g, .s = s, .inputs = inputs, .held = true};
    fleet_pin(s);
    ground_try(k);
}

GROUND bool ground_answered(Ground *g, void *ctx) {
    (void)g;
    return atomic_load(&((GroundAsk *)ctx)->answered) != 0;
}

GROUND void ground_finish(GroundAsk *k) {
    ground_until(k->g, ground_answered, k);
    if (!k->never) fleet_done(k->g->fleet, k->s, k->tenant);
    if (!k->never) fleet_note(k->g->fleet, k->s, k->end != LIVE_DONE);
    fleet_release(k->g->fleet, k->s);
    k->held = false;
}

// One request from its shape to its answer.
GROUND void ground_ask(Ground *g, GroundAsk *k, Served *s, const Tensor *inputs) {
    ground_submit(g, k, s, inputs);
    ground_finish(k);
}
