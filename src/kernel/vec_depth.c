#include <math.h>

#include "kernel/depth.h"
#include "kernel/vec_depth.h"
#include "kernel/vec_finish.h"

depth_run_fn VEC(depth_run);

// Numbers finished before a chain runs over them: they are still in L1 or just left it.
enum { SPAN = 8192 };

// How every row is cut into tiles of near-equal width: first `wide` tiles of `tile` pixels, then
// tiles of one less. Tiles [inside, beyond) meet no padding on the left or right.
typedef struct Cut {
    uint32_t tiles, tile, wide, inside, beyond;
} Cut;

// What all tasks share.
typedef struct Plan {
    const Depth *d;
    DepthWay     way;
    Cut          cut;
    uint32_t     blocks, cuts;  // channel blocks; tasks that share a plane
    uint32_t     group;         // rows done one after the other before a chain runs
    float       *copy;
    StripFn     *edge[2], *inside[2];  // for wide tiles and for those of one less
    Strip        strip;                // all but what belongs to one plane
} Plan;

// The rows [row, end) of one channel block of one image.
typedef struct Task {
    uint32_t image, block, row, end;
} Task;

static uint32_t cut_pixel(const Cut *c, uint32_t tile) {
    return tile * c->tile - (tile > c->wide ? tile - c->wide : 0);
}

static Cut cut_make(const ConvShape *s, uint32_t most, bool padded) {
    Cut c = {.tiles = (s->ow + most - 1) / most};
    c.tile = (s->ow + c.tiles - 1) / c.tiles;
    c.wide = s->ow - c.tiles * (c.tile - 1);
    c.beyond = c.tiles;
    if (!padded) return c;
    while (c.inside < c.tiles && (size_t)cut_pixel(&c, c.inside) * s->sw < s->pl) c.inside++;
    while (c.beyond > c.inside &&
           (size_t)(cut_pixel(&c, c.beyond) - 1) * s->sw + s->kw > (size_t)s->iw + s->pl)
        c.beyond--;
    return c;
}

static void tiles_run(const Plan *p, Strip *s, uint32_t tile, uint32_t end, bool edge) {
    const Cut      *c = &p->cut;
    const uint32_t  pixel = cut_pixel(c, tile);
    const ptrdiff_t column = p->strip.column + (ptrdiff_t)pixel * s->step;
    const ptrdiff_t room = (ptrdiff_t)p->d->shape.iw - column;
    s->count = end - tile;
    s->column = column;
    s->at = (size_t)pixel * VEC_LANES;
    s->from = column < 0 ? (uint32_t)-column : 0;
    s->to = room > 0 ? (uint32_t)room : 0;
    (edge ? p->edge : p->inside)[tile >= c->wide](s);
}

// All tiles of a strip of whole rows: edges one by one, the others in one go for each width.
static void row_run(const Plan *p, Strip *s) {
    const Cut *c = &p->cut;
    uint32_t   middle = c->wide < c->inside ? c->inside : c->wide;
    if (middle > c->beyond) middle = c->beyond;
    for (uint32_t i = 0; i < c->inside; i++) tiles_run(p, s, i, i + 1, true);
    if (c->inside < middle) tiles_run(p, s, c->inside, middle, false);
    if (middle < c->beyond) tiles_run(p, s, middle, c->beyond, false);
    for (uint32_t i = c->beyond; i < c->tiles; i++) tiles_run(p, s, i, i + 1, true);
}

// Copies the input columns under the windows, with zeros where there are none.
static void copy_row(const ConvShape *s, const float *x, float *to, uint32_t width) {
    uint32_t left = width < s->pl ? width : s->pl, room = width - left;
    uint32_t n = room < s->iw ? room : s->iw;
    memset(to, 0, (size_t)left * VEC_LANES * sizeof *to);
    memcpy(to + (size_t)left * VEC_LANES, x, (size_t)n * VEC_LANES * sizeof *to);
    memset(to + (size_t)(left + n) * VEC_LANES, 0, (size_t)(room - n) * VEC_LANES * sizeof *to);
}

// Makes the strip read a padded copy of the input rows that output rows [row, end) meet.
static void copy_make(const Plan *p, uint32_t row, uint32_t end, Strip *s) {
    const ConvShape *g = &p->d->shape;
    const uint32_t   width = depth_padded_width(g);
    const size_t     line = (size_t)width * VEC_LANES;
    ptrdiff_t        first = (ptrdiff_t)row * g->sh - g->pt;
    ptrdiff_t        last = (ptrdiff_t)(end - 1) * g->sh - g->pt + (ptrdiff_t)(g->kh - 1) * g->dh;
    if (first < 0) first = 0;
    if (last >= (ptrdiff_t)g->ih) last = (ptrdiff_t)g->ih - 1;
    for (ptrdiff_t i = first; i <= last; i++)
        copy_row(g, s->x + (size_t)i * s->x_line, p->copy + (size_t)(i - first) * line, width);
    s->x = p->copy;
    s->x_line = line;
    s->first = first;
}

