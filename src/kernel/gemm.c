#include "kernel/gemm.h"

#include "kernel/tile.h"

// Rows of a copy lie this far from full lines, so that they do not meet in the same cache sets.
enum { LINE = 16, BAD_STRIDE = 1024 };

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint32_t ceil_div(uint32_t a, uint32_t b) { return (uint32_t)(((uint64_t)a + b - 1) / b); }

static size_t to_lines(size_t numbers) { return (numbers + LINE - 1) / LINE * LINE; }

static uint32_t vectors(const GemmShape *s, uint32_t lanes) { return ceil_div(s->n, lanes); }

GemmShape gemm_shape(uint32_t m, uint32_t n, uint32_t k) {
    return (GemmShape){
        .m = m,
        .n = n,
        .k = k,
        .stack = {1, 1, 1},
        .a = {.row = k},
        .y = {.row = n},
        .packed = true,
        .scale = 1,
    };
}

size_t gemm_pack_bytes(uint32_t n, uint32_t k, const Isa *isa) {
    return (size_t)ceil_div(n, isa->lanes) * k * isa->lanes * sizeof(float);
}

void gemm_pack(uint32_t n, uint32_t k, const float *b, size_t row, bool turned, float scale,
               const Isa *isa, float *out) {
    isa->gemm_panels(n, k, b, row, turned, scale, out);
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
        g.down_first = v->order == ORDER_WEIGHTS || !s->packed;
    }
    g.down = ceil_div(s->m, g.rows);
    g.across = ceil_div(vecs, g.columns);
    return g;
}

uint32_t gemm_tasks(const GemmShape *s, const Isa *isa, const Version *v) {
    GemmGrid g = gemm_grid(s, v, isa->lanes);
    return g.down * g.across * gemm_places(s);
}

GemmRoom gemm_room(const GemmShape *s, const Version *v, uint32_t lanes) {
    GemmRoom r = {0};
    uint32_t rows = least(v->rows, s->m), columns = least(v->columns, vectors(s, lanes));
    r.copy_row = to_lines(least(v->depth, s->k)) + LINE;
    r.edge_row = (size_t)v->tile_vecs * lanes;
    if (v->pack == GEMM_COPY) r.panels = r.copy_row * rows;
    r.edge = r.panels + (s->packed ? 0 : (size_t)columns * s->k * lanes);
    r.end = r.edge + (s->n % lanes != 0 ? r.edge_row * rows : 0);
    return r;
}

size_t gemm_scratch(const GemmShape *s, const Isa *isa, const Version *v) {
    return gemm_room(s, v, isa->lanes).end * sizeof(float);
}

// A product that must copy its rows, or does better to.
static bool copies(const GemmShape *s) {
    return s->a.turned || (s->a.row % BAD_STRIDE == 0 && s->m > 4);
}

// Depth that lets a panel and a tile of rows share L1, in equal blocks.
static uint32_t depth_of(const GemmShape *s, uint32_t lanes, const CacheSizes *caches,
                         uint32_t rows, uint32_t vecs) {
    size_t   fits = caches->l1 * 3 / 4 / ((rows + vecs * lanes) * sizeof(float));
    uint32_t blocks = ceil_div(s->k, (uint32_t)most((uint32_t)fits, 64));
    uint32_t depth = ceil_div(s->k, most(blocks, 1));
    return least(most(ceil_div(depth, 8) * 8, 8), UINT16_MAX / 8 * 8);
}

// Rows whose block of depth takes half of L2.
static uint32_t rows_of(const GemmShape *s, const CacheSizes *caches, uint32_t depth,
                        uint32_t tile) {
    uint32_t fits = (uint32_t)(caches->l2 / 2 / (depth * sizeof(float)));
    uint32_t blocks = ceil_div(s->m, most(fits, tile));
    uint32_t rows = ceil_div(s->m, most(blocks, 1));
    return least(ceil_div(most(rows, 1), tile) * tile, UINT16_MAX / tile * tile);
}

// Columns whose results, for that many rows, take a quarter of L2.
static uint32_t columns_of(const GemmShape *s, uint32_t lanes, const CacheSizes *caches,
                           uint32_t rows, uint32_t tile) {
    size_t   fits = caches->l2 / 4 / (rows * lanes * sizeof(float));
    uint32_t all = vectors(s, lanes);
    if (!s->packed) {
        size_t panel = (size_t)most(s->k, 1) * lanes * sizeof(float);
        if (fits > caches->l2 / 4 / panel) fits = caches->l2 / 4 / panel;
    }
    uint32_t columns = least((uint32_t)(fits > UINT16_MAX ? UINT16_MAX : fits), all);
    return most(columns / tile, 1) * tile;
}

