// What a configuration asks for against what is there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/fleet_int.h"

static bool same_int(int64_t a, int64_t b) { return a == b; }
static bool same_double(double a, double b) { return a == b; }
static bool same_string(const char *a, const char *b) { return strcmp(a, b) == 0; }
#define same_bool  same_int
#define same__Bool same_int

bool fleet_same_settings(const ConfigModel *a, const ConfigModel *b) {
    bool same = true;
#define X(name, kind, def, lo, hi, about) same = same && same_##kind(a->set.name, b->set.name);
    TENANT_SETTINGS(X)
#undef X
    return same;
}

struct Batch {  // who asked for several models at once
    void (*done)(void *self, uint32_t failed);
    void (*said)(void *self, const char *why);
    void         *self;
    uint32_t      left, failed;
    char          why[UNIT_WHY];
    struct Batch *next, **at;  // among the fleet's
};

static void batch_free(Batch *b) {
    *b->at = b->next;
    if (b->next != NULL) b->next->at = b->at;
    free(b);
}

void fleet_forget_batches(Fleet *f) {
    for (Batch *b = f->batches, *next = NULL; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    f->batches = NULL;
}

static void batch_one(void *self, const char *why) {
    Batch *b = self;
    if (why != NULL) {
        if (b->failed++ == 0) (void)snprintf(b->why, sizeof b->why, "%s", why);
    }
    if (--b->left > 0) return;
    if (b->done != NULL) b->done(b->self, b->failed);
    if (b->said != NULL) b->said(b->self, b->failed > 0 ? b->why : NULL);
    batch_free(b);
}

static void attach(Unit *u, Batch *b) {
    Caller *c = malloc(sizeof *c);
    if (c == NULL) {
        b->left++;
        batch_one(b, "no memory");
        return;
    }
    *c = (Caller){.next = u->callers, .done = batch_one, .self = b};
    u->callers = c;
    b->left++;
}

static void hand_on(Unit *from, Unit *to) {
    Caller **end = &to->callers;
    while (*end != NULL) end = &(*end)->next;
    *end = from->callers;
    from->callers = NULL;
}

static void give_up_heir(Unit *u) {
    if (u->heir == NULL) return;
    atomic_store(&u->heir->unwanted, true);
    u->heir->elder = NULL;
    u->heir = NULL;
}

static Unit *find(Fleet *f, const char *name, const char *version) {
    Seat *s = seat_find(f, (Str){name, strlen(name)});
    Unit *u = s != NULL ? s->units : NULL;
    while (u != NULL && strcmp(u->pub.version, version) != 0) u = u->next;
    return u;
}

static bool same_source(const Unit *u, const ConfigModel *m, const SourceStamp *stamp) {
    return m->broken == NULL && strcmp(u->pub.config->path, m->path) == 0 &&
           source_same_stamp(&u->stamp, stamp) && fleet_same_settings(u->pub.config, m);
}

// A unit that is not served takes no part any more; who waited for it waits for the next.
static void displace(Unit *u, Unit *by) {
    give_up_heir(u);
    u->unloaded = false;
    seat_remove(u);
    if (u->loading) hand_on(u, by);
    unit_retire(u);
}

static Err open_unit(Fleet *f, const Config *c, const ConfigModel *m, const SourceStamp *stamp,
                     Unit **out) {
    TRY(unit_open(f, c, m, out));
    (*out)->stamp = *stamp;
    return ERR_OK;
}

static Err load_anew(Fleet *f, const Config *c, const ConfigModel *m, const SourceStamp *stamp,
                     Unit *old, Batch *b) {
    Unit *u = NULL;
    TRY(open_unit(f, c, m, stamp, &u));
    if (old != NULL && old->pub.state == FLEET_READY) {
        give_up_heir(old);
        u->elder = old;
        old->heir = u;
    } else {
        if (old != NULL) displace(old, u);
        Err e = seat_add(u);
        if (e != ERR_OK) {
            unit_free(u);
            return e;
        }
    }
    attach(u, b);
    unit_bring(u);
    return ERR_OK;
}

// Settings are the same; a job goes on with those that it began with.
static void rebind(Unit *u, const Config *c, const ConfigModel *m) {
    if (unit_busy(u)) return;
    u->from = c;
    u->pub.config = m;
}

// Loads one version unless it is there, or on its way, as it should be.
static Err want(Fleet *f, const Config *c, const ConfigModel *m, Batch *b) {
    Unit       *u = find(f, m->name, m->version);
    Unit       *coming = u != NULL && u->pub.state == FLEET_READY ? u->heir : u;
    SourceStamp stamp;
    bool        there = source_stamp(m->path, &stamp) == ERR_OK;
    if (u != NULL) u->doomed = false;
    if (u != NULL && u->pub.state == FLEET_READY && u->heir == NULL && there &&
        same_source(u, m, &stamp)) {
        rebind(u, c, m);
        u->failures = 0;
        u->pub.quarantined = 0;
        return ERR_OK;
    }
    if (coming != NULL && coming->loading && !atomic_load(&coming->unwanted) &&
        same_source(coming, m, &stamp)) {
        attach(coming, b);
        return ERR_OK;
    }
    return load_anew(f, c, m, &stamp, u, b);
}

static bool is_named(const Config *c, const Unit *u) {
    for (uint32_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, u->pub.name) == 0 &&
            strcmp(c->models[i].version, u->pub.version) == 0)
            return true;
    return false;
}

