#include "kernel/pool.h"

#include "base/err.h"

enum { POOL_TASK = 8192 };  // numbers a task reads, about

static uint32_t channels_together(const Pool *p, uint32_t lanes) { return p->plain ? 1 : lanes; }

uint32_t pool_rows(const Pool *p, uint32_t lanes) {
    const ConvShape *s = &p->shape;
    uint64_t         each = (uint64_t)s->iw * s->sh * channels_together(p, lanes);
    uint64_t         rows = POOL_TASK / each + 1;
    return rows < s->oh ? (uint32_t)rows : s->oh;
}

uint32_t pool_width(const Pool *p) {
    const ConvShape *s = &p->shape;
    return (s->ow - 1) * s->sw + (s->kw - 1) * s->dw + 1;
}

uint32_t pool_tasks(const Pool *p, const Isa *isa) {
    const ConvShape *s = &p->shape;
    const uint32_t   together = channels_together(p, isa->lanes), rows = pool_rows(p, isa->lanes);
    uint64_t         planes = (uint64_t)s->n * ((s->ic + together - 1) / together);
    uint64_t         tasks = planes * ((s->oh + rows - 1) / rows);
    CHECK(tasks <= UINT32_MAX);
    return (uint32_t)tasks;
}

size_t pool_scratch(const Pool *p, const Isa *isa) {
    size_t row = (size_t)pool_width(p) * channels_together(p, isa->lanes);
    return (row + p->shape.ow) * sizeof(float);
}
