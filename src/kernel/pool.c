#include "kernel/pool.h"

#include "kernel/blocking.h"

enum { POOL_TASK = 8192 };  // floats read per task, approximately

static uint32_t channels_per_plane(const Pool *p, uint32_t lanes) { return p->plain ? 1 : lanes; }

uint32_t pool_rows(const Pool *p, uint32_t lanes) {
    const ConvShape *s = &p->shape;
    uint64_t         each = (uint64_t)s->iw * s->sh * channels_per_plane(p, lanes);
    uint64_t         rows = POOL_TASK / each + 1;
    return rows < s->oh ? (uint32_t)rows : s->oh;
}

uint32_t pool_width(const Pool *p) {
    const ConvShape *s = &p->shape;
    return (s->ow - 1) * s->sw + (s->kw - 1) * s->dw + 1;
}

uint32_t pool_tasks(const Pool *p, const Isa *isa) {
    const ConvShape *s = &p->shape;
    const uint32_t   together = channels_per_plane(p, isa->lanes), rows = pool_rows(p, isa->lanes);
    uint64_t         planes = (uint64_t)s->n * ceil_div(s->ic, together) * max_u32(p->planes, 1);
    return checked_tasks(planes * ceil_div(s->oh, rows));
}

size_t pool_scratch(const Pool *p, const Isa *isa) {
    size_t row = (size_t)pool_width(p) * channels_per_plane(p, isa->lanes);
    return (row + p->shape.ow) * sizeof(float);
}
