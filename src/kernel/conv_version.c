#include <string.h>

#include "kernel/conv_plan.h"
#include "kernel/tile.h"

// A tile of 12 or more sums keeps two multipliers busy; fewer leave gaps. Costs are in quarters of
// a product of two vectors, as measured on tiles that find all they need in the nearest cache.
enum { TILE_GAP = 2, TILE_FULL = 12, TILE_LEAST = 32, TILE_START = 200 };

// Half of L2 is for what stays: the other half for what passes.
enum { MOST_TASKS = 4096, LEAST_PIXELS = 24, LINE_BYTES = 64 };

typedef struct Room {
    const ConvShape *s;
    uint32_t         lanes, registers;
    uint8_t          pack;
    CacheSizes       caches;
} Room;

static uint32_t up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint16_t narrow(size_t x) { return (uint16_t)(x < UINT16_MAX ? x : UINT16_MAX); }

// Time of one number of depth in a tile.
static uint32_t tile_cost(uint32_t rows, uint32_t vecs) {
    uint32_t products = 4 * rows * vecs, loads = 4 * (rows + vecs);
    uint32_t cost = most(most(products, loads), TILE_LEAST);
    return cost + (rows * vecs < TILE_FULL ? TILE_GAP : 0);
}

// Time of all pixels in tiles of at most so many rows, cut near-equally, for some vectors.
static uint64_t pixels_cost(uint32_t pixels, uint32_t rows, uint32_t vecs, uint32_t depth) {
    uint32_t tiles = up(pixels, rows), longer = pixels % tiles, each = pixels / tiles;
    uint64_t cost = (uint64_t)(tiles - longer) * tile_cost(each, vecs);
    if (longer > 0) cost += (uint64_t)longer * tile_cost(each + 1, vecs);
    return cost * depth + (uint64_t)tiles * TILE_START;
}

static uint64_t tiling_cost(const Room *r, const ConvPlan *p, uint32_t vecs) {
    uint32_t groups = up(p->vecs, vecs), longer = p->vecs % groups, each = p->vecs / groups;
    uint32_t depth = (uint32_t)(p->panel / p->lanes);
    uint64_t cost =
        (groups - longer) * pixels_cost(p->pixels, tile_most_rows(r->registers, each), each, depth);
    if (longer == 0) return cost;
    return cost +
           longer * pixels_cost(p->pixels, tile_most_rows(r->registers, each + 1), each + 1, depth);
}

// The numbers of vectors of a tile, best first.
static void rank_tiles(const Room *r, const ConvPlan *p, uint8_t *vecs) {
    uint64_t cost[TILE_MAX_VECS] = {0};
    for (uint32_t i = 0; i < TILE_MAX_VECS; i++) {
        uint64_t c = tiling_cost(r, p, i + 1U);
        uint32_t at = i;
        for (; at > 0 && cost[at - 1] > c; at--) {
            cost[at] = cost[at - 1];
            vecs[at] = vecs[at - 1];
        }
        cost[at] = c;
        vecs[at] = (uint8_t)(i + 1);
    }
}

// Rows (or pixels) of a block whose input takes so many bytes.
static uint32_t rows_of(const Room *r, const ConvPlan *p, size_t bytes) {
    const ConvShape *s = r->s;
    size_t           column = (size_t)p->ic * sizeof(float);
    if (!p->staged) {
        // A stride leaves pixels out, but not from the lines they share.
        size_t shared = LINE_BYTES / (p->block * sizeof(float));
        column *= shared > s->sw ? s->sw : shared > 0 ? shared : 1;
        return (uint32_t)(bytes / column);
    }
    size_t row = column * p->width, halo = (size_t)(s->kh - 1) * s->dh;
    size_t rows = bytes / row;
    return rows > halo ? (uint32_t)((rows - halo) / p->step_y) : 0;
}

static uint16_t rows_within(const Room *r, const ConvPlan *p, size_t bytes) {
    uint32_t units = p->pixels / p->unit;
    uint32_t few = up(least(LEAST_PIXELS, p->pixels), p->unit);
    uint32_t rows = least(most(rows_of(r, p, bytes), few), units);
    return rows == units ? 0 : narrow(rows);
}

