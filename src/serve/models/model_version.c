// ModelVersion: one version of a model, from reading its file to freeing its memory.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "serve/models/registry_int.h"

enum { ARENA_SHIFT = 24 };

static bool is(const char *text, const char *word) { return strcmp(text, word) == 0; }

// Whether it replaces a version of the same file with faster kernel versions.
static bool is_tuned(const ModelVersion *mv) { return mv->search_began > 0; }

static void notify_changed(ModelVersion *mv) {
    ModelRegistry *r = mv->registry;
    if (r->open && r->o.changed != NULL) r->o.changed(r->o.self, &mv->info);
}

static void notify(ModelVersion *mv) {
    if (mv->listed) notify_changed(mv);
}

static void complete(ModelVersion *mv, const char *why) {
    LoadWaiter *c = mv->load_waiters;
    mv->load_waiters = NULL;
    while (c != NULL) {
        LoadWaiter *next = c->next;
        c->done(c->self, why);
        free(c);
        c = next;
    }
}

// Memory for all requests of a model: the setting, or half of what all models have.
static size_t request_bytes(const ModelRegistry *r, const ConfigModel *m) {
    size_t all = r->o.memory != NULL ? r->o.memory->most : 0;
    size_t own = (size_t)m->set.buffered_mb << 20;
    return own == 0 || (all > 0 && own > all) ? all / 2 : own;
}

Err model_version_open(ModelRegistry *r, const Config *from, const ConfigModel *m,
                       ModelVersion **out) {
    ModelVersion *mv = calloc(1, sizeof *mv);
    if (mv == NULL) return err_set(ERR_LIMIT, "out of memory for model '%s'", m->name);
    *mv = (ModelVersion){.registry = r, .from = from};
    mv->info = (ModelInfo){
        .config = m,
        .class = (ModelClass)config_word("class", m->set.class),
        .on_miss = (OnMiss)config_word("on_miss", m->set.on_miss),
        .state = MODEL_LOADING,
        .reason = "",
        .job_tenant = UINT32_MAX,
        .memory = {.setting = "buffered_mb", .whole = r->o.memory, .most = request_bytes(r, m)}};
    Err e = model_slot_take(r, m->name, &mv->info.slot);
    if (e == ERR_OK) {
        mv->info.name = r->slots[mv->info.slot].name;
        mv->info.version = registry_intern(r, m->version);
        if (mv->info.version == NULL) e = err_set(ERR_LIMIT, "out of memory for a version's name");
    }
    if (e != ERR_OK) {
        free(mv);
        return e;
    }
    mv->next_detached = r->detached;
    r->detached = mv;
    *out = mv;
    return ERR_OK;
}

// Leaves the engine, then frees memory: the policy must not refer to its tables any more.
static void free_memory(ModelVersion *mv) {
    bool leaked = false;
    for (uint32_t i = 0; i < mv->n_shapes; i++) {
        shaped_program_drop(&mv->shapes[i]);
        compiled_shape_leave(&mv->shapes[i]);
        leaked = leaked || mv->shapes[i].leaked;
    }
    registry_lock_engine(mv->registry);
    if (mv->info.job_tenant != UINT32_MAX)
        node_live_leave(mv->registry->o.engine, mv->info.job_tenant);
    registry_unlock_engine(mv->registry);
    mv->info.job_tenant = UINT32_MAX;
    mv->shapes = NULL;
    mv->programs = NULL;
    mv->n_shapes = mv->n_programs = 0;
    if (leaked) mv->arena = (Arena){0};
    source_finish(&mv->source);
    arena_finish(&mv->arena);
}

void model_version_free(ModelVersion *mv) {
    model_tuning_stop(mv);
    free_memory(mv);
    model_slot_remove(mv);
    registry_forget_detached(mv);
    if (mv->previous != NULL) mv->previous->replacement = NULL;
    if (mv->replacement != NULL) mv->replacement->previous = NULL;
    free(mv);
}

