#include <math.h>

#include "kernel/blocking.h"
#include "kernel/gemm.h"
#include "kernel/vec/vec_int.h"
#include "kernel/vec/vec_transpose.h"

#define UNROLL VEC_UNROLL(16)

// to[j][i] = from[i][j] * scale, for VEC_LANES rows and columns.
VEC_INLINE void transpose_square(const float *from, size_t from_row, float *to, size_t to_row,
                                 Vf scale) {
    Vf x[VEC_LANES];
    UNROLL for (uint32_t i = 0; i < VEC_LANES; i++) x[i] = vf_load(from + i * from_row) * scale;
    vec_transpose(x);
    UNROLL for (uint32_t i = 0; i < VEC_LANES; i++) vf_store(to + i * to_row, x[i]);
}

static void transpose_scalar(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                             float scale, float *to, size_t to_row) {
    for (uint32_t j = 0; j < columns; j++)
        for (uint32_t i = 0; i < rows; i++) to[j * to_row + i] = from[i * from_row + j] * scale;
}

// to[j][i] = from[i][j] * scale, for i < rows, j < columns.
static void transpose_scaled(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                             float scale, float *to, size_t to_row) {
    const Vf by = vf_set(scale);
    uint32_t whole_rows = rows / VEC_LANES * VEC_LANES, whole = columns / VEC_LANES * VEC_LANES;
    for (uint32_t i = 0; i < whole_rows; i += VEC_LANES)
        for (uint32_t j = 0; j < whole; j += VEC_LANES)
            transpose_square(from + i * from_row + j, from_row, to + j * to_row + i, to_row, by);
    transpose_scalar(whole_rows, columns - whole, from + whole, from_row, scale,
                     to + whole * to_row, to_row);
    transpose_scalar(rows - whole_rows, columns, from + whole_rows * from_row, from_row, scale,
                     to + whole_rows, to_row);
}

// to[i][j] = from[i][j] * scale, for i < rows, j < columns.
static void copy_scaled(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                        float scale, float *to, size_t to_row) {
    const Vf by = vf_set(scale);
    for (uint32_t i = 0; i < rows; i++) {
        const float *x = from + i * from_row;
        float       *y = to + i * to_row;
        uint32_t     j = 0;
        for (; j + VEC_LANES <= columns; j += VEC_LANES) vf_store(y + j, vf_load(x + j) * by);
        for (; j < columns; j++) y[j] = x[j] * scale;
    }
}

// Zeroes the columns from `from` on.
static void clear_columns(uint32_t k, uint32_t from, float *panel) {
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = from; j < VEC_LANES; j++) panel[(size_t)i * VEC_LANES + j] = 0;
}

// Four panels at a time, so that each cache line of b is used completely.
static void copy_four(uint32_t k, const float *b, size_t row, float scale, float *to,
                      size_t panel) {
    const Vf by = vf_set(scale);
    for (uint32_t i = 0; i < k; i++, b += row, to += VEC_LANES)
        for (uint32_t v = 0; v < 4; v++)
            vf_store(to + v * panel, vf_load(b + (size_t)v * VEC_LANES) * by);
}

void VEC(gemm_panels)(uint32_t n, uint32_t k, const float *b, size_t row, bool transposed,
                      float scale, float *to) {
    const size_t panel = (size_t)k * VEC_LANES;
    uint32_t     at = 0;
    for (; !transposed && at + 4 * VEC_LANES <= n; at += 4 * VEC_LANES, to += 4 * panel)
        copy_four(k, b + at, row, scale, to, panel);
    for (; at < n; at += VEC_LANES, to += panel) {
        uint32_t some = n - at < VEC_LANES ? n - at : VEC_LANES;
        if (transposed)
            transpose_scaled(some, k, b + at * row, row, scale, to, VEC_LANES);
        else
            copy_scaled(k, some, b + at, row, scale, to, VEC_LANES);
        if (some < VEC_LANES) clear_columns(k, some, to);
    }
}

