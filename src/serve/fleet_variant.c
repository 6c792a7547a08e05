// Variants on the loader's side: compiled, joined to the engine, warmed, and taken out again.
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "serve/fleet_int.h"

#define WARM_MOST INT64_C(5000000000)   // for all runs before a variant is ready
#define WARM_EACH INT64_C(60000000000)  // none of them has a target

enum { MEASURED_RUNS = 5, SUBMIT_PAUSE_US = 1000, GOVERN_TRIES = 50, GOVERN_PAUSE_US = 20000 };

static TimeNs now(void) { return clock_now(clock_steady()); }
static bool   is(const char *text, const char *word) { return strcmp(text, word) == 0; }

Err variant_init(Unit *u) {
    uint32_t n = u->source.open ? (uint32_t)u->from->serve.shapes : 1;
    Variant *all = arena_try_new(&u->arena, Variant, n);
    if (all == NULL) return err_set(ERR_LIMIT, "no memory for %u shapes", n);
    for (uint32_t i = 0; i < n; i++) {
        all[i].unit = u;
        all[i].shapes = arena_try_new(&u->arena, Tensor, u->port.n_inputs);
        if (all[i].shapes == NULL) return err_set(ERR_LIMIT, "no memory for %u shapes", n);
    }
    u->variants = all;
    u->n_variants = n;
    return ERR_OK;
}

static double priority_of(const TenantSettings *set) {
    return is(set->class, "best_effort") ? 0.1 : is(set->class, "throughput") ? 0.5 : 1;
}

static uint64_t place_bytes(const Variant *v) {
    const Program *p = &v->stage.program;
    return p->arena_bytes + node_live_cores(v->unit->fleet->o.engine) * program_scratch(p) + 4096;
}

// As many places as are wished for, or as there is room for.
static Err choose_places(const Variant *v, uint64_t room, uint32_t *out) {
    uint64_t each = place_bytes(v), fixed = v->stage.memory_bytes;
    uint64_t most = room > fixed ? (room - fixed) / each : 0;
    uint32_t wish = (uint32_t)v->unit->from->serve.places;
    if (most == 0)
        return err_set(ERR_LIMIT, "it needs %llu MiB of memory and may use %llu MiB more",
                       (unsigned long long)((fixed + each) >> 20) + 1,
                       (unsigned long long)(room >> 20));
    *out = most < wish ? (uint32_t)most : wish;
    return ERR_OK;
}

Err variant_stage(Variant *v, const Tensor *shapes) {
    if (v->lost) return err_set(ERR_LIMIT, "there was no memory to forget what was here");
    Unit        *u = v->unit;
    uint64_t     room = unit_room(u);
    double       tune = u->fleet->o.host->team == NULL ? 0 : u->from->serve.tune_s;
    StageOptions o = {.runs = MEASURED_RUNS,
                      .background = tune <= 0,
                      .tune_seconds = tune,
                      .interpret = true,
                      .remember = v->unit->loading,
                      .shapes = shapes,
                      .max_bytes = room,
                      .max_output = (uint64_t)u->from->serve.response_mb << 20,
                      .most_ns = (TimeNs)u->from->serve.watchdog_ms * 1000000,
                      .stop = &u->unwanted,
                      .name = u->pub.name};
    if (u->source.weight_bytes > room)
        return err_set(ERR_LIMIT, "its weights need %llu MiB of memory and it may use %llu MiB",
                       (unsigned long long)(u->source.weight_bytes >> 20) + 1,
                       (unsigned long long)(room >> 20));
    TRY(stage_make(&v->stage, &u->source, u->fleet->o.host, &o));
    v->staged = true;
    for (uint32_t i = 0; i < u->port.n_inputs; i++) {
        v->shapes[i] = v->stage.inputs[i];
        v->shapes[i].data = NULL;
    }
    return ERR_OK;
}

typedef struct Warm {
    _Atomic uint32_t answered;
    LiveEnd          end;
} Warm;

static void warmed(void *self, const LiveAnswer *a) {
    Warm *w = self;
    w->end = a->end;
    atomic_store(&w->answered, 1);
    futex_wake(&w->answered, 1);
}

static LiveEnd warm_once(Variant *v, TimeNs until) {
    NodeLive *l = v->unit->fleet->o.engine;
    Warm      w = {.end = LIVE_DONE};
    TimeNs    t = now();
    LiveAsk   ask = {.tenant = v->tenant,
                     .arrival = t,
                     .deadline = t + WARM_EACH,
                     .expire = until,
                     .late_ok = true,
                     .done = warmed,
                     .self = &w};
    while (!node_live_submit(l, &ask)) {
        if (now() > until) return LIVE_FULL;
        (void)usleep(SUBMIT_PAUSE_US);
    }
    while (atomic_load(&w.answered) == 0) futex_wait(&w.answered, 0);
    return w.end;
}

// Numbers at random may not please it, but it has to come to an end. Once may be the machine's
// fault.
static Err warm(Variant *v) {
    TimeNs until = now() + WARM_MOST;
    for (int i = 0; i < v->unit->pub.config->set.warmup && now() < until; i++)
        if (warm_once(v, until) == LIVE_STUCK && warm_once(v, 0) == LIVE_STUCK)
            return err_set(ERR_LIMIT, "a run with numbers at random did not end in time");
    return ERR_OK;
}

static Err govern(const Fleet *f) {
    return node_live_govern(f->o.engine, f->o.policy, f->o.policy_settings, &f->o.host->machine);
}

Err variant_join(Variant *v) {
    Unit                 *u = v->unit;
    const TenantSettings *set = &u->pub.config->set;
    uint32_t              places = 1;
    TRY(choose_places(v, unit_room(u), &places));
    v->target_ns = unit_target(u, &v->stage);
    LiveTenant t = stage_tenant(&v->stage, u->pub.name, v->target_ns, priority_of(set));
    t.queue = (uint32_t)set->queue;
    t.places = places;
    t.min_cores = (uint32_t)set->min_cores;
    t.max_cores = (uint32_t)set->max_cores;
    TRY(node_live_join(u->fleet->o.engine, &t, &v->tenant));
    v->joined = true;
    v->memory_bytes = v->stage.memory_bytes + places * place_bytes(v);
    TRY(govern(u->fleet));
    v->governed = true;
    return warm(v);
}

// Until a policy without it decides, its tables are looked at.
static bool forget(Variant *v) {
    Err e = govern(v->unit->fleet);
    for (int i = 0; e != ERR_OK && i < GOVERN_TRIES; i++) {
        (void)usleep(GOVERN_PAUSE_US);
        e = govern(v->unit->fleet);
    }
    return e == ERR_OK;
}

void variant_leave(Variant *v) {
    if (v->joined) {
        node_live_leave(v->unit->fleet->o.engine, v->tenant);
        v->joined = false;
        v->lost = v->governed && !forget(v);  // rather lost than wrong
        v->governed = false;
    }
    if (v->staged && !v->lost) stage_finish(&v->stage);
    v->staged = false;
    v->memory_bytes = 0;
}
