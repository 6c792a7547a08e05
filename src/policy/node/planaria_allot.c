#include <math.h>

#include "policy/node/planaria.h"

typedef struct Ranked {
    double   score;
    uint32_t at;
} Ranked;

static bool above(Ranked a, Ranked b) {
    return a.score != b.score ? a.score > b.score : a.at < b.at;
}

// Highest score first, by Shell's gaps; what moves is small, the tasks follow once.
static void sort(PlanariaTask *tasks, uint32_t n) {
    static const uint32_t gaps[] = {57, 23, 10, 4, 1};
    Ranked                ranks[PLANARIA_MAX];
    PlanariaTask          sorted[PLANARIA_MAX];
    for (uint32_t i = 0; i < n; i++) ranks[i] = (Ranked){tasks[i].score, i};
    for (uint32_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (uint32_t i = gaps[g]; i < n; i++) {
            Ranked   moved = ranks[i];
            uint32_t j = i;
            for (; j >= gaps[g] && above(moved, ranks[j - gaps[g]]); j -= gaps[g])
                ranks[j] = ranks[j - gaps[g]];
            ranks[j] = moved;
        }
    for (uint32_t i = 0; i < n; i++) sorted[i] = tasks[ranks[i].at];
    for (uint32_t i = 0; i < n; i++) tasks[i] = sorted[i];
}

typedef double Claim(const PlanariaTask *t);

static double by_spare(const PlanariaTask *t) { return t->spare; }
static double by_score(const PlanariaTask *t) { return t->score > 0 ? t->score : 0; }
static double by_size(const PlanariaTask *t) { return fabs(t->score); }

static void give(PlanariaTask *t, uint32_t units, int64_t *left) {
    if (t->units + units > t->useful) units = t->useful > t->units ? t->useful - t->units : 0;
    t->units += units;
    *left -= units;
}

// Hands `left` units out in proportion to claims and returns what is left; step 5.
static int64_t spread(PlanariaTask *tasks, uint32_t n, int64_t left, Claim *claim) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += claim(&tasks[i]);
    if (left <= 0 || !(sum > 0)) return left;
    double all = (double)left;
    for (uint32_t i = 0; i < n; i++)
        give(&tasks[i], (uint32_t)(all * claim(&tasks[i]) / sum + 0.5), &left);
    for (uint32_t i = 0; i < n && left > 0; i++)
        if (claim(&tasks[i]) > 0) give(&tasks[i], (uint32_t)left, &left);
    for (uint32_t i = n; i-- > 0 && left < 0;)
        while (left < 0 && tasks[i].units > tasks[i].least) tasks[i].units--, left++;
    return left;
}

void planaria_allot(PlanariaTask *tasks, uint32_t n, uint32_t n_units) {
    uint32_t feasible = 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        tasks[i].units = 0;
        feasible += tasks[i].least > 0;
        sum += tasks[i].least;
    }
    sort(tasks, n);
    int64_t left = n_units;
    for (uint32_t i = 0; i < n && left > 0; i++) {
        tasks[i].units = tasks[i].least < left ? tasks[i].least : (uint32_t)left;
        left -= tasks[i].units;
    }
    left = spread(tasks, n, left, feasible == n && sum <= n_units ? by_spare : by_score);
    spread(tasks, n, left, by_size);
}
