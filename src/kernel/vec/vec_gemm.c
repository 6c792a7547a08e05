#include <math.h>

#include "kernel/gemm.h"
#include "kernel/vec/vec_int.h"
#include "kernel/vec/vec_transpose.h"

#define UNROLL _Pragma("GCC unroll 16")

// to[j][i] = from[i][j] * scale, for as many rows and columns as a vector has lanes.
VEC_INLINE void turn_square(const float *from, size_t from_row, float *to, size_t to_row,
                            Vf scale) {
    Vf x[VEC_LANES];
    UNROLL for (uint32_t i = 0; i < VEC_LANES; i++) x[i] = vf_load(from + i * from_row) * scale;
    vec_transpose(x);
    UNROLL for (uint32_t i = 0; i < VEC_LANES; i++) vf_store(to + i * to_row, x[i]);
}

static void turn_plain(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                       float scale, float *to, size_t to_row) {
    for (uint32_t j = 0; j < columns; j++)
        for (uint32_t i = 0; i < rows; i++) to[j * to_row + i] = from[i * from_row + j] * scale;
}

void VEC(gemm_transpose)(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                         float scale, float *to, size_t to_row) {
    const Vf by = vf_set(scale);
    uint32_t whole_rows = rows / VEC_LANES * VEC_LANES, whole = columns / VEC_LANES * VEC_LANES;
    for (uint32_t i = 0; i < whole_rows; i += VEC_LANES)
        for (uint32_t j = 0; j < whole; j += VEC_LANES)
            turn_square(from + i * from_row + j, from_row, to + j * to_row + i, to_row, by);
    turn_plain(whole_rows, columns - whole, from + whole, from_row, scale, to + whole * to_row,
               to_row);
    turn_plain(rows - whole_rows, columns, from + whole_rows * from_row, from_row, scale,
               to + whole_rows, to_row);
}

void VEC(gemm_copy)(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
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

// Columns beyond n are 0.
static void clear(uint32_t k, uint32_t from, float *panel) {
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = from; j < VEC_LANES; j++) panel[(size_t)i * VEC_LANES + j] = 0;
}

// Four panels at a time, so that whole lines of b are used when they come in.
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
            VEC(gemm_transpose)(some, k, b + at * row, row, scale, to, VEC_LANES);
        else
            VEC(gemm_copy)(k, some, b + at, row, scale, to, VEC_LANES);
        if (some < VEC_LANES) clear(k, some, to);
    }
}

// One row meets up to GEMM_ROW_VECS vectors: as fast as the weights come in, so that nothing else
// counts than many streams that run on, and enough sums to hide the time an addition takes.
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

VEC_INLINE void row(const Tile *t, const uint32_t vecs, const uint32_t steps) {
    const Vf lo = vf_set(t->lo), hi = vf_set(t->hi);
    Vf       sums[GEMM_ROW_VECS];
    add_up(t, vecs, steps, sums);
    for (uint32_t v = 0; v < vecs; v++) {
        float *out = t->out + v * t->vec_stride;
        Vf     x = sums[v];
        if (t->more)
            x += vf_load(out);
        else if (t->bias != NULL)
            x += vf_load(t->bias + (size_t)v * VEC_LANES);
        if (t->last && t->add != NULL) x += vf_load(t->add + v * t->vec_stride);
        if (t->last) x = vf_min(hi, vf_max(lo, x));
        vf_store(out, x);
    }
}

void VEC(gemm_row)(const Tile *t, uint32_t vecs) {
    switch (vecs) {
    case 1: row(t, 1, 8); return;
    case 2: row(t, 2, 4); return;
    case 3: row(t, 3, 2); return;
    case 4: row(t, 4, 2); return;
    case 5: row(t, 5, 1); return;
    case 6: row(t, 6, 1); return;
    case 7: row(t, 7, 1); return;
    default: row(t, 8, 1); return;
    }
}

