#include "compile/versions.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "compile/tune/pareto.h"

// One step while it is tuned. Its inputs are whatever the buffers hold.
typedef struct TunedStep {
    Step      *step;
    RunMemory *mem;
    Binder    *binder;  // packs into memory that is freed after tuning
    Step     **packed;  // the step that has packed weights now, one at a time
} TunedStep;

static Err tuned_prepare(void *self, const Version *v) {
    const TunedStep *b = self;
    size_t           mark = b->binder->ir->arena->used;
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

static void tuned_run(void *self, const Version *v, Part part) {
    const TunedStep *b = self;
    StepCall         c = {b->step, v, b->mem, part, 0};
    b->step->kind->run(&c);
}

static uint32_t tuned_tasks(void *self, const Version *v) {
    const TunedStep *b = self;
    return b->step->kind->tasks(b->step, v);
}

static Traffic tuned_traffic(void *self, const Version *v, uint32_t parts) {
    const TunedStep *b = self;
    return b->step->kind->traffic(b->step, v, &b->binder->caches, parts);
}

// Runs only versions that this build's kernels offer: the store is untrusted input.
static bool offered(const Version *all, uint32_t n, const Version *v) {
    for (uint32_t i = 0; i < n; i++)
        if (version_same(&all[i], v)) return true;
    return false;
}

static bool use_profile(Step *s, LayerProfile *p, const Version *all, uint32_t n) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n_kept; i++) {
        const Candidate *c = &p->candidates[p->kept[i]];
        if (!offered(all, n, &c->version)) continue;
        s->versions[kept] = c->version;
        p->kept[kept++] = p->kept[i];
    }
    if (kept == 0) return false;
    p->n_kept = s->n_versions = kept;
    s->profile = p;
    return true;
}

typedef struct StepTuning {
    Program      *program;
    TuneLayer    *layers;  // [n] one per heavy step
    TunedStep    *tuned;
    Step        **steps;
    LayerProfile *profiles;
    uint32_t      n;
} StepTuning;

static Err add_layer(StepTuning *s, Step *step, Arena *a) {
    Version *all = arena_try_new(a, Version, PROFILE_CANDIDATES);
    if (all == NULL) return err_set(ERR_LIMIT, "no memory for versions");
    uint32_t n = step->kind->versions(step, &s->program->caches, all, PROFILE_CANDIDATES);
    arena_rewind(a, a->used - (PROFILE_CANDIDATES - n) * sizeof *all);
    TuneLayer *l = &s->layers[s->n];
    *l = (TuneLayer){.key = step->key,
                     .candidates = all,
                     .n = n,
                     .macs = step->macs,
                     .self = &s->tuned[s->n],
                     .prepare = tuned_prepare,
                     .run = tuned_run,
                     .tasks = tuned_tasks,
                     .traffic = tuned_traffic};
    for (uint32_t i = 0; step->kind->scratch != NULL && i < n; i++) {
        size_t bytes = step->kind->scratch(step, &all[i]);
        if (bytes > l->scratch_bytes_max) l->scratch_bytes_max = bytes;
    }
    s->steps[s->n++] = step;
    return ERR_OK;
}

static Err collect_layers(StepTuning *s, Arena *a) {
    Program *p = s->program;
    s->layers = arena_try_new(a, TuneLayer, p->n_steps);
    s->tuned = arena_try_new(a, TunedStep, p->n_steps);
    s->steps = arena_try_new(a, Step *, p->n_steps);
    s->profiles = arena_try_new(&p->keep, LayerProfile, p->n_steps);
    if (s->layers == NULL || s->tuned == NULL || s->steps == NULL || s->profiles == NULL)
        return err_set(ERR_LIMIT, "no memory for %u layers", p->n_steps);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].key != NULL) TRY(add_layer(s, &p->steps[i], a));
    return ERR_OK;
}

static Err measure(StepTuning *s, Binder *b, const TuneOptions *o, Arena *packs) {
    Binder    packer = *b;
    RunMemory mem;
    Step     *packed = NULL;
    packer.keep = packs;
    packer.packed = NULL;  // versions that are measured only
    TRY(run_memory_init(&mem, s->program, 1));
    for (uint32_t i = 0; i < s->n; i++)
        s->tuned[i] = (TunedStep){s->steps[i], &mem, &packer, &packed};
    Err e = run_memory_zero_inputs(&mem, s->program, b->ir->arena);
    if (e == ERR_OK) e = tune_layers(s->layers, s->n, o, &s->program->keep, s->profiles);
    run_memory_finish(&mem);
    if (packed != NULL) packed->kind->unpack(packed);
    return e;
}

