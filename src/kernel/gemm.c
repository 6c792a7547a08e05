#include "kernel/gemm.h"

#include "kernel/blocking.h"
#include "kernel/narrow_weights.h"
#include "kernel/tile.h"

// Rows alias in the cache if their stride is a multiple of this many floats; a copy of them adds
// one cache line per row.
enum { ALIASING_STRIDE = 1024 };

static uint32_t vectors(const GemmShape *s, uint32_t lanes) { return ceil_div(s->n, lanes); }

GemmShape gemm_shape(uint32_t m, uint32_t n, uint32_t k) {
    return (GemmShape){
        .m = m,
        .n = n,
        .k = k,
        .batch = {1, 1, 1},
        .a = {.row = k},
        .y = {.row = n},
        .packed = true,
        .scale = 1,
    };
}

size_t gemm_pack_bytes(uint32_t n, uint32_t k, const Isa *isa) {
    return (size_t)ceil_div(n, isa->lanes) * k * isa->lanes * sizeof(float);
}

void gemm_pack(uint32_t n, uint32_t k, const float *b, size_t row, bool transposed, float scale,
               const Isa *isa, float *out) {
    isa->gemm_panels(n, k, b, row, transposed, scale, out);
}

GemmGrid gemm_grid(const GemmShape *s, const Version *v, uint32_t lanes) {
    uint32_t vecs = vectors(s, lanes);
    GemmGrid g = {.rows = s->m, .columns = vecs, .down_first = v->split == SPLIT_ROWS};
    if (s->m == 0 || s->n == 0) return g;
    if (v->split == SPLIT_COLUMNS) g.columns = v->tile_vecs;
    if (v->split == SPLIT_ROWS) g.rows = v->tile_rows;
    if (v->split == SPLIT_BOTH) {
        g.rows = v->rows;
        g.columns = v->columns;
        g.down_first = v->order == ORDER_WEIGHT_STATIONARY || !s->packed;
    }
    g.down = ceil_div(s->m, g.rows);
    g.across = ceil_div(vecs, g.columns);
    return g;
}

uint32_t gemm_tasks(const GemmShape *s, const Isa *isa, const Version *v) {
    GemmGrid g = gemm_grid(s, v, isa->lanes);
    return g.down * g.across * gemm_batch_count(s);
}

GemmScratch gemm_scratch_layout(const GemmShape *s, const Version *v, uint32_t lanes) {
    GemmScratch r = {0};
    if (v->pack == GEMM_WIDEN) {
        r.copy_row = round_to_lines(narrow_depth(s));
        r.sums = r.copy_row * s->m;
        r.end = r.sums + (size_t)narrow_blocks(s) * s->m;
        return r;
    }
    uint32_t rows = min_u32(v->rows, s->m), columns = min_u32(v->columns, vectors(s, lanes));
    r.copy_row = round_to_lines(min_u32(v->depth, s->k)) + LINE_FLOATS;
    r.edge_row = (size_t)v->tile_vecs * lanes;
    if (v->pack == GEMM_COPY) r.panels = r.copy_row * rows;
    r.edge = r.panels + (s->packed ? 0 : (size_t)columns * s->k * lanes);
    r.end = r.edge + (s->n % lanes != 0 ? r.edge_row * rows : 0);
    return r;
}

size_t gemm_scratch(const GemmShape *s, const Isa *isa, const Version *v) {
    return gemm_scratch_layout(s, v, isa->lanes).end * sizeof(float);
}

typedef struct List {
    const GemmShape  *s;
    const Isa        *isa;
    const CacheSizes *caches;
    Version          *out;
    uint32_t          n, max;
} List;

static void add(List *l, Version v) { version_add(v, l->out, &l->n, l->max); }

// Cycles per depth step of all tiles of at most rows x vecs: two FMAs or two loads per cycle, FMA
// latency four cycles.
static double cycles(const GemmShape *s, uint32_t lanes, uint32_t rows, uint32_t vecs) {
    uint32_t tiles = ceil_div(s->m, rows), panels = ceil_div(vectors(s, lanes), vecs);
    double   sum = 0;
    for (uint32_t i = 0; i < 2; i++) {  // full panels, then the last one
        uint32_t v = i == 0 ? vecs : vectors(s, lanes) - (panels - 1) * vecs;
        double   r = (double)s->m / tiles, products = r * v / 2, reads = (r + v) / 2;
        double   one = products > reads * 1.1 ? products : reads * 1.1;
        sum += (one > 4 ? one : 4) * tiles * (i == 0 ? panels - 1 : 1);
    }
    return sum;
}

