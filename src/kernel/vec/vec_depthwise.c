// Depthwise convolution: strips of pixels with their sums in registers, and the loop over rows,
// channel blocks and images.
#include "kernel/depthwise.h"

#include <math.h>

#include "base/err.h"
#include "kernel/blocking.h"
#include "kernel/vec/vec_int.h"

depthwise_fn VEC(depthwise);

enum { STRIP_TILE = 8 };  // most pixels held in registers

// `count` adjacent tiles of pixels in `lines` consecutive output rows. Pixel p of the first line
// reads input columns from `column` + p * step and input rows from `top` on.
typedef struct Strip {
    const float *x;                     // input row `first`
    size_t       x_line, y_line;        // floats per input row, per output row
    const float *weights, *bias, *add;  // [kh][taps][lanes]; bias and add may be NULL
    float       *y;
    size_t       at;  // first pixel in a line of add and y, in floats
    ptrdiff_t    column, top, first;
    uint32_t     count, lines;
    uint32_t     ih, kh, sh, dh;
    uint32_t     from, to;           // edge tiles: columns inside the input, relative to `column`
    uint32_t     taps, apart, step;  // generic strips: kernel width, dilation, stride
    bool         clips;
    float        lo, hi;
} Strip;

typedef void StripFn(const Strip *s);

// Loops over pixels and taps are fully unrolled, so that sums stay in registers.
#define UNROLL VEC_UNROLL(32)

// Hides a pointer's origin from the compiler: it then uses one register with constant offsets.
#define OPAQUE(x) __asm__("" : "+r"(x))

VEC_INLINE void start(const Strip *s, const uint32_t tile, Vf *sum) {
    const Vf bias = s->bias != NULL ? vf_load(s->bias) : (Vf){0};
    UNROLL for (uint32_t p = 0; p < tile; p++) sum[p] = bias;
}

// The opaque pointer keeps the clip bounds in memory until here: in registers, their two vectors
// would displace weights.
VEC_INLINE void finish(const Strip *s, const uint32_t tile, size_t at, Vf *sum) {
    OPAQUE(s);
    if (s->add != NULL) {
        UNROLL for (uint32_t p = 0; p < tile; p++) {
            sum[p] += vf_load(s->add + at + p * VEC_LANES);
        }
    }
    if (s->clips) {
        const Vf lo = vf_set(s->lo), hi = vf_set(s->hi);
        UNROLL for (uint32_t p = 0; p < tile; p++) sum[p] = vf_min(hi, vf_max(lo, sum[p]));
    }
    UNROLL for (uint32_t p = 0; p < tile; p++) vf_store(s->y + at + p * VEC_LANES, sum[p]);
}

// One kernel row: each input is loaded once and used by all its taps.
VEC_INLINE void add_row(const Strip *s, const uint32_t taps, const uint32_t step,
                        const uint32_t tile, const bool edge, const float *x, const float *weights,
                        Vf *sum) {
    const uint32_t columns = (tile - 1) * step + taps;
    Vf             w[5];
    UNROLL for (uint32_t k = 0; k < taps; k++) w[k] = vf_load(weights + k * VEC_LANES);
    UNROLL for (uint32_t c = 0; c < columns; c++) {
        if (edge && c + 1 < taps && c < s->from) continue;
        if (edge && c + taps > columns && c >= s->to) continue;
        const Vf v = vf_load(x + (ptrdiff_t)(c * VEC_LANES));
        UNROLL for (uint32_t p = 0; p < tile; p++) {
            if (c >= p * step && c - p * step < taps) sum[p] += v * w[c - p * step];
        }
    }
}

// Kernel rows that lie inside the input, and the input row of the first.
typedef struct KernelRows {
    const float *x, *weights;
    uint32_t     rows;
} KernelRows;

VEC_INLINE KernelRows rows_inside(const Strip *s, const uint32_t taps, const ptrdiff_t dh,
                                  uint32_t line) {
    const ptrdiff_t top = s->top + (ptrdiff_t)(line * s->sh), below = (ptrdiff_t)s->ih - top;
    ptrdiff_t       from = 0, to = s->kh;
    if (top < 0) from = (dh - 1 - top) / dh;
    if (below <= (to - 1) * dh) to = (below + dh - 1) / dh;
    if (from >= to) return (KernelRows){s->x, s->weights, 0};
    return (KernelRows){s->x + (size_t)(top + from * dh - s->first) * s->x_line,
                        s->weights + (size_t)from * taps * VEC_LANES, (uint32_t)(to - from)};
}

// Prefetches input rows of the next output row.
VEC_INLINE void prefetch_rows(const float *x, size_t x_line, uint32_t rows,
                              const uint32_t columns) {
    for (; rows > 0; rows--, x += x_line) {
        UNROLL for (uint32_t c = 0; c < columns; c += 64 / (4 * VEC_LANES)) {
            __builtin_prefetch(x + c * VEC_LANES);
        }
    }
}

