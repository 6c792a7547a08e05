#include "cluster/hypotheses.h"

#include <math.h>
#include <string.h>

#include "cluster/profile/profiles.h"

enum { SPARE = 2 };  // the mean, and the default of the guard

static const double log_powers[] = {-0.5, 0.5};

static void raise(ProfileGrid *g, double power) {
    for (uint32_t r = 0; r < g->rows; r++)
        for (uint32_t c = 0; c < g->columns; c++)
            if (g->at[r][c] > 0) g->at[r][c] = pow(g->at[r][c], power);
}

// Pairs: how much the new class is slowed is raised, how much it slows others is its base's.
static void add_variant(ClusterProfiles *p, uint32_t base, double log_power, Arena *a) {
    uint32_t        i = p->n++;
    ClusterProfile *c = &p->at[i];
    double          power = exp(log_power);
    *c = p->at[base];
    c->name = arena_printf(a, "%s^%.2f", p->at[base].name, power);
    c->aliases = NULL;
    raise(&c->speed, power);
    raise(&c->spread, power);
    for (uint32_t k = 0; k < i; k++) {
        double slowed = profile_pair(p, base, k);
        p->pair[(size_t)i * PROFILE_CLASSES + k] = slowed > 0 ? pow(slowed, power) : 0;
        p->pair[(size_t)k * PROFILE_CLASSES + i] = profile_pair(p, k, base);
    }
    double self = profile_pair(p, base, base);
    p->pair[(size_t)i * PROFILE_CLASSES + i] = self > 0 ? pow(self, power) : 0;
}

Err hypotheses_make(const ClusterProfiles *library, Arena *a, ClusterProfiles *profiles,
                    HypothesisTable *out) {
    uint32_t n = library->n, mean = 0;
    TRY(information_copy(library, a, profiles));
    *out = (HypothesisTable){.profiles = profiles};
    for (uint32_t i = 0; i < n; i++) out->base[i] = i;
    for (size_t k = 0; k < sizeof log_powers / sizeof *log_powers; k++) {
        if (profiles->n + n + SPARE > PROFILE_CLASSES) break;
        for (uint32_t i = 0; i < n; i++) {
            out->base[profiles->n] = i;
            out->log_power[profiles->n] = log_powers[k];
            add_variant(profiles, i, log_powers[k], a);
        }
    }
    out->n = profiles->n;
    TRY(information_add_mean(profiles, &mean));
    profiles->at[mean].weight = 0;
    out->n_classes = mean + 1;
    return profile_set_share(profiles, profiles->share_cores, profiles->share_gb,
                             &ALLOC_LEVEL_PARAMS);
}