// Columns count in vectors here, rows in rows; both from the matrix's own beginning.
typedef struct Rect {
    uint32_t row, rows, column, columns;
} Rect;

// One part at work on one place of the stack.
typedef struct Run {
    const Gemm  *g;
    GemmRoom     room;
    float       *scratch;
    const float *a, *b;
    size_t       y;        // where y's matrix begins
    const float *weights;  // panels, the first one of vector `base`
    uint32_t     base;
} Run;

// What the calls over one block of depth have in common.
typedef struct Slab {
    Rect         at;
    uint32_t     from, depth;  // of k
    const float *rows;         // number `from` of row at.row
    size_t       stride;
    bool         first, last;
} Slab;

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// y has no room for the columns that fill up the last vector.
static bool at_edge(const GemmShape *s, uint32_t column, uint32_t vecs) {
    return (column + vecs) * VEC_LANES > s->n;
}

// Sums of the last panel, from a buffer to y.
static void leave_edge(const Run *r, const Rect *at, uint32_t column) {
    const Gemm     *g = r->g;
    const Epilogue *f = &g->epilogue;
    const Vf        lo = vf_set(f->lo), hi = vf_set(f->hi);
    const float    *edge = r->scratch + r->room.edge;
    for (uint32_t i = 0; i < at->rows; i++)
        for (uint32_t j = column * VEC_LANES; j < g->shape.n; j += VEC_LANES) {
            uint32_t some = least(VEC_LANES, g->shape.n - j);
            size_t   to = r->y + (at->row + i) * g->shape.y.row + j;
            Vf       x = vf_load(edge + i * r->room.edge_row + j - (size_t)column * VEC_LANES);
            if (f->add != NULL) x += vf_load_some(f->add + to, some);
            vf_store_some(g->y + to, vf_min(hi, vf_max(lo, x)), some);
        }
}

// What the tiles of a slab have in common, and the rows of one of them.
typedef struct Aim {
    Tile         tile;
    const float *rows[TILE_MAX_ROWS];
    size_t       panel;         // numbers from a vector's weights to the next one's
    uint32_t     first, count;  // rows, from the block's beginning
    bool         row_only, epilogue;
} Aim;

static Aim aim(const Run *r, const Slab *s) {
    const Epilogue *f = &r->g->epilogue;
    bool            clips = f->lo != -INFINITY || f->hi != INFINITY;
    Aim             a = {.panel = (size_t)r->g->shape.k * VEC_LANES};
    a.row_only = r->g->version.tile_vecs > TILE_MAX_VECS;
    a.epilogue = s->last && (clips || f->add != NULL);
    a.tile.n_terms = 1;
    a.tile.depth = s->depth;
    a.tile.weight_stride = a.panel;
    a.tile.vec_stride = VEC_LANES;
    a.tile.lo = f->lo;
    a.tile.hi = f->hi;
    a.tile.more = !s->first;
    return a;
}

static void aim_rows(const Slab *s, uint32_t first, uint32_t count, Aim *a) {
    a->first = first;
    a->count = count;
    for (uint32_t i = 0; i < count; i++) a->rows[i] = s->rows + (first + i) * s->stride;
}

// The rows meet the vectors of one panel.
static void meet(const Run *r, const Slab *s, uint32_t column, uint32_t vecs, Aim *a) {
    const Gemm     *g = r->g;
    const Epilogue *f = &g->epilogue;
    size_t to = r->y + (s->at.row + a->first) * g->shape.y.row + (size_t)column * VEC_LANES;
    bool   edge = at_edge(&g->shape, column, vecs);
    Tile  *t = &a->tile;
    t->rows = a->rows;
    t->weights = r->weights + (column - r->base) * a->panel + (size_t)s->from * VEC_LANES;
    t->bias = s->first && f->bias != NULL ? f->bias + (size_t)column * VEC_LANES : NULL;
    t->out = edge ? r->scratch + r->room.edge + a->first * r->room.edge_row : g->y + to;
    t->row_stride = edge ? r->room.edge_row : g->shape.y.row;
    t->add = f->add != NULL && !edge ? f->add + to : NULL;
    t->last = a->epilogue && !edge;
    if (a->row_only)
        VEC(gemm_row)(t, vecs);
    else
        VEC(tile_find)(a->count, vecs)(t);
}