static void rows_run(const Plan *p, const Task *t, uint32_t row, uint32_t end) {
    const Depth     *d = p->d;
    const ConvShape *g = &d->shape;
    const size_t     plane = (size_t)t->image * p->blocks + t->block;
    const size_t     at = (plane * g->oh + row) * p->strip.y_line;
    Strip            s = p->strip;
    s.x = d->x + plane * g->ih * s.x_line;
    s.y = d->y + at;
    s.top = (ptrdiff_t)row * g->sh - g->pt;
    s.lines = end - row;
    s.weights += (size_t)t->block * g->kh * g->kw * VEC_LANES;
    if (s.bias != NULL) s.bias += (size_t)t->block * VEC_LANES;
    if (s.add != NULL) s.add += at;
    if (p->way == DEPTH_PADDED) copy_make(p, row, end, &s);
    row_run(p, &s);
    if (d->finish.chain != NULL)
        finish_span(&d->finish, d->y, at, (size_t)t->block * VEC_LANES, (end - row) * s.y_line);
}

static Task task_make(const Plan *p, uint32_t task) {
    const uint32_t each = p->blocks * p->cuts, i = task % each, rows = p->d->version.rows;
    const bool     by_rows = p->d->version.split == SPLIT_ROWS;
    const uint32_t row = (by_rows ? i / p->blocks : i % p->cuts) * rows,
                   left = p->d->shape.oh - row;
    return (Task){.image = task / each,
                  .block = by_rows ? i % p->blocks : i / p->cuts,
                  .row = row,
                  .end = left < rows ? row + left : row + rows};
}

// Where planes are small and whole, the divisions in task_make would take as long as a row.
static Task task_next(const Plan *p, const Task *t, uint32_t next) {
    if (p->cuts > 1) return task_make(p, next);
    const bool over = t->block + 1 == p->blocks;
    return (Task){t->image + over, over ? 0 : t->block + 1, t->row, t->end};
}

static Plan plan_make(const Depth *d, float *copy) {
    const ConvShape *g = &d->shape;
    const Finish    *f = &d->finish;
    Plan             p = {.d = d, .way = depth_way(g), .copy = copy};
    const bool       taps = p.way == DEPTH_TAPS;
    p.cut = cut_make(g, d->version.tile_rows, taps);
    p.blocks = (g->oc + VEC_LANES - 1) / VEC_LANES;
    p.cuts = (g->oh + d->version.rows - 1) / d->version.rows;
    p.group = p.way == DEPTH_PADDED ? depth_padded_rows(g, VEC_LANES, &d->version)
                                    : SPAN / (g->ow * VEC_LANES) + 1;
    p.strip = (Strip){.x_line = (size_t)g->iw * VEC_LANES,
                      .y_line = (size_t)g->ow * VEC_LANES,
                      .weights = d->weights,
                      .bias = f->bias,
                      .add = f->add,
                      .column = taps ? -(ptrdiff_t)g->pl : 0,
                      .ih = g->ih,
                      .kh = g->kh,
                      .sh = g->sh,
                      .dh = g->dh,
                      .taps = g->kw,
                      .apart = g->dw,
                      .step = g->sw,
                      .clips = f->lo > -INFINITY || f->hi < INFINITY,
                      .lo = f->lo,
                      .hi = f->hi};
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t tile = p.cut.tile > i ? p.cut.tile - i : 1;
        p.edge[i] = taps ? VEC(strip_taps)(g->kw, g->sw, tile, true) : NULL;
        p.inside[i] =
            taps ? VEC(strip_taps)(g->kw, g->sw, tile, false) : VEC(strip_loose)(g->sw, tile);
    }
    return p;
}

void VEC(depth_run)(const Depth *d, Part part) {
    const Plan p = plan_make(d, part.scratch);
    uint32_t   task, last;
    part_range(part, d->shape.n * p.blocks * p.cuts, &task, &last);
    Task t = task_make(&p, task);
    for (; task < last; t = task_next(&p, &t, ++task))
        for (uint32_t row = t.row, end; row < t.end; row = end) {
            end = t.end - row < p.group ? t.end : row + p.group;
            rows_run(&p, &t, row, end);
        }
}