static Err check_cancelled(const ModelVersion *mv) {
    return atomic_load(&mv->cancelled) == WORK_STOP ? err_set(ERR_ARG, "loading was cancelled")
                                                    : ERR_OK;
}

// A file with a new date but the same hash is the same model, unless it has external data.
static bool is_same(const ModelVersion *mv) {
    return !mv->source.model.external && mv->previous_sha256[0] != '\0' &&
           is(mv->previous_sha256, mv->source.sha256);
}

static bool is_open_image(const Tensor *t) {
    return t->rank == 4 && t->dims[1] > 0 && t->dims[2] < 0 && t->dims[3] < 0;
}

// Compiles for the likely shapes: open dimensions are 1, or 224 for the sides of an image, unless
// only the other works. If neither compiles, the first request decides. All other shapes are
// compared with these.
static Err compile_first(ModelVersion *mv) {
    const ModelSignature *p = &mv->signature;
    Tensor               *guess = arena_try_new(&mv->arena, Tensor, p->n_inputs);
    bool                  known = true, image = false;
    if (guess == NULL) return err_set(ERR_LIMIT, "too many inputs");
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        guess[i] = p->inputs[i].reshaped ? p->inputs[i].own : p->inputs[i].type;
        known = known && guess[i].rank >= 0;
        image = image || is_open_image(&guess[i]);
        for (int32_t d = 0; d < guess[i].rank; d++)
            if (guess[i].dims[d] < 0) guess[i].dims[d] = guess[i].rank == 4 && d > 1 ? 224 : 1;
    }
    Err e = known ? compiled_shape_compile(&mv->shapes[0], image ? guess : NULL) : ERR_OK;
    if (e != ERR_OK && mv->source.open) {
        TRY(check_cancelled(mv));
        e = compiled_shape_compile(&mv->shapes[0], image ? NULL : guess);
        if (e != ERR_OK && e != ERR_LIMIT) return ERR_OK;
    }
    return e;
}

static Err load(void *self) {
    ModelVersion      *mv = self;
    const ConfigModel *m = mv->info.config;
    SourceOptions      o = {
             .name = mv->info.name, .max_bytes = model_version_memory_left(mv), .root = m->root};
    TRY(check_cancelled(mv));
    if (m->broken != NULL) return err_set(ERR_CONFIG, "%s", m->broken);
    TRY(arena_init(&mv->arena, (size_t)1 << ARENA_SHIFT));
    TRY(source_read(&mv->source, m->path, &o));
    mv->same = is_same(mv);
    if (mv->same) return ERR_OK;
    if (is_tuned(mv) && !source_same_stamp(&mv->source.stamp, &mv->stamp))
        return err_set(ERR_INVALID, "its file has changed since it was loaded");
    TRY(check_cancelled(mv));
    TRY(model_version_signature(mv));
    TRY(compiled_shape_init(mv));
    TRY(shaped_program_init(mv));
    TRY(compile_first(mv));
    return check_cancelled(mv);
}

// Decoding and encoding of its requests is scheduled like the model itself.
static Err join_jobs(ModelVersion *mv) {
    const PreparedModel *s = mv->shapes[0].is_prepared ? &mv->shapes[0].prepared : NULL;
    NodeTenant           t = {.name = mv->info.name,
                              .qos_ns = model_version_target(mv, s),
                              .priority = compiled_shape_priority(mv->info.class)};
    registry_lock_engine(mv->registry);
    Err e = node_live_join_jobs(mv->registry->o.engine, &t, &mv->info.job_tenant);
    registry_unlock_engine(mv->registry);
    return e;
}

static Err set_policy(ModelRegistry *r) {
    registry_lock_engine(r);
    Err e = registry_set_policy(r);
    registry_unlock_engine(r);
    return e;
}