// One row times 1..GEMM_ROW_VECS vectors of weights. This is bound by weight bandwidth: many
// parallel streams, and enough accumulators to hide the FMA latency.
VEC_INLINE void add_up(const Tile *t, const uint32_t vecs, const uint32_t steps, Vf *sums) {
    const float *x = t->rows[0], *w = t->weights;
    Vf           s[GEMM_ROW_VECS] = {0};
    uint32_t     k = 0;
    for (; k + steps <= t->depth; k += steps) {
        UNROLL for (uint32_t i = 0; i < steps; i++) {
            const Vf b = vf_set(x[k + i]);
            UNROLL for (uint32_t v = 0; v < vecs; v++) {
                s[i * vecs + v] +=
                    b * vf_load(w + v * t->weight_stride + (size_t)(k + i) * VEC_LANES);
            }
        }
    }
    for (; k < t->depth; k++) {
        const Vf b = vf_set(x[k]);
        UNROLL for (uint32_t v = 0; v < vecs; v++) {
            s[v] += b * vf_load(w + v * t->weight_stride + (size_t)k * VEC_LANES);
        }
    }
    UNROLL for (uint32_t v = 0; v < vecs; v++) {
        sums[v] = s[v];
        UNROLL for (uint32_t i = 1; i < steps; i++) sums[v] += s[i * vecs + v];
    }
}

VEC_INLINE void one_row(const Tile *t, const uint32_t vecs, const uint32_t steps) {
    const Vf lo = vf_set(t->lo), hi = vf_set(t->hi);
    Vf       sums[GEMM_ROW_VECS];
    add_up(t, vecs, steps, sums);
    for (uint32_t v = 0; v < vecs; v++) {
        float *out = t->out + v * t->vec_stride;
        Vf     x = sums[v];
        if (t->accumulate)
            x += vf_load(out);
        else if (t->bias != NULL)
            x += vf_load(t->bias + (size_t)v * VEC_LANES);
        if (t->last && t->add != NULL) x += vf_load(t->add + v * t->vec_stride);
        if (t->last) x = vf_min(hi, vf_max(lo, x));
        vf_store(out, x);
    }
}

static void run_row_tile(const Tile *t, uint32_t vecs) {
    switch (vecs) {
    case 1: one_row(t, 1, 8); return;
    case 2: one_row(t, 2, 4); return;
    case 3: one_row(t, 3, 2); return;
    case 4: one_row(t, 4, 2); return;
    case 5: one_row(t, 5, 1); return;
    case 6: one_row(t, 6, 1); return;
    case 7: one_row(t, 7, 1); return;
    default: one_row(t, 8, 1); return;
    }
}

// A rectangle of y: rows in rows, columns in vectors, from the start of the matrix.
typedef struct Rect {
    uint32_t row, rows, column, columns;
} Rect;

// State of one part on one matrix of the batch.
typedef struct Run {
    const Gemm  *g;
    GemmScratch  layout;
    float       *scratch;
    const float *a, *b;
    size_t       y;        // start of y's matrix
    const float *weights;  // panels, from vector `base` on
    uint32_t     base;
} Run;

// One depth block of a rectangle.
typedef struct Slab {
    Rect         at;
    uint32_t     from, depth;  // of k
    const float *rows;         // float `from` of row at.row
    size_t       stride;
    bool         first, last;
} Slab;

// Whether the last vector is wider than the columns left in y.
static bool at_edge(const GemmShape *s, uint32_t column, uint32_t vecs) {
    return (column + vecs) * VEC_LANES > s->n;
}

