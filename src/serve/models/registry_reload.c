// Reload, load and unload: compares a configuration with the versions in memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/models/pbtxt.h"
#include "serve/models/registry_int.h"

static bool same_int(int64_t a, int64_t b) { return a == b; }
static bool same_double(double a, double b) { return a == b; }
static bool same_string(const char *a, const char *b) { return strcmp(a, b) == 0; }
#define same_bool  same_int
#define same__Bool same_int

static bool same_tensors(const PbtxtTensor *a, uint32_t n_a, const PbtxtTensor *b, uint32_t n_b) {
    bool same = n_a == n_b;
    for (uint32_t i = 0; same && i < n_a; i++)
        same = same_string(a[i].name, b[i].name) && a[i].rank == b[i].rank &&
               a[i].reshaped == b[i].reshaped && a[i].shape_rank == b[i].shape_rank &&
               memcmp(a[i].dims, b[i].dims, sizeof a[i].dims) == 0 &&
               memcmp(a[i].shape, b[i].shape, sizeof a[i].shape) == 0;
    return same;
}

// Shapes that config.pbtxt declares for clients.
static bool same_declared(const Pbtxt *a, const Pbtxt *b) {
    static const Pbtxt none;
    if (a == NULL) a = &none;
    if (b == NULL) b = &none;
    return same_tensors(a->inputs, a->n_inputs, b->inputs, b->n_inputs) &&
           same_tensors(a->outputs, a->n_outputs, b->outputs, b->n_outputs);
}

bool registry_same_settings(const ConfigModel *a, const ConfigModel *b) {
    bool same = same_declared(a->declared, b->declared);
#define X(name, kind, def, lo, hi, about) same = same && same_##kind(a->set.name, b->set.name);
    TENANT_SETTINGS(X)
#undef X
    return same;
}

struct LoadGroup {  // one request that loads or unloads several versions
    void (*done)(void *self, uint32_t failed);
    void (*said)(void *self, const char *why);
    void             *self;
    uint32_t          left, failed;
    char              why[MODEL_VERSION_WHY];
    struct LoadGroup *next, **at;  // in registry.load_groups
};

static void load_group_free(LoadGroup *b) {
    *b->at = b->next;
    if (b->next != NULL) b->next->at = b->at;
    free(b);
}