enum { PACKS_FIRST = 1 << 28 };  // bytes of address space

static Err tune_steps(StepTuning *s, Binder *b, const TuneOptions *o) {
    Arena packs;
    TRY(arena_init_growing(&packs, PACKS_FIRST, b->keep->most));
    Err e = measure(s, b, o, &packs);
    arena_finish(&packs);
    return e;
}

bool versions_are_like(const Program *p, const Program *other) {
    if (other == NULL || !program_same_layers(p, other)) return false;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].n_versions != other->steps[i].n_versions) return false;
    return true;
}

// Version i of a step of other shapes, or the kernel's first choice if these shapes do not have it.
static void copy_versions(Step *s, const Step *from, const CacheSizes *caches, Version *all) {
    Version  own = s->versions[0];
    uint32_t n = s->kind->versions(s, caches, all, PROFILE_CANDIDATES);
    for (uint32_t i = 0; i < from->n_versions; i++)
        s->versions[i] = offered(all, n, &from->versions[i]) ? from->versions[i] : own;
    s->n_versions = from->n_versions;
}

// A step with one version keeps the kernel's first choice for its own shape.
static Err versions_of_other(Program *p, Binder *b, const Program *other) {
    Version *all = NULL;
    size_t   mark = b->ir->arena->used;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].key == NULL || other->steps[i].n_versions < 2) continue;
        if (all == NULL) all = arena_try_new(b->ir->arena, Version, PROFILE_CANDIDATES);
        if (all == NULL) return err_set(ERR_LIMIT, "no memory for versions");
        copy_versions(&p->steps[i], &other->steps[i], &p->caches, all);
    }
    arena_rewind(b->ir->arena, mark);
    return ERR_OK;
}

Err versions_choose(Program *p, Binder *b, const ProgramOptions *o) {
    StepTuning s = {.program = p};
    if (o->like != NULL && program_same_layers(p, o->like)) return versions_of_other(p, b, o->like);
    if (o->store == NULL && o->tune == NULL) return ERR_OK;
    size_t mark = b->ir->arena->used;
    TRY(collect_layers(&s, b->ir->arena));
    if (o->tune != NULL) TRY(tune_steps(&s, b, o->tune));
    for (uint32_t i = 0; i < s.n; i++) {
        LayerProfile *known = &s.profiles[i];
        bool          found = known->n > 0;
        if (!found && o->store != NULL)
            found = profile_store_get(o->store, s.layers[i].key, &p->keep, known);
        found = found && use_profile(s.steps[i], known, s.layers[i].candidates, s.layers[i].n);
        p->untuned += !found && s.layers[i].n > 1;
    }
    arena_rewind(b->ir->arena, mark);
    return ERR_OK;
}

#define BUDGET_SHARE 0.45  // of the bytes of all weights

enum { BUDGET_LEAST = 47 << 20 };  // bytes allowed in any case

typedef struct PackDemand {
    Step  *step;
    size_t source, extra;  // bytes of the plain weights; extra bytes of version 0
} PackDemand;

static size_t excess(size_t need, size_t source) { return need > source ? need - source : 0; }

static size_t pack_bytes(const Step *s, const Version *v) { return s->kind->pack_bytes(s, v); }

