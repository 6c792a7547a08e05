#include "serve/models/registry.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "serve/models/registry_int.h"

#define YEAR_NS INT64_C(31536000000000000)

enum { NAMES_SHIFT = 24, SCRATCH_FIRST = 1 << 23, SCRATCH_SHIFT = 37 };

static Err open_registry(ModelRegistry *r, const ModelRegistryOptions *o) {
    r->o = *o;
    TRY(arena_init(&r->names, (size_t)1 << NAMES_SHIFT));
    TRY(arena_init_growing(&r->scratch, SCRATCH_FIRST, (size_t)1 << SCRATCH_SHIFT));
    TRY(loader_create(&r->shaper, o->loop));
    return loader_create(&r->loader, o->loop);
}

Err registry_create(ModelRegistry **out, const ModelRegistryOptions *o) {
    ModelRegistry *r = calloc(1, sizeof *r);
    if (r == NULL) return err_set(ERR_LIMIT, "out of memory for the model registry");
    CHECK(pthread_mutex_init(&r->engine_lock, NULL) == 0);
    Err e = open_registry(r, o);
    if (e != ERR_OK) {
        registry_destroy(r);
        return e;
    }
    *out = r;
    if (o->config != NULL) registry_reload(r, o->config, NULL, NULL);
    r->open = true;
    return ERR_OK;
}

void registry_lock_engine(ModelRegistry *r) { CHECK(pthread_mutex_lock(&r->engine_lock) == 0); }

void registry_unlock_engine(ModelRegistry *r) { CHECK(pthread_mutex_unlock(&r->engine_lock) == 0); }

static void drop_load_waiters(ModelVersion *mv) {
    while (mv->load_waiters != NULL) {
        LoadWaiter *c = mv->load_waiters;
        mv->load_waiters = c->next;
        free(c);
    }
}

static void cancel(ModelVersion *mv) {
    atomic_store(&mv->cancelled, WORK_STOP);
    compiled_shape_cancel(mv);
}

void registry_destroy(ModelRegistry *r) {
    if (r == NULL) return;
    model_tuning_finish(r);
    for (ModelVersion *mv = r->detached; mv != NULL; mv = mv->next_detached) cancel(mv);
    for (uint32_t i = 0; i < r->n_listed; i++) cancel(r->listed[i]);
    loader_destroy(r->loader);
    loader_destroy(r->shaper);
    r->loader = r->shaper = NULL;
    if (r->o.loop != NULL) loop_disarm(r->o.loop, &r->sweep);
    while (r->n_listed > 0) {
        drop_load_waiters(r->listed[0]);
        model_version_free(r->listed[0]);
    }
    while (r->detached != NULL) {
        drop_load_waiters(r->detached);
        model_version_free(r->detached);
    }
    registry_free_load_groups(r);
    r->config = NULL;
    registry_free_unused_configs(r);
    free(r->listed);
    arena_finish(&r->names);
    arena_finish(&r->scratch);
    CHECK(pthread_mutex_destroy(&r->engine_lock) == 0);
    free(r);
}

bool registry_uses(const ModelRegistry *r, const Config *c) {
    bool used = r->config == c;
    for (const ModelVersion *mv = r->detached; mv != NULL && !used; mv = mv->next_detached)
        used = mv->from == c;
    for (uint32_t i = 0; i < r->n_listed && !used; i++) used = r->listed[i]->from == c;
    return used;
}

static bool is_ready(const ModelSlot *s) {
    bool ready = false;
    for (const ModelVersion *mv = s->versions; mv != NULL && !ready; mv = mv->next)
        ready = mv->info.state == MODEL_READY || mv->unloaded;
    return ready;
}

bool registry_ready(const ModelRegistry *r) {
    bool ready = r->config != NULL;
    for (uint32_t i = 0; ready && i < r->config->n_models; i++) {
        const ConfigModel *m = &r->config->models[i];
        if (!m->set.required) continue;
        const ModelSlot *s =
            model_slot_find((ModelRegistry *)(uintptr_t)r, (Str){m->name, strlen(m->name)});
        ready = s != NULL && is_ready(s);
    }
    return ready;
}