VEC_INLINE void strip(const Strip *all, const uint32_t taps, const uint32_t step,
                      const uint32_t tile, const bool edge) {
    const Strip s = *all;
    for (uint32_t line = 0; line < s.lines; line++) {
        const KernelRows in = rows_inside(&s, taps, 1, line);
        ptrdiff_t        column = s.column * VEC_LANES;
        size_t           at = s.at + line * s.y_line;
        for (uint32_t n = edge ? 1 : s.count; n > 0; n--) {
            Vf           sum[STRIP_TILE];
            const float *x = in.x + column, *w = in.weights;
            start(&s, tile, sum);
            for (uint32_t r = in.rows; r > 0; r--) {
                OPAQUE(x);
                add_row(&s, taps, step, tile, edge, x, w, sum);
                x += s.x_line;
                w += (size_t)taps * VEC_LANES;
            }
            if (!edge) prefetch_rows(x, s.x_line, s.sh, tile * step);
            finish(all, tile, at, sum);
            column += (ptrdiff_t)(tile * step * VEC_LANES);
            at += (size_t)tile * VEC_LANES;
        }
    }
}

VEC_INLINE void generic_tile(const Strip *s, const uint32_t step, const uint32_t tile,
                             KernelRows in, Vf *sum) {
    for (; in.rows > 0; in.rows--, in.x += s->dh * s->x_line) {
        const float *v = in.x;
        for (uint32_t k = s->taps; k > 0; k--, v += s->apart * VEC_LANES) {
            const Vf weight = vf_load(in.weights);
            UNROLL for (uint32_t p = 0; p < tile; p++) {
                sum[p] += weight * vf_load(v + (size_t)p * step * VEC_LANES);
            }
            in.weights += VEC_LANES;
        }
    }
}

// Any kernel width, stride and dilation; all tiles inside the input.
VEC_INLINE void generic(const Strip *all, const uint32_t step, const uint32_t tile) {
    const Strip s = *all;
    for (uint32_t line = 0; line < s.lines; line++) {
        KernelRows in = rows_inside(&s, s.taps, s.dh, line);
        size_t     at = s.at + line * s.y_line;
        in.x += (size_t)s.column * VEC_LANES;
        for (uint32_t n = s.count; n > 0; n--, at += (size_t)tile * VEC_LANES) {
            Vf sum[STRIP_TILE];
            start(&s, tile, sum);
            generic_tile(&s, step, tile, in, sum);
            finish(all, tile, at, sum);
            in.x += (size_t)tile * step * VEC_LANES;
        }
    }
}

#define TILES(X, ...)                                                                              \
    X(1, __VA_ARGS__)                                                                              \
    X(2, __VA_ARGS__)                                                                              \
    X(3, __VA_ARGS__)                                                                              \
    X(4, __VA_ARGS__)                                                                              \
    X(5, __VA_ARGS__) X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__)

#define STRIP(tile, taps, step)                                                                    \
    static void inside_##taps##_##step##_##tile(const Strip *s) {                                  \
        strip(s, taps, step, tile, false);                                                         \
    }                                                                                              \
    static void edge_##taps##_##step##_##tile(const Strip *s) { strip(s, taps, step, tile, true); }
TILES(STRIP, 3, 1)
TILES(STRIP, 3, 2)
TILES(STRIP, 5, 1)
TILES(STRIP, 5, 2)

#define GENERIC(tile, name, step)                                                                  \
    static void generic_##name##_##tile(const Strip *s) { generic(s, step, tile); }
TILES(GENERIC, one, 1)
TILES(GENERIC, two, 2)
TILES(GENERIC, any, s->step)

// For dh == 1, 3 or 5 adjacent taps, step 1 or 2, tile 1..STRIP_TILE. An edge is one tile with
// fewer than `taps` columns outside on either side; other tiles lie inside the input.
static StripFn *short_strip(uint32_t taps, uint32_t step, uint32_t tile, bool edge) {
#define ROW(tile, taps, step) {inside_##taps##_##step##_##tile, edge_##taps##_##step##_##tile},
    static StripFn *const all[2][2][STRIP_TILE][2] = {
        {{TILES(ROW, 3, 1)}, {TILES(ROW, 3, 2)}},
        {{TILES(ROW, 5, 1)}, {TILES(ROW, 5, 2)}},
    };
    CHECK((taps == 3 || taps == 5) && step - 1 < 2 && tile - 1 < STRIP_TILE);
    return all[taps == 5][step - 1][tile - 1][edge];
}

static StripFn *generic_strip(uint32_t step, uint32_t tile) {
#define COLUMN(tile, name) generic_##name##_##tile,
    static StripFn *const all[3][STRIP_TILE] = {
        {TILES(COLUMN, one)}, {TILES(COLUMN, two)}, {TILES(COLUMN, any)}};
    CHECK(tile - 1 < STRIP_TILE);
    return all[step == 1 ? 0 : step == 2 ? 1 : 2][tile - 1];
}

// Floats computed before the epilogue's program runs over them, while they are in L1 or L2.
enum { SPAN = 8192 };

