// Feeds text to the readers of profiles, on top of the shipped ones; what they take keeps its
// promises.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/profile/profiles.h"
#include "tests/fuzz/fuzz.h"

static void promise(int kept) {
    if (!kept) abort();
}

static void check_grid(const ProfileGrid *g, int sign) {
    promise(g->rows >= 1 && g->rows <= PROFILE_ROWS);
    promise(g->columns >= 1 && g->columns <= PROFILE_COLUMNS);
    for (uint32_t i = 0; i < g->rows; i++)
        for (uint32_t k = 0; k < g->columns; k++) {
            promise(isfinite(g->at[i][k]) && g->at[i][k] >= 0);
            promise(i == 0 || g->row[i] > g->row[i - 1]);
            promise(k == 0 || g->column[k] > g->column[k - 1]);
            promise(k == 0 || sign * g->at[i][k] >= sign * g->at[i][k - 1]);
            promise(sign < 0 || i == 0 || g->at[i][k] >= g->at[i - 1][k]);
        }
}

static void check_ladder(const AllocLevels *l) {
    promise(l->n >= 1 && l->n <= PROFILE_ALLOC_LEVELS && l->usual < l->n);
    for (uint32_t i = 1; i < l->n; i++) {
        const AllocLevel *r = &l->at[i];
        promise(r->cores >= r[-1].cores && r->gb >= r[-1].gb && r->share >= r[-1].share);
        promise(r->speed >= r[-1].speed * (1 - 1e-12));
    }
}

static void check(const ClusterProfiles *p) {
    promise(p->n <= PROFILE_CLASSES && p->n_types <= PROFILE_TYPES);
    for (uint32_t i = 0; i < p->n; i++) {
        const ClusterProfile *c = &p->at[i];
        check_grid(&c->speed, 1);
        check_grid(&c->spread, -1);
        check_ladder(&c->levels);
        promise(profile_find(p, c->name) == i);
        promise(fabs(profile_speed(c, p->share_cores, p->share_gb) - 1) < 1e-9);
        promise(profile_spread(c, 9, 3) > 0 && profile_spread(c, 9, 3) <= 1);
        for (uint32_t k = 0; k < p->n; k++)
            promise(profile_pair(p, i, k) >= 0 && profile_pair(p, i, k) <= 1);
    }
}

FUZZ_TARGET(data, size) {
    Arena           a;
    ClusterProfiles p, own;
    if (arena_init(&a, (size_t)1 << 27) != ERR_OK) abort();
    if (profile_empty(&a, &p) != ERR_OK || profile_load(NULL, &a, &own) != ERR_OK) abort();
    if (profile_add_text(&p, "fuzz", (const char *)data, size, NULL, &a) == ERR_OK) check(&p);
    ProfileOptions fold = {.fold = size % 2 == 0};
    if (profile_add_text(&own, "fuzz", (const char *)data, size, &fold, &a) == ERR_OK) check(&own);
    arena_finish(&a);
    return 0;
}
