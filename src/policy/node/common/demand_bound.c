#include "policy/node/common/demand_bound.h"

void demand_bound_clear(DemandBound *d, double cores, double bytes_ns) {
    d->n = 0;
    d->cores = cores;
    d->bytes_ns = bytes_ns;
}

void demand_bound_add(DemandBound *d, DemandItem x) {
    if (d->n == DEMAND_BOUND_MAX) return;
    uint32_t i = d->n++;
    for (; i > 0 && d->at[i - 1].deadline > x.deadline; i--) d->at[i] = d->at[i - 1];
    d->at[i] = x;
}

bool demand_bound_admits(const DemandBound *d, TimeNs now, DemandItem x) {
    double core_ns = x.core_ns, bytes = x.bytes;
    bool   counted = false;  // the check at x's own deadline is done
    for (uint32_t i = 0; i <= d->n; i++) {
        bool own = !counted && (i == d->n || d->at[i].deadline > x.deadline);
        if (own) {
            double ns = (double)(x.deadline - now);
            if (core_ns > d->cores * ns || bytes > d->bytes_ns * ns) return false;
            counted = true;
        }
        if (i == d->n) break;
        core_ns += d->at[i].core_ns;
        bytes += d->at[i].bytes;
        if (d->at[i].deadline < x.deadline) continue;
        double ns = (double)(d->at[i].deadline - now);
        if (core_ns > d->cores * ns || bytes > d->bytes_ns * ns) return false;
    }
    return true;
}
