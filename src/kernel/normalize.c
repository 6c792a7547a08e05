#include "kernel/normalize.h"

#include "kernel/blocking.h"

Normalize normalize_axis(NormalizeOp op, size_t outer, size_t n, size_t inner, float epsilon) {
    const NormalizeScale scale = inner == 1 ? NORMALIZE_SCALE_PER_ELEMENT : NORMALIZE_SCALE_PER_SET;
    return (Normalize){op, outer, n, inner, epsilon, scale, 1};
}

Normalize normalize_instance(size_t images, size_t channels, size_t pixels, float epsilon) {
    Normalize r = normalize_axis(NORMALIZE_VARIANCE, images * channels, pixels, 1, epsilon);
    r.scale = NORMALIZE_SCALE_PER_SET;
    r.groups = channels;
    return r;
}

// Tasks of an [outer][n][inner] loop in which a task covers `width` positions of inner.
static uint32_t tasks_of(size_t outer, size_t inner, size_t width) {
    return checked_tasks(outer * ceil_div_size(inner, width));
}

uint32_t normalize_tasks(const Normalize *r, const Isa *isa) {
    const size_t width = r->inner == 1 ? 1 : (size_t)isa->lanes * NORMALIZE_VECS;
    return r->n == 0 ? 0 : tasks_of(r->rows, r->inner, width);
}

uint32_t reduce_tasks(const Reduce *f, const Isa *isa) {
    return tasks_of(f->outer, f->inner, (size_t)isa->lanes * REDUCE_VECS);
}
