// Units: versions of models from the first byte of a file to the last page given back.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "serve/fleet_int.h"

enum { ARENA_SHIFT = 24 };

static bool is(const char *text, const char *word) { return strcmp(text, word) == 0; }

void unit_tell(Unit *u) {
    Fleet *f = u->fleet;
    if (f->open && u->listed && f->o.changed != NULL) f->o.changed(f->o.self, &u->pub);
}

void unit_answer(Unit *u, const char *why) {
    Caller *c = u->callers;
    u->callers = NULL;
    while (c != NULL) {
        Caller *next = c->next;
        c->done(c->self, why);
        free(c);
        c = next;
    }
}

Err unit_open(Fleet *f, const Config *from, const ConfigModel *m, Unit **out) {
    Unit *u = calloc(1, sizeof *u);
    if (u == NULL) return err_set(ERR_LIMIT, "no memory for model '%s'", m->name);
    *u = (Unit){.fleet = f, .from = from};
    u->pub = (Served){.config = m, .state = FLEET_LOADING, .reason = ""};
    Err e = seat_take(f, m->name, &u->pub.seat);
    if (e == ERR_OK) {
        u->pub.name = f->seats[u->pub.seat].name;
        u->pub.version = seat_intern(f, m->version);
        if (u->pub.version == NULL) e = err_set(ERR_LIMIT, "no memory for a version");
    }
    if (e != ERR_OK) {
        free(u);
        return e;
    }
    u->next_out = f->out;
    f->out = u;
    *out = u;
    return ERR_OK;
}

// Out of the engine, then out of memory. The policy forgets it before its tables go.
static void empty(Unit *u) {
    bool lost = false;
    for (uint32_t i = 0; i < u->n_variants; i++) {
        variant_leave(&u->variants[i]);
        lost = lost || u->variants[i].lost;
    }
    u->variants = NULL;
    u->n_variants = 0;
    if (lost) u->arena = (Arena){0};
    source_finish(&u->source);
    arena_finish(&u->arena);
}

void unit_free(Unit *u) {
    Fleet *f = u->fleet;
    empty(u);
    seat_remove(u);
    Unit **at = &f->out;
    while (*at != NULL && *at != u) at = &(*at)->next_out;
    if (*at == u) *at = u->next_out;
    if (u->elder != NULL) u->elder->heir = NULL;
    if (u->heir != NULL) u->heir->elder = NULL;
    free(u);
}

static Err check_wanted(const Unit *u) {
    return atomic_load(&u->unwanted) ? err_set(ERR_ARG, "it is not wanted any more") : ERR_OK;
}

// The same bytes under a new date are no new model, unless some of them are in other files.
static bool is_same(const Unit *u) {
    return !u->source.model.external && u->elder_sha256[0] != '\0' &&
           is(u->elder_sha256, u->source.sha256);
}

// Open dimensions are 1, or of a usual size where that is too little. What suits no guess waits for
// its first request.
static Err stage_first(Unit *u) {
    const InferPort *p = &u->port;
    Tensor          *guess = arena_try_new(&u->arena, Tensor, p->n_inputs);
    bool             known = true;
    if (guess == NULL) return err_set(ERR_LIMIT, "it has too many inputs");
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        guess[i] = p->inputs[i].type;
        known = known && guess[i].rank >= 0;
        for (int32_t d = 0; d < guess[i].rank; d++)
            if (guess[i].dims[d] < 0) guess[i].dims[d] = guess[i].rank == 4 && d > 1 ? 224 : 1;
    }
    Err e = known ? variant_stage(&u->variants[0], NULL) : ERR_OK;
    if (e != ERR_OK && u->source.open) {
        TRY(check_wanted(u));
        e = variant_stage(&u->variants[0], guess);
        if (e != ERR_OK && e != ERR_LIMIT) return ERR_OK;
    }
    return e;
}

static Err load(void *self) {
    Unit              *u = self;
    const ConfigModel *m = u->pub.config;
    SourceOptions      o = {.name = u->pub.name, .max_bytes = unit_room(u)};
    TRY(check_wanted(u));
    if (m->broken != NULL) return err_set(ERR_CONFIG, "%s", m->broken);
    TRY(arena_init(&u->arena, (size_t)1 << ARENA_SHIFT));
    TRY(source_read(&u->source, m->path, &o));
    u->same = is_same(u);
    if (u->same) return ERR_OK;
    TRY(check_wanted(u));
    TRY(unit_port(u));
    TRY(variant_init(u));
    TRY(stage_first(u));
    return check_wanted(u);
}

static Err settle_load(void *self, Err e) {
    Unit *u = self;
    if (e == ERR_OK && !u->same && u->n_variants > 0 && u->variants[0].staged)
        e = variant_join(&u->variants[0]);
    if (e != ERR_OK || u->same) {
        char why[UNIT_WHY];
        (void)snprintf(why, sizeof why, "%s", err_why());
        u->stamp = u->source.stamp;
        empty(u);
        (void)malloc_trim(0);
        if (e != ERR_OK) return err_set(e, "%s", why);
    }
    return e;
}

