#include <math.h>

#include "node/model_int.h"

// What may be lost against all candidates, and what others may gain from a version that moves less.
static const double LOSS = 0.05, SLACK = 1.25, LESS = 0.85;

static float at(const ModelChoice *c, uint32_t i, uint32_t o) {
    return c->times[(size_t)i * c->occasions + o];
}

static void find_best(const ModelChoice *c, float *best) {
    for (uint32_t o = 0; o < c->occasions; o++) {
        best[o] = INFINITY;
        for (uint32_t i = 0; i < c->n; i++) best[o] = fminf(best[o], at(c, i, o));
    }
}

// How far behind the best, over the quiet occasions.
static double lag(const ModelChoice *c, const float *best, uint32_t i) {
    double sum = 0, n = 0;
    for (uint32_t o = 0; o < c->occasions; o++)
        if (c->alone[o]) sum += (double)(at(c, i, o) / best[o]), n++;
    return sum / n;
}

static uint32_t fastest_alone(const ModelChoice *c, const float *best) {
    uint32_t first = 0;
    double   least = INFINITY;
    for (uint32_t i = 0; i < c->n; i++) {
        double x = lag(c, best, i);
        if (x < least * 0.999 || (x < least * 1.001 && c->moved[i] < c->moved[first]))
            least = x, first = i;
    }
    return first;
}

// The worst loss on any occasion once candidate i is kept as well.
static double loss_with(const ModelChoice *c, const float *best, const uint32_t *kept, uint32_t n,
                        uint32_t i) {
    double worst = 0;
    for (uint32_t o = 0; o < c->occasions; o++) {
        float t = at(c, i, o);
        for (uint32_t k = 0; k < n; k++) t = fminf(t, at(c, kept[k], o));
        worst = fmax(worst, (double)(t / best[o]) - 1);
    }
    return worst;
}

static bool is_kept(const uint32_t *kept, uint32_t n, uint32_t i) {
    for (uint32_t k = 0; k < n; k++)
        if (kept[k] == i) return true;
    return false;
}

// A version that leaves much more of the memory to others, at little cost to itself.
static uint32_t keep_modest(const ModelChoice *c, const float *best, uint32_t *kept, uint32_t n) {
    float    least = INFINITY;
    uint32_t modest = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (lag(c, best, i) <= SLACK && c->moved[i] < least) least = c->moved[i], modest = i;
    if (!(least < INFINITY) || is_kept(kept, n, modest)) return n;
    for (uint32_t k = 0; k < n; k++)
        if ((double)least > LESS * (double)c->moved[kept[k]]) return n;
    kept[n] = modest;
    return n + 1;
}

// The next ones that lower the loss most, up to so many.
static uint32_t keep_needed(const ModelChoice *c, const float *best, uint32_t *kept, uint32_t n,
                            uint32_t most) {
    double loss = loss_with(c, best, kept, n, kept[0]);
    while (n < most && loss > LOSS) {
        uint32_t next = kept[0];
        double   least = loss;
        for (uint32_t i = 0; i < c->n; i++) {
            double x = loss_with(c, best, kept, n, i);
            if (x < least) least = x, next = i;
        }
        if (next == kept[0]) break;
        kept[n++] = next;
        loss = least;
    }
    return n;
}

uint32_t model_choose(const ModelChoice *c, float *best, uint32_t kept[NODE_VERSIONS]) {
    find_best(c, best);
    kept[0] = fastest_alone(c, best);
    uint32_t n = keep_needed(c, best, kept, 1, NODE_VERSIONS - 1);
    n = keep_modest(c, best, kept, n);
    return keep_needed(c, best, kept, n, NODE_VERSIONS);
}
