#include "cluster/profile/profiles.h"

#include <math.h>

#include "base/err.h"

enum { MOST = PROFILE_ROWS + PROFILE_COLUMNS + 3 };  // each level moves up on an axis

typedef struct Build {
    const ProfileGrid *speed;
    double             share_cores, share_gb;
    AllocLevel         at[MOST];
    uint32_t           n, usual;
} Build;

// Cost of a point relative to the default share.
static double cost(const Build *b, const AllocLevel *r) {
    return r->cores / b->share_cores + r->gb / b->share_gb;
}

static AllocLevel point(const Build *b, double cores, double gb) {
    return (AllocLevel){cores, gb, 1, profile_grid(b->speed, cores, gb)};
}

static bool below(const AllocLevel *r, const AllocLevel *hi) {
    return r->cores <= hi->cores && r->gb <= hi->gb;
}

static bool better(const Build *b, const AllocLevel *r, const AllocLevel *than) {
    double is = cost(b, r), was = cost(b, than);
    return is < was || (is == was && r->speed > than->speed);
}

// The cheapest measured point of at least that speed within hi, raised to lo where it has less: the
// default may lie between grid points or outside.
static bool cheapest(const Build *b, const AllocLevel *lo, const AllocLevel *hi, double speed,
                     AllocLevel *out) {
    bool found = false;
    for (uint32_t i = 0; i < b->speed->rows; i++)
        for (uint32_t k = 0; k < b->speed->columns; k++) {
            AllocLevel r =
                point(b, fmax(lo->cores, b->speed->row[i]), fmax(lo->gb, b->speed->column[k]));
            if (!below(&r, hi) || r.speed < speed) continue;
            if (!found || better(b, &r, out)) *out = r;
            found = true;
        }
    return found;
}

static void push(Build *b, AllocLevel r) {
    CHECK(b->n < MOST);
    b->at[b->n++] = r;
}

static void climb(Build *b, const AllocLevel *hi, double step) {
    AllocLevel next;
    while (cheapest(b, &b->at[b->n - 1], hi, b->at[b->n - 1].speed * (1 + step), &next))
        push(b, next);
}

static bool same(const AllocLevel *a, const AllocLevel *b) {
    return a->cores == b->cores && a->gb == b->gb;
}

// The inner level that is missed least; never the default.
static uint32_t least_missed(const Build *b) {
    uint32_t worst = 0;
    double   least = INFINITY;
    for (uint32_t i = 1; i + 1 < b->n; i++) {
        double gap = b->at[i + 1].speed / b->at[i - 1].speed;
        if (i != b->usual && gap < least) {
            least = gap;
            worst = i;
        }
    }
    CHECK(worst > 0);
    return worst;
}

static void thin(Build *b) {
    while (b->n > PROFILE_ALLOC_LEVELS) {
        uint32_t out = least_missed(b);
        for (uint32_t i = out; i + 1 < b->n; i++) b->at[i] = b->at[i + 1];
        b->n--;
        b->usual -= out < b->usual;
    }
}

static void add_half(Build *b, double half_speed) {
    for (uint32_t i = b->n; i > 0; i--) b->at[i] = b->at[i - 1];
    b->at[0].share = 0.5;
    b->at[0].speed *= half_speed;
    b->n++;
    b->usual++;
}

AllocLevels alloc_levels_build(const ProfileGrid *speed, double share_cores, double share_gb,
                               double half_speed, const AllocLevelParams *rule) {
    Build      b = {.speed = speed, .share_cores = share_cores, .share_gb = share_gb};
    AllocLevel none = {0}, all = {INFINITY, INFINITY, 1, 0}, first;
    AllocLevel usual = point(&b, share_cores, share_gb);
    CHECK(share_cores > 0 && share_gb > 0 && usual.speed > 0 && rule->step > 0);
    if (cheapest(&b, &none, &usual, rule->keep * usual.speed, &first) && !same(&first, &usual) &&
        first.speed > 0) {
        push(&b, first);
        climb(&b, &usual, rule->step);
    }
    if (b.n == 0 || !same(&b.at[b.n - 1], &usual)) push(&b, usual);
    b.usual = b.n - 1;
    climb(&b, &all, rule->step);
    if (half_speed > 0 && half_speed * b.at[0].speed >= rule->share_keep * usual.speed)
        add_half(&b, half_speed);
    thin(&b);
    AllocLevels l = {.n = b.n, .usual = b.usual};
    for (uint32_t i = 0; i < b.n; i++) l.at[i] = b.at[i];
    return l;
}
