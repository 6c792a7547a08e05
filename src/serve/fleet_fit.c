// Variants on the loop's side: which one computes a request, and what is to be compiled for it.
#include <stdio.h>

#include "base/clock.h"
#include "serve/fleet_int.h"

#define RETRY_NS INT64_C(10000000000)  // until a shape that failed is tried again

static TimeNs now(void) { return clock_now(clock_steady()); }

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
    v->large = e == ERR_LIMIT;
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
        return v->large ? FLEET_LARGE : FLEET_NEVER;
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
