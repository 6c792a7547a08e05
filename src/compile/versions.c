#include "compile/versions.h"

#include <string.h>

#include "base/check.h"

// A step on its own while it is being measured; its numbers are whatever the buffers hold.
typedef struct Bench {
    Step   *step;
    Space  *space;
    Binder *binder;  // packs into memory that is dropped afterwards
    Step  **packed;  // the step whose weights are packed now: layers are measured one by one
} Bench;

static Err bench_prepare(void *self, const Version *v) {
    const Bench *b = self;
    size_t       mark = b->binder->ir->arena->used;
    if (b->step->kind->pack == NULL) return ERR_OK;
    if (*b->packed != b->step) {
        if (*b->packed != NULL) (*b->packed)->kind->unpack(*b->packed);
        arena_rewind(b->binder->keep, 0);
        *b->packed = b->step;
    }
    Err e = b->step->kind->pack(b->step, v, b->binder);
    arena_rewind(b->binder->ir->arena, mark);
    return e;
}

static void bench_run(void *self, const Version *v, Part part) {
    const Bench *b = self;
    StepCall     c = {b->step, v, b->space, part};
    b->step->kind->run(&c);
}

static uint32_t bench_tasks(void *self, const Version *v) {
    const Bench *b = self;
    return b->step->kind->tasks(b->step, v);
}

static Traffic bench_traffic(void *self, const Version *v, uint32_t parts) {
    const Bench *b = self;
    return b->step->kind->traffic(b->step, v, &b->binder->caches, parts);
}

// Only what the kernels of this build offer themselves is run: a store is input from outside.
static bool offered(const Version *all, uint32_t n, const Version *v) {
    for (uint32_t i = 0; i < n; i++)
        if (version_same(&all[i], v)) return true;
    return false;
}

static void take(Step *s, Profile *p, const Version *all, uint32_t n) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n_kept; i++) {
        const Candidate *c = &p->candidates[p->kept[i]];
        if (!offered(all, n, &c->version)) continue;
        s->versions[kept] = c->version;
        p->kept[kept++] = p->kept[i];
    }
    if (kept == 0) return;
    p->n_kept = s->n_versions = kept;
    s->profile = p;
}

typedef struct Search {
    Program   *program;
    TuneLayer *layers;  // one per heavy step
    Bench     *benches;
    Step     **steps;
    Profile   *profiles;
    uint32_t   n;
} Search;

static Err add_layer(Search *s, Step *step, Arena *a) {
    Version *all = arena_try_new(a, Version, PROFILE_CANDIDATES);
    if (all == NULL) return err_set(ERR_LIMIT, "no memory for versions");
    uint32_t n = step->kind->versions(step, &s->program->caches, all, PROFILE_CANDIDATES);
    arena_rewind(a, a->used - (PROFILE_CANDIDATES - n) * sizeof *all);
    TuneLayer *l = &s->layers[s->n];
    *l = (TuneLayer){.key = step->key,
                     .candidates = all,
                     .n = n,
                     .macs = step->macs,
                     .self = &s->benches[s->n],
                     .prepare = bench_prepare,
                     .run = bench_run,
                     .tasks = bench_tasks,
                     .traffic = bench_traffic};
    for (uint32_t i = 0; step->kind->scratch != NULL && i < n; i++) {
        size_t bytes = step->kind->scratch(step, &all[i]);
        if (bytes > l->scratch_bytes_max) l->scratch_bytes_max = bytes;
    }
    s->steps[s->n++] = step;
    return ERR_OK;
}

static Err collect(Search *s, Arena *a) {
    Program *p = s->program;
    s->layers = arena_try_new(a, TuneLayer, p->n_steps);
    s->benches = arena_try_new(a, Bench, p->n_steps);
    s->steps = arena_try_new(a, Step *, p->n_steps);
    s->profiles = arena_try_new(&p->keep, Profile, p->n_steps);
    if (s->layers == NULL || s->benches == NULL || s->steps == NULL || s->profiles == NULL)
        return err_set(ERR_LIMIT, "no memory for %u layers", p->n_steps);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].key != NULL) TRY(add_layer(s, &p->steps[i], a));
    return ERR_OK;
}

static Err measure(Search *s, Binder *b, const TuneOptions *o, Arena *packs) {
    Binder packer = *b;
    Space  space;
    Step  *packed = NULL;
    packer.keep = packs;
    TRY(space_init(&space, s->program, 1));
    for (uint32_t i = 0; i < s->n; i++)
        s->benches[i] = (Bench){s->steps[i], &space, &packer, &packed};
    Err e = space_blank_inputs(&space, s->program, b->ir->arena);
    if (e == ERR_OK) e = tune_layers(s->layers, s->n, o, &s->program->keep, s->profiles);
    space_finish(&space);
    if (packed != NULL) packed->kind->unpack(packed);
    return e;
}

static Err search(Search *s, Binder *b, const TuneOptions *o) {
    Arena packs;
    TRY(arena_init(&packs, b->keep->cap));
    Err e = measure(s, b, o, &packs);
    arena_finish(&packs);
    return e;
}

Err versions_choose(Program *p, Binder *b, const ProgramOptions *o) {
    Search s = {.program = p};
    if (o->store == NULL && o->tune == NULL) return ERR_OK;
    size_t mark = b->ir->arena->used;
    TRY(collect(&s, b->ir->arena));
    if (o->tune != NULL) TRY(search(&s, b, o->tune));
    for (uint32_t i = 0; i < s.n; i++) {
        Profile *known = &s.profiles[i];
        bool     found = known->n > 0;
        if (!found && o->store != NULL)
            found = store_get(o->store, s.layers[i].key, &p->keep, known);
        if (found) take(s.steps[i], known, s.layers[i].candidates, s.layers[i].n);
    }
    arena_rewind(b->ir->arena, mark);
    return ERR_OK;
}