static int most_gain_first(const void *a, const void *b) {
    const PackDemand *x = a, *y = b;
    double            gx = x->step->macs / ((double)x->extra + 1);
    double            gy = y->step->macs / ((double)y->extra + 1);
    if (gx != gy) return gx > gy ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static void swap_versions(Step *s, uint32_t i, uint32_t k) {
    Version v = s->versions[i];
    s->versions[i] = s->versions[k];
    s->versions[k] = v;
    if (s->profile == NULL) return;
    uint32_t n = s->profile->kept[i];
    s->profile->kept[i] = s->profile->kept[k];
    s->profile->kept[k] = n;
}

static bool is_measured(const LayerProfile *p, const Candidate *c) {
    for (uint32_t k = 0; k < p->n_counts; k++)
        if (c->time_ns[k] <= 0) return false;
    return true;
}

// Chooses the kept versions again, among measured candidates that fit.
static bool choose_measured(const PackDemand *w, size_t left, const Version *all, uint32_t n,
                            uint32_t *fits) {
    Step         *s = w->step;
    LayerProfile *p = s->profile;
    uint32_t      found = 0;
    for (uint32_t i = 0; p != NULL && i < p->n; i++) {
        const Candidate *c = &p->candidates[i];
        if (!offered(all, n, &c->version) || !is_measured(p, c)) continue;
        if (excess(pack_bytes(s, &c->version), w->source) <= left) fits[found++] = i;
    }
    if (found == 0) return false;
    pareto_keep_some(p, fits, found);
    s->n_versions = p->n_kept;
    for (uint32_t i = 0; i < p->n_kept; i++) s->versions[i] = p->candidates[p->kept[i]].version;
    return true;
}

// Replaces version 0 by one that fits: another of the step, a measured one, or any the kernel
// offers. `all` and `fits` have `max` elements.
static void use_smaller_version(PackDemand *w, size_t left, const CacheSizes *caches, Version *all,
                                uint32_t *fits, uint32_t max) {
    Step *s = w->step;
    for (uint32_t i = 1; i < s->n_versions; i++)
        if (excess(pack_bytes(s, &s->versions[i]), w->source) <= left) {
            swap_versions(s, 0, i);
            return;
        }
    uint32_t n = s->kind->versions(s, caches, all, max);
    if (choose_measured(w, left, all, n, fits)) return;
    for (uint32_t i = 0; i < n; i++)
        if (excess(pack_bytes(s, &all[i]), w->source) <= left) {
            s->versions[0] = all[i];
            s->n_versions = 1;
            s->profile = NULL;
            return;
        }
}

static void drop_version(Step *s, uint32_t i) {
    for (uint32_t k = i + 1; k < s->n_versions; k++) swap_versions(s, k - 1, k);
    s->n_versions--;
    if (s->profile != NULL) s->profile->n_kept--;
}

static bool shares_packed_form(const Step *s, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (s->versions[k].algo == s->versions[i].algo) return true;
    return false;
}

// Drops further versions if their packed form does not fit.
static size_t drop_unaffordable(Step *s, size_t left) {
    for (uint32_t i = 1; i < s->n_versions;) {
        size_t need = shares_packed_form(s, i) ? 0 : pack_bytes(s, &s->versions[i]);
        if (need > left) {
            drop_version(s, i);
            continue;
        }
        left -= need;
        i++;
    }
    return left;
}

static size_t weight_bytes(const Binder *b, const Step *s) {
    if (s->weight == IR_NONE) return 0;
    const Tensor *t = ir_type(b->ir, s->weight);
    return (size_t)tensor_count(t) * dtype_size(t->dtype);
}

Err versions_fit_pack_budget(Program *p, const Binder *b) {
    Arena      *a = b->ir->arena;
    size_t      mark = a->used, sum = 0;
    PackDemand *demands = arena_try_new(a, PackDemand, p->n_steps);
    Version    *all = arena_try_new(a, Version, PROFILE_CANDIDATES);
    uint32_t    n = 0, *fits = arena_try_new(a, uint32_t, PROFILE_CANDIDATES);
    if (demands == NULL || all == NULL || fits == NULL)
        return err_set(ERR_LIMIT, "no memory for %u layers", p->n_steps);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        Step *s = &p->steps[i];
        sum += weight_bytes(b, s);
        if (s->key == NULL || s->kind->pack_bytes == NULL) continue;
        size_t source = weight_bytes(b, s);
        demands[n++] = (PackDemand){s, source, excess(pack_bytes(s, &s->versions[0]), source)};
    }
    size_t left = (size_t)(BUDGET_SHARE * (double)sum);
    if (left < BUDGET_LEAST) left = BUDGET_LEAST;
    if (n > 0) qsort(demands, n, sizeof *demands, most_gain_first);
    for (uint32_t i = 0; i < n; i++) {
        if (demands[i].extra > left)
            use_smaller_version(&demands[i], left, &b->caches, all, fits, PROFILE_CANDIDATES);
        size_t extra =
            excess(pack_bytes(demands[i].step, &demands[i].step->versions[0]), demands[i].source);
        left -= extra < left ? extra : left;
    }
    for (uint32_t i = 0; i < n; i++) left = drop_unaffordable(demands[i].step, left);
    arena_rewind(a, mark);
    return ERR_OK;
}
