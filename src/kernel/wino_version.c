// The versions of a Winograd convolution: which there are, in the order of what a model of their
// time says, and what each asks of shared caches.
#include <string.h>

#include "kernel/tile.h"
#include "kernel/wino.h"
#include "kernel/wino_plan.h"

enum { MOST_VERSIONS = 512 };

typedef struct Guess {
    Version version;
    double  cycles;
} Guess;

typedef struct Guesses {
    const ConvShape  *s;
    const Isa        *isa;
    const CacheSizes *caches;
    uint32_t          n;
    Guess             at[MOST_VERSIONS];
} Guesses;

static double transform_cycles(const WinoPlan *p, double per_tile) {
    return per_tile * (p->m == 4 ? 1 : 0.4) * p->tiles;
}

// Cycles of all register tiles of a block of tiles and a strip of columns, at one point.
static double product_cycles(const Version *v, uint32_t tiles, uint32_t vecs, uint32_t ic) {
    enum { CALL = 20, CHAIN = 4, PORTS = 2 };
    double   sum = 0;
    uint32_t wide = wino_groups(vecs, v->tile_vecs), high = wino_groups(tiles, v->tile_rows);
    for (uint32_t c = 0; c < wide; c++) {
        uint32_t vec, vec_end;
        part_range((Part){c, wide, NULL}, vecs, &vec, &vec_end);
        for (uint32_t r = 0; r < high; r++) {
            uint32_t row, row_end;
            part_range((Part){r, high, NULL}, tiles, &row, &row_end);
            double rows = row_end - row, columns = vec_end - vec, most = CHAIN;
            if (rows * columns / PORTS > most) most = rows * columns / PORTS;
            if ((rows + columns) / PORTS > most) most = (rows + columns) / PORTS;
            sum += most * ic + CALL;
        }
    }
    return sum;
}

static size_t weight_bytes(const Guesses *g, const WinoPlan *p) {
    return (size_t)p->vecs * g->isa->lanes * p->points * g->s->ic * sizeof(float);
}

// How often one part reads the weights, and transforms the inputs, from further than its L2.
typedef struct Passes {
    uint32_t weights, inputs;
} Passes;

static Passes passes(const WinoPlan *p, const Version *v, size_t weights, size_t l2) {
    size_t block = (p->inputs + p->products) * sizeof(float);
    Passes n = {1, 1};
    if (v->order == ORDER_INPUT && weights + block > l2) n.weights = p->blocks;
    if (v->order == ORDER_WEIGHTS && weights / p->strips + block > l2) n.weights = p->blocks;
    if (v->order == ORDER_WEIGHTS && p->blocks > 1) n.inputs = p->strips;
    return n;
}

static double guess_cycles(const Guesses *g, const Version *v) {
    enum { LINE_CYCLES = 10, LINE = 64 };
    WinoPlan p = wino_plan(g->s, g->isa->lanes, v);
    size_t   weights = weight_bytes(g, &p);
    Passes   n = passes(&p, v, weights, g->caches->l2);
    double   products =
        product_cycles(v, p.most, p.widest, g->s->ic) * p.points * p.strips * p.tiles / p.most;
    double in = transform_cycles(&p, 90.0 * p.channels) * n.inputs;
    double out = transform_cycles(&p, 70.0 * p.vecs);
    double memory = (double)weights * n.weights / LINE * LINE_CYCLES;
    double work = products > memory ? products + memory / 4 : memory + products / 4;
    return (work + in + out) * (1 + 0.3 / wino_tasks(g->s, g->isa, v));
}

static void try(Guesses *g, const Version *v) {
    if (g->n == MOST_VERSIONS) return;
    Guess    x = {*v, guess_cycles(g, v)};
    uint32_t i = g->n++;
    for (; i > 0 && g->at[i - 1].cycles > x.cycles; i--) g->at[i] = g->at[i - 1];
    g->at[i] = x;
}