static Err settle_load(void *self, Err e) {
    ModelVersion *mv = self;
    if (e == ERR_OK && !mv->same && mv->n_shapes > 0) {
        e = join_jobs(mv);
        if (e == ERR_OK && mv->shapes[0].is_prepared)
            e = compiled_shape_join(&mv->shapes[0]);
        else if (e == ERR_OK)
            e = set_policy(mv->registry);
    }
    if (e != ERR_OK || mv->same) {
        char why[MODEL_VERSION_WHY];
        (void)snprintf(why, sizeof why, "%s", err_why());
        mv->stamp = mv->source.stamp;
        free_memory(mv);
        (void)malloc_trim(0);
        if (e != ERR_OK) return err_set(e, "%s", why);
    }
    return e;
}

static void become_ready(ModelVersion *mv) {
    CompiledShape *cs = &mv->shapes[0];
    mv->info.load_ns = clock_monotonic_ns() - mv->job.began;
    mv->stamp = mv->source.stamp;
    memcpy(mv->info.sha256, mv->source.sha256, sizeof mv->info.sha256);
    if (cs->joined) {
        cs->state = COMPILED_SHAPE_READY;
        model_version_set_outputs(mv, &cs->prepared);
    }
    model_version_update(mv);
    mv->info.signature = mv->signature;
    mv->info.state = MODEL_READY;
    mv->info.reason = "";
}

// Unloads versions that were kept only until this one was ready.
static void retire_others(ModelVersion *mv) {
    ModelVersion *next = NULL;
    for (ModelVersion *o = mv->registry->slots[mv->info.slot].versions; o != NULL; o = next) {
        next = o->next;
        if (o != mv && o->retiring) model_version_retire(o);
    }
}

static void inherit_failures(ModelVersion *mv, const ModelVersion *old) {
    mv->failures = old->failures;
    mv->info.quarantined = old->info.quarantined;
    if (atomic_load(&old->worked)) atomic_store(&mv->worked, true);
}

static void replace_previous(ModelVersion *mv) {
    ModelVersion *old = mv->previous;
    mv->previous = NULL;
    if (old != NULL) {
        old->replacement = NULL;
        model_slot_remove(old);
        if (is_tuned(mv)) inherit_failures(mv, old);
    }
    if (!mv->listed) CHECK(model_slot_add(mv) == ERR_OK);  // its predecessor's entry is free
    if (old != NULL) model_version_retire(old);
}

static void keep_previous(ModelVersion *mv, const char *why) {
    ModelVersion *old = mv->previous;
    old->replacement = NULL;
    old->info.tuning = false;
    mv->previous = NULL;
    if (is_tuned(mv)) {
        model_tuning_report_kept(old, mv->search_began, why, true);
    } else if (mv->same) {
        old->stamp = mv->stamp;
        old->from = mv->from;
        old->info.config = mv->info.config;
        old->info.reason = "";
    } else {
        (void)snprintf(old->why, sizeof old->why, "a newer file could not be loaded: %s", why);
        old->info.reason = old->why;
    }
    if (!is_tuned(mv)) notify(old);
    complete(mv, mv->same || is_tuned(mv) ? NULL : why);
    model_version_free(mv);
}

static void fail(ModelVersion *mv, const char *why) {
    (void)snprintf(mv->why, sizeof mv->why, "%s", why);
    mv->info.state = MODEL_UNAVAILABLE;
    mv->info.reason = mv->why;
    mv->info.memory_bytes = 0;
    notify(mv);
    complete(mv, mv->why);
}

static void load_begun(void *self) {
    ModelVersion  *mv = self;
    ModelRegistry *r = mv->registry;
    mv->info.load_number = ++r->n_begun;
    mv->info.load_count = r->n_queued;
    if (atomic_load(&mv->cancelled) != WORK_STOP && !is_tuned(mv)) notify_changed(mv);
}

static void count_loaded(ModelRegistry *r) {
    if (++r->n_loaded == r->n_queued) r->n_queued = r->n_begun = r->n_loaded = 0;
}

