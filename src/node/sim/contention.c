#include "node/sim/contention.h"

#include <math.h>

// The water level of max-min fairness: raised while the surplus of small demands lifts it above
// another demand.
static double water(const double *demand, uint32_t n, uint32_t greedy, double supply) {
    double   level = 0;
    uint32_t open = 0, before = UINT32_MAX;
    while (open + greedy != before) {
        double left = supply;
        before = open + greedy;
        open = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (demand[i] <= level)
                left -= demand[i];
            else
                open++;
        }
        if (open + greedy == 0) return INFINITY;
        level = left / (open + greedy);
    }
    return level;
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