void registry_free_load_groups(ModelRegistry *r) {
    for (LoadGroup *b = r->load_groups, *next = NULL; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    r->load_groups = NULL;
}

static void load_group_done(void *self, const char *why) {
    LoadGroup *b = self;
    if (why != NULL) {
        if (b->failed++ == 0) (void)snprintf(b->why, sizeof b->why, "%s", why);
    }
    if (--b->left > 0) return;
    if (b->done != NULL) b->done(b->self, b->failed);
    if (b->said != NULL) b->said(b->self, b->failed > 0 ? b->why : NULL);
    load_group_free(b);
}

static void attach(ModelVersion *mv, LoadGroup *b) {
    LoadWaiter *c = malloc(sizeof *c);
    if (c == NULL) {
        b->left++;
        load_group_done(b, "out of memory");
        return;
    }
    *c = (LoadWaiter){.next = mv->load_waiters, .done = load_group_done, .self = b};
    mv->load_waiters = c;
    b->left++;
}

static void move_waiters(ModelVersion *from, ModelVersion *to) {
    LoadWaiter **end = &to->load_waiters;
    while (*end != NULL) end = &(*end)->next;
    *end = from->load_waiters;
    from->load_waiters = NULL;
}

static void drop_replacement(ModelVersion *mv) {
    if (mv->replacement == NULL) return;
    mv->info.tuning = false;
    atomic_store(&mv->replacement->cancelled, WORK_STOP);
    mv->replacement->previous = NULL;
    mv->replacement = NULL;
}

static ModelVersion *find(ModelRegistry *r, const char *name, const char *version) {
    ModelSlot    *s = model_slot_find(r, (Str){name, strlen(name)});
    ModelVersion *mv = s != NULL ? s->versions : NULL;
    while (mv != NULL && strcmp(mv->info.version, version) != 0) mv = mv->next;
    return mv;
}

static bool same_source(const ModelVersion *mv, const ConfigModel *m, const SourceStamp *stamp) {
    return m->broken == NULL && strcmp(mv->info.config->path, m->path) == 0 &&
           source_same_stamp(&mv->stamp, stamp) && registry_same_settings(mv->info.config, m);
}

// Removes a version that is not ready; callbacks that wait for it wait for its successor instead.
static void displace(ModelVersion *mv, ModelVersion *by) {
    drop_replacement(mv);
    mv->unloaded = false;
    model_slot_remove(mv);
    if (mv->loading) move_waiters(mv, by);
    model_version_retire(mv);
}

static Err open_version(ModelRegistry *r, const Config *c, const ConfigModel *m,
                        const SourceStamp *stamp, ModelVersion **out) {
    TRY(model_version_open(r, c, m, out));
    (*out)->stamp = *stamp;
    return ERR_OK;
}

static Err start_load(ModelRegistry *r, const Config *c, const ConfigModel *m,
                      const SourceStamp *stamp, ModelVersion *old, LoadGroup *b) {
    ModelVersion *mv = NULL;
    TRY(open_version(r, c, m, stamp, &mv));
    if (old != NULL && old->info.state == MODEL_READY) {
        model_tuning_stop(old);
        drop_replacement(old);
        mv->previous = old;
        old->replacement = mv;
    } else {
        if (old != NULL) displace(old, mv);
        Err e = model_slot_add(mv);
        if (e != ERR_OK) {
            model_version_free(mv);
            return e;
        }
    }
    attach(mv, b);
    model_version_load(mv);
    return ERR_OK;
}

// Settings are equal, so only the pointers change; a running job keeps the old configuration.
static void rebind(ModelVersion *mv, const Config *c, const ConfigModel *m) {
    if (model_version_busy(mv)) return;
    mv->from = c;
    mv->info.config = m;
}

// Loads one version, unless the same file with the same settings is ready or loading.
static Err ensure_loaded(ModelRegistry *r, const Config *c, const ConfigModel *m, LoadGroup *b) {
    ModelVersion *mv = find(r, m->name, m->version);
    ModelVersion *coming = mv != NULL && mv->info.state == MODEL_READY ? mv->replacement : mv;
    SourceStamp   stamp;
    bool          there = source_stamp(m->path, &stamp) == ERR_OK;
    if (mv != NULL) mv->retiring = false;
    if (mv != NULL && mv->info.state == MODEL_READY && mv->replacement == NULL && there &&
        same_source(mv, m, &stamp)) {
        rebind(mv, c, m);
        mv->failures = 0;
        mv->info.quarantined = 0;
        return ERR_OK;
    }
    if (coming != NULL && coming->loading && atomic_load(&coming->cancelled) != WORK_STOP &&
        same_source(coming, m, &stamp)) {
        attach(coming, b);
        return ERR_OK;
    }
    return start_load(r, c, m, &stamp, mv, b);
}

static bool is_named(const Config *c, const ModelVersion *mv) {
    for (uint32_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, mv->info.name) == 0 &&
            strcmp(c->models[i].version, mv->info.version) == 0)
            return true;
    return false;
}

static bool has_successor(const ModelVersion *mv) {
    for (const ModelVersion *o = mv->registry->slots[mv->info.slot].versions; o != NULL;
         o = o->next)
        if (o != mv && !o->retiring && o->loading && atomic_load(&o->cancelled) != WORK_STOP)
            return true;
    return false;
}

static void retire(ModelVersion *mv) {
    if (mv->info.state == MODEL_UNLOADING) return;
    drop_replacement(mv);
    mv->retiring = mv->info.state == MODEL_READY && has_successor(mv);
    if (!mv->retiring) model_version_retire(mv);
}

static void retire_unnamed(ModelRegistry *r, const Config *c, const char *name) {
    for (uint32_t i = r->n_listed; i > 0; i--) {
        ModelVersion *mv = r->listed[i - 1];
        if (name != NULL && strcmp(mv->info.name, name) != 0) continue;
        if (!is_named(c, mv)) retire(mv);
    }
}

static LoadGroup *load_group(ModelRegistry *r, void (*done)(void *self, uint32_t failed),
                             void (*said)(void *self, const char *why), void *self) {
    LoadGroup *b = calloc(1, sizeof *b);
    if (b == NULL) return NULL;
    *b = (LoadGroup){.done = done, .said = said, .self = self, .left = 1};
    b->next = r->load_groups;
    b->at = &r->load_groups;
    if (b->next != NULL) b->next->at = &b->next;
    r->load_groups = b;
    return b;
}

static void ensure_all_loaded(ModelRegistry *r, const Config *c, const char *name, LoadGroup *b) {
    for (uint32_t i = 0; i < c->n_models; i++) {
        if (name != NULL && strcmp(c->models[i].name, name) != 0) continue;
        if (ensure_loaded(r, c, &c->models[i], b) == ERR_OK) continue;
        b->left++;
        load_group_done(b, err_why());
    }
}

static Err quiet(void *self, Err e) {
    host_quiet(((ModelRegistry *)self)->o.host);
    return e;
}

static void quieted(void *self, Err e, const char *why) { (void)self, (void)e, (void)why; }

