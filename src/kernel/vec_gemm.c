#include <math.h>

#include "kernel/gemm.h"
#include "kernel/vec_chain.h"
#include "kernel/vec_gemm.h"
#include "kernel/vec_tile.h"

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
    const Gemm   *g = r->g;
    const Finish *f = &g->finish;
    const Vf      lo = vf_set(f->lo), hi = vf_set(f->hi);
    const float  *edge = r->scratch + r->room.edge;
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
    bool         row_only, finish;
} Aim;

static Aim aim(const Run *r, const Slab *s) {
    const Finish *f = &r->g->finish;
    bool          clips = f->lo != -INFINITY || f->hi != INFINITY;
    Aim           a = {.panel = (size_t)r->g->shape.k * VEC_LANES};
    a.row_only = r->g->version.tile_vecs > TILE_MAX_VECS;
    a.finish = s->last && (clips || f->add != NULL);
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
    const Gemm   *g = r->g;
    const Finish *f = &g->finish;
    size_t        to = r->y + (s->at.row + a->first) * g->shape.y.row + (size_t)column * VEC_LANES;
    bool          edge = at_edge(&g->shape, column, vecs);
    Tile         *t = &a->tile;
    t->rows = a->rows;
    t->weights = r->weights + (column - r->base) * a->panel + (size_t)s->from * VEC_LANES;
    t->bias = s->first && f->bias != NULL ? f->bias + (size_t)column * VEC_LANES : NULL;
    t->out = edge ? r->scratch + r->room.edge + a->first * r->room.edge_row : g->y + to;
    t->row_stride = edge ? r->room.edge_row : g->shape.y.row;
    t->add = f->add != NULL && !edge ? f->add + to : NULL;
    t->last = a->finish && !edge;
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
    if (v->order == ORDER_WEIGHTS) {
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
    const GemmSide *a = &r->g->shape.a;
    float          *copy = r->scratch + r->room.copy;
    if (r->g->version.pack == GEMM_ROWS) {
        s->rows = r->a + s->at.row * a->row + s->from;
        s->stride = a->row;
        return;
    }
    s->rows = copy;
    s->stride = r->room.copy_row;
    if (a->turned) VEC(gemm_turn)
    (s->depth, s->at.rows, r->a + s->from * a->row + s->at.row, a->row, 1, copy, r->room.copy_row);
    else VEC(gemm_copy)(s->at.rows, s->depth, r->a + s->at.row * a->row + s->from, a->row, 1, copy,
                        r->room.copy_row);
}

static void chain(const Run *r, const Rect *at) {
    const Gemm   *g = r->g;
    const Finish *f = &g->finish;
    ChainInput    in[CHAIN_MAX_ARGS];
    uint32_t      column = at->column * VEC_LANES;
    uint32_t      n = least(g->shape.n - column, at->columns * VEC_LANES);
    for (uint32_t i = 0; i < at->rows; i++) {
        size_t to = r->y + (at->row + i) * g->shape.y.row + column;
        in[0] = (ChainInput){g->y + to, CHAIN_EACH};
        for (uint32_t j = 1; j < f->chain->n_args; j++) {
            in[j] = f->args[j];
            if (in[j].mode != CHAIN_ONE) in[j].at += in[j].mode == CHAIN_EACH ? to : column;
            if (in[j].mode == CHAIN_LANES) in[j].mode = CHAIN_EACH;
        }
        VEC(chain_span)(f->chain, in, g->y + to, n);
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
    if (r->g->finish.chain != NULL) chain(r, at);
}

// b's columns as panels.
static void open_columns(Run *r, uint32_t column, uint32_t columns) {
    const GemmShape *s = &r->g->shape;
    float           *panels = r->scratch + r->room.panels;
    uint32_t         n = least(columns * VEC_LANES, s->n - column * VEC_LANES);
    if (s->packed) return;
    VEC(gemm_panels)
    (n, s->k, r->b + (size_t)column * VEC_LANES * (s->b.turned ? s->b.row : 1), s->b.row,
     s->b.turned, s->scale, panels);
    r->weights = panels;
    r->base = column;
}

// Blocks of what a part has of one matrix. Whatever comes first in the order stays close.
static void rectangle(Run *r, const Rect *at) {
    const Version *v = &r->g->version;
    bool           columns_first = v->order == ORDER_WEIGHTS || !r->g->shape.packed;
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

static size_t begins(const GemmShape *s, const GemmSide *side, uint32_t place) {
    size_t at = place % s->stack[2] * side->stack[2];
    place /= s->stack[2];
    return at + place % s->stack[1] * side->stack[1] + place / s->stack[1] * side->stack[0];
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
    part_range(part, each * gemm_places(&g->shape), &t, &end);
    while (t < end) {
        uint32_t cell = t % each, cells = least(end - t, inner - cell % inner);
        Rect     at = join(&g->shape, &grid, cell, cells);
        open_place(&r, t / each);
        rectangle(&r, &at);
        t += cells;
    }
}