static bool another_comes(const Unit *u) {
    for (const Unit *o = u->fleet->seats[u->pub.seat].units; o != NULL; o = o->next)
        if (o != u && !o->doomed && o->loading && !atomic_load(&o->unwanted)) return true;
    return false;
}

static void drop(Unit *u) {
    if (u->pub.state == FLEET_UNLOADING) return;
    give_up_heir(u);
    u->doomed = u->pub.state == FLEET_READY && another_comes(u);
    if (!u->doomed) unit_retire(u);
}

static void drop_unnamed(Fleet *f, const Config *c, const char *name) {
    for (uint32_t i = f->n_listed; i > 0; i--) {
        Unit *u = f->listed[i - 1];
        if (name != NULL && strcmp(u->pub.name, name) != 0) continue;
        if (!is_named(c, u)) drop(u);
    }
}

static Batch *batch(Fleet *f, void (*done)(void *self, uint32_t failed),
                    void (*said)(void *self, const char *why), void *self) {
    Batch *b = calloc(1, sizeof *b);
    if (b == NULL) return NULL;
    *b = (Batch){.done = done, .said = said, .self = self, .left = 1};
    b->next = f->batches;
    b->at = &f->batches;
    if (b->next != NULL) b->next->at = &b->next;
    f->batches = b;
    return b;
}

static void want_all(Fleet *f, const Config *c, const char *name, Batch *b) {
    for (uint32_t i = 0; i < c->n_models; i++) {
        if (name != NULL && strcmp(c->models[i].name, name) != 0) continue;
        if (want(f, c, &c->models[i], b) == ERR_OK) continue;
        b->left++;
        batch_one(b, err_why());
    }
}

static Err hush(void *self, Err e) {
    host_quiet(((Fleet *)self)->o.host);
    return e;
}

static void hushed(void *self, Err e, const char *why) { (void)self, (void)e, (void)why; }

// Versions are searched for on all cores, so only before anybody is served: behind the first
// models.
static void tune_the_first(Fleet *f) {
    if (f->begun) return;
    f->begun = true;
    f->hush = (LoaderJob){.settle = hush, .done = hushed, .self = f};
    loader_put(f->loader, &f->hush);
}

void fleet_reload(Fleet *f, const Config *c, void (*done)(void *self, uint32_t failed),
                  void *self) {
    Batch *b = batch(f, done, NULL, self);
    if (b == NULL) {
        if (done != NULL) done(self, c->n_models);
        return;
    }
    f->config = c;
    want_all(f, c, NULL, b);
    tune_the_first(f);
    drop_unnamed(f, c, NULL);
    batch_one(b, NULL);
}

static bool is_known(const Config *c, const char *name) {
    for (uint32_t i = 0; c != NULL && i < c->n_models; i++)
        if (strcmp(c->models[i].name, name) == 0) return true;
    return false;
}

void fleet_forget_configs(Fleet *f) {
    OwnConfig **at = &f->own;
    while (*at != NULL) {
        OwnConfig *c = *at;
        if (fleet_uses(f, &c->config)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        config_finish(&c->config);
        free(c);
    }
}

// The configuration as its files and folders have it now; one that was made by hand is as it is.
static Err look_again(Fleet *f, const Config **out) {
    const ConfigSources *from = f->config != NULL ? &f->config->kept : NULL;
    fleet_forget_configs(f);
    *out = f->config;
    if (from == NULL || (from->file == NULL && from->n_sources == 0)) return ERR_OK;
    OwnConfig *c = calloc(1, sizeof *c);
    if (c == NULL) return err_set(ERR_LIMIT, "no memory for the configuration");
    Err e = config_again(&c->config, f->config);
    if (e != ERR_OK) {
        free(c);
        return err_set(e, "the configuration is not in order; cotenant check says where");
    }
    c->next = f->own;
    f->own = c;
    *out = &c->config;
    return ERR_OK;
}

static void load(Fleet *f, const Config *c, const char *name, Batch *b) {
    want_all(f, c, name, b);
    drop_unnamed(f, c, name);
    batch_one(b, NULL);
}

void fleet_load(Fleet *f, const char *name, void (*done)(void *self, const char *why), void *self) {
    const Config *c = NULL;
    Err           e = look_again(f, &c);
    bool          known = e == ERR_OK && is_known(c, name);
    Batch        *b = known ? batch(f, NULL, done, self) : NULL;
    if (b != NULL)
        load(f, c, name, b);
    else
        done(self, e != ERR_OK ? err_why() : known ? "no memory" : "no such model is configured");
}

static void unload(Unit *u, Batch *b) {
    give_up_heir(u);
    u->doomed = false;
    u->unloaded = true;
    if (u->pub.state == FLEET_UNAVAILABLE) return;
    if (!u->loading) attach(u, b);
    if (u->pub.state != FLEET_UNLOADING) unit_retire(u);
}

void fleet_unload(Fleet *f, const char *name, void (*done)(void *self, const char *why),
                  void *self) {
    Seat  *s = seat_find(f, (Str){name, strlen(name)});
    Batch *b = s != NULL && s->units != NULL ? batch(f, NULL, done, self) : NULL;
    if (b == NULL) {
        done(self, s != NULL && s->units != NULL ? "no memory" : "no such model is known");
        return;
    }
    for (Unit *u = s->units, *next = NULL; u != NULL; u = next) {
        next = u->next;
        unload(u, b);  // NOLINT(clang-analyzer-unix.Malloc): one of b's counts is ours
    }
    batch_one(b, NULL);  // NOLINT(clang-analyzer-unix.Malloc): this one
}