static void put_in_service(ModelVersion *mv) {
    become_ready(mv);
    replace_previous(mv);
    if (is_tuned(mv))
        model_tuning_report(mv);
    else
        notify(mv);
    retire_others(mv);
    complete(mv, NULL);
    loader_share(mv->registry->loader, 0.5);
}

static void loaded(void *self, Err e, const char *why) {
    ModelVersion  *mv = self;
    ModelRegistry *r = mv->registry;
    mv->loading = false;
    count_loaded(r);
    if (atomic_load(&mv->cancelled) == WORK_STOP) {
        complete(mv, "unloaded while loading");
        model_version_retire(mv);
    } else if (mv->previous != NULL && (e != ERR_OK || mv->same)) {
        keep_previous(mv, why);
    } else if (e != ERR_OK) {
        fail(mv, why);
    } else {
        put_in_service(mv);
    }
    model_tuning_next(r);
}

void model_version_load(ModelVersion *mv) {
    const ModelVersion *old = mv->previous;
    if (old != NULL && !is_tuned(mv) && is(old->info.config->path, mv->info.config->path) &&
        registry_same_settings(old->info.config, mv->info.config))
        memcpy(mv->previous_sha256, old->info.sha256, sizeof mv->previous_sha256);
    mv->loading = true;
    mv->info.state = MODEL_LOADING;
    mv->info.reason = "";
    mv->job = (LoaderJob){
        .begun = load_begun, .work = load, .settle = settle_load, .done = loaded, .self = mv};
    mv->registry->n_queued++;
    loader_put(mv->registry->loader, &mv->job);
}

// A newer file that is being loaded gets its versions in its turn.
Err model_version_load_tuned(ModelVersion *old, TimeNs search_began) {
    ModelVersion *mv = NULL;
    if (old->replacement != NULL) return ERR_OK;
    TRY(model_version_open(old->registry, old->from, old->info.config, &mv));
    mv->stamp = old->stamp;
    mv->searched = true;
    mv->search_began = search_began;
    mv->untuned_ns = old->shapes[0].prepared.solo_ns[0];
    mv->kept_target_ns = old->info.target_ns;
    mv->previous = old;
    old->replacement = mv;
    old->info.tuning = true;
    model_version_load(mv);
    return ERR_OK;
}

static Err settle_unload(void *self, Err e) {
    free_memory(self);
    (void)malloc_trim(0);
    return e;
}

static void unloaded(void *self, Err e, const char *why) {
    ModelVersion *mv = self;
    (void)e, (void)why;
    mv->leaving = false;
    mv->info.state = MODEL_UNAVAILABLE;
    mv->info.reason = "unloaded";
    mv->info.unloaded = true;
    mv->info.memory_bytes = 0;
    notify(mv);
    complete(mv, NULL);
    if (!mv->unloaded || !mv->listed) model_version_free(mv);
}

bool model_version_busy(const ModelVersion *mv) {
    bool busy = mv->loading || mv->leaving;
    for (uint32_t i = 0; !busy && i < mv->n_shapes; i++)
        busy = mv->shapes[i].state == COMPILED_SHAPE_COMPILING;
    for (uint32_t i = 0; !busy && i < mv->n_programs; i++)
        busy = mv->programs[i].state == SHAPED_PROGRAM_MAKING;
    return busy;
}

static void start_unload(ModelVersion *mv) {
    if (model_version_busy(mv) || mv->pins > 0) return;
    mv->leaving = true;
    mv->last = NULL;
    mv->info.signature = (ModelSignature){0};
    mv->job = (LoaderJob){.settle = settle_unload, .done = unloaded, .self = mv};
    loader_put(mv->registry->loader, &mv->job);
}

void model_version_unpinned(ModelVersion *mv) {
    if (mv->info.state == MODEL_UNLOADING) start_unload(mv);
}

void model_version_retire(ModelVersion *mv) {
    if (mv->loading) {
        atomic_store(&mv->cancelled, WORK_STOP);
        return;
    }
    model_tuning_stop(mv);
    mv->info.tuning = false;
    mv->info.state = MODEL_UNLOADING;
    mv->info.reason = "";
    notify(mv);
    start_unload(mv);
}

