#include "policy/node/common/core_placement.h"

#include "base/err.h"

Cores core_placement_first(const Cores *free, uint32_t n) {
    Cores    out = {0};
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        at = cores_next(free, at);
        CHECK(at < CORES_MAX);
        cores_add(&out, at++);
    }
    return out;
}

void core_placement_init(CorePlacement *p, const NodeMachine *m) {
    *p = (CorePlacement){.n_slices = m->n_slices};
    for (uint32_t c = 0; c < m->n_cores; c++) {
        cores_add(&p->slices[m->slice_of[c]], c);
        p->sizes[m->slice_of[c]]++;
    }
}

typedef struct Slice {
    uint16_t n_free, n;
    bool     near;
} Slice;

// Score of a slice for the remaining n cores; higher is better. Best is a free slice that n fills;
// then the slice that holds n with the fewest cores left over (so that free slices stay whole);
// then the slice with the most free cores.
static int32_t score(Slice s, uint32_t n) {
    int32_t near = s.near ? 1 : 0;
    if (s.n_free == s.n && s.n <= n) return 4000 + near;
    if (s.n_free >= n) return 2 * (1000 - (int32_t)(s.n_free - n)) + near;
    return 2 * (int32_t)s.n_free + near;
}

static void count_free(const CorePlacement *p, const Cores *free, const Cores *near, Slice *out) {
    for (uint32_t s = 0; s < p->n_slices; s++) {
        Cores open = cores_intersection(p->slices[s], free),
              old = cores_intersection(p->slices[s], near);
        out[s] =
            (Slice){(uint16_t)cores_count(&open), p->sizes[s], cores_next(&old, 0) < CORES_MAX};
    }
}

Cores core_placement_slices(const CorePlacement *p, const Cores *free, uint32_t n,
                            const Cores *near) {
    Cores out = {0};
    Slice slices[PLACEMENT_SLICES];
    count_free(p, free, near, slices);
    while (n > 0) {
        uint32_t best = 0;
        int32_t  best_score = 0;
        for (uint32_t s = 0; s < p->n_slices; s++) {
            int32_t here = slices[s].n_free == 0 ? 0 : score(slices[s], n);
            if (here <= best_score) continue;
            best = s;
            best_score = here;
        }
        CHECK(best_score > 0);
        Cores taken = cores_intersection(p->slices[best], free);
        if (slices[best].n_free > n) taken = core_placement_first(&taken, n);
        out = cores_union(out, &taken);
        n -= n < slices[best].n_free ? n : slices[best].n_free;
        slices[best].n_free = 0;
    }
    return out;
}