// Register tiles, fastest first.
static uint32_t tiles(const List *l, uint8_t rows[], uint8_t vecs[]) {
    static const uint8_t order[TILE_MAX_VECS] = {3, 2, 4, 1};
    double               cost[TILE_MAX_VECS] = {0};
    uint32_t             n = 0, lanes = l->isa->lanes;
    for (uint32_t i = 0; i < TILE_MAX_VECS; i++) {
        uint32_t v = order[i], r = min_u32(tile_most_rows(l->isa->registers, v), l->s->m);
        if (v > vectors(l->s, lanes)) continue;
        double   c = cycles(l->s, lanes, r, v);
        uint32_t at = n++;
        for (; at > 0 && c < cost[at - 1]; at--) {
            cost[at] = cost[at - 1];
            rows[at] = rows[at - 1];
            vecs[at] = vecs[at - 1];
        }
        cost[at] = c;
        rows[at] = (uint8_t)r;
        vecs[at] = (uint8_t)v;
    }
    return n;
}

// Block size at most `fits` that cuts n into equal multiples of unit.
static uint16_t block_of(uint32_t n, size_t fits, uint32_t unit) {
    uint32_t top = UINT16_MAX / unit * unit;
    if (fits > top) fits = top;
    uint32_t blocks = ceil_div(n, max_u32((uint32_t)fits / unit, 1) * unit);
    uint32_t size = ceil_div(ceil_div(n, max_u32(blocks, 1)), unit) * unit;
    return (uint16_t)max_u32(min_u32(size, top), unit);
}

// Floats of L2 for the weights of a block: half of it. Where many row tiles use packed weights, an
// eighth: rows stay in L2 too, and the last tiles prefetch the next block, which must not evict it.
static size_t weight_room(const List *l, const Version *v) {
    bool streams = l->s->packed && v->pack == GEMM_ROWS && l->s->m >= 4U * v->tile_rows;
    return l->caches->l2 / (streams ? 8 : 2) / sizeof(float);
}

// Weights stay in L2 and rows stream; with the full depth in one block, each result is written
// once.
static Version weight_stationary(const List *l, uint32_t rows, uint32_t vecs) {
    const GemmShape *s = l->s;
    uint32_t         lanes = l->isa->lanes;
    size_t           half = l->caches->l2 / 2 / sizeof(float);
    Version v = {.algo = ALGO_GEMM, .order = ORDER_WEIGHT_STATIONARY, .split = SPLIT_COLUMNS};
    v.tile_rows = (uint8_t)rows;
    v.tile_vecs = (uint8_t)vecs;
    v.pack = s->a.transposed ? GEMM_COPY : GEMM_ROWS;
    v.depth = block_of(s->k, s->m <= rows ? SIZE_MAX : l->caches->l2 / 64 / rows, 8);
    size_t room = weight_room(l, &v) / max_u32(v.depth, 1) / lanes;
    v.columns = block_of(vectors(s, lanes), room, vecs);
    size_t fits = v.depth < s->k ? half / 2 / v.columns / lanes : UINT16_MAX;
    if (v.pack == GEMM_COPY && fits > half / 2 / v.depth) fits = half / 2 / v.depth;
    v.rows = block_of(s->m, fits, rows);
    return v;
}

// Rows stay in half of L2 and one weight panel in half of L1; weights stream.
static Version input_stationary(const List *l, uint32_t rows, uint32_t vecs) {
    const GemmShape *s = l->s;
    uint32_t         lanes = l->isa->lanes;
    size_t           half = l->caches->l2 / 2 / sizeof(float);
    Version          v = {.algo = ALGO_GEMM, .order = ORDER_INPUT_STATIONARY, .split = SPLIT_ROWS};
    v.tile_rows = (uint8_t)rows;
    v.tile_vecs = (uint8_t)vecs;
    v.pack = s->a.transposed || s->a.row % ALIASING_STRIDE == 0 ? GEMM_COPY : GEMM_ROWS;
    v.depth = block_of(s->k, l->caches->l1 / 2 / sizeof(float) / vecs / lanes, 8);
    v.rows = block_of(s->m, half / v.depth, rows);
    v.columns = block_of(vectors(s, lanes), half / 2 / v.rows / lanes, vecs);
    return v;
}

// Small blocks in both directions: many tasks with a small cache footprint.
static Version small_blocks(const List *l, uint32_t rows, uint32_t vecs) {
    const GemmShape *s = l->s;
    Version          v = input_stationary(l, rows, vecs);
    v.order = ORDER_WEIGHT_STATIONARY;
    v.split = SPLIT_BOTH;
    v.rows = block_of(s->m, l->caches->l2 / 8 / sizeof(float) / v.depth, rows);
    v.columns = block_of(vectors(s, l->isa->lanes), (size_t)4 * vecs, vecs);
    return v;
}

