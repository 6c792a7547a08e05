#include "node/contention.h"

#include <math.h>
#include <stdbool.h>

// The level that rates are cut at: raised until what small demands leave over is spent.
static double water(const double *demand, uint32_t n, uint32_t greedy, double supply) {
    double   left = supply, level = 0;
    uint32_t open = n + greedy;
    for (bool more = true; more && open > 0;) {
        double next = left / open, before = level;
        more = false;
        for (uint32_t i = 0; i < n; i++)
            if (demand[i] <= next && demand[i] > before) more = true;
        level = next;
        if (!more) break;
        left = supply;
        open = greedy;
        for (uint32_t i = 0; i < n; i++) {
            if (demand[i] <= level)
                left -= demand[i];
            else
                open++;
        }
    }
    return open > 0 ? level : INFINITY;
}

void contention_share(const double *demand, uint32_t n, double supply, double *rate) {
    double level = water(demand, n, 0, supply);
    for (uint32_t i = 0; i < n; i++) rate[i] = fmin(demand[i], level);
}

double contention_newcomer(const double *demand, uint32_t n, double supply) {
    return water(demand, n, 1, supply);
}

double contention_slice(uint64_t own, uint64_t all, double slice_bytes) {
    double mine = (double)own, others = (double)(all - own);
    if (mine + others <= slice_bytes || own == 0) return 1;
    return fmin(fmax(1 - others / slice_bytes, mine / (mine + others)), 1);
}