// Channels whose weights for the columns of a tile take so many bytes.
static uint16_t depth_within(const ConvPlan *p, uint32_t vecs, size_t bytes) {
    size_t each = p->panel / p->ic * vecs * sizeof(float);
    size_t blocks = bytes / (each * p->block);
    if (blocks >= p->blocks || p->block == 1) return 0;
    return narrow((blocks > 0 ? blocks : 1) * p->block);
}

static void add(const Room *r, Version v, Version *out, uint32_t *n, uint32_t max) {
    ConvPlan p = conv_plan(r->s, &v, r->lanes, r->registers);
    if (*n == max || p.tasks > MOST_TASKS) return;
    v.tile_rows = (uint8_t)p.tile_rows;
    v.tile_vecs = (uint8_t)p.tile_vecs;
    if (p.n_depths == 1) v.depth = 0;
    if (p.row_blocks == 1) v.rows = 0;
    if (p.col_groups == 1) v.columns = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (memcmp(&out[i], &v, sizeof v) == 0) return;
    out[(*n)++] = v;
}

// Ways through cache: how large a block of rows is, how many vectors a task has, who is cut first.
static void add_blocks(const Room *r, const ConvPlan *p, Version v, Version *out, uint32_t *n,
                       uint32_t max) {
    size_t   l2 = r->caches.l2;
    uint16_t near = rows_within(r, p, l2 / 2), small = rows_within(r, p, l2 / 8);
    uint16_t tiny = rows_within(r, p, r->caches.l1 / 2);
    uint16_t tile = v.tile_vecs, quarter = narrow(up(p->vecs, 4));
    const struct {
        uint16_t rows, columns;
        uint8_t  split;
    } ways[] = {{near, tile, SPLIT_ROWS},     {0, quarter, SPLIT_COLUMNS}, {small, 0, SPLIT_ROWS},
                {small, quarter, SPLIT_BOTH}, {near, 0, SPLIT_ROWS},       {tiny, tile, SPLIT_BOTH},
                {small, tile, SPLIT_ROWS},    {0, tile, SPLIT_COLUMNS}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        v.rows = ways[i].rows;
        v.columns = ways[i].columns;
        v.split = ways[i].split;
        add(r, v, out, n, max);
    }
}

uint32_t conv_versions(const ConvShape *s, const Isa *isa, bool plain, const CacheSizes *caches,
                       Version *out, uint32_t max) {
    Room     r = {s, isa->lanes, isa->registers, plain ? CONV_PLAIN : 0, *caches};
    Version  v = {.algo = ALGO_DIRECT, .pack = r.pack};
    ConvPlan p = conv_plan(s, &v, r.lanes, r.registers);
    uint8_t  vecs[TILE_MAX_VECS];
    uint32_t n = 0;
    rank_tiles(&r, &p, vecs);
    for (uint32_t t = 0; t < 2; t++) {
        v.tile_vecs = vecs[t];
        v.tile_rows = (uint8_t)tile_most_rows(r.registers, vecs[t]);
        const uint16_t near = depth_within(&p, vecs[t], caches->l1 / 2);
        const struct {
            uint8_t  order, staged;
            uint16_t depth;
        } ways[] = {{ORDER_WEIGHTS, 0, 0},
                    {ORDER_WEIGHTS, 0, near},
                    {ORDER_INPUT, 0, 0},
                    {ORDER_INPUT, 0, depth_within(&p, vecs[t], caches->l2 / 4)},
                    {ORDER_WEIGHTS, CONV_STAGED, near}};
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            v.order = ways[i].order;
            v.depth = ways[i].depth;
            v.pack = r.pack | (p.staged ? 0 : ways[i].staged);
            ConvPlan q = conv_plan(s, &v, r.lanes, r.registers);
            add_blocks(&r, &q, v, out, &n, max);
        }
    }
    return n;
}
