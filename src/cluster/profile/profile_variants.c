#include "cluster/profile/profile_variants.h"

#include <math.h>
#include <string.h>

Err profile_copy(const ClusterProfiles *p, Arena *a, ClusterProfiles *out) {
    ClusterProfiles c;
    TRY(profile_empty(a, &c));
    ClusterProfile *at = c.at;
    double         *pair = c.pair;
    memcpy(at, p->at, p->n * sizeof *at);
    memcpy(pair, p->pair, sizeof *pair * PROFILE_CLASSES * PROFILE_CLASSES);
    c = *p;
    c.at = at;
    c.pair = pair;
    *out = c;
    return ERR_OK;
}

void profile_grid_raise(ProfileGrid *g, double power) {
    for (uint32_t r = 0; r < g->rows; r++)
        for (uint32_t c = 0; c < g->columns; c++)
            if (g->at[r][c] > 0) g->at[r][c] = pow(g->at[r][c], power);
}

static double weight_of(const ClusterProfiles *p, uint32_t i) {
    double all = 0;
    for (uint32_t k = 0; k < p->n; k++) all += p->at[k].weight;
    return all > 0 ? p->at[i].weight / all : 1.0 / p->n;
}

static ProfileGrid mean_grid(const ClusterProfiles *p, bool spread) {
    const ProfileGrid *widest = spread ? &p->at[0].spread : &p->at[0].speed;
    for (uint32_t i = 1; i < p->n; i++) {
        const ProfileGrid *g = spread ? &p->at[i].spread : &p->at[i].speed;
        if (g->rows * g->columns > widest->rows * widest->columns) widest = g;
    }
    ProfileGrid out = *widest;
    for (uint32_t r = 0; r < out.rows; r++)
        for (uint32_t c = 0; c < out.columns; c++) {
            double sum = 0;
            for (uint32_t i = 0; i < p->n; i++) {
                const ProfileGrid *g = spread ? &p->at[i].spread : &p->at[i].speed;
                sum +=
                    weight_of(p, i) * log(fmax(profile_grid(g, out.row[r], out.column[c]), 1e-3));
            }
            out.at[r][c] = exp(sum);
        }
    return out;
}

static void mean_scalars(const ClusterProfiles *p, ClusterProfile *c) {
    for (uint32_t i = 0; i < p->n; i++) {
        const ClusterProfile *x = &p->at[i];
        double                part = weight_of(p, i);
        c->restart_s += part * x->restart_s;
        c->gpu_gb += part * x->gpu_gb;
        c->gpu_util += part * x->gpu_util;
        c->gpu_memory_util += part * x->gpu_memory_util;
        for (uint32_t t = 0; t < PROFILE_TYPES; t++) c->iteration_s[t] += part * x->iteration_s[t];
        for (uint32_t s = 0; s < PROFILE_STAGES; s++) c->stage_s[s] += part * x->stage_s[s];
    }
}

static double *pair_of(ClusterProfiles *p, uint32_t a, uint32_t b) {
    return &p->pair[(size_t)a * PROFILE_CLASSES + b];
}

// Mean over the pairs of a class, of those in which the class is slowed (column) or slows (row).
static double mean_pair(ClusterProfiles *p, uint32_t i, bool column, uint32_t n) {
    double sum = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += weight_of(p, k) * (column ? *pair_of(p, k, i) : *pair_of(p, i, k));
    return sum;
}

static Err add_class(ClusterProfiles *p, const ClusterProfile *c, uint32_t *out) {
    if (p->n == PROFILE_CLASSES)
        return err_set(ERR_LIMIT, "%u classes leave no room for '%s'; leave some out", p->n,
                       c->name);
    p->at[ *out = p->n++] = *c;
    return ERR_OK;
}

Err profile_add_mean(ClusterProfiles *p, uint32_t *out) {
    uint32_t       n = p->n, i = 0;
    ClusterProfile c = {.name = "(mean)"};
    double         both = 0, slowed[PROFILE_CLASSES], slows[PROFILE_CLASSES];
    if (n == 0) return err_set(ERR_ARG, "no classes to take the mean of; give --profiles");
    c.speed = mean_grid(p, false);
    c.spread = mean_grid(p, true);
    mean_scalars(p, &c);
    for (uint32_t k = 0; k < n; k++) {
        slows[k] = mean_pair(p, k, false, n);
        slowed[k] = mean_pair(p, k, true, n);
        both += weight_of(p, k) * slows[k];
    }
    TRY(add_class(p, &c, &i));
    for (uint32_t k = 0; k < n; k++) {
        *pair_of(p, k, i) = slows[k];
        *pair_of(p, i, k) = slowed[k];
    }
    *pair_of(p, i, i) = both;
    *out = i;
    return profile_set_share(p, p->share_cores, p->share_gb, &ALLOC_LEVEL_PARAMS);
}

Err profile_add_default(ClusterProfiles *p, uint32_t *out) {
    ClusterProfile c = {.name = "(default)", .gpu_util = 1, .gpu_memory_util = 1};
    c.speed = (ProfileGrid){1, 1, {p->share_cores}, {p->share_gb}, {{1}}};
    c.spread = (ProfileGrid){1, 1, {1}, {1}, {{1}}};
    TRY(add_class(p, &c, out));
    for (uint32_t k = 0; k < p->n; k++) *pair_of(p, *out, k) = *pair_of(p, k, *out) = 0.5;
    return profile_set_share(p, p->share_cores, p->share_gb, &ALLOC_LEVEL_PARAMS);
}

// Pairs: how much the new class is slowed is raised, how much it slows others is its base's.
void profile_add_power(ClusterProfiles *p, uint32_t base, double power, Arena *a) {
    uint32_t        i = p->n++;
    ClusterProfile *c = &p->at[i];
    *c = p->at[base];
    c->name = arena_printf(a, "%s^%.2f", p->at[base].name, power);
    c->aliases = NULL;
    profile_grid_raise(&c->speed, power);
    profile_grid_raise(&c->spread, power);
    for (uint32_t k = 0; k < i; k++) {
        double slowed = profile_pair(p, base, k);
        p->pair[(size_t)i * PROFILE_CLASSES + k] = slowed > 0 ? pow(slowed, power) : 0;
        p->pair[(size_t)k * PROFILE_CLASSES + i] = profile_pair(p, k, base);
    }
    double self = profile_pair(p, base, base);
    p->pair[(size_t)i * PROFILE_CLASSES + i] = self > 0 ? pow(self, power) : 0;
}
