#include "node/live/block_bounds.h"

#include <math.h>

static double serial_ns(const Program *p, const NodeModel *m, uint32_t layer) {
    return layer < p->n_steps ? (double)node_time(m, layer, 0, 0, 0) : INFINITY;
}

static void find_serial(BlockBounds *b, const Program *p) {
    for (uint32_t l = b->n; l-- > 0;) {
        uint32_t after = l + 1 < b->n ? b->serial[l + 1] : b->n;
        b->serial[l] = program_is_serial(p, l) ? after : l;
    }
}

// Between long serial stretches a block may have several cores.
static void find_cuts(BlockBounds *b, const Program *p, const NodeModel *m) {
    for (uint32_t l = 0, from = 0; l < b->n;) {
        uint32_t end = b->serial[l];
        double   ns = 0;
        for (uint32_t k = l; k < end; k++) ns += serial_ns(p, m, k);
        if (ns > NODE_SOLO_NS) {
            for (; from < l; from++) b->cut[from] = l;
            for (; from < end; from++) b->cut[from] = end;
        }
        l = end > l ? end : l + 1;
        for (; l == b->n && from < l; from++) b->cut[from] = l;
    }
}

Err block_bounds_init(BlockBounds *b, const Program *p, const NodeModel *m, Arena *a) {
    b->n = program_layer_count(p);
    b->cut = arena_try_new(a, uint32_t, b->n);
    b->serial = arena_try_new(a, uint32_t, b->n);
    if (b->cut == NULL || b->serial == NULL)
        return err_set(ERR_LIMIT, "no memory for %u layers", b->n);
    find_serial(b, p);
    find_cuts(b, p, m);
    return ERR_OK;
}

BlockExtent block_bounds_fit(const BlockBounds *b, uint32_t first, uint32_t end, uint32_t cores) {
    if (cores <= 1) return (BlockExtent){end, true};
    uint32_t cut = b->cut[first] < end ? b->cut[first] : end;
    return (BlockExtent){cut, b->serial[first] >= cut};
}