// Near-equal tiles of a row: the first `wide` have `tile` pixels, the others one less. Tiles
// [inside, beyond) touch no padding on the left or right.
typedef struct RowTiles {
    uint32_t tiles, tile, wide, inside, beyond;
} RowTiles;

// Shared by all tasks of a part.
typedef struct Plan {
    const Depthwise *d;
    DepthwiseMethod  method;
    RowTiles         cut;
    uint32_t         blocks, cuts;  // channel blocks; tasks per plane
    uint32_t         group;         // rows computed before the program runs
    float           *copy;
    StripFn         *edge[2], *inside[2];  // for wide tiles, for those one pixel less
    Strip            strip;                // template: all but the fields of one plane
} Plan;

// Rows [row, end) of one channel block of one image.
typedef struct Task {
    uint32_t image, block, row, end;
} Task;

static uint32_t cut_pixel(const RowTiles *c, uint32_t tile) {
    return tile * c->tile - (tile > c->wide ? tile - c->wide : 0);
}

static RowTiles cut_make(const ConvShape *s, uint32_t most, bool padded) {
    RowTiles c = {.tiles = ceil_div(s->ow, most)};
    c.tile = ceil_div(s->ow, c.tiles);
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
    const RowTiles *c = &p->cut;
    const uint32_t  pixel = cut_pixel(c, tile);
    const ptrdiff_t column = p->strip.column + (ptrdiff_t)pixel * s->step;
    const ptrdiff_t right = (ptrdiff_t)p->d->shape.iw - column;
    s->count = end - tile;
    s->column = column;
    s->at = (size_t)pixel * VEC_LANES;
    s->from = column < 0 ? (uint32_t)-column : 0;
    s->to = right > 0 ? (uint32_t)right : 0;
    (edge ? p->edge : p->inside)[tile >= c->wide](s);
}

// All tiles of whole rows: edge tiles one by one, the others in one call per width.
static void row_run(const Plan *p, Strip *s) {
    const RowTiles *c = &p->cut;
    uint32_t        middle = c->wide < c->inside ? c->inside : c->wide;
    if (middle > c->beyond) middle = c->beyond;
    for (uint32_t i = 0; i < c->inside; i++) tiles_run(p, s, i, i + 1, true);
    if (c->inside < middle) tiles_run(p, s, c->inside, middle, false);
    if (middle < c->beyond) tiles_run(p, s, middle, c->beyond, false);
    for (uint32_t i = c->beyond; i < c->tiles; i++) tiles_run(p, s, i, i + 1, true);
}

// Copies the input columns under the windows, zero-padded.
static void copy_row(const ConvShape *s, const float *x, float *to, uint32_t width) {
    uint32_t left = width < s->pl ? width : s->pl, inner = width - left;
    uint32_t n = inner < s->iw ? inner : s->iw;
    memset(to, 0, (size_t)left * VEC_LANES * sizeof *to);
    memcpy(to + (size_t)left * VEC_LANES, x, (size_t)n * VEC_LANES * sizeof *to);
    memset(to + (size_t)(left + n) * VEC_LANES, 0, (size_t)(inner - n) * VEC_LANES * sizeof *to);
}

// Copies the input rows of output rows [row, end) with padding and makes the strip read the copy.
static void copy_make(const Plan *p, uint32_t row, uint32_t end, Strip *s) {
    const ConvShape *g = &p->d->shape;
    const uint32_t   width = depthwise_padded_width(g);
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
    const Depthwise *d = p->d;
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
    if (p->method == DEPTHWISE_PADDED) copy_make(p, row, end, &s);
    row_run(p, &s);
    if (d->epilogue.program != NULL)
        epilogue_span(&d->epilogue, d->y, at, (size_t)t->block * VEC_LANES, (end - row) * s.y_line);
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

// For small whole planes the divisions in task_make would take as long as a row.
static Task task_next(const Plan *p, const Task *t, uint32_t next) {
    if (p->cuts > 1) return task_make(p, next);
    const bool over = t->block + 1 == p->blocks;
    return (Task){t->image + over, over ? 0 : t->block + 1, t->row, t->end};
}

static Plan plan_make(const Depthwise *d, float *copy) {
    const ConvShape *g = &d->shape;
    const Epilogue  *f = &d->epilogue;
    Plan             p = {.d = d, .method = depthwise_method(g), .copy = copy};
    const bool       taps = p.method == DEPTHWISE_TAPS;
    p.cut = cut_make(g, d->version.tile_rows, taps);
    p.blocks = (g->oc + VEC_LANES - 1) / VEC_LANES;
    p.cuts = (g->oh + d->version.rows - 1) / d->version.rows;
    p.group = p.method == DEPTHWISE_PADDED ? depthwise_padded_rows(g, VEC_LANES, &d->version)
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
        p.edge[i] = taps ? short_strip(g->kw, g->sw, tile, true) : NULL;
        p.inside[i] = taps ? short_strip(g->kw, g->sw, tile, false) : generic_strip(g->sw, tile);
    }
    return p;
}

void VEC(depthwise)(const Depthwise *d, Part part) {
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
