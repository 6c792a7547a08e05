#include "kernel/winograd.h"

#include <string.h>

#include "base/err.h"
#include "kernel/tile.h"

enum { LANES_MAX = 16 };

bool winograd_fits(const ConvShape *s) {
    return s->kh == 3 && s->kw == 3 && s->sh == 1 && s->sw == 1 && s->dh == 1 && s->dw == 1 &&
           s->groups == 1 && s->kd == 0;
}

static uint32_t tile_side(Algo algo) { return algo == ALGO_WINOGRAD4 ? 6 : 4; }

size_t winograd_pack_bytes(const ConvShape *s, const Isa *isa, Algo algo) {
    size_t side = tile_side(algo);
    return ceil_div(s->oc, isa->lanes) * side * side * s->ic * isa->lanes * sizeof(float);
}

// Row i of g evaluates a filter at point i, divided by the product of distances to the other points
// (which the input transform omits); the last row is the point at infinity.
static void evaluation(Algo algo, double (*g)[3]) {
    static const double four[] = {0, 0.625, -0.625, 1.5, -1.5}, two[] = {0, 1, -1};
    const double       *at = algo == ALGO_WINOGRAD4 ? four : two;
    uint32_t            n = tile_side(algo) - 1;
    for (uint32_t i = 0; i < n; i++) {
        double over = 1;
        for (uint32_t j = 0; j < n; j++)
            if (j != i) over *= at[i] - at[j];
        g[i][0] = 1 / over;
        g[i][1] = at[i] / over;
        g[i][2] = at[i] * at[i] / over;
    }
    g[n][0] = g[n][1] = 0;
    g[n][2] = 1;
}

// Transforms one input channel of one panel: taps[9][lanes] to out[point * stride + lane].
static void pack_one(uint32_t side, double (*g)[3], double (*taps)[LANES_MAX], uint32_t lanes,
                     size_t stride, float *out) {
    double half[6][3][LANES_MAX];
    for (uint32_t i = 0; i < side; i++)
        for (uint32_t k = 0; k < 3; k++)
            for (uint32_t l = 0; l < LANES_MAX; l++)
                half[i][k][l] =
                    g[i][0] * taps[k][l] + g[i][1] * taps[3 + k][l] + g[i][2] * taps[6 + k][l];
    for (uint32_t i = 0; i < side; i++)
        for (uint32_t k = 0; k < side; k++)
            for (uint32_t l = 0; l < lanes; l++)
                out[(i * side + k) * stride + l] =
                    (float)(g[k][0] * half[i][0][l] + g[k][1] * half[i][1][l] +
                            g[k][2] * half[i][2][l]);
}

void winograd_pack(const ConvShape *s, const Isa *isa, Algo algo, const float *w, float *out) {
    uint32_t side = tile_side(algo), lanes = isa->lanes;
    size_t   stride = (size_t)s->ic * lanes;
    double   g[6][3];
    CHECK(lanes <= LANES_MAX);
    evaluation(algo, g);
    for (uint32_t first = 0; first < s->oc; first += lanes, out += side * side * stride) {
        double   taps[9][LANES_MAX] = {0};
        uint32_t n = s->oc - first < lanes ? s->oc - first : lanes;
        for (uint32_t c = 0; c < s->ic; c++) {
            for (uint32_t l = 0; l < n; l++)
                for (uint32_t k = 0; k < 9; k++)
                    taps[k][l] = (double)w[((size_t)(first + l) * s->ic + c) * 9 + k];
            pack_one(side, g, taps, lanes, stride, out + (size_t)c * lanes);
        }
    }
}

uint32_t winograd_tasks(const ConvShape *s, const Isa *isa, const Version *v) {
    WinogradPlan p = winograd_plan(s, isa->lanes, v);
    if (v->split == SPLIT_ROWS) return p.blocks;
    return v->split == SPLIT_COLUMNS ? p.strips : p.blocks * p.strips;
}

size_t winograd_scratch(const ConvShape *s, const Isa *isa, const Version *v) {
    WinogradPlan p = winograd_plan(s, isa->lanes, v);
    return (p.inputs + p.products) * sizeof(float) + p.most * sizeof(float *);
}

enum { VERSIONS_MAX = 512 };

// A candidate version with its modelled cost.
typedef struct Candidate {
    Version version;
    double  cycles;
} Candidate;

// Candidates, cheapest first.
typedef struct Candidates {
    const ConvShape  *s;
    const Isa        *isa;
    const CacheSizes *caches;
    uint32_t          n;
    Candidate         at[VERSIONS_MAX];
} Candidates;

