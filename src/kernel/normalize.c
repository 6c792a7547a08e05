#include "kernel/normalize.h"

#include "base/err.h"

Normalize normalize_axis(NormalizeOp op, size_t outer, size_t n, size_t inner, float epsilon) {
    const NormalizeScale scale = inner == 1 ? NORMALIZE_SCALE_PER_ELEMENT : NORMALIZE_SCALE_PER_SET;
    return (Normalize){op, outer, n, inner, epsilon, scale, 1, n};
}

Normalize normalize_instance(size_t images, size_t channels, size_t pixels, float epsilon) {
    return normalize_group(images, channels, pixels, channels, true, epsilon);
}

Normalize normalize_instance_blocked(const Isa *isa, size_t images, size_t channels, size_t pixels,
                                     float epsilon) {
    const size_t blocks = (channels + isa->lanes - 1) / isa->lanes;
    Normalize r = normalize_axis(NORMALIZE_VARIANCE, images * blocks, pixels, isa->lanes, epsilon);
    r.groups = blocks;
    return r;
}

Normalize normalize_group(size_t images, size_t channels, size_t pixels, size_t groups, bool own,
                          float epsilon) {
    const size_t each = channels / groups;
    Normalize    r = normalize_axis(NORMALIZE_VARIANCE, images * groups, each * pixels, 1, epsilon);
    r.scale = NORMALIZE_SCALE_PER_SEGMENT;
    r.groups = groups;
    r.segment = own ? pixels : each * pixels;
    return r;
}

bool normalize_group_blocked(const Isa *isa, size_t images, size_t channels, size_t pixels,
                             size_t groups, float epsilon, Normalize *out) {
    if (channels / groups % isa->lanes != 0) return false;
    *out = normalize_group(images, channels, pixels, groups, true, epsilon);
    out->scale = NORMALIZE_SCALE_PER_LANE;
    out->segment = pixels * isa->lanes;
    return true;
}

uint32_t normalize_tasks(const Normalize *r, const Isa *isa) {
    const size_t width = r->inner == 1 ? 1 : (size_t)isa->lanes * NORMALIZE_VECS;
    const size_t tasks = r->rows * ((r->inner + width - 1) / width);
    CHECK(tasks <= UINT32_MAX);
    return r->n == 0 ? 0 : (uint32_t)tasks;
}

uint32_t reduce_tasks(const Reduce *f, const Isa *isa) {
    const size_t width = (size_t)isa->lanes * REDUCE_VECS;
    const size_t tasks = f->outer * ((f->inner + width - 1) / width);
    CHECK(tasks <= UINT32_MAX);
    return (uint32_t)tasks;
}