static bool is_version(const ModelVersion *mv, Str version) {
    return strlen(mv->info.version) == version.len &&
           memcmp(mv->info.version, version.at, version.len) == 0;
}

ModelInfo *registry_find(ModelRegistry *r, Str name, Str version) {
    ModelSlot *s = model_slot_find(r, name);
    if (s == NULL || s->versions == NULL) return NULL;
    for (ModelVersion *mv = s->versions; mv != NULL; mv = mv->next) {
        if (version.at != NULL && version.len > 0 ? is_version(mv, version)
                                                  : mv->info.state == MODEL_READY)
            return &mv->info;
    }
    return version.at != NULL && version.len > 0 ? NULL : &s->versions->info;
}

void registry_pin(ModelInfo *s) { model_version_of(s)->pins++; }

void registry_release(ModelRegistry *r, ModelInfo *s) {
    (void)r;
    if (--model_version_of(s)->pins == 0) model_version_unpinned(model_version_of(s));
}

uint32_t registry_count(const ModelRegistry *r) { return r->n_listed; }
uint32_t registry_count_ready(const ModelRegistry *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_listed; i++) n += r->listed[i]->info.state == MODEL_READY;
    return n;
}
const ModelInfo *registry_at(const ModelRegistry *r, uint32_t i) { return &r->listed[i]->info; }

void registry_note_result(ModelRegistry *r, ModelInfo *s, ModelResult result) {
    ModelVersion        *mv = model_version_of(s);
    const ServeSettings *set = &mv->from->serve;
    if (result == MODEL_WORKED) {
        atomic_store_explicit(&mv->worked, true, memory_order_relaxed);
        if (mv->failures == 0) return;
        mv->failures = 0;
        s->quarantined = 0;
        return;
    }
    if (result == MODEL_STUCK && atomic_load_explicit(&mv->worked, memory_order_relaxed)) return;
    if (mv->failures < (uint32_t)set->quarantine) mv->failures++;
    if (mv->failures < (uint32_t)set->quarantine) return;
    TimeNs now = clock_monotonic_ns();
    bool   held = s->quarantined > now;
    s->quarantined = now + (set->quarantine_s > 0 ? (TimeNs)(set->quarantine_s * 1e9) : YEAR_NS);
    if (!held && r->o.changed != NULL) r->o.changed(r->o.self, s);
}

static const CompiledShape *first_ready(const ModelVersion *mv) {
    for (uint32_t i = 0; i < mv->n_shapes; i++)
        if (mv->shapes[i].state == COMPILED_SHAPE_READY) return &mv->shapes[i];
    return NULL;
}

uint64_t registry_estimate_ns(const ModelInfo *s) {
    const ModelVersion  *mv = model_version_of(s);
    const CompiledShape *cs =
        mv->last != NULL && mv->last->state == COMPILED_SHAPE_READY ? mv->last : first_ready(mv);
    if (cs == NULL) return 0;
    return (uint64_t)cs->prepared.solo_ns[mv->registry->o.host->n_counts - 1];
}

static uint16_t *index_entry(ModelRegistry *r, Str name) {
    uint32_t at = (uint32_t)(hash_fnv(HASH_FNV_START, name.at, name.len) % (2 * REGISTRY_SLOTS));
    for (;; at = (at + 1) % (2 * REGISTRY_SLOTS)) {
        if (r->slot_index[at] == 0) return &r->slot_index[at];
        const char *own = r->slots[r->slot_index[at] - 1].name;
        if (strlen(own) == name.len && memcmp(own, name.at, name.len) == 0)
            return &r->slot_index[at];
    }
}