// Memory and latency target of a version.

#define LEAST_TARGET_NS INT64_C(10000000)     // least relative target: clients add network time
#define FAR_NS          INT64_C(60000000000)  // target of models without one

enum { THROUGHPUT_TIMES = 10 };

static uint64_t resident_bytes(void) {
    char  line[128] = "";
    char *at = line;
    FILE *r = fopen("/proc/self/statm", "re");
    if (r == NULL) return 0;
    if (fgets(line, sizeof line, r) == NULL) line[0] = '\0';
    (void)fclose(r);
    (void)strtoull(at, &at, 10);
    return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t used_bytes(const ModelVersion *mv) {
    uint64_t sum = mv->source.open ? mv->source.weight_bytes : 0;
    sum += packed_weights_bytes(mv->source.packed);
    for (uint32_t i = 0; i < mv->n_shapes; i++) sum += mv->shapes[i].memory_bytes;
    return sum;
}

static uint64_t memory_left(const ModelVersion *mv, uint64_t used) {
    uint64_t all = cpu_mem_budget(&cgroup_roots), taken = resident_bytes();
    uint64_t own = (uint64_t)mv->info.config->set.memory_mb << 20;
    uint64_t room = all > taken ? all - taken : 0;
    if (own == 0) return room > 0 ? room : 1;
    uint64_t left = own > used ? own - used : 0;
    if (left > room) left = room;
    return left > 0 ? left : 1;
}

uint64_t model_version_memory_left(const ModelVersion *mv) {
    return memory_left(mv, used_bytes(mv));
}

uint64_t model_version_memory_beside(const ModelVersion *mv) { return memory_left(mv, 0); }

// Rounds up to two digits, so that two starts on one machine mostly get the same target.
static TimeNs round_up(TimeNs ns) {
    TimeNs step = 1;
    while (ns / step >= 100) step *= 10;
    return (ns + step - 1) / step * step;
}

// Targets that depend on the run time stay when faster versions replace those in service: of other
// shapes in proportion.
static double untuned_ns(const ModelVersion *mv, const PreparedModel *s) {
    const PreparedModel *first = mv->n_shapes > 0 ? &mv->shapes[0].prepared : NULL;
    bool                 known = is_tuned(mv) && first != NULL && first->solo_ns[0] > 0;
    return known ? s->solo_ns[0] * mv->untuned_ns / first->solo_ns[0] : s->solo_ns[0];
}

TimeNs model_version_target(const ModelVersion *mv, const PreparedModel *s) {
    const TenantSettings *set = &mv->info.config->set;
    double                ns = set->target_ms > 0 ? set->target_ms * 1e6
                               : s != NULL        ? set->target_x_isolated * untuned_ns(mv, s)
                                                  : 0;
    TimeNs                target = (TimeNs)ns;
    if (is_tuned(mv) && mv->n_shapes > 0 && s == &mv->shapes[0].prepared) return mv->kept_target_ns;
    if (mv->info.class == CLASS_BEST_EFFORT) return FAR_NS;
    if (mv->info.class == CLASS_THROUGHPUT) target *= THROUGHPUT_TIMES;
    if (target == 0) return FAR_NS;
    if (set->target_ms > 0) return target;
    return target > LEAST_TARGET_NS ? round_up(target) : LEAST_TARGET_NS;
}

void model_version_update(ModelVersion *mv) {
    const CompiledShape *first = NULL;
    for (uint32_t i = 0; i < mv->n_shapes && first == NULL; i++)
        if (mv->shapes[i].state == COMPILED_SHAPE_READY) first = &mv->shapes[i];
    mv->info.memory_bytes = used_bytes(mv);
    if (first != NULL) mv->info.cores = prepared_model_cores(&first->prepared);
    if (first != NULL || mv->info.target_ns == 0)
        mv->info.target_ns = model_version_target(mv, first != NULL ? &first->prepared : NULL);
}
