// CompiledShape: a model version compiled for certain input shapes. Functions of the loader's
// threads first: compile, join the engine, leave. Then those of the loop: lookup and
// eviction.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/models/registry_int.h"

enum { MEASURED_RUNS = 5, POLICY_TRIES = 50, POLICY_PAUSE_US = 20000 };

Err compiled_shape_init(ModelVersion *mv) {
    uint32_t       n = mv->source.open ? (uint32_t)mv->from->serve.shapes : 1;
    CompiledShape *all = arena_try_new(&mv->arena, CompiledShape, n);
    if (all == NULL) return err_set(ERR_LIMIT, "out of memory for %u shapes", n);
    for (uint32_t i = 0; i < n; i++) {
        all[i].owner = mv;
        all[i].shapes = arena_try_new(&mv->arena, Tensor, mv->signature.n_inputs);
        if (all[i].shapes == NULL) return err_set(ERR_LIMIT, "out of memory for %u shapes", n);
    }
    mv->shapes = all;
    mv->n_shapes = n;
    return ERR_OK;
}

double compiled_shape_priority(ModelClass c) {
    return c == CLASS_BEST_EFFORT ? 0.1 : c == CLASS_THROUGHPUT ? 0.5 : 1;
}

static uint64_t context_bytes(const CompiledShape *cs) {
    const Program *p = &cs->prepared.program;
    return p->arena_bytes + node_live_cores(cs->owner->registry->o.engine) * program_scratch(p) +
           4096;
}

// Shapes that requests bring are part of the memory of the model's requests: the execution contexts
// of one take at most half of what is left of it. Weights are not counted.
static uint64_t request_room(const CompiledShape *cs) {
    uint64_t left = UINT64_MAX;
    if (cs->owner->loading) return left;
    for (const Budget *b = &cs->owner->info.memory; b != NULL; b = b->whole) {
        uint64_t used = budget_used(b), free = b->most > used ? b->most - used : 0;
        if (b->most > 0 && free / 2 < left) left = free / 2;
    }
    return left;
}

// As many execution contexts as `concurrency` says, or as memory allows.
static Err choose_concurrency(const CompiledShape *cs, uint64_t room, uint32_t *out) {
    uint64_t each = context_bytes(cs), fixed = cs->prepared.memory_bytes;
    uint64_t most = room > fixed ? (room - fixed) / each : 0, own = request_room(cs);
    uint32_t wish = (uint32_t)cs->owner->from->serve.concurrency;
    if (most == 0)
        return err_set(ERR_LIMIT, "needs %llu MiB of memory, %llu MiB are left",
                       (unsigned long long)((fixed + each) >> 20) + 1,
                       (unsigned long long)(room >> 20));
    if (own < each)
        return err_set(ERR_LIMIT,
                       "a request of these shapes needs %llu MiB; half of what is left of the "
                       "model's `buffered_mb` is %llu MiB",
                       (unsigned long long)(each >> 20) + 1, (unsigned long long)(own >> 20));
    if (most > own / each) most = own / each;
    *out = most < wish ? (uint32_t)most : wish;
    return ERR_OK;
}

// Charges its contexts to the memory of the model's requests, as its inputs are.
static Err charge(CompiledShape *cs, uint32_t concurrency) {
    size_t bytes = (size_t)(concurrency * context_bytes(cs));
    if (cs->owner->loading) return ERR_OK;
    if (!budget_take(&cs->owner->info.memory, bytes))
        return err_set(ERR_LIMIT, "out of memory for these shapes (`buffered_mb`)");
    cs->charged = bytes;
    return ERR_OK;
}

Err compiled_shape_compile(CompiledShape *cs, const Tensor *shapes) {
    if (cs->leaked) return err_set(ERR_LIMIT, "out of memory: an earlier shape could not be freed");
    ModelVersion  *mv = cs->owner;
    uint64_t       room = model_version_memory_left(mv), own = request_room(cs);
    double         tune = mv->registry->o.host->team == NULL ? 0 : mv->from->serve.tune_s;
    PrepareOptions o = {.runs = MEASURED_RUNS,
                        .background = tune <= 0,
                        .tune_seconds = tune,
                        .interpret = true,
                        .remember = cs->owner->loading,
                        .shapes = shapes,
                        .max_bytes = own < room ? own : room,
                        .budget = mv->loading ? NULL : &mv->info.memory,
                        .max_output = (uint64_t)mv->from->serve.response_mb << 20,
                        .most_ns = (TimeNs)mv->from->serve.watchdog_ms * 1000000,
                        .stop = &mv->cancelled,
                        .name = mv->info.name};
    if (mv->source.weight_bytes > room)
        return err_set(ERR_LIMIT, "weights need %llu MiB of memory, %llu MiB are left",
                       (unsigned long long)(mv->source.weight_bytes >> 20) + 1,
                       (unsigned long long)(room >> 20));
    TRY(prepared_model_make(&cs->prepared, &mv->source, mv->registry->o.host, &o));
    cs->is_prepared = true;
    for (uint32_t i = 0; i < mv->signature.n_inputs; i++) {
        cs->shapes[i] = cs->prepared.inputs[i];
        cs->shapes[i].data = NULL;
    }
    return ERR_OK;
}

