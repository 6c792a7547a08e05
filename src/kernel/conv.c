#include "kernel/conv.h"

#include "kernel/conv_plan.h"

uint32_t conv_tasks(const ConvShape *s, const Isa *isa, const Version *v) {
    return conv_plan(s, v, isa->lanes, isa->registers).tasks;
}

size_t conv_scratch(const ConvShape *s, const Isa *isa, const Version *v) {
    ConvPlan p = conv_plan(s, v, isa->lanes, isa->registers);
    return p.terms_bytes + p.rows_bytes + p.slab_bytes;
}

uint32_t conv_versions(const ConvShape *s, const Isa *isa, bool plain, const CacheSizes *caches,
                       Version *out, uint32_t max) {
    (void)s;
    (void)caches;
    if (max == 0) return 0;
    out[0] = (Version){.algo = ALGO_DIRECT,
                       .tile_rows = isa->registers == 32 ? 14 : 6,
                       .tile_vecs = 2,
                       .split = SPLIT_ROWS,
                       .pack = plain ? CONV_PLAIN : 0};
    return 1;
}

Traffic conv_traffic(const ConvShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts) {
    ConvPlan p = conv_plan(s, v, isa->lanes, isa->registers);
    (void)caches;
    (void)parts;
    return (Traffic){0, p.panel * p.vecs * sizeof(float)};
}
