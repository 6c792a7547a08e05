// Exact: the best assignment by the Hungarian method, and the best coordination by exhaustive
// search.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "policy/cluster/maifs/coord_int.h"

enum { EXACT_MAX = 160 };

static inline double finite_or_0(float x) { return isfinite(x) ? (double)x : 0; }

static inline double exact_pair(const CoordProblem *p, uint32_t i, uint32_t k, uint32_t j,
                                uint32_t l) {
    size_t at = ((size_t)i * p->jobs + k) * p->rank, its = ((size_t)j * p->jobs + l) * p->rank;
    double sum = 0;
    for (uint32_t r = 0; r < p->rank; r++)
        sum += finite_or_0(p->left[at + r]) * finite_or_0(p->right[its + r]) +
               finite_or_0(p->left[its + r]) * finite_or_0(p->right[at + r]);
    return sum / 2;
}

// Payoff of claims, of idling for the others, and of all pairs of claims.
static inline double exact_value(const CoordProblem *p, const uint32_t *claims) {
    double sum = 0;
    for (uint32_t i = 0; i < p->agents; i++)
        sum += (claims[i] == COORD_NONE ? finite_or_0(p->idle[i])
                                        : (double)p->payoff[(size_t)i * p->jobs + claims[i]]);
    for (uint32_t i = 0; i < p->agents && p->rank > 0; i++)
        for (uint32_t j = i + 1; j < p->agents; j++)
            if (claims[i] != COORD_NONE && claims[j] != COORD_NONE)
                sum += exact_pair(p, i, claims[i], j, claims[j]);
    return sum;
}

// The largest sum of gains [rows][columns] with at most one per row and column; entries that are
// negative or not finite are left out. Shortest augmenting paths, a row at a time.
static inline double exact_assignment(const float *gain, uint32_t rows, uint32_t columns) {
    uint32_t      n = rows > columns ? rows : columns;
    static double cost[EXACT_MAX + 1][EXACT_MAX + 1], u[EXACT_MAX + 1], v[EXACT_MAX + 1];
    static double least[EXACT_MAX + 1];
    uint32_t      owner[EXACT_MAX + 1] = {0}, from[EXACT_MAX + 1] = {0};
    memset(u, 0, sizeof u);
    memset(v, 0, sizeof v);
    for (uint32_t i = 1; i <= n; i++)
        for (uint32_t j = 1; j <= n; j++) {
            float g = i <= rows && j <= columns ? gain[(i - 1) * columns + j - 1] : 0;
            cost[i][j] = isfinite(g) && g > 0 ? -(double)g : 0;
        }
    for (uint32_t i = 1; i <= n; i++) {
        bool     used[EXACT_MAX + 1] = {false};
        uint32_t at = 0;
        for (uint32_t j = 0; j <= n; j++) least[j] = INFINITY;
        owner[0] = i;
        do {
            uint32_t row = owner[at], next = 0;
            double   delta = INFINITY;
            used[at] = true;
            for (uint32_t j = 1; j <= n; j++) {
                if (used[j]) continue;
                double c = cost[row][j] - u[row] - v[j];
                if (c < least[j]) {
                    least[j] = c;
                    from[j] = at;
                }
                if (least[j] < delta) {
                    delta = least[j];
                    next = j;
                }
            }
            for (uint32_t j = 0; j <= n; j++) {
                if (used[j]) {
                    u[owner[j]] += delta;
                    v[j] -= delta;
                } else {
                    least[j] -= delta;
                }
            }
            at = next;
        } while (owner[at] != 0);
        for (; at != 0; at = from[at]) owner[at] = owner[from[at]];
    }
    double sum = 0;
    for (uint32_t j = 1; j <= n; j++) sum -= cost[owner[j]][j];
    return sum;
}

// Every job gets all its claims or none, and no claim is superfluous.
static inline bool exact_legal(const CoordProblem *p, const uint32_t *claims) {
    for (uint32_t i = 0; i < p->agents; i++) {
        size_t at = (size_t)i * p->jobs + claims[i];
        if (claims[i] == COORD_NONE) continue;
        if (claims[i] >= p->jobs || p->give[at] == 0 || !isfinite(p->payoff[at])) return false;
    }
    for (uint32_t k = 0; k < p->jobs; k++) {
        uint32_t got = 0, least = UINT32_MAX;
        for (uint32_t i = 0; i < p->agents; i++) {
            uint32_t give = p->give[(size_t)i * p->jobs + k];
            if (claims[i] != k) continue;
            got += give;
            least = give < least ? give : least;
        }
        if (got > 0 && (got < p->need[k] || got - least >= p->need[k])) return false;
    }
    return true;
}

// The best of all (jobs + 1)^agents answers, as exact_value counts.
static inline double exact_coordination(const CoordProblem *p) {
    uint32_t claims[16], digits[16] = {0};
    double   best = -INFINITY;
    for (;;) {
        for (uint32_t i = 0; i < p->agents; i++)
            claims[i] = digits[i] == p->jobs ? COORD_NONE : digits[i];
        if (exact_legal(p, claims)) {
            double value = exact_value(p, claims);
            best = value > best ? value : best;
        }
        uint32_t i = 0;
        while (i < p->agents && digits[i] == p->jobs) digits[i++] = 0;
        if (i == p->agents) return best;
        digits[i]++;
    }
}