// Cycles per depth step of a register tile: two FMAs per cycle, FMA latency four cycles.
static double tile_cycles(const Version *v, uint32_t rows, uint32_t vecs) {
    double products = rows * vecs / 2.0;
    products += rows * vecs == v->tile_rows * v->tile_vecs ? 0.1 : 0.35;
    return products > 4 ? products : 4;
}

// Cycles of the product of a block of tiles with a strip of output channels, at one point.
static double product_cycles(const Version *v, uint32_t tiles, uint32_t vecs, uint32_t ic) {
    enum { CALL = 36 };
    double   sum = 0;
    uint32_t across = ceil_div(vecs, v->tile_vecs), down = ceil_div(tiles, v->tile_rows);
    for (uint32_t c = 0; c < across; c++) {
        uint32_t vec, vec_end;
        part_range((Part){c, across, NULL}, vecs, &vec, &vec_end);
        for (uint32_t r = 0; r < down; r++) {
            uint32_t row, row_end;
            part_range((Part){r, down, NULL}, tiles, &row, &row_end);
            sum += tile_cycles(v, row_end - row, vec_end - vec) * ic + CALL;
        }
    }
    return sum;
}

// Operand sizes, and how often each is read from beyond L2.
typedef struct Reads {
    size_t   weights, inputs, block;  // bytes: weights; per block, inputs; inputs and products
    uint32_t weight_passes, input_passes;
} Reads;

static Reads reads_of(const ConvShape *s, uint32_t lanes, const Version *v, const WinogradPlan *p,
                      size_t l2) {
    Reads r = {.inputs = p->inputs * sizeof(float), .weight_passes = 1, .input_passes = 1};
    r.weights = (size_t)p->vecs * lanes * p->points * s->ic * sizeof(float);
    r.block = r.inputs + p->products * sizeof(float);
    size_t kept = v->order == ORDER_INPUT_STATIONARY ? r.weights : r.weights / p->strips;
    if (kept + r.block > l2) r.weight_passes = p->blocks;
    size_t x = (size_t)s->n * p->channels * lanes * s->ih * s->iw * sizeof(float);
    bool   stays = x + r.block + r.weights / p->strips <= l2;
    if (v->order == ORDER_WEIGHT_STATIONARY && p->blocks > 1 && !stays) r.input_passes = p->strips;
    return r;
}

// Cost model, fitted to measurements with weights in L3 and in memory.
static double model_cycles(const Candidates *g, const Version *v) {
    // Cycles per cache line from L2, L3 and memory; per transform of 36 points of a vector; per
    // point.
    static const double from_l2 = 0.6, from_l3 = 6, from_memory = 9, spill = 10;
    enum { LINE = 64, IN = 90, OUT = 87, POINT = 40 };
    // Half of L2: the other half holds x, y and what a sibling thread uses.
    const size_t l2 = g->caches->l2 / 2;
    WinogradPlan p = winograd_plan(g->s, g->isa->lanes, v);
    Reads        r = reads_of(g->s, g->isa->lanes, v, &p, l2);
    double       full = (double)r.block / (double)l2, tasks = winograd_tasks(g->s, g->isa, v);
    // Weight-stationary, each strip transforms the inputs of every block again.
    bool   again = v->order == ORDER_WEIGHT_STATIONARY && p.blocks > 1;
    double weights = (double)r.weights / LINE, inputs = (double)r.inputs * p.blocks / LINE;
    double strips = p.strips, groups = ceil_div(p.widest, v->tile_vecs);
    double transforms = (p.m == 4 ? 1 : 0.4) * p.tiles *
                        (IN * (1 + (full < 1 ? full : 1)) * p.channels * (again ? strips : 1) +
                         (double)OUT * p.vecs);
    // Products are written once and read once; beyond a quarter of this part of L2, stores stall.
    if (full > 0.25) transforms += spill * (full - 0.25) * (double)p.tiles * p.points * p.vecs / 2;
    double products =
        product_cycles(v, p.most, p.widest, g->s->ic) * p.points * strips * p.tiles / p.most;
    products += POINT * strips * p.blocks * p.points;
    products += from_l2 * (weights * p.blocks + inputs * strips * groups);
    double memory = weights * (from_memory + from_l3 * (r.weight_passes - 1));
    if (full > 1) memory += from_l3 * inputs * strips;
    double work = products > memory ? products + memory * 0.15 : memory + products * 0.15;
    return (work + transforms) * (1 + 0.15 / tasks);
}