// Copies the sums of the last panel from the edge buffer to y, with add and clip.
static void store_edge(const Run *r, const Rect *at, uint32_t column) {
    const Gemm     *g = r->g;
    const Epilogue *f = &g->epilogue;
    const Vf        lo = vf_set(f->lo), hi = vf_set(f->hi);
    const float    *edge = r->scratch + r->layout.edge;
    for (uint32_t i = 0; i < at->rows; i++)
        for (uint32_t j = column * VEC_LANES; j < g->shape.n; j += VEC_LANES) {
            uint32_t some = min_u32(VEC_LANES, g->shape.n - j);
            size_t   to = r->y + (at->row + i) * g->shape.y.row + j;
            Vf       x = vf_load(edge + i * r->layout.edge_row + j - (size_t)column * VEC_LANES);
            if (f->add != NULL) x += vf_load_some(f->add + to, some);
            vf_store_some(g->y + to, vf_min(hi, vf_max(lo, x)), some);
        }
}

// The tiles of a slab: common fields, and the rows of the current one.
typedef struct TileLoop {
    Tile         tile;
    const float *rows[TILE_MAX_ROWS];
    size_t       panel;         // floats per vector of weights
    uint32_t     first, count;  // rows, relative to the block
    bool         row_only, epilogue;
} TileLoop;

static TileLoop tile_loop(const Run *r, const Slab *s) {
    const Epilogue *f = &r->g->epilogue;
    bool            clips = f->lo != -INFINITY || f->hi != INFINITY;
    TileLoop        a = {.panel = (size_t)r->g->shape.k * VEC_LANES};
    a.row_only = r->g->version.tile_vecs > TILE_MAX_VECS;
    a.epilogue = s->last && (clips || f->add != NULL);
    a.tile.n_terms = 1;
    a.tile.depth = s->depth;
    a.tile.weight_stride = a.panel;
    a.tile.vec_stride = VEC_LANES;
    a.tile.lo = f->lo;
    a.tile.hi = f->hi;
    a.tile.accumulate = !s->first;
    return a;
}

static void set_rows(const Slab *s, uint32_t first, uint32_t count, TileLoop *a) {
    a->first = first;
    a->count = count;
    for (uint32_t i = 0; i < count; i++) a->rows[i] = s->rows + (first + i) * s->stride;
}

// The current rows times the vectors of one panel.
static void run_tile(const Run *r, const Slab *s, uint32_t column, uint32_t vecs, TileLoop *a) {
    const Gemm     *g = r->g;
    const Epilogue *f = &g->epilogue;
    size_t to = r->y + (s->at.row + a->first) * g->shape.y.row + (size_t)column * VEC_LANES;
    bool   edge = at_edge(&g->shape, column, vecs);
    Tile  *t = &a->tile;
    t->rows = a->rows;
    t->weights = r->weights + (column - r->base) * a->panel + (size_t)s->from * VEC_LANES;
    t->bias = s->first && f->bias != NULL ? f->bias + (size_t)column * VEC_LANES : NULL;
    t->out = edge ? r->scratch + r->layout.edge + a->first * r->layout.edge_row : g->y + to;
    t->row_stride = edge ? r->layout.edge_row : g->shape.y.row;
    t->add = f->add != NULL && !edge ? f->add + to : NULL;
    t->last = a->epilogue && !edge;
    if (a->row_only)
        run_row_tile(t, vecs);
    else
        VEC(tile_find)(a->count, vecs)(t);
}

// Prefetch distance: the last two row tiles each prefetch half of the next block's weights, which
// would otherwise stall its first tile.
static size_t prefetch_distance(const Run *r, const Slab *s, uint32_t tiles_left) {
    const GemmShape *shape = &r->g->shape;
    if (!shape->packed || tiles_left > 2 || s->depth != shape->k) return 0;
    size_t next = (size_t)s->at.columns * shape->k * VEC_LANES;
    return tiles_left == 2 ? next : next + (size_t)shape->k * VEC_LANES / 2;
}

