#include "serve/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve/fleet_int.h"

#define A_YEAR_NS INT64_C(31536000000000000)

enum { NAMES_SHIFT = 24 };

static Err open_fleet(Fleet *f, const FleetOptions *o) {
    f->o = *o;
    TRY(arena_init(&f->names, (size_t)1 << NAMES_SHIFT));
    return loader_create(&f->loader, o->loop);
}

Err fleet_create(Fleet **out, const FleetOptions *o) {
    Fleet *f = calloc(1, sizeof *f);
    if (f == NULL) return err_set(ERR_LIMIT, "no memory for a fleet");
    Err e = open_fleet(f, o);
    if (e != ERR_OK) {
        fleet_destroy(f);
        return e;
    }
    *out = f;
    if (o->config != NULL) fleet_reload(f, o->config, NULL, NULL);
    f->open = true;
    return ERR_OK;
}

static void drop_callers(Unit *u) {
    while (u->callers != NULL) {
        Caller *c = u->callers;
        u->callers = c->next;
        free(c);
    }
}

void fleet_destroy(Fleet *f) {
    if (f == NULL) return;
    for (Unit *u = f->out; u != NULL; u = u->next_out) atomic_store(&u->unwanted, true);
    for (uint32_t i = 0; i < f->n_listed; i++) atomic_store(&f->listed[i]->unwanted, true);
    loader_destroy(f->loader);
    f->loader = NULL;
    while (f->n_listed > 0) {
        drop_callers(f->listed[0]);
        unit_free(f->listed[0]);
    }
    while (f->out != NULL) {
        drop_callers(f->out);
        unit_free(f->out);
    }
    fleet_forget_batches(f);
    f->config = NULL;
    fleet_forget_configs(f);
    free(f->listed);
    arena_finish(&f->names);
    free(f);
}

bool fleet_uses(const Fleet *f, const Config *c) {
    bool used = f->config == c;
    for (const Unit *u = f->out; u != NULL && !used; u = u->next_out) used = u->from == c;
    for (uint32_t i = 0; i < f->n_listed && !used; i++) used = f->listed[i]->from == c;
    return used;
}

static bool is_ready(const Seat *s) {
    bool ready = false;
    for (const Unit *u = s->units; u != NULL && !ready; u = u->next)
        ready = u->pub.state == FLEET_READY || u->unloaded;
    return ready;
}

bool fleet_ready(const Fleet *f) {
    bool ready = f->config != NULL;
    for (uint32_t i = 0; ready && i < f->config->n_models; i++) {
        const ConfigModel *m = &f->config->models[i];
        if (!m->set.required) continue;
        const Seat *s = seat_find((Fleet *)(uintptr_t)f, (Str){m->name, strlen(m->name)});
        ready = s != NULL && is_ready(s);
    }
    return ready;
}

static bool is_version(const Unit *u, Str version) {
    return strlen(u->pub.version) == version.len &&
           memcmp(u->pub.version, version.at, version.len) == 0;
}

Served *fleet_find(Fleet *f, Str name, Str version) {
    Seat *s = seat_find(f, name);
    if (s == NULL || s->units == NULL) return NULL;
    for (Unit *u = s->units; u != NULL; u = u->next) {
        if (version.at != NULL && version.len > 0 ? is_version(u, version)
                                                  : u->pub.state == FLEET_READY)
            return &u->pub;
    }
    return version.at != NULL && version.len > 0 ? NULL : &s->units->pub;
}

void fleet_pin(Served *s) { unit_of(s)->pins++; }

void fleet_release(Fleet *f, Served *s) {
    (void)f;
    if (--unit_of(s)->pins == 0) unit_unpinned(unit_of(s));
}

uint32_t      fleet_count(const Fleet *f) { return f->n_listed; }
const Served *fleet_at(const Fleet *f, uint32_t i) { return &f->listed[i]->pub; }

void fleet_note(Fleet *f, Served *s, bool failed) {
    Unit                *u = unit_of(s);
    const ServeSettings *set = &u->from->serve;
    if (!failed) {
        if (u->failures == 0) return;
        u->failures = 0;
        s->quarantined = 0;
        return;
    }
    if (u->failures < (uint32_t)set->quarantine) u->failures++;
    if (u->failures < (uint32_t)set->quarantine) return;
    TimeNs now = clock_now(clock_steady());
    bool   held = s->quarantined > now;
    s->quarantined = now + (set->quarantine_s > 0 ? (TimeNs)(set->quarantine_s * 1e9) : A_YEAR_NS);
    if (!held && f->o.changed != NULL) f->o.changed(f->o.self, s);
}

static const Variant *first_ready(const Unit *u) {
    for (uint32_t i = 0; i < u->n_variants; i++)
        if (u->variants[i].state == VARIANT_READY) return &u->variants[i];
    return NULL;
}

uint64_t fleet_estimate_ns(const Served *s) {
    const Unit    *u = unit_of(s);
    const Variant *v =
        u->last != NULL && u->last->state == VARIANT_READY ? u->last : first_ready(u);
    if (v == NULL) return 0;
    return (uint64_t)v->stage.solo_ns[u->fleet->o.host->n_counts - 1];
}