static void add_candidate(Candidates *g, const Version *v) {
    if (g->n == VERSIONS_MAX) return;
    Candidate x = {*v, model_cycles(g, v)};
    uint32_t  i = g->n++;
    for (; i > 0 && g->at[i - 1].cycles > x.cycles; i--) g->at[i] = g->at[i - 1];
    g->at[i] = x;
}

// The orders and splits that differ in memory traffic.
static void add_orders(Candidates *g, Version v, const WinogradPlan *p) {
    v.order = ORDER_INPUT_STATIONARY;
    v.split = SPLIT_BOTH;
    add_candidate(g, &v);
    if (p->blocks == 1 || p->strips == 1) return;
    v.split = SPLIT_COLUMNS;
    add_candidate(g, &v);
    v.order = ORDER_WEIGHT_STATIONARY;
    v.split = SPLIT_BOTH;
    add_candidate(g, &v);
}

static void add_columns(Candidates *g, Version v) {
    uint32_t before = 0;
    for (uint32_t columns = v.tile_vecs; before != 1; columns *= 2) {
        v.columns = (uint16_t)columns;
        WinogradPlan p = winograd_plan(g->s, g->isa->lanes, &v);
        if (p.strips == before) continue;
        before = p.strips;
        v.columns = (uint16_t)p.widest;
        add_orders(g, v, &p);
    }
}

// Blocks of tiles with transformed inputs of an eighth of L2, a quarter, and so on up to four
// times L2; the larger ones stream, which pays off if the weights are larger still.
static void add_rows(Candidates *g, Version v) {
    uint32_t before = 0;
    v.columns = v.rows = 1;
    WinogradPlan one = winograd_plan(g->s, g->isa->lanes, &v);
    for (uint32_t eighths = 1; eighths <= 32; eighths *= 2) {
        size_t rows = g->caches->l2 * eighths / 8 / (one.inputs * sizeof(float));
        rows -= rows % v.tile_rows;
        if (rows < v.tile_rows) rows = v.tile_rows;
        if (rows > one.tiles) rows = one.tiles;
        if (rows > 1024) rows = 1024;
        v.rows = (uint16_t)rows;
        WinogradPlan p = winograd_plan(g->s, g->isa->lanes, &v);
        if (p.blocks == before) continue;
        before = p.blocks;
        v.rows = (uint16_t)p.most;
        add_columns(g, v);
    }
}

uint32_t winograd_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches,
                           Version *out, uint32_t max) {
    Candidates g = {.s = s, .isa = isa, .caches = caches};
    uint32_t   vecs = ceil_div(s->oc, isa->lanes);
    for (int algo = ALGO_WINOGRAD2; algo <= ALGO_WINOGRAD4; algo++)
        for (uint32_t n = vecs < 2 ? vecs : 2; n <= 3 && n <= vecs; n++)
            add_rows(&g, (Version){.algo = (uint8_t)algo,
                                   .tile_rows = (uint8_t)tile_most_rows(isa->registers, n),
                                   .tile_vecs = (uint8_t)n});
    if (max > g.n) max = g.n;
    for (uint32_t i = 0; i < max; i++) out[i] = g.at[i].version;
    return max;
}

Traffic winograd_traffic(const ConvShape *s, const Isa *isa, const Version *v,
                         const CacheSizes *caches, uint32_t parts) {
    WinogradPlan p = winograd_plan(s, isa->lanes, v);
    Reads        r = reads_of(s, isa->lanes, v, &p, caches->l2);
    size_t       x = (size_t)s->n * p.channels * isa->lanes * s->ih * s->iw * sizeof(float);
    size_t       y = (size_t)s->n * p.vecs * isa->lanes * s->oh * s->ow * sizeof(float);
    uint32_t     tasks = winograd_tasks(s, isa, v), busy = parts < tasks ? parts : tasks;
    Traffic      t = {0};
    // Split along columns, parts share the weights and each reads all inputs; otherwise the
    // reverse.
    if (v->split == SPLIT_COLUMNS || v->order == ORDER_WEIGHT_STATIONARY || p.blocks == 1) {
        if (r.input_passes < busy) r.input_passes = busy;
    } else if (r.weight_passes < busy) {
        r.weight_passes = busy;
    }
    t.beyond_l2_bytes = x * r.input_passes + r.weights * r.weight_passes + y;
    if (r.weight_passes > 1) t.l3_bytes += r.weights;
    if (r.input_passes > 1) t.l3_bytes += x;
    if (r.block > caches->l2) {
        size_t products = r.block - r.inputs;  // written, then read
        t.beyond_l2_bytes += (r.inputs + 2 * products) * p.blocks * p.strips;
        t.l3_bytes += r.block * busy;
    }
    return t;
}