static void run_slab(const Run *r, const Slab *s) {
    const Version *v = &r->g->version;
    uint32_t       tiles = (s->at.rows + v->tile_rows - 1) / v->tile_rows;
    uint32_t       end = s->at.column + s->at.columns, step = v->tile_vecs;
    uint32_t       each = s->at.rows / tiles, more = s->at.rows % tiles, row = 0;
    TileLoop       a = tile_loop(r, s);
    if (v->order == ORDER_WEIGHT_STATIONARY) {
        for (uint32_t t = 0; t < tiles; t++, row += a.count) {
            set_rows(s, row, each + (t < more), &a);
            a.tile.prefetch = prefetch_distance(r, s, tiles - t);
            for (uint32_t c = s->at.column; c < end; c += step)
                run_tile(r, s, c, min_u32(step, end - c), &a);
        }
        return;
    }
    for (uint32_t c = s->at.column; c < end; c += step, row = 0)
        for (uint32_t t = 0; t < tiles; t++, row += a.count) {
            set_rows(s, row, each + (t < more), &a);
            run_tile(r, s, c, min_u32(step, end - c), &a);
        }
}

// Points a slab at its rows: in place, or at a copy in scratch.
static void load_slab_rows(const Run *r, Slab *s) {
    const GemmOperand *a = &r->g->shape.a;
    float             *copy = r->scratch + r->layout.copy;
    if (r->g->version.pack == GEMM_ROWS) {
        s->rows = r->a + s->at.row * a->row + s->from;
        s->stride = a->row;
        return;
    }
    s->rows = copy;
    s->stride = r->layout.copy_row;
    if (a->transposed)
        transpose_scaled(s->depth, s->at.rows, r->a + s->from * a->row + s->at.row, a->row, 1, copy,
                         r->layout.copy_row);
    else
        copy_scaled(s->at.rows, s->depth, r->a + s->at.row * a->row + s->from, a->row, 1, copy,
                    r->layout.copy_row);
}

void VEC(gemm_program)(const Gemm *g, size_t y, uint32_t row, uint32_t rows, uint32_t column,
                       uint32_t n) {
    const Epilogue  *f = &g->epilogue;
    ElementwiseInput in[EWISE_MAX_ARGS];
    for (uint32_t i = 0; i < rows; i++) {
        size_t to = y + (row + i) * g->shape.y.row + column;
        in[0] = (ElementwiseInput){g->y + to, EWISE_CONTIGUOUS};
        for (uint32_t j = 1; j < f->program->n_args; j++) {
            in[j] = f->args[j];
            if (in[j].mode != EWISE_SCALAR)
                in[j].at += in[j].mode == EWISE_CONTIGUOUS ? to : column;
            if (in[j].mode == EWISE_PER_LANE) in[j].mode = EWISE_CONTIGUOUS;
        }
        VEC(ewise_span)(f->program, in, g->y + to, n);
    }
}

static void run_program(const Run *r, const Rect *at) {
    uint32_t column = at->column * VEC_LANES;
    uint32_t n = min_u32(r->g->shape.n - column, at->columns * VEC_LANES);
    VEC(gemm_program)(r->g, r->y, at->row, at->rows, column, n);
}

static void run_block(const Run *r, const Rect *at) {
    const GemmShape *s = &r->g->shape;
    uint32_t         step = r->g->version.depth, last = at->column + at->columns;
    Slab             k = {.at = *at, .first = true};
    do {
        k.depth = min_u32(step, s->k - k.from);
        k.last = k.from + k.depth == s->k;
        load_slab_rows(r, &k);
        run_slab(r, &k);
        k.from += k.depth;
        k.first = false;
    } while (!k.last);
    if (last * VEC_LANES > s->n)
        store_edge(r, at,
                   at->column +
                       (at->columns - 1) / r->g->version.tile_vecs * r->g->version.tile_vecs);
    if (r->g->epilogue.program != NULL) run_program(r, at);
}

