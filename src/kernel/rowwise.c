#include "kernel/rowwise.h"

#include "base/check.h"

Rowwise rowwise_axis(RowOp op, size_t outer, size_t n, size_t inner, float epsilon) {
    const RowScale scale = inner == 1 ? ROW_SCALE_EACH : ROW_SCALE_PLACES;
    return (Rowwise){op, outer, n, inner, epsilon, scale, 1, n};
}

Rowwise rowwise_instance(size_t images, size_t channels, size_t pixels, float epsilon) {
    return rowwise_group(images, channels, pixels, channels, true, epsilon);
}

Rowwise rowwise_instance_blocked(const Isa *isa, size_t images, size_t channels, size_t pixels,
                                 float epsilon) {
    const size_t blocks = (channels + isa->lanes - 1) / isa->lanes;
    Rowwise      r = rowwise_axis(ROW_VARIANCE, images * blocks, pixels, isa->lanes, epsilon);
    r.groups = blocks;
    return r;
}

Rowwise rowwise_group(size_t images, size_t channels, size_t pixels, size_t groups, bool own,
                      float epsilon) {
    const size_t each = channels / groups;
    Rowwise      r = rowwise_axis(ROW_VARIANCE, images * groups, each * pixels, 1, epsilon);
    r.scale = ROW_SCALE_SEGMENTS;
    r.groups = groups;
    r.segment = own ? pixels : each * pixels;
    return r;
}

bool rowwise_group_blocked(const Isa *isa, size_t images, size_t channels, size_t pixels,
                           size_t groups, float epsilon, Rowwise *out) {
    if (channels / groups % isa->lanes != 0) return false;
    *out = rowwise_group(images, channels, pixels, groups, true, epsilon);
    out->scale = ROW_SCALE_LANES;
    out->segment = pixels * isa->lanes;
    return true;
}

uint32_t rowwise_tasks(const Rowwise *r, const Isa *isa) {
    const size_t width = r->inner == 1 ? 1 : (size_t)isa->lanes * ROWWISE_VECS;
    const size_t tasks = r->rows * ((r->inner + width - 1) / width);
    CHECK(tasks <= UINT32_MAX);
    return r->n == 0 ? 0 : (uint32_t)tasks;
}