Err registry_set_policy(const ModelRegistry *r) {
    return node_live_set_policy(r->o.engine, r->o.policy, r->o.policy_settings,
                                &r->o.host->machine);
}

Err compiled_shape_join(CompiledShape *cs) {
    ModelVersion         *mv = cs->owner;
    const TenantSettings *set = &mv->info.config->set;
    uint32_t              concurrency = 1;
    TRY(choose_concurrency(cs, model_version_memory_left(mv), &concurrency));
    TRY(charge(cs, concurrency));
    cs->target_ns = model_version_target(mv, &cs->prepared);
    LiveTenant t = prepared_model_tenant(&cs->prepared, mv->info.name, cs->target_ns,
                                         compiled_shape_priority(mv->info.class));
    t.queue = (uint32_t)set->queue;
    t.contexts = concurrency;
    t.min_cores = (uint32_t)set->min_cores;
    t.max_cores = (uint32_t)set->max_cores;
    TRY(node_live_join(mv->registry->o.engine, &t, &cs->tenant));
    cs->joined = true;
    cs->memory_bytes = cs->prepared.memory_bytes + concurrency * context_bytes(cs);
    TRY(registry_set_policy(mv->registry));
    cs->in_policy = true;
    bool changed = false;
    TRY(compiled_shape_warm(cs, &changed));
    return changed ? registry_set_policy(mv->registry) : ERR_OK;
}

// Sets up a policy without this shape; the present one reads its tables. False: out of memory.
static bool forget_in_policy(CompiledShape *cs) {
    Err e = registry_set_policy(cs->owner->registry);
    for (int i = 0; e != ERR_OK && i < POLICY_TRIES; i++) {
        (void)usleep(POLICY_PAUSE_US);
        e = registry_set_policy(cs->owner->registry);
    }
    return e == ERR_OK;
}

void compiled_shape_leave(CompiledShape *cs) {
    if (cs->joined) {
        node_live_leave(cs->owner->registry->o.engine, cs->tenant);
        cs->joined = false;
        cs->leaked = cs->in_policy && !forget_in_policy(cs);  // the policy still reads it
        cs->in_policy = false;
    }
    if (cs->is_prepared && !cs->leaked) prepared_model_finish(&cs->prepared);
    if (cs->charged > 0) budget_give(&cs->owner->info.memory, cs->charged);
    cs->charged = 0;
    cs->is_prepared = false;
    cs->memory_bytes = 0;
}

#define RETRY_NS INT64_C(10000000000)  // until a failed shape is compiled again

static void wake_waiters(CompiledShape *cs) {
    ModelRegistry *r = cs->owner->registry;
    r->calling = cs->waiters;
    cs->waiters = NULL;
    while (r->calling != NULL) {
        LoopPost *p = r->calling;
        r->calling = atomic_load_explicit(&p->next, memory_order_relaxed);
        p->run(p->self);
    }
}

static void wait_for(CompiledShape *cs, LoopPost *when) {
    atomic_store_explicit(&when->next, cs->waiters, memory_order_relaxed);
    cs->waiters = when;
    atomic_store(&cs->deserted, false);
}

static bool unlink_post(LoopPost **list, const LoopPost *when) {
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

void registry_cancel_wait(ModelRegistry *r, ModelInfo *s, LoopPost *when) {
    ModelVersion *mv = model_version_of(s);
    bool          found = unlink_post(&r->calling, when) || unlink_post(&mv->shape_waiters, when);
    for (uint32_t i = 0; i < mv->n_shapes && !found; i++) {
        CompiledShape *cs = &mv->shapes[i];
        found = unlink_post(&cs->waiters, when);
        if (found && cs->waiters == NULL) atomic_store(&cs->deserted, true);
    }
}

static bool matches(const CompiledShape *cs, const Tensor *inputs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!tensor_same_shape(&cs->shapes[i], &inputs[i]) ||
            cs->shapes[i].dtype != inputs[i].dtype)
            return false;
    return true;
}

static Err compile(void *self) {
    CompiledShape *cs = self;
    cs->skipped = atomic_load(&cs->deserted);
    if (cs->skipped) return err_set(ERR_LIMIT, "its requests were cancelled");
    return compiled_shape_compile(cs, cs->shapes);
}

static Err settle_compile(void *self, Err e) {
    CompiledShape *cs = self;
    if (e == ERR_OK) e = compiled_shape_join(cs);
    if (e == ERR_OK) return e;
    char why[MODEL_VERSION_WHY];
    (void)snprintf(why, sizeof why, "%s", err_why());
    compiled_shape_leave(cs);
    return err_set(e, "%s", why);
}

static void compiled(void *self, Err e, const char *why) {
    CompiledShape *cs = self;
    ModelVersion  *mv = cs->owner;
    cs->state = e == ERR_OK ? COMPILED_SHAPE_READY : COMPILED_SHAPE_FAILED;
    cs->large = e == ERR_LIMIT;
    cs->retry = cs->skipped ? 0 : clock_monotonic_ns() + RETRY_NS;
    (void)snprintf(cs->why, sizeof cs->why, "%s", why);
    if (e == ERR_OK) model_version_set_outputs(mv, &cs->prepared);
    model_version_update(mv);
    registry_pin(&mv->info);
    wake_waiters(cs);
    registry_release(mv->registry, &mv->info);
}

