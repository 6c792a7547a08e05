// CompiledShape: a model version compiled for certain input shapes. Functions of the loader's
// threads first: compile, join the engine, leave. Then those of the loop: lookup and
// eviction.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/models/registry_int.h"

enum { TENANTS_MOST = 32 };  // of the engine, for all shapes of a model
enum { CROWDED_PART = 16 };  // of the memory, held by others, is little
enum { MEASURED_RUNS = 5, POLICY_TRIES = 50, POLICY_PAUSE_US = 20000 };

Err compiled_shape_init(ModelVersion *mv) {
    uint32_t       most = (uint32_t)mv->from->serve.shapes;
    uint32_t       n = !mv->source.open ? 1 : most < TENANTS_MOST ? most : TENANTS_MOST;
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

static uint64_t half_left(const Budget *b, uint64_t used) {
    return b->most == 0 ? UINT64_MAX : b->most > used ? (b->most - used) / 2 : 0;
}

// The budget with least left for requests of the model.
static const Budget *least_left(const CompiledShape *cs) {
    const Budget *least = &cs->owner->info.memory;
    for (const Budget *b = least->whole; b != NULL; b = b->whole)
        if (half_left(b, budget_used(b)) < half_left(least, budget_used(least))) least = b;
    return least;
}

// Shapes that requests bring are part of the memory of the model's requests: the execution contexts
// of one take at most half of what is left of it. Weights are not counted.
static uint64_t request_room(const CompiledShape *cs) {
    const Budget *b = least_left(cs);
    return cs->owner->loading ? UINT64_MAX : half_left(b, budget_used(b));
}

// The same, if there were no other requests.
static uint64_t request_room_alone(const CompiledShape *cs) {
    uint64_t left = UINT64_MAX;
    for (const Budget *b = &cs->owner->info.memory; b != NULL; b = b->whole)
        if (half_left(b, cs->held) < left) left = half_left(b, cs->held);
    return left;
}

// Whether it failed for want of memory that other requests held, as far as that is known: not if it
// needs more than there is without them, or if they held little.
static bool is_crowded(const CompiledShape *cs) {
    return cs->needed <= cs->alone && cs->limit < cs->alone - cs->alone / CROWDED_PART;
}

// As many execution contexts as `concurrency` says, or as memory allows.
static Err choose_concurrency(CompiledShape *cs, uint64_t room, uint32_t *out) {
    uint64_t each = context_bytes(cs), fixed = cs->prepared.memory_bytes;
    uint64_t most = room > fixed ? (room - fixed) / each : 0, own = request_room(cs);
    uint32_t wish = (uint32_t)cs->owner->from->serve.concurrency;
    if (each > cs->needed) cs->needed = each;
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

const CompiledShape *compiled_shape_base(const ModelVersion *mv) {
    return mv->n_shapes > 1 && mv->shapes[0].state == COMPILED_SHAPE_READY &&
                   mv->shapes[0].prepared.has_values
               ? &mv->shapes[0]
               : NULL;
}

Err compiled_shape_compile(CompiledShape *cs, const Tensor *shapes) {
    if (cs->leaked) return err_set(ERR_LIMIT, "out of memory: an earlier shape could not be freed");
    ModelVersion        *mv = cs->owner;
    const CompiledShape *base = mv->loading ? NULL : compiled_shape_base(mv);
    uint64_t             room = model_version_memory_left(mv), own = request_room(cs);
    // The team is the loader's: shapes like an earlier one are made on another thread, untuned.
    bool           tuned = base == NULL && mv->registry->o.host->team != NULL;
    double         tune = tuned ? model_tuning_seconds(mv, TUNE_AT_LOAD) : 0;
    PrepareOptions o = {.runs = MEASURED_RUNS,
                        .background = tune <= 0,
                        .tune_seconds = tune,
                        .interpret = true,
                        .like = base != NULL ? &base->prepared : NULL,
                        .scratch = base != NULL ? &mv->registry->scratch : NULL,
                        .remember = cs->owner->loading,
                        .weights =
                            (WeightWidth)config_word("weights", mv->info.config->set.weights),
                        .shapes = shapes,
                        .max_bytes = own < room ? own : room,
                        .setting = own < room ? "buffered_mb" : "memory_mb",
                        .budget = mv->loading ? NULL : &mv->info.memory,
                        .run_bytes = (uint64_t)mv->info.config->set.request_mb << 20,
                        .max_output = (uint64_t)mv->from->serve.response_mb << 20,
                        .most_ns = (TimeNs)mv->from->serve.watchdog_ms * 1000000,
                        .needed = &cs->needed,
                        .stop = mv->loading ? &mv->cancelled : &cs->stop,
                        .name = mv->info.name};
    if (mv->source.weight_bytes > room)
        return err_set(ERR_LIMIT, "weights need %llu MiB of memory, %llu MiB are left",
                       (unsigned long long)(mv->source.weight_bytes >> 20) + 1,
                       (unsigned long long)(room >> 20));
    cs->needed = 0;
    cs->limit = own;
    cs->alone = own < room ? request_room_alone(cs) : own;
    TRY(prepared_model_make(&cs->prepared, &mv->source, mv->registry->o.host, &o));
    cs->is_prepared = true;
    // Shapes that a request brought are set already, and the loop compares them meanwhile.
    for (uint32_t i = 0; mv->loading && i < mv->signature.n_inputs; i++) {
        cs->shapes[i] = cs->prepared.inputs[i];
        cs->shapes[i].data = NULL;
    }
    return ERR_OK;
}

Err registry_set_policy(const ModelRegistry *r) {
    return node_live_set_policy(r->o.engine, r->o.policy, r->o.policy_settings,
                                &r->o.host->machine);
}

static Err join_policy(CompiledShape *cs) {
    ModelRegistry *r = cs->owner->registry;
    registry_lock_engine(r);
    Err e = registry_set_policy(r);
    registry_unlock_engine(r);
    return e;
}

static Err join_engine(CompiledShape *cs, const LiveTenant *t) {
    ModelRegistry *r = cs->owner->registry;
    registry_lock_engine(r);
    Err e = node_live_join(r->o.engine, t, &cs->tenant);
    cs->joined = e == ERR_OK;
    registry_unlock_engine(r);
    if (e == ERR_OK) e = join_policy(cs);
    cs->in_policy = e == ERR_OK;
    return e;
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
    t.haste = !cs->prepared.has_values;
    TRY(join_engine(cs, &t));
    cs->memory_bytes = cs->prepared.memory_bytes + concurrency * context_bytes(cs);
    bool changed = false;
    if (cs->prepared.has_values) TRY(compiled_shape_warm(cs, &changed));
    return changed ? join_policy(cs) : ERR_OK;
}

// Sets up a policy without this shape; the present one reads its tables. False: out of memory.
static bool forget_in_policy(CompiledShape *cs) {
    Err e = join_policy(cs);
    for (int i = 0; e != ERR_OK && i < POLICY_TRIES; i++) {
        (void)usleep(POLICY_PAUSE_US);
        e = join_policy(cs);
    }
    return e == ERR_OK;
}

void compiled_shape_leave(CompiledShape *cs) {
    if (cs->joined) {
        registry_lock_engine(cs->owner->registry);
        node_live_leave(cs->owner->registry->o.engine, cs->tenant);
        registry_unlock_engine(cs->owner->registry);
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

#define RETRY_NS  INT64_C(10000000000)  // until a failed shape is compiled again
#define DESERT_NS INT64_C(3000000000)   // that a shape is compiled without requests

void registry_wake(ModelRegistry *r, LoopPost **waiters) {
    r->calling = *waiters;
    *waiters = NULL;
    while (r->calling != NULL) {
        LoopPost *p = r->calling;
        r->calling = atomic_load_explicit(&p->next, memory_order_relaxed);
        p->run(p->self);
    }
}

static void wait_for(CompiledShape *cs, LoopPost *when) {
    atomic_store_explicit(&when->next, cs->waiters, memory_order_relaxed);
    cs->waiters = when;
    loop_disarm(cs->owner->registry->o.loop, &cs->desertion);
}

static void stop_compile(void *self) {
    CompiledShape *cs = self;
    loop_disarm(cs->owner->registry->o.loop, &cs->desertion);
    atomic_store(&cs->stop, WORK_STOP);
}

void compiled_shape_cancel(ModelVersion *mv) {
    if (mv->loading || mv->leaving) return;  // the loader's thread has its shapes
    for (uint32_t i = 0; i < mv->n_shapes; i++) stop_compile(&mv->shapes[i]);
}

// All requests that wait for it have left. It is compiled for some time more, so that requests with
// short deadlines get it compiled in the end, but it does not keep others waiting.
static void desert(CompiledShape *cs) {
    Loop *l = cs->owner->registry->o.loop;
    cs->desertion = (LoopTimer){.fire = stop_compile, .self = cs};
    if (!cs->begun || loop_arm(l, &cs->desertion, loop_now(l) + DESERT_NS) != ERR_OK)
        stop_compile(cs);
}

bool registry_unlink(LoopPost **list, const LoopPost *when) {
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
    bool found = registry_unlink(&r->calling, when) || registry_unlink(&mv->shape_waiters, when);
    for (uint32_t i = 0; i < mv->n_programs && !found; i++)
        found = registry_unlink(&mv->programs[i].waiters, when);
    for (uint32_t i = 0; i < mv->n_shapes && !found; i++) {
        CompiledShape *cs = &mv->shapes[i];
        found = registry_unlink(&cs->waiters, when);
        if (found && cs->waiters == NULL) desert(cs);
    }
}

bool compiled_shape_matches(const Tensor *shapes, const Tensor *inputs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!tensor_same_shape(&shapes[i], &inputs[i]) || shapes[i].dtype != inputs[i].dtype)
            return false;
    return true;
}

static Err compile(void *self) {
    CompiledShape *cs = self;
    if (atomic_load(&cs->stop) == WORK_STOP)
        return err_set(ERR_LIMIT, "its requests were cancelled");
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

static Err settle_drop(void *self, Err e) {
    compiled_shape_leave(self);
    return e;
}

static void compiled(void *self, Err e, const char *why);

// Shapes take milliseconds once the times of the first are known.
static Loader *loader_of(const ModelVersion *mv) {
    return compiled_shape_base(mv) != NULL ? mv->registry->shaper : mv->registry->loader;
}

static void begun(void *self) { ((CompiledShape *)self)->begun = true; }

static void start_compile(CompiledShape *cs) {
    cs->job = (LoaderJob){.work = compile,
                          .settle = settle_compile,
                          .begun = begun,
                          .done = compiled,
                          .self = cs,
                          .urgent = true};
    cs->job.quick = compiled_shape_base(cs->owner) != NULL;
    loader_put(loader_of(cs->owner), &cs->job);
}

static void evicted(void *self, Err e, const char *why) {
    CompiledShape *cs = self;
    (void)e, (void)why;
    cs->state = COMPILED_SHAPE_FREE;
    if (cs->instead != NULL) start_compile(cs->instead);
    registry_wake(cs->owner->registry, &cs->waiters);
    model_version_update(cs->owner);
    registry_release(cs->owner->registry, &cs->owner->info);
}

static void evict(CompiledShape *idle, CompiledShape *instead) {
    idle->state = COMPILED_SHAPE_COMPILING;
    idle->instead = instead;
    idle->job = (LoaderJob){.settle = settle_drop, .done = evicted, .self = idle, .urgent = true};
    registry_pin(&idle->owner->info);
    shaped_program_drop(idle);
    loader_put(loader_of(idle->owner), &idle->job);
}

void compiled_shape_drop(CompiledShape *cs) { evict(cs, NULL); }

// Frees the memory of the shape that was not used for longest, if there is one without requests,
// and compiles cs again.
static bool evict_idle(CompiledShape *cs) {
    ModelVersion  *mv = cs->owner;
    CompiledShape *idle = NULL;
    for (uint32_t i = 0; i < mv->n_shapes; i++) {
        CompiledShape *at = &mv->shapes[i];
        bool           free = at->state == COMPILED_SHAPE_READY && at->running == 0;
        if (free && at->charged > 0 && (idle == NULL || at->used < idle->used)) idle = at;
    }
    if (idle == NULL) return false;
    cs->state = COMPILED_SHAPE_COMPILING;
    evict(idle, cs);
    return true;
}

static void compiled(void *self, Err e, const char *why) {
    CompiledShape *cs = self;
    ModelVersion  *mv = cs->owner;
    bool           stopped = atomic_load(&cs->stop) == WORK_STOP;
    loop_disarm(mv->registry->o.loop, &cs->desertion);
    cs->begun = false;
    cs->state = e == ERR_OK ? COMPILED_SHAPE_READY : COMPILED_SHAPE_FAILED;
    cs->large = e == ERR_LIMIT;
    cs->crowded = cs->large && !stopped && is_crowded(cs);
    if (cs->crowded && cs->waiters != NULL && evict_idle(cs)) return;
    cs->retry = stopped ? 0 : clock_monotonic_ns() + RETRY_NS;
    (void)snprintf(cs->why, sizeof cs->why, "%s", why);
    if (e == ERR_OK) model_version_set_outputs(mv, &cs->prepared);
    if (e == ERR_OK) idle_shapes_watch(mv->registry);
    model_version_update(mv);
    registry_pin(&mv->info);
    cs->calling = true;
    registry_wake(mv->registry, &cs->waiters);
    cs->calling = false;
    registry_release(mv->registry, &mv->info);
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
        if (cs == compiled_shape_base(mv)) continue;
        bool failed = cs->state == COMPILED_SHAPE_FAILED,
             other = best != NULL && best->state == COMPILED_SHAPE_FAILED;
        if (best == NULL || (failed && !other) || (failed == other && cs->used < best->used))
            best = cs;
    }
    return best;
}

static void replace(CompiledShape *cs, const Tensor *inputs, size_t held) {
    ModelVersion *mv = cs->owner;
    cs->held = held;
    atomic_store(&cs->stop, WORK_GO);
    for (uint32_t i = 0; i < mv->signature.n_inputs; i++) {
        cs->shapes[i] = inputs[i];
        cs->shapes[i].data = NULL;
    }
    cs->state = COMPILED_SHAPE_COMPILING;
    if (!cs->is_prepared) {
        start_compile(cs);
        return;
    }
    shaped_program_drop(cs);
    cs->job = (LoaderJob){.settle = settle_drop, .done = dropped, .self = cs, .urgent = true};
    loader_put(loader_of(mv), &cs->job);
}

static CompiledShape *find(ModelVersion *mv, const Tensor *inputs) {
    uint32_t n = mv->signature.n_inputs;
    if (mv->last != NULL && mv->last->state == COMPILED_SHAPE_READY &&
        compiled_shape_matches(mv->last->shapes, inputs, n))
        return mv->last;
    for (uint32_t i = 0; i < mv->n_shapes; i++)
        if (mv->shapes[i].state != COMPILED_SHAPE_FREE &&
            compiled_shape_matches(mv->shapes[i].shapes, inputs, n))
            return &mv->shapes[i];
    return NULL;
}

// Bytes of shapes without requests, which can be evicted.
static uint64_t idle_bytes(const ModelVersion *mv) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < mv->n_shapes; i++)
        if (mv->shapes[i].state == COMPILED_SHAPE_READY && mv->shapes[i].running == 0)
            sum += mv->shapes[i].charged;
    return sum;
}

// A failure for want of memory holds until there is more than there was.
static ShapeLookup find_failed(CompiledShape *cs) {
    const Budget *b = least_left(cs);
    const char   *name = cs->owner->info.name;
    if (cs->crowded && !cs->calling && request_room(cs) + idle_bytes(cs->owner) / 2 > cs->limit)
        return SHAPE_COMPILING;
    if (cs->crowded) {
        (void)err_note(
            "no memory to compile model '%s' for these shapes: other requests use most of "
            "the %zu MiB that `%s` allows %s; retry later",
            name, b->most >> 20, b->setting,
            b == &cs->owner->info.memory ? "the model" : "all models");
        return SHAPE_CROWDED;
    }
    if (clock_monotonic_ns() >= cs->retry) return SHAPE_COMPILING;
    (void)err_note("model '%s' does not compile for these shapes: %s", name, cs->why);
    return cs->large ? SHAPE_TOO_LARGE : SHAPE_INVALID;
}

ShapeLookup compiled_shape_find(ModelVersion *mv, const Tensor *inputs, size_t held, LoopPost *when,
                                CompiledShape **out) {
    ModelRegistry *r = mv->registry;
    CompiledShape *cs = find(mv, inputs);
    if (cs != NULL && cs->state == COMPILED_SHAPE_READY) {
        cs->used = ++r->uses;
        cs->used_at = loop_now(r->o.loop);
        cs->running++;
        mv->last = cs;
        *out = cs;
        return SHAPE_READY;
    }
    if (cs != NULL && cs->state == COMPILED_SHAPE_FAILED) {
        ShapeLookup found = find_failed(cs);
        if (found != SHAPE_COMPILING) return found;
    }
    if (cs == NULL) cs = choose_slot(mv);
    if (cs == NULL) {
        atomic_store_explicit(&when->next, mv->shape_waiters, memory_order_relaxed);
        mv->shape_waiters = when;
        return SHAPE_COMPILING;
    }
    if (cs->state != COMPILED_SHAPE_COMPILING) replace(cs, inputs, held);
    cs->used = ++r->uses;
    cs->used_at = loop_now(r->o.loop);
    wait_for(cs, when);
    return SHAPE_COMPILING;
}

// A slot may have become free: the first request that waits for one tries again.
void compiled_shape_release(CompiledShape *cs) {
    ModelVersion *mv = cs->owner;
    cs->used_at = loop_now(mv->registry->o.loop);
    if (cs->running == 0 || --cs->running > 0 || mv->shape_waiters == NULL) return;
    LoopPost *first = mv->shape_waiters;
    mv->shape_waiters = atomic_load_explicit(&first->next, memory_order_relaxed);
    first->run(first->self);
}