ModelSlot *model_slot_find(ModelRegistry *r, Str name) {
    uint16_t *entry = index_entry(r, name);
    return *entry != 0 ? &r->slots[*entry - 1] : NULL;
}

const char *registry_intern(ModelRegistry *r, const char *text) {
    size_t n = strlen(text) + 1;
    for (const InternedText *w = r->interned; w != NULL; w = w->next)
        if (strcmp(w->text, text) == 0) return w->text;
    InternedText *own = arena_try(&r->names, 1, sizeof *own + n, _Alignof(InternedText));
    if (own == NULL) return NULL;
    memcpy(own->text, text, n);
    own->next = r->interned;
    r->interned = own;
    return own->text;
}

Err model_slot_take(ModelRegistry *r, const char *name, uint32_t *slot) {
    uint16_t *entry = index_entry(r, (Str){name, strlen(name)});
    if (*entry == 0) {
        if (r->n_slots == REGISTRY_SLOTS)
            return err_set(ERR_LIMIT,
                           "more than %d model names since the start; restart the server",
                           REGISTRY_SLOTS);
        const char *own = registry_intern(r, name);
        if (own == NULL) return err_set(ERR_LIMIT, "out of memory for a model's name");
        r->slots[r->n_slots++].name = own;
        *entry = (uint16_t)r->n_slots;
    }
    *slot = (uint32_t)*entry - 1;
    return ERR_OK;
}

// Numeric versions by value, before all others.
static int compare_versions(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    bool   x = n > 0 && strspn(a, "0123456789") == n, y = m > 0 && strspn(b, "0123456789") == m;
    if (x != y) return x ? -1 : 1;
    if (x && n != m) return n < m ? -1 : 1;
    return strcmp(a, b);
}

static int compare(const ModelVersion *a, const ModelVersion *b) {
    int by_name = strcmp(a->info.name, b->info.name);
    return by_name != 0 ? by_name : compare_versions(a->info.version, b->info.version);
}

static Err make_room(ModelRegistry *r) {
    if (r->n_listed < r->cap_listed) return ERR_OK;
    uint32_t       cap = r->cap_listed > 0 ? 2 * r->cap_listed : 16;
    ModelVersion **more = realloc(r->listed, cap * sizeof(ModelVersion *));
    if (more == NULL) return err_set(ERR_LIMIT, "out of memory for %u models", cap);
    r->listed = more;
    r->cap_listed = cap;
    return ERR_OK;
}

void registry_forget_detached(ModelVersion *mv) {
    ModelVersion **at = &mv->registry->detached;
    while (*at != NULL && *at != mv) at = &(*at)->next_detached;
    if (*at == mv) *at = mv->next_detached;
    mv->next_detached = NULL;
}

Err model_slot_add(ModelVersion *mv) {
    ModelRegistry *r = mv->registry;
    ModelVersion **in = &r->slots[mv->info.slot].versions;
    uint32_t       i = r->n_listed;
    TRY(make_room(r));
    while (*in != NULL && compare(*in, mv) > 0) in = &(*in)->next;
    mv->next = *in;
    *in = mv;
    for (; i > 0 && compare(r->listed[i - 1], mv) > 0; i--) r->listed[i] = r->listed[i - 1];
    r->listed[i] = mv;
    r->n_listed++;
    mv->listed = true;
    registry_forget_detached(mv);
    return ERR_OK;
}

void model_slot_remove(ModelVersion *mv) {
    ModelRegistry *r = mv->registry;
    ModelVersion **in = &r->slots[mv->info.slot].versions;
    if (!mv->listed) return;
    while (*in != mv) in = &(*in)->next;
    *in = mv->next;
    uint32_t i = 0;
    while (r->listed[i] != mv) i++;
    memmove(&r->listed[i], &r->listed[i + 1], (r->n_listed - i - 1) * sizeof(ModelVersion *));
    r->n_listed--;
    mv->listed = false;
    mv->next_detached = r->detached;
    r->detached = mv;
}
