#include "compile/budget.h"

#include <stdlib.h>

#include "compile/pareto.h"

#define BUDGET_SHARE 0.45  // of all weights

enum { BUDGET_LEAST = 47 << 20 };  // bytes that are fine in any case

typedef struct Want {
    Step  *step;
    size_t source, extra;  // bytes of the weights as they are; what the first version adds
} Want;

static size_t over(size_t need, size_t source) { return need > source ? need - source : 0; }

static size_t pack_bytes(const Step *s, const Version *v) { return s->kind->pack_bytes(s, v); }

static int most_gain_first(const void *a, const void *b) {
    const Want *x = a, *y = b;
    double      gx = x->step->macs / ((double)x->extra + 1);
    double      gy = y->step->macs / ((double)y->extra + 1);
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

static bool is_measured(const Profile *p, const Candidate *c) {
    for (uint32_t k = 0; k < p->n_counts; k++)
        if (c->time_ns[k] <= 0) return false;
    return true;
}

// Of those that were measured: the kept ones are chosen anew among what fits.
static bool choose_measured(const Want *w, size_t left, const Version *all, uint32_t n,
                            uint32_t *fits) {
    Step    *s = w->step;
    Profile *p = s->profile;
    uint32_t found = 0;
    for (uint32_t i = 0; p != NULL && i < p->n; i++) {
        const Candidate *c = &p->candidates[i];
        bool             offered = false;
        for (uint32_t k = 0; k < n && !offered; k++) offered = version_same(&all[k], &c->version);
        if (!offered || !is_measured(p, c)) continue;
        if (over(pack_bytes(s, &c->version), w->source) <= left) fits[found++] = i;
    }
    if (found == 0) return false;
    pareto_keep_some(p, fits, found);
    s->n_versions = p->n_kept;
    for (uint32_t i = 0; i < p->n_kept; i++) s->versions[i] = p->candidates[p->kept[i]].version;
    return true;
}

// Another version that fits comes first: of those at hand, of those measured, or of all that the
// kernel offers. Room for `max` versions, and as many numbers.
static void make_do(Want *w, size_t left, const CacheSizes *caches, Version *all, uint32_t *fits,
                    uint32_t max) {
    Step *s = w->step;
    for (uint32_t i = 1; i < s->n_versions; i++)
        if (over(pack_bytes(s, &s->versions[i]), w->source) <= left) {
            swap_versions(s, 0, i);
            return;
        }
    uint32_t n = s->kind->versions(s, caches, all, max);
    if (choose_measured(w, left, all, n, fits)) return;
    for (uint32_t i = 0; i < n; i++)
        if (over(pack_bytes(s, &all[i]), w->source) <= left) {
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

static bool packed_before(const Step *s, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (s->versions[k].algo == s->versions[i].algo) return true;
    return false;
}

// Further versions with a packing of their own, while there is room.
static size_t add_others(Step *s, size_t left) {
    for (uint32_t i = 1; i < s->n_versions;) {
        size_t need = packed_before(s, i) ? 0 : pack_bytes(s, &s->versions[i]);
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
    return s->weight == IR_NONE ? 0
                                : (size_t)tensor_count(ir_type(b->ir, s->weight)) * sizeof(float);
}

Err budget_packs(Program *p, const Binder *b) {
    Arena   *a = b->ir->arena;
    size_t   mark = a->used, sum = 0;
    Want    *wants = arena_try_new(a, Want, p->n_steps);
    Version *all = arena_try_new(a, Version, PROFILE_CANDIDATES);
    uint32_t n = 0, *fits = arena_try_new(a, uint32_t, PROFILE_CANDIDATES);
    if (wants == NULL || all == NULL || fits == NULL)
        return err_set(ERR_LIMIT, "no memory for %u layers", p->n_steps);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        Step *s = &p->steps[i];
        sum += weight_bytes(b, s);
        if (s->key == NULL || s->kind->pack_bytes == NULL) continue;
        size_t source = weight_bytes(b, s);
        wants[n++] = (Want){s, source, over(pack_bytes(s, &s->versions[0]), source)};
    }
    size_t left = (size_t)(BUDGET_SHARE * (double)sum);
    if (left < BUDGET_LEAST) left = BUDGET_LEAST;
    if (n > 0) qsort(wants, n, sizeof *wants, most_gain_first);
    for (uint32_t i = 0; i < n; i++) {
        if (wants[i].extra > left)
            make_do(&wants[i], left, &b->caches, all, fits, PROFILE_CANDIDATES);
        size_t extra =
            over(pack_bytes(wants[i].step, &wants[i].step->versions[0]), wants[i].source);
        left -= extra < left ? extra : left;
    }
    for (uint32_t i = 0; i < n; i++) left = add_others(wants[i].step, left);
    arena_rewind(a, mark);
    return ERR_OK;
}
