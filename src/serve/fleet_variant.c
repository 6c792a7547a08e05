// Variants: a model compiled for the shapes that requests bring, a few of them at a time.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "serve/fleet_int.h"

#define RETRY_NS  INT64_C(10000000000)  // until a shape that failed is tried again
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
                      .most_ns = (TimeNs)u->from->serve.watchdog_ms * 1000000,
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

static Err warm_once(Variant *v, TimeNs until) {
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
        if (now() > until) return ERR_OK;
        (void)usleep(SUBMIT_PAUSE_US);
    }
    while (atomic_load(&w.answered) == 0) futex_wait(&w.answered, 0);
    if (w.end == LIVE_STUCK)
        return err_set(ERR_LIMIT, "a run with numbers at random did not end in time");
    return ERR_OK;
}

static Err warm(Variant *v) {
    TimeNs until = now() + WARM_MOST;
    Err    e = ERR_OK;
    for (int i = 0; e == ERR_OK && i < v->unit->pub.config->set.warmup && now() < until; i++)
        e = warm_once(v, until);
    return e;
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
    return warm(v);
}

void variant_leave(Variant *v) {
    if (v->joined) {
        node_live_leave(v->unit->fleet->o.engine, v->tenant);
        v->joined = false;
        // Until a policy without it decides, its tables are looked at. Rather lost than wrong.
        Err e = govern(v->unit->fleet);
        for (int i = 0; e != ERR_OK && i < GOVERN_TRIES; i++) {
            (void)usleep(GOVERN_PAUSE_US);
            e = govern(v->unit->fleet);
        }
        if (e != ERR_OK) v->staged = false;
    }
    if (v->staged) stage_finish(&v->stage);
    v->staged = false;
    v->memory_bytes = 0;
}

void variant_wake(Variant *v) {
    Fleet *f = v->unit->fleet;
    f->calling = v->waiters;
    v->waiters = NULL;
    while (f->calling != NULL) {
        LoopPost *p = f->calling;
        f->calling = atomic_load_explicit(&p->next, memory_order_relaxed);
        p->run(p->self);
    }
}

static void wait_for(Variant *v, LoopPost *when) {
    atomic_store_explicit(&when->next, v->waiters, memory_order_relaxed);
    v->waiters = when;
}

static bool cut(LoopPost **list, const LoopPost *when) {
    LoopPost *before = NULL;
    for (LoopPost *p = *list; p != NULL;
         before = p, p = atomic_load_explicit(&p->next, memory_order_relaxed)) {
        if (p != when) continue;
        LoopPost *next = atomic_load_explicit(&p->next, memory_order_relaxed);
        if (before == NULL)
            *list = next;
        else
            atomic_store_explicit(&before->next, next, memory_order_relaxed);
        return true;
    }
    return false;
}

void fleet_forget_wait(Fleet *f, Served *s, LoopPost *when) {
    Unit *u = unit_of(s);
    bool  found = cut(&f->calling, when) || cut(&u->starved, when);
    for (uint32_t i = 0; i < u->n_variants && !found; i++)
        found = cut(&u->variants[i].waiters, when);
}

static bool fits(const Variant *v, const Tensor *inputs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!tensor_same_shape(&v->shapes[i], &inputs[i]) || v->shapes[i].dtype != inputs[i].dtype)
            return false;
    return true;
}

static Err make(void *self) {
    Variant *v = self;
    return variant_stage(v, v->shapes);
}

static Err settle_make(void *self, Err e) {
    Variant *v = self;
    if (e == ERR_OK) e = variant_join(v);
    if (e == ERR_OK) return e;
    char why[UNIT_WHY];
    (void)snprintf(why, sizeof why, "%s", err_why());
    variant_leave(v);
    return err_set(e, "%s", why);
}

static void made(void *self, Err e, const char *why) {
    Variant *v = self;
    Unit    *u = v->unit;
    v->state = e == ERR_OK ? VARIANT_READY : VARIANT_FAILED;
    v->retry = now() + RETRY_NS;
    (void)snprintf(v->why, sizeof v->why, "%s", why);
    if (e == ERR_OK) unit_port_outputs(u, &v->stage);
    unit_measure(u);
    fleet_pin(&u->pub);
    variant_wake(v);
    fleet_release(u->fleet, &u->pub);
}