typedef struct List {
    const GemmShape  *s;
    const Isa        *isa;
    const CacheSizes *caches;
    Version          *out;
    uint32_t          n, max;
} List;

static void add(List *l, Version v) {
    if (l->n < l->max) l->out[l->n++] = v;
}

static Version base_version(const List *l, uint32_t vecs) {
    const GemmShape *s = l->s;
    uint32_t         lanes = l->isa->lanes;
    vecs = least(vecs, most(vectors(s, lanes), 1));
    uint32_t rows = least(tile_most_rows(l->isa->registers, vecs), most(s->m, 1));
    Version  v = {
         .algo = ALGO_GEMM,
         .order = ORDER_WEIGHTS,
         .split = SPLIT_COLUMNS,
         .tile_rows = (uint8_t)rows,
         .tile_vecs = (uint8_t)vecs,
         .pack = copies(s) ? GEMM_COPY : GEMM_ROWS,
         .depth = (uint16_t)depth_of(s, lanes, l->caches, rows, vecs),
    };
    v.rows = (uint16_t)rows_of(s, l->caches, v.depth, rows);
    v.columns = (uint16_t)columns_of(s, lanes, l->caches, v.rows, vecs);
    return v;
}

static void add_variants(List *l, Version v) {
    Version w = v;
    add(l, v);
    w.split = SPLIT_ROWS;
    add(l, w);
    w = v;
    w.order = ORDER_INPUT;
    add(l, w);
    w.split = SPLIT_ROWS;
    add(l, w);
    w = v;
    w.split = SPLIT_BOTH;
    w.columns = (uint16_t)(most(v.columns / v.tile_vecs / 4u, 1) * v.tile_vecs);
    w.rows = (uint16_t)(ceil_div(ceil_div(v.rows, 4), v.tile_rows) * v.tile_rows);
    add(l, w);
}

uint32_t gemm_versions(const GemmShape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                       uint32_t max) {
    static const uint8_t vecs[] = {3, 2, 4, 1};
    List                 l = {s, isa, caches, out, 0, max};
    for (size_t i = 0; i < sizeof vecs; i++) add_variants(&l, base_version(&l, vecs[i]));
    return l.n;
}

// A matrix that is read `times` over: once from beyond L2 when it fits there, else each time.
static size_t read_bytes(size_t bytes, size_t again, uint32_t times, const CacheSizes *caches,
                         size_t *hot) {
    if (times <= 1 || again <= caches->l2 / 2) return bytes;
    *hot += bytes;
    return bytes * times;
}

Traffic gemm_traffic(const GemmShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts) {
    GemmGrid g = gemm_grid(s, v, isa->lanes);
    uint32_t places = gemm_places(s), sharing = ceil_div(most(parts, 1), most(places, 1));
    if (g.down * g.across == 0) return (Traffic){0};
    // Parts that share a place, along rows and along columns.
    uint32_t pr = v->split == SPLIT_ROWS ? least(sharing, g.down) : 1;
    uint32_t pc = v->split == SPLIT_COLUMNS ? least(sharing, g.across) : 1;
    if (v->split == SPLIT_BOTH) pc = least(sharing, g.down_first ? g.across : g.down);
    if (v->split == SPLIT_BOTH && !g.down_first) pr = pc, pc = 1;
    uint32_t rows = ceil_div(s->m, pr), columns = ceil_div(vectors(s, isa->lanes), pc);
    uint32_t down = ceil_div(rows, v->rows), across = ceil_div(columns, v->columns);
    bool     columns_first = v->order == ORDER_WEIGHTS || !s->packed;
    size_t   row = (size_t)s->k * sizeof(float), column = row * isa->lanes;
    size_t   a = rows * row, b = columns * column, hot = 0, moved = 0;
    size_t   y = (size_t)rows * columns * isa->lanes * sizeof(float);
    size_t   results = (size_t)least(v->rows, rows) * least(v->columns, columns) * isa->lanes;
    moved += read_bytes(a, columns_first ? a : row * v->rows, across, caches, &hot);
    moved += read_bytes(b, columns_first ? column * v->columns : b, down, caches, &hot);
    uint32_t visits = ceil_div(most(s->k, 1), v->depth);
    moved += results * sizeof(float) <= caches->l2 / 2 ? y : y * (2 * visits - 1);
    if (pc > 1) hot += a;
    if (pr > 1) hot += b;
    return (Traffic){hot, moved * pr * pc * places};
}