// Tuning searches versions on all cores, so it ends (host_quiet) once the first models are loaded.
static void end_tuning_after_first(ModelRegistry *r) {
    if (r->begun) return;
    r->begun = true;
    r->quiet = (LoaderJob){.settle = quiet, .done = quieted, .self = r};
    loader_put(r->loader, &r->quiet);
}

void registry_reload(ModelRegistry *r, const Config *c, void (*done)(void *self, uint32_t failed),
                     void *self) {
    LoadGroup *b = load_group(r, done, NULL, self);
    if (b == NULL) {
        if (done != NULL) done(self, c->n_models);
        return;
    }
    r->config = c;
    ensure_all_loaded(r, c, NULL, b);
    end_tuning_after_first(r);
    retire_unnamed(r, c, NULL);
    load_group_done(b, NULL);
}

static bool is_configured(const Config *c, const char *name) {
    for (uint32_t i = 0; c != NULL && i < c->n_models; i++)
        if (strcmp(c->models[i].name, name) == 0) return true;
    return false;
}

void registry_free_unused_configs(ModelRegistry *r) {
    OwnConfig **at = &r->own;
    while (*at != NULL) {
        OwnConfig *c = *at;
        if (registry_uses(r, &c->config)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        config_finish(&c->config);
        free(c);
    }
}

// Reads the configuration again from its files and folders; one without sources stays as it is.
static Err read_config_again(ModelRegistry *r, const Config **out) {
    const ConfigSources *from = r->config != NULL ? &r->config->loaded_from : NULL;
    registry_free_unused_configs(r);
    *out = r->config;
    if (from == NULL || (from->file == NULL && from->n_sources == 0)) return ERR_OK;
    OwnConfig *c = calloc(1, sizeof *c);
    if (c == NULL) return err_set(ERR_LIMIT, "out of memory for the configuration");
    Err e = config_reload(&c->config, r->config);
    if (e != ERR_OK) {
        free(c);
        return err_set(e, "the configuration has errors; run cotenant check");
    }
    c->next = r->own;
    r->own = c;
    *out = &c->config;
    return ERR_OK;
}

static void load(ModelRegistry *r, const Config *c, const char *name, LoadGroup *b) {
    ensure_all_loaded(r, c, name, b);
    retire_unnamed(r, c, name);
    load_group_done(b, NULL);
}

// Changes settings of one model in a configuration that was read for this request.
static Err apply_override(ModelRegistry *r, const Config *c, const char *name,
                          const ModelOverride *override) {
    if (override == NULL || (!override->has_max_batch && !override->has_weights)) return ERR_OK;
    if (r->own == NULL || c != &r->own->config)
        return err_set(ERR_UNSUPPORTED, "config: the server has no files to load the model from");
    for (uint32_t i = 0; i < c->n_models; i++) {
        TenantSettings *set = &r->own->config.models[i].set;
        if (strcmp(c->models[i].name, name) != 0) continue;
        if (override->has_max_batch) set->max_batch = override->max_batch;
        if (override->has_weights) set->weights = weight_width_name(override->weights);
    }
    return ERR_OK;
}

void registry_load(ModelRegistry *r, const char *name, const ModelOverride *override,
                   void (*done)(void *self, const char *why), void *self) {
    const Config *c = NULL;
    Err           e = read_config_again(r, &c);
    if (e == ERR_OK) e = apply_override(r, c, name, override);
    bool       known = e == ERR_OK && is_configured(c, name);
    LoadGroup *b = known ? load_group(r, NULL, done, self) : NULL;
    if (b != NULL)
        load(r, c, name, b);
    else
        done(self, e != ERR_OK ? err_why()
                   : known     ? "out of memory"
                               : "no such model in the configuration");
}

static void unload(ModelVersion *mv, LoadGroup *b) {
    drop_replacement(mv);
    mv->retiring = false;
    mv->unloaded = true;
    if (mv->info.state == MODEL_UNAVAILABLE) return;
    if (!mv->loading) attach(mv, b);
    if (mv->info.state != MODEL_UNLOADING) model_version_retire(mv);
}

void registry_unload(ModelRegistry *r, const char *name, void (*done)(void *self, const char *why),
                     void *self) {
    ModelSlot *s = model_slot_find(r, (Str){name, strlen(name)});
    LoadGroup *b = s != NULL && s->versions != NULL ? load_group(r, NULL, done, self) : NULL;
    if (b == NULL) {
        done(self, s != NULL && s->versions != NULL ? "out of memory" : "no such model");
        return;
    }
    for (ModelVersion *mv = s->versions, *next = NULL; mv != NULL; mv = next) {
        next = mv->next;
        unload(mv, b);  // NOLINT(clang-analyzer-unix.Malloc): b->left counts this call
    }
    load_group_done(b, NULL);  // NOLINT(clang-analyzer-unix.Malloc): the last count
}