static Err settle_drop(void *self, Err e) {
    variant_leave(self);
    return e;
}

static void start_make(Variant *v) {
    v->job =
        (LoaderJob){.work = make, .settle = settle_make, .done = made, .self = v, .urgent = true};
    loader_put(v->unit->fleet->loader, &v->job);
}

static void dropped(void *self, Err e, const char *why) {
    (void)e, (void)why;
    start_make(self);
}

// The place of the one that was not asked for longest; those that failed go first.
static Variant *choose_place(Unit *u) {
    Variant *best = NULL;
    for (uint32_t i = 0; i < u->n_variants; i++) {
        Variant *v = &u->variants[i];
        if (v->state == VARIANT_FREE) return v;
        if (v->state == VARIANT_MAKING || v->running > 0) continue;
        bool failed = v->state == VARIANT_FAILED,
             other = best != NULL && best->state == VARIANT_FAILED;
        if (best == NULL || (failed && !other) || (failed == other && v->used < best->used))
            best = v;
    }
    return best;
}

static void begin(Variant *v, const Tensor *inputs) {
    Unit *u = v->unit;
    for (uint32_t i = 0; i < u->port.n_inputs; i++) {
        v->shapes[i] = inputs[i];
        v->shapes[i].data = NULL;
    }
    v->state = VARIANT_MAKING;
    if (!v->staged) {
        start_make(v);
        return;
    }
    v->job = (LoaderJob){.settle = settle_drop, .done = dropped, .self = v, .urgent = true};
    loader_put(u->fleet->loader, &v->job);
}

static Variant *find(Unit *u, const Tensor *inputs) {
    uint32_t n = u->port.n_inputs;
    if (u->last != NULL && u->last->state == VARIANT_READY && fits(u->last, inputs, n))
        return u->last;
    for (uint32_t i = 0; i < u->n_variants; i++)
        if (u->variants[i].state != VARIANT_FREE && fits(&u->variants[i], inputs, n))
            return &u->variants[i];
    return NULL;
}

FleetFit fleet_fit(Fleet *f, Served *s, const Tensor *inputs, LoopPost *when, uint32_t *tenant) {
    Unit    *u = unit_of(s);
    Variant *v = find(u, inputs);
    if (v != NULL && v->state == VARIANT_READY) {
        v->used = ++f->uses;
        v->running++;
        u->last = v;
        *tenant = v->tenant;
        return FLEET_FITS;
    }
    if (v != NULL && v->state == VARIANT_FAILED && now() < v->retry) {
        (void)err_note("model '%s' cannot be compiled for these shapes: %s", s->name, v->why);
        return FLEET_NEVER;
    }
    if (v == NULL) v = choose_place(u);
    if (v == NULL) {
        atomic_store_explicit(&when->next, u->starved, memory_order_relaxed);
        u->starved = when;
        return FLEET_LATER;
    }
    if (v->state != VARIANT_MAKING) begin(v, inputs);
    v->used = ++f->uses;
    wait_for(v, when);
    return FLEET_LATER;
}

static Variant *by_tenant(const Unit *u, uint32_t tenant) {
    for (uint32_t i = 0; i < u->n_variants; i++)
        if (u->variants[i].state == VARIANT_READY && u->variants[i].tenant == tenant)
            return &u->variants[i];
    return NULL;
}

// A place may have become free: one that waits for a place tries again, and the next after it.
void fleet_done(Fleet *f, Served *s, uint32_t tenant) {
    Unit    *u = unit_of(s);
    Variant *v = by_tenant(u, tenant);
    (void)f;
    if (v == NULL || v->running == 0 || --v->running > 0 || u->starved == NULL) return;
    LoopPost *first = u->starved;
    u->starved = atomic_load_explicit(&first->next, memory_order_relaxed);
    first->run(first->self);
}

TimeNs fleet_target_ns(const Served *s, uint32_t tenant) {
    const Variant *v = by_tenant(unit_of(s), tenant);
    return v != NULL ? v->target_ns : s->target_ns;
}