static Err settle_drop(void *self, Err e) {
    compiled_shape_leave(self);
    return e;
}

static void start_compile(CompiledShape *cs) {
    cs->job = (LoaderJob){
        .work = compile, .settle = settle_compile, .done = compiled, .self = cs, .urgent = true};
    loader_put(cs->owner->registry->loader, &cs->job);
}

static void dropped(void *self, Err e, const char *why) {
    (void)e, (void)why;
    start_compile(self);
}

// A free slot, else a failed one, else the least recently used of those without requests.
static CompiledShape *choose_slot(ModelVersion *mv) {
    CompiledShape *best = NULL;
    for (uint32_t i = 0; i < mv->n_shapes; i++) {
        CompiledShape *cs = &mv->shapes[i];
        if (cs->state == COMPILED_SHAPE_FREE) return cs;
        if (cs->state == COMPILED_SHAPE_COMPILING || cs->running > 0) continue;
        bool failed = cs->state == COMPILED_SHAPE_FAILED,
             other = best != NULL && best->state == COMPILED_SHAPE_FAILED;
        if (best == NULL || (failed && !other) || (failed == other && cs->used < best->used))
            best = cs;
    }
    return best;
}

static void replace(CompiledShape *cs, const Tensor *inputs) {
    ModelVersion *mv = cs->owner;
    for (uint32_t i = 0; i < mv->signature.n_inputs; i++) {
        cs->shapes[i] = inputs[i];
        cs->shapes[i].data = NULL;
    }
    cs->state = COMPILED_SHAPE_COMPILING;
    if (!cs->is_prepared) {
        start_compile(cs);
        return;
    }
    cs->job = (LoaderJob){.settle = settle_drop, .done = dropped, .self = cs, .urgent = true};
    loader_put(mv->registry->loader, &cs->job);
}

static CompiledShape *find(ModelVersion *mv, const Tensor *inputs) {
    uint32_t n = mv->signature.n_inputs;
    if (mv->last != NULL && mv->last->state == COMPILED_SHAPE_READY && matches(mv->last, inputs, n))
        return mv->last;
    for (uint32_t i = 0; i < mv->n_shapes; i++)
        if (mv->shapes[i].state != COMPILED_SHAPE_FREE && matches(&mv->shapes[i], inputs, n))
            return &mv->shapes[i];
    return NULL;
}

ShapeLookup registry_find_shape(ModelRegistry *r, ModelInfo *s, const Tensor *inputs,
                                LoopPost *when, uint32_t *tenant) {
    ModelVersion  *mv = model_version_of(s);
    CompiledShape *cs = find(mv, inputs);
    if (cs != NULL && cs->state == COMPILED_SHAPE_READY) {
        cs->used = ++r->uses;
        cs->running++;
        mv->last = cs;
        *tenant = cs->tenant;
        return SHAPE_READY;
    }
    if (cs != NULL && cs->state == COMPILED_SHAPE_FAILED && clock_monotonic_ns() < cs->retry) {
        (void)err_note("model '%s' does not compile for these shapes: %s", s->name, cs->why);
        return cs->large ? SHAPE_TOO_LARGE : SHAPE_INVALID;
    }
    if (cs == NULL) cs = choose_slot(mv);
    if (cs == NULL) {
        atomic_store_explicit(&when->next, mv->shape_waiters, memory_order_relaxed);
        mv->shape_waiters = when;
        return SHAPE_COMPILING;
    }
    if (cs->state != COMPILED_SHAPE_COMPILING) replace(cs, inputs);
    cs->used = ++r->uses;
    wait_for(cs, when);
    return SHAPE_COMPILING;
}

static CompiledShape *by_tenant(const ModelVersion *mv, uint32_t tenant) {
    for (uint32_t i = 0; i < mv->n_shapes; i++)
        if (mv->shapes[i].state == COMPILED_SHAPE_READY && mv->shapes[i].tenant == tenant)
            return &mv->shapes[i];
    return NULL;
}

// A slot may have become free: the first request that waits for one tries again.
void registry_release_shape(ModelRegistry *r, ModelInfo *s, uint32_t tenant) {
    ModelVersion  *mv = model_version_of(s);
    CompiledShape *cs = by_tenant(mv, tenant);
    (void)r;
    if (cs == NULL || cs->running == 0 || --cs->running > 0 || mv->shape_waiters == NULL) return;
    LoopPost *first = mv->shape_waiters;
    mv->shape_waiters = atomic_load_explicit(&first->next, memory_order_relaxed);
    first->run(first->self);
}

TimeNs registry_target_ns(const ModelInfo *s, uint32_t tenant) {
    const CompiledShape *cs = by_tenant(model_version_of(s), tenant);
    return cs != NULL ? cs->target_ns : s->target_ns;
}