// Packs columns of b to panels, unless they are packed already.
static void pack_columns(Run *r, uint32_t column, uint32_t columns) {
    const GemmShape *s = &r->g->shape;
    float           *panels = r->scratch + r->layout.panels;
    uint32_t         n = min_u32(columns * VEC_LANES, s->n - column * VEC_LANES);
    if (s->packed) return;
    r->weights = panels;
    r->base = column;
    if (s->weights != GEMM_F32) {
        VEC(narrow_widen)(s, r->g->b, column, columns, panels);
        return;
    }
    VEC(gemm_panels)
    (n, s->k, r->b + (size_t)column * VEC_LANES * (s->b.transposed ? s->b.row : 1), s->b.row,
     s->b.transposed, s->scale, panels);
}

// Runs a rectangle in cache blocks, in the order that keeps the stationary operand in cache.
static void run_rectangle(Run *r, const Rect *at) {
    const Version *v = &r->g->version;
    bool           columns_first = v->order == ORDER_WEIGHT_STATIONARY || !r->g->shape.packed;
    uint32_t       down = (at->rows + v->rows - 1) / v->rows;
    uint32_t       across = (at->columns + v->columns - 1) / v->columns;
    for (uint32_t i = 0; i < down * across; i++) {
        uint32_t d = columns_first ? i % down : i / across;
        uint32_t c = columns_first ? i / down : i % across;
        uint32_t top = (uint32_t)((uint64_t)at->rows * d / down);
        uint32_t columns = min_u32(v->columns, at->columns - c * v->columns);
        Rect     part = {at->row + top, (uint32_t)((uint64_t)at->rows * (d + 1) / down) - top,
                         at->column + c * v->columns, columns};
        if (!columns_first || d == 0) pack_columns(r, part.column, columns);
        run_block(r, &part);
    }
}

static size_t matrix_start(const GemmShape *s, const GemmOperand *operand, uint32_t index) {
    size_t at = index % s->batch[2] * operand->batch[2];
    index /= s->batch[2];
    return at + index % s->batch[1] * operand->batch[1] + index / s->batch[1] * operand->batch[0];
}

static void open_matrix(Run *r, uint32_t index) {
    const Gemm *g = r->g;
    r->a = g->a + matrix_start(&g->shape, &g->shape.a, index);
    r->b = (const float *)g->b + matrix_start(&g->shape, &g->shape.b, index);
    r->y = matrix_start(&g->shape, &g->shape.y, index);
    r->weights = r->b;
    r->base = 0;
}

// Adjacent cells along the grid's inner axis, as one rectangle.
static Rect join_cells(const GemmShape *s, const GemmGrid *g, uint32_t cell, uint32_t cells) {
    uint32_t r = g->down_first ? cell % g->down : cell / g->across;
    uint32_t c = g->down_first ? cell / g->down : cell % g->across;
    uint32_t rows = (g->down_first ? cells : 1) * g->rows;
    uint32_t columns = (g->down_first ? 1 : cells) * g->columns;
    Rect     at = {.row = r * g->rows, .column = c * g->columns};
    at.rows = min_u32(rows, s->m - at.row);
    at.columns = min_u32(columns, (s->n + VEC_LANES - 1) / VEC_LANES - at.column);
    return at;
}

void VEC(gemm)(const Gemm *g, Part part) {
    if (g->version.pack == GEMM_WIDEN) {
        VEC(narrow_rows)(g, part);
        return;
    }
    const GemmGrid grid = gemm_grid(&g->shape, &g->version, VEC_LANES);
    Run            r = {.g = g,
                        .layout = gemm_scratch_layout(&g->shape, &g->version, VEC_LANES),
                        .scratch = part.scratch};
    uint32_t       each = grid.down * grid.across, t, end;
    uint32_t       inner = grid.down_first ? grid.down : grid.across;
    part_range(part, each * gemm_batch_count(&g->shape), &t, &end);
    while (t < end) {
        uint32_t cell = t % each, cells = min_u32(end - t, inner - cell % inner);
        Rect     at = join_cells(&g->shape, &grid, cell, cells);
        open_matrix(&r, t / each);
        run_rectangle(&r, &at);
        t += cells;
    }
}
