#include "cluster/profile/class_assignment.h"

#include <ctype.h>

#include "base/hash.h"
#include "cluster/trace/weighted_choice.h"

typedef struct Draw {
    double   weight[PROFILE_CLASSES], sum;
    uint32_t n, last;  // last: the highest class with a weight, against rounding
} Draw;

static void add(Draw *d, uint32_t class_, double weight) {
    d->weight[class_] += weight;
    d->sum += weight;
    if (weight > 0 && class_ > d->last) d->last = class_;
}

static Err read_mix(const ClusterProfiles *p, const char *mix, Arena *a, Draw *d) {
    WeightedChoice w;
    TRY(weighted_choice_read("mix", mix, a, &w));
    for (uint32_t i = 0; i < w.n; i++) {
        uint32_t x = profile_find(p, w.word[i]);
        if (x == PROFILE_NONE)
            return err_set(ERR_CONFIG, "mix: there is no class '%.40s'", w.word[i]);
        add(d, x, w.weight[i]);
    }
    return ERR_OK;
}

static Err prepare(const ClusterProfiles *p, const char *mix, Arena *a, Draw *d) {
    *d = (Draw){.n = p->n};
    if (p->n == 0) return err_set(ERR_CONFIG, "there are no classes of jobs to choose from");
    if (mix != NULL) return read_mix(p, mix, a, d);
    for (uint32_t i = 0; i < p->n; i++) add(d, i, p->at[i].weight);
    if (d->sum > 0) return ERR_OK;
    for (uint32_t i = 0; i < p->n; i++) add(d, i, 1);
    return ERR_OK;
}

static uint32_t draw(const Draw *d, Rng r) {
    double at = rng_unit64(&r) * d->sum;
    for (uint32_t i = 0; i < d->last; i++) {
        if (at < d->weight[i]) return i;
        at -= d->weight[i];
    }
    return d->last;
}

static uint64_t name_key(const char *s) {
    uint64_t h = HASH_FNV_START;
    for (; *s != '\0'; s++) {
        if (!isalnum((unsigned char)*s)) continue;
        h = hash_fnv_add(h, (uint64_t)tolower((unsigned char)*s));
    }
    return h;
}

typedef enum AssignedBy { BY_NAME, BY_ALIAS, BY_MODEL, DRAWN } AssignedBy;

static AssignedBy find(const ClusterProfiles *p, const Draw *d, const char *model, Rng rng,
                       uint32_t *out) {
    *out = profile_known(p, model);
    if (*out == PROFILE_NONE) {
        *out = draw(d, rng_fork(rng, name_key(model)));
        return BY_MODEL;
    }
    return profile_find(p, model) == *out ? BY_NAME : BY_ALIAS;
}

Err class_assignment_draw(const ClusterProfiles *p, const JobList *l, const char *mix, Rng rng,
                          Arena *a, ClassAssignment *out) {
    ClassAssignment s = {0};
    Draw            d;
    Rng             names = rng_fork(rng, 1), rows = rng_fork(rng, 2);
    uint32_t       *of_model = arena_try_new(a, uint32_t, l->n_models + 1);
    AssignedBy     *how = arena_try_new(a, AssignedBy, l->n_models + 1);
    uint32_t       *count[] = {&s.by_name, &s.by_alias, &s.by_model, &s.drawn};
    s.class_of = arena_try_new(a, uint32_t, l->n > 0 ? l->n : 1);
    if (of_model == NULL || how == NULL || s.class_of == NULL)
        return err_set(ERR_LIMIT, "no memory for the classes of %u jobs", l->n);
    TRY(prepare(p, mix, a, &d));
    for (uint32_t m = 0; m < l->n_models; m++)
        how[m] = find(p, &d, l->models[m], names, &of_model[m]);
    for (uint32_t i = 0; i < l->n; i++) {
        const Job *j = &l->at[i];
        bool       named = j->model != JOB_NONE;
        uint32_t   x = named ? of_model[j->model] : draw(&d, rng_fork(rows, j->row));
        s.class_of[i] = x;
        s.jobs[x]++;
        (*count[named ? how[j->model] : DRAWN])++;
    }
    *out = s;
    return ERR_OK;
}
