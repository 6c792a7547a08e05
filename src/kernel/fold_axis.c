#include "kernel/fold_axis.h"

#include "base/check.h"

uint32_t fold_axis_tasks(const FoldAxis *f, const Isa *isa) {
    const size_t width = (size_t)isa->lanes * FOLD_VECS;
    const size_t tasks = f->outer * ((f->inner + width - 1) / width);
    CHECK(tasks <= UINT32_MAX);
    return (uint32_t)tasks;
}