static void become_ready(Unit *u) {
    Variant *v = &u->variants[0];
    u->stamp = u->source.stamp;
    memcpy(u->pub.sha256, u->source.sha256, sizeof u->pub.sha256);
    if (v->joined) {
        v->state = VARIANT_READY;
        unit_port_outputs(u, &v->stage);
    }
    unit_measure(u);
    u->pub.port = u->port;
    u->pub.state = FLEET_READY;
    u->pub.reason = "";
}

// Versions that were kept only until this one is ready.
static void relieve(Unit *u) {
    Unit *next = NULL;
    for (Unit *o = u->fleet->seats[u->pub.seat].units; o != NULL; o = next) {
        next = o->next;
        if (o != u && o->doomed) unit_retire(o);
    }
}

static void take_place(Unit *u) {
    Unit *old = u->elder;
    u->elder = NULL;
    if (old != NULL) {
        old->heir = NULL;
        seat_remove(old);
    }
    if (!u->listed) CHECK(seat_add(u) == ERR_OK);  // room was made when it was opened
    if (old != NULL) unit_retire(old);
}

static void keep_elder(Unit *u, const char *why) {
    Unit *old = u->elder;
    old->heir = NULL;
    u->elder = NULL;
    if (u->same) {
        old->stamp = u->stamp;
        old->from = u->from;
        old->pub.config = u->pub.config;
        old->pub.reason = "";
    } else {
        (void)snprintf(old->why, sizeof old->why, "a newer one could not be loaded: %s", why);
        old->pub.reason = old->why;
    }
    unit_tell(old);
    unit_answer(u, u->same ? NULL : why);
    unit_free(u);
}

static void fail(Unit *u, const char *why) {
    (void)snprintf(u->why, sizeof u->why, "%s", why);
    u->pub.state = FLEET_UNAVAILABLE;
    u->pub.reason = u->why;
    u->pub.memory_bytes = 0;
    unit_tell(u);
    unit_answer(u, u->why);
}

static void loaded(void *self, Err e, const char *why) {
    Unit *u = self;
    u->loading = false;
    if (atomic_load(&u->unwanted)) {
        unit_answer(u, "it was unloaded while it was loaded");
        unit_retire(u);
    } else if (u->elder != NULL && (e != ERR_OK || u->same)) {
        keep_elder(u, why);
    } else if (e != ERR_OK) {
        fail(u, why);
    } else {
        become_ready(u);
        take_place(u);
        unit_tell(u);
        relieve(u);
        unit_answer(u, NULL);
        loader_share(u->fleet->loader, 0.5);
    }
}

void unit_bring(Unit *u) {
    const Unit *old = u->elder;
    if (old != NULL && is(old->pub.config->path, u->pub.config->path) &&
        fleet_same_settings(old->pub.config, u->pub.config))
        memcpy(u->elder_sha256, old->pub.sha256, sizeof u->elder_sha256);
    u->loading = true;
    u->pub.state = FLEET_LOADING;
    u->pub.reason = "";
    u->job = (LoaderJob){.work = load, .settle = settle_load, .done = loaded, .self = u};
    unit_tell(u);
    loader_put(u->fleet->loader, &u->job);
}

static Err settle_leave(void *self, Err e) {
    empty(self);
    (void)malloc_trim(0);
    return e;
}

static void left(void *self, Err e, const char *why) {
    Unit *u = self;
    (void)e, (void)why;
    u->leaving = false;
    if (u->unloaded && u->listed) {
        u->pub.state = FLEET_UNAVAILABLE;
        u->pub.reason = "it was unloaded";
        u->pub.memory_bytes = 0;
        unit_tell(u);
        unit_answer(u, NULL);
        return;
    }
    unit_answer(u, NULL);
    unit_free(u);
}

bool unit_busy(const Unit *u) {
    bool busy = u->loading || u->leaving;
    for (uint32_t i = 0; !busy && i < u->n_variants; i++)
        busy = u->variants[i].state == VARIANT_MAKING;
    return busy;
}

static void leave(Unit *u) {
    if (unit_busy(u) || u->pins > 0) return;
    u->leaving = true;
    u->last = NULL;
    u->pub.port = (InferPort){0};
    u->job = (LoaderJob){.settle = settle_leave, .done = left, .self = u};
    loader_put(u->fleet->loader, &u->job);
}

void unit_unpinned(Unit *u) {
    if (u->pub.state == FLEET_UNLOADING) leave(u);
}

void unit_retire(Unit *u) {
    if (u->loading) {
        atomic_store(&u->unwanted, true);
        return;
    }
    u->pub.state = FLEET_UNLOADING;
    u->pub.reason = "";
    unit_tell(u);
    leave(u);
}