// Tasks of a few tiles, for many cores: more parallel, more reads of shared operands from L3.
static Version small_tasks(const List *l, uint32_t rows, uint32_t vecs) {
    Version v = small_blocks(l, rows, vecs);
    v.rows = block_of(l->s->m, (size_t)4 * rows, rows);
    v.columns = block_of(vectors(l->s, l->isa->lanes), vecs, vecs);
    v.depth = block_of(l->s->k, SIZE_MAX, 8);
    return v;
}

// Few rows times narrow weights: bound by the bandwidth of the weights, which stay narrow up to the
// registers.
static Version widen_rows(const List *l, uint32_t vecs) {
    return (Version){.algo = ALGO_GEMM,
                     .order = ORDER_WEIGHT_STATIONARY,
                     .split = SPLIT_COLUMNS,
                     .tile_rows = (uint8_t)max_u32(l->s->m, 1),
                     .tile_vecs = (uint8_t)vecs,
                     .pack = GEMM_WIDEN,
                     .rows = (uint16_t)max_u32(l->s->m, 1),
                     .columns = block_of(vectors(l->s, l->isa->lanes), SIZE_MAX, vecs),
                     .depth = block_of(l->s->k, SIZE_MAX, 8)};
}

uint32_t gemm_versions(const GemmShape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                       uint32_t max) {
    List     l = {s, isa, caches, out, 0, max};
    uint8_t  rows[TILE_MAX_VECS] = {1}, vecs[TILE_MAX_VECS] = {1};
    uint32_t n = s->m != 0 && s->n != 0 ? tiles(&l, rows, vecs) : 1;
    if (s->weights != GEMM_F32 && s->m <= GEMM_WIDEN_ROWS)
        add(&l, widen_rows(&l, s->m == 1 ? 4 : 2));
    if (s->m == 1 && s->weights == GEMM_F32) add(&l, weight_stationary(&l, 1, GEMM_ROW_VECS));
    for (uint32_t i = 0; i < n; i++) {
        Version v = weight_stationary(&l, rows[i], vecs[i]);
        add(&l, v);
        v.split = SPLIT_ROWS;
        if (s->m > rows[i]) add(&l, v);
        add(&l, small_blocks(&l, rows[i], vecs[i]));
        if (s->m > rows[i]) add(&l, small_tasks(&l, rows[i], vecs[i]));
        v = input_stationary(&l, rows[i], vecs[i]);
        if (s->m > rows[i]) add(&l, v);
        v.split = SPLIT_COLUMNS;
        add(&l, v);
    }
    return l.n;
}

// Bytes read from beyond L2 for a matrix used `times` times: once if the reused part fits L2.
static size_t read_bytes(size_t bytes, size_t again, uint32_t times, const CacheSizes *caches,
                         size_t *hot) {
    if (times <= 1 || again <= caches->l2 / 2) return bytes;
    *hot += bytes;
    return bytes * times;
}

Traffic gemm_traffic(const GemmShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts) {
    GemmGrid g = gemm_grid(s, v, isa->lanes);
    uint32_t batch = gemm_batch_count(s), sharing = ceil_div(max_u32(parts, 1), max_u32(batch, 1));
    if (g.down * g.across == 0) return (Traffic){0};
    // Parts that share one matrix, along rows and along columns.
    uint32_t pr = v->split == SPLIT_ROWS ? min_u32(sharing, g.down) : 1;
    uint32_t pc = v->split == SPLIT_COLUMNS ? min_u32(sharing, g.across) : 1;
    if (v->split == SPLIT_BOTH) pc = min_u32(sharing, g.down_first ? g.across : g.down);
    if (v->split == SPLIT_BOTH && !g.down_first) pr = pc, pc = 1;
    uint32_t rows = ceil_div(s->m, pr), columns = ceil_div(vectors(s, isa->lanes), pc);
    uint32_t down = ceil_div(rows, v->rows), across = ceil_div(columns, v->columns);
    bool     columns_first = v->order == ORDER_WEIGHT_STATIONARY || !s->packed;
    size_t   row = (size_t)s->k * sizeof(float), column = row * isa->lanes;
    if (s->weights != GEMM_F32) column = narrow_panel_bytes(s, isa->lanes);
    size_t a = rows * row, b = columns * column, hot = 0, moved = 0;
    size_t y = (size_t)rows * columns * isa->lanes * sizeof(float);
    size_t results = (size_t)min_u32(v->rows, rows) * min_u32(v->columns, columns) * isa->lanes;
    moved += read_bytes(a, columns_first ? a : row * v->rows, across, caches, &hot);
    moved += read_bytes(b, columns_first ? column * v->columns : b, down, caches, &hot);
    uint32_t visits = ceil_div(max_u32(s->k, 1), v->depth);
    moved += results * sizeof(float) <= caches->l2 / 2 ? y : y * (2 * visits - 1);
    if (pc > 1) hot += a;
    if (pr > 1) hot += b;
    return (Traffic){hot, moved * pr * pc * batch};
}