// The orders and splits that differ in what they read how often.
static void try_orders(Guesses *g, Version v, const WinoPlan *p) {
    v.order = ORDER_INPUT;
    v.split = SPLIT_BOTH;
    try(g, &v);
    if (p->blocks == 1 || p->strips == 1) return;
    v.split = SPLIT_COLUMNS;
    try(g, &v);
    v.order = ORDER_WEIGHTS;
    v.split = SPLIT_BOTH;
    try(g, &v);
}

static void try_columns(Guesses *g, Version v) {
    uint32_t before = 0;
    for (uint32_t columns = v.tile_vecs; before != 1; columns *= 2) {
        v.columns = (uint16_t)columns;
        WinoPlan p = wino_plan(g->s, g->isa->lanes, &v);
        if (p.strips == before) continue;
        before = p.strips;
        v.columns = (uint16_t)p.widest;
        try_orders(g, v, &p);
    }
}

// Blocks of tiles whose transformed inputs fill an eighth, a quarter, half or all of L2.
static void try_rows(Guesses *g, Version v) {
    uint32_t before = 0;
    v.columns = v.rows = 1;
    WinoPlan one = wino_plan(g->s, g->isa->lanes, &v);
    for (uint32_t share = 8; share > 0; share /= 2) {
        size_t rows = g->caches->l2 / share / (one.inputs * sizeof(float));
        rows -= rows % v.tile_rows;
        if (rows < v.tile_rows) rows = v.tile_rows;
        if (rows > one.tiles) rows = one.tiles;
        if (rows > 1024) rows = 1024;
        v.rows = (uint16_t)rows;
        WinoPlan p = wino_plan(g->s, g->isa->lanes, &v);
        if (p.blocks == before) continue;
        before = p.blocks;
        v.rows = (uint16_t)p.most;
        try_columns(g, v);
    }
}

uint32_t wino_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                       uint32_t max) {
    Guesses  g = {.s = s, .isa = isa, .caches = caches};
    uint32_t vecs = wino_groups(s->oc, isa->lanes);
    for (int algo = ALGO_WINOGRAD2; algo <= ALGO_WINOGRAD4; algo++)
        for (uint32_t n = vecs < 2 ? vecs : 2; n <= 3 && n <= vecs; n++)
            try_rows(&g, (Version){.algo = (uint8_t)algo,
                                   .tile_rows = (uint8_t)tile_most_rows(isa->registers, n),
                                   .tile_vecs = (uint8_t)n});
    if (max > g.n) max = g.n;
    for (uint32_t i = 0; i < max; i++) out[i] = g.at[i].version;
    return max;
}

Traffic wino_traffic(const ConvShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts) {
    Guesses  g = {.s = s, .isa = isa};
    WinoPlan p = wino_plan(s, isa->lanes, v);
    size_t   weights = weight_bytes(&g, &p), block = (p.inputs + p.products) * sizeof(float);
    size_t   x = (size_t)s->n * p.channels * isa->lanes * s->ih * s->iw * sizeof(float);
    size_t   y = (size_t)s->n * p.vecs * isa->lanes * s->oh * s->ow * sizeof(float);
    Passes   n = passes(&p, v, weights, caches->l2);
    uint32_t sharing = parts < wino_tasks(s, isa, v) ? parts : wino_tasks(s, isa, v);
    bool     columns = v->split == SPLIT_COLUMNS || v->order == ORDER_WEIGHTS || p.blocks == 1;
    Traffic  t = {0};
    // Cut along columns, parts share the weights and each reads all inputs; otherwise the reverse.
    if (columns) {
        if (n.inputs < sharing) n.inputs = sharing;
    } else if (n.weights < sharing) {
        n.weights = sharing;
    }
    t.beyond_l2_bytes = x * n.inputs + weights * n.weights + y;
    if (block > caches->l2) t.beyond_l2_bytes += block * p.blocks * p.strips;
    if (n.weights > 1) t.l3_bytes += weights;
    if (n.inputs > 1) t.l3_bytes += x;
    if (block > caches->l2) t.l3_bytes += block * sharing;
    return t;
}
