#include "tests/cluster/slow_profile.h"

#include <math.h>

ProfileGrid slow_profile_random(Rng *rng) {
    ProfileGrid g = {.rows = 1 + (uint32_t)rng_below(rng, PROFILE_ROWS),
                     .columns = 1 + (uint32_t)rng_below(rng, PROFILE_COLUMNS)};
    double      row = 0, column = 0;
    for (uint32_t i = 0; i < g.rows; i++) g.row[i] = row += 0.1 + 3 * rng_unit64(rng);
    for (uint32_t k = 0; k < g.columns; k++) g.column[k] = column += 1 + 50 * rng_unit64(rng);
    for (uint32_t i = 0; i < g.rows; i++)
        for (uint32_t k = 0; k < g.columns; k++) {
            double least = 0.1;
            if (i > 0) least = fmax(least, g.at[i - 1][k]);
            if (k > 0) least = fmax(least, g.at[i][k - 1]);
            g.at[i][k] = least + (rng_below(rng, 2) ? rng_unit64(rng) : 0);
        }
    return g;
}

static double clamp(double x, const double *axis, uint32_t n) {
    return fmin(fmax(x, axis[0]), axis[n - 1]);
}

// How much point i of an axis counts at x: 1 there, 0 at its neighbours, a line between.
static double tent(const double *axis, uint32_t n, uint32_t i, double x) {
    if (x == axis[i]) return 1;
    if (x < axis[i]) return i == 0 ? 0 : fmax(0, (x - axis[i - 1]) / (axis[i] - axis[i - 1]));
    return i + 1 == n ? 0 : fmax(0, (axis[i + 1] - x) / (axis[i + 1] - axis[i]));
}

double slow_profile_grid(const ProfileGrid *g, double row, double column) {
    double sum = 0;
    row = clamp(row, g->row, g->rows);
    column = clamp(column, g->column, g->columns);
    for (uint32_t i = 0; i < g->rows; i++)
        for (uint32_t k = 0; k < g->columns; k++)
            sum += tent(g->row, g->rows, i, row) * tent(g->column, g->columns, k, column) *
                   g->at[i][k];
    return sum;
}

bool slow_profile_monotone(const ClusterProfile *c) {
    const ProfileGrid *g = &c->speed, *s = &c->spread;
    for (uint32_t i = 0; i < g->rows; i++)
        for (uint32_t k = 0; k < g->columns; k++) {
            if (i > 0 && (g->row[i] <= g->row[i - 1] || g->at[i][k] < g->at[i - 1][k]))
                return false;
            if (k > 0 && (g->column[k] <= g->column[k - 1] || g->at[i][k] < g->at[i][k - 1]))
                return false;
        }
    for (uint32_t i = 0; i < s->rows; i++)
        for (uint32_t k = 1; k < s->columns; k++)
            if (s->column[k] <= s->column[k - 1] || s->at[i][k] > s->at[i][k - 1]) return false;
    return true;
}

double slow_profile_cheapest(const ClusterProfiles *p, const ClusterProfile *c, double keep) {
    const ProfileGrid *g = &c->speed;
    double             usual = slow_profile_grid(g, p->share_cores, p->share_gb), best = 2;
    for (uint32_t i = 0; i < g->rows; i++)
        for (uint32_t k = 0; k < g->columns; k++) {
            if (g->row[i] > p->share_cores || g->column[k] > p->share_gb) continue;
            if (g->at[i][k] < keep * usual) continue;
            best = fmin(best, g->row[i] / p->share_cores + g->column[k] / p->share_gb);
        }
    return best;
}
