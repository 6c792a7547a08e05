#include "report/league.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

static double member_of(const LeagueRun *r, size_t member) {
    double v;
    memcpy(&v, (const char *)r + member, sizeof v);
    return v;
}

Mean league_mean(const League *l, const LeagueEntry *e, size_t member) {
    double x[LEAGUE_SEEDS];
    CHECK(l->seeds <= LEAGUE_SEEDS);
    for (uint32_t i = 0; i < l->seeds; i++) x[i] = member_of(&e->runs[i], member);
    return stats_mean(x, l->seeds);
}

Mean league_ratio(const League *l, const LeagueEntry *e, const LeagueEntry *than, size_t member) {
    double x[LEAGUE_SEEDS];
    CHECK(l->seeds <= LEAGUE_SEEDS);
    for (uint32_t i = 0; i < l->seeds; i++) {
        double of = member_of(&than->runs[i], member);
        x[i] = of > 0 ? member_of(&e->runs[i], member) / of : NAN;
    }
    return stats_mean(x, l->seeds);
}

const LeagueEntry *league_find(const LeagueCell *c, const char *policy) {
    for (uint32_t i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i].policy, policy) == 0)
            return c->entries[i].missing == NULL ? &c->entries[i] : NULL;
    return NULL;
}

const LeagueEntry *league_rival(const League *l, const LeagueCell *c, size_t member) {
    const LeagueEntry *ours = league_find(c, l->champion), *best = NULL;
    for (uint32_t i = 0; i < c->n_entries && ours != NULL; i++) {
        const LeagueEntry *e = &c->entries[i];
        bool               part = e->of != NULL && strcmp(e->of, l->champion) == 0;
        if (e == ours || part || e->missing != NULL || e->rank > ours->rank) continue;
        if (best == NULL || league_mean(l, e, member).mean < league_mean(l, best, member).mean)
            best = e;
    }
    return best;
}

bool league_change(const League *l, const char *policy, size_t member, LeagueChange *out) {
    LeagueChange c = {0};
    uint32_t     met = 0;
    for (uint32_t i = 0; i < l->n_cells; i++) {
        const LeagueEntry *ours = league_find(&l->cells[i], l->champion);
        const LeagueEntry *theirs = league_find(&l->cells[i], policy);
        if (ours == NULL || theirs == NULL || ours == theirs) continue;
        Mean   r = league_ratio(l, ours, theirs, member);
        double by = r.mean - 1;
        if (met == 0 || by < c.least) {
            c.least = by;
            c.at = &l->cells[i];
        }
        if (met == 0 || by > c.most) c.most = by;
        c.mean += by;
        c.ahead += by + r.half < 0;
        c.behind += by - r.half > 0;
        met++;
    }
    if (met == 0) return false;
    c.mean /= met;
    c.even = met - c.ahead - c.behind;
    *out = c;
    return true;
}