// While the last two tiles of rows run, half each of the weights of the next block are fetched:
// they come from memory, and the first tile would have to wait for them.
static size_t ahead(const Run *r, const Slab *s, uint32_t tiles_left) {
    const GemmShape *shape = &r->g->shape;
    if (!shape->packed || tiles_left > 2 || s->depth != shape->k) return 0;
    size_t next = (size_t)s->at.columns * shape->k * VEC_LANES;
    return tiles_left == 2 ? next : next + (size_t)shape->k * VEC_LANES / 2;
}

static void slab(const Run *r, const Slab *s) {
    const Version *v = &r->g->version;
    uint32_t       tiles = (s->at.rows + v->tile_rows - 1) / v->tile_rows;
    uint32_t       end = s->at.column + s->at.columns, step = v->tile_vecs;
    uint32_t       each = s->at.rows / tiles, more = s->at.rows % tiles, row = 0;
    Aim            a = aim(r, s);
    if (v->order == ORDER_WEIGHT_STATIONARY) {
        for (uint32_t t = 0; t < tiles; t++, row += a.count) {
            aim_rows(s, row, each + (t < more), &a);
            a.tile.ahead = ahead(r, s, tiles - t);
            for (uint32_t c = s->at.column; c < end; c += step)
                meet(r, s, c, least(step, end - c), &a);
        }
        return;
    }
    for (uint32_t c = s->at.column; c < end; c += step, row = 0)
        for (uint32_t t = 0; t < tiles; t++, row += a.count) {
            aim_rows(s, row, each + (t < more), &a);
            meet(r, s, c, least(step, end - c), &a);
        }
}

// The rows of a slab: where they lie, or a copy of them.
static void slab_rows(const Run *r, Slab *s) {
    const GemmOperand *a = &r->g->shape.a;
    float             *copy = r->scratch + r->room.copy;
    if (r->g->version.pack == GEMM_ROWS) {
        s->rows = r->a + s->at.row * a->row + s->from;
        s->stride = a->row;
        return;
    }
    s->rows = copy;
    s->stride = r->room.copy_row;
    if (a->transposed) VEC(gemm_transpose)
    (s->depth, s->at.rows, r->a + s->from * a->row + s->at.row, a->row, 1, copy, r->room.copy_row);
    else VEC(gemm_copy)(s->at.rows, s->depth, r->a + s->at.row * a->row + s->from, a->row, 1, copy,
                        r->room.copy_row);
}

