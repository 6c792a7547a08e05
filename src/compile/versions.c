#include "compile/versions.h"

#include <string.h>

// Only what the kernels of this build would offer themselves is run: a store is input from outside.
static bool offered(const Step *s, const Version *all, uint32_t n, const Version *v) {
    (void)s;
    for (uint32_t i = 0; i < n; i++)
        if (memcmp(&all[i], v, sizeof *v) == 0) return true;
    return false;
}

static void take(Step *s, Profile *p, const Version *all, uint32_t n) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n_kept; i++) {
        const Candidate *c = &p->candidates[p->kept[i]];
        if (!offered(s, all, n, &c->version)) continue;
        s->versions[kept] = c->version;
        p->kept[kept++] = p->kept[i];
    }
    if (kept == 0) return;
    p->n_kept = s->n_versions = kept;
    s->profile = p;
}

static Err choose(Program *p, Step *s, Arena *scratch, Store *store) {
    Version *all = arena_try_new(scratch, Version, PROFILE_CANDIDATES);
    Profile *profile = arena_try_new(&p->keep, Profile, 1);
    if (all == NULL || profile == NULL) return err_set(ERR_LIMIT, "no memory for versions");
    uint32_t n = s->kind->versions(s, &p->caches, all, PROFILE_CANDIDATES);
    if (store_get(store, s->key, &p->keep, profile)) take(s, profile, all, n);
    return ERR_OK;
}

Err versions_choose(Program *p, Binder *b, const ProgramOptions *o) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        Step  *s = &p->steps[i];
        size_t mark = b->ir->arena->used;
        if (s->key != NULL && o->store != NULL) TRY(choose(p, s, b->ir->arena, o->store));
        arena_rewind(b->ir->arena, mark);
    }
    return ERR_OK;
}