static void chain(const Run *r, const Rect *at) {
    const Gemm      *g = r->g;
    const Epilogue  *f = &g->epilogue;
    ElementwiseInput in[EWISE_MAX_ARGS];
    uint32_t         column = at->column * VEC_LANES;
    uint32_t         n = least(g->shape.n - column, at->columns * VEC_LANES);
    for (uint32_t i = 0; i < at->rows; i++) {
        size_t to = r->y + (at->row + i) * g->shape.y.row + column;
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

static void block(const Run *r, const Rect *at) {
    const GemmShape *s = &r->g->shape;
    uint32_t         step = r->g->version.depth, last = at->column + at->columns;
    Slab             k = {.at = *at, .first = true};
    do {
        k.depth = least(step, s->k - k.from);
        k.last = k.from + k.depth == s->k;
        slab_rows(r, &k);
        slab(r, &k);
        k.from += k.depth;
        k.first = false;
    } while (!k.last);
    if (last * VEC_LANES > s->n)
        leave_edge(r, at,
                   at->column +
                       (at->columns - 1) / r->g->version.tile_vecs * r->g->version.tile_vecs);
    if (r->g->epilogue.program != NULL) chain(r, at);
}

// b's columns as panels.
static void open_columns(Run *r, uint32_t column, uint32_t columns) {
    const GemmShape *s = &r->g->shape;
    float           *panels = r->scratch + r->room.panels;
    uint32_t         n = least(columns * VEC_LANES, s->n - column * VEC_LANES);
    if (s->packed) return;
    VEC(gemm_panels)
    (n, s->k, r->b + (size_t)column * VEC_LANES * (s->b.transposed ? s->b.row : 1), s->b.row,
     s->b.transposed, s->scale, panels);
    r->weights = panels;
    r->base = column;
}

// Blocks of what a part has of one matrix. Whatever comes first in the order stays close.
static void rectangle(Run *r, const Rect *at) {
    const Version *v = &r->g->version;
    bool           columns_first = v->order == ORDER_WEIGHT_STATIONARY || !r->g->shape.packed;
    uint32_t       down = (at->rows + v->rows - 1) / v->rows;
    uint32_t       across = (at->columns + v->columns - 1) / v->columns;
    for (uint32_t i = 0; i < down * across; i++) {
        uint32_t d = columns_first ? i % down : i / across;
        uint32_t c = columns_first ? i / down : i % across;
        uint32_t top = (uint32_t)((uint64_t)at->rows * d / down);
        uint32_t columns = least(v->columns, at->columns - c * v->columns);
        Rect     part = {at->row + top, (uint32_t)((uint64_t)at->rows * (d + 1) / down) - top,
                         at->column + c * v->columns, columns};
        if (!columns_first || d == 0) open_columns(r, part.column, columns);
        block(r, &part);
    }
}

static size_t begins(const GemmShape *s, const GemmOperand *side, uint32_t place) {
    size_t at = place % s->batch[2] * side->batch[2];
    place /= s->batch[2];
    return at + place % s->batch[1] * side->batch[1] + place / s->batch[1] * side->batch[0];
}

static void open_place(Run *r, uint32_t place) {
    const Gemm *g = r->g;
    r->a = g->a + begins(&g->shape, &g->shape.a, place);
    r->b = g->b + begins(&g->shape, &g->shape.b, place);
    r->y = begins(&g->shape, &g->shape.y, place);
    r->weights = r->b;
    r->base = 0;
}

// A run of cells along the grid's inner axis, as one rectangle.
static Rect join(const GemmShape *s, const GemmGrid *g, uint32_t cell, uint32_t cells) {
    uint32_t r = g->down_first ? cell % g->down : cell / g->across;
    uint32_t c = g->down_first ? cell / g->down : cell % g->across;
    uint32_t rows = (g->down_first ? cells : 1) * g->rows;
    uint32_t columns = (g->down_first ? 1 : cells) * g->columns;
    Rect     at = {.row = r * g->rows, .column = c * g->columns};
    at.rows = least(rows, s->m - at.row);
    at.columns = least(columns, (s->n + VEC_LANES - 1) / VEC_LANES - at.column);
    return at;
}

void VEC(gemm)(const Gemm *g, Part part) {
    const GemmGrid grid = gemm_grid(&g->shape, &g->version, VEC_LANES);
    Run r = {.g = g, .room = gemm_room(&g->shape, &g->version, VEC_LANES), .scratch = part.scratch};
    uint32_t each = grid.down * grid.across, t, end;
    uint32_t inner = grid.down_first ? grid.down : grid.across;
    part_range(part, each * gemm_batch_count(&g->shape), &t, &end);
    while (t < end) {
        uint32_t cell = t % each, cells = least(end - t, inner - cell % inner);
        Rect     at = join(&g->shape, &grid, cell, cells);
        open_place(&r, t / each);
        rectangle(&r, &at);
        t += cells;
    }
}
