#include "kernel/conv.h"

#include "base/err.h"
#include "kernel/blocking.h"
#include "kernel/conv_plan.h"
#include "kernel/tile.h"

// The fewest groups that, run together, fill whole blocks of input and of output channels.
static uint32_t groups_together(const ConvShape *s, uint32_t lanes) {
    uint32_t ic = s->ic / s->groups, oc = s->oc / s->groups;
    for (uint32_t m = 1; m < s->groups; m++)
        if (s->groups % m == 0 && m * ic % lanes == 0 && m * oc % lanes == 0) return m;
    return s->groups;
}

static bool is_padded(const ConvShape *s) {
    if (s->kd > 0 && (s->pf > 0 || (s->od - 1) * s->sd + (s->kd - 1) * s->dd >= s->id)) return true;
    return s->pt > 0 || s->pl > 0 || (s->oh - 1) * s->sh + (s->kh - 1) * s->dh >= s->ih ||
           (s->ow - 1) * s->sw + (s->kw - 1) * s->dw >= s->iw;
}

static void plan_channels(ConvPlan *p, const ConvShape *s, const Version *v) {
    uint32_t m = groups_together(s, p->lanes);
    p->groups = s->groups / m;
    p->ic = s->ic / p->groups;
    p->oc = s->oc / p->groups;
    p->block = v->pack & CONV_PLAIN ? 1 : p->lanes;
    p->blocks = p->ic / p->block;
    p->rest = p->ic % p->block;
    p->vecs = ceil_div(p->oc, p->lanes);
    p->planes = max_u32(s->kd, 1);
    p->taps = p->planes * s->kh * s->kw;
    p->block_weights = (size_t)p->taps * p->block * p->lanes;
    p->panel = (size_t)p->taps * p->ic * p->lanes;
}

static void plan_terms(ConvPlan *p, const ConvShape *s) {
    bool joined = s->dw == 1 || s->kw == 1;  // the taps of a kernel row are contiguous
    p->row_terms = joined ? p->planes * s->kh : p->taps;
    p->term_depth = joined ? s->kw * p->block : p->block;
    p->n_terms = p->blocks * p->row_terms;
    p->n_tails = p->rest > 0 ? p->taps : 0;
    p->tail_depth = p->rest;
}

static void plan_rows(ConvPlan *p, const ConvShape *s, const Version *v) {
    size_t area = (size_t)s->ih * s->iw * p->block, plane = area * max_u32(s->id, 1);
    size_t planes = ceil_div(s->ic, p->block);
    p->staged = (v->pack & CONV_STAGED) != 0 || is_padded(s) || plane * planes > INT32_MAX;
    p->out_depth = max_u32(s->od, 1);
    p->merged = !p->staged && s->oh * s->ow * p->out_depth == 1;
    p->images = p->merged ? 1 : s->n * p->out_depth;
    p->pixels = p->merged ? s->n : s->oh * s->ow;
    p->unit = p->staged ? s->ow : 1;
    p->image_pitch = plane * planes;
    p->group_pitch = plane * (p->ic / p->block);
    uint32_t units = p->pixels / p->unit;
    p->row_blocks = ceil_div(units, clamp_u32(v->rows > 0 ? v->rows : units, 1, units));
    p->block_units = ceil_div(units, p->row_blocks);
    p->step_x = p->staged && s->kw == 1 ? 1 : s->sw;
    p->step_y = p->staged && s->kh == 1 ? 1 : s->sh;
    p->width = p->staged ? (s->ow - 1) * p->step_x + (s->kw - 1) * s->dw + 1 : s->iw;
    p->height = p->staged ? (p->block_units - 1) * p->step_y + (s->kh - 1) * s->dh + 1 : s->ih;
    p->row_pitch = (size_t)p->width * p->block;
    p->plane_pitch = p->staged ? p->row_pitch * p->height : area * max_u32(s->dd, 1);
    p->block_pitch = p->staged ? p->plane_pitch * p->planes : plane;
    size_t vec = (size_t)p->out_depth * s->oh * s->ow * p->lanes;
    p->out_image = vec * ceil_div(s->oc, p->lanes);
    p->row_stride = p->merged ? p->out_image : p->lanes;
    p->vec_stride = vec;
}

static void plan_tiles(ConvPlan *p, const Version *v) {
    p->tile_vecs = clamp_u32(v->tile_vecs, 1, p->vecs < TILE_MAX_VECS ? p->vecs : TILE_MAX_VECS);
    p->tile_rows = clamp_u32(v->tile_rows, 1, tile_most_rows(p->registers, p->tile_vecs));
    p->vec_groups = ceil_div(p->vecs, p->tile_vecs);
    uint32_t each = v->columns > 0 ? ceil_div(v->columns, p->tile_vecs) : p->vec_groups;
    p->col_groups = ceil_div(p->vec_groups, clamp_u32(each, 1, p->vec_groups));
    uint32_t deep = clamp_u32(v->depth > 0 ? v->depth / p->block : p->blocks, 1, p->blocks);
    p->n_depths = p->blocks > 0 ? ceil_div(p->blocks, deep) : 1;
    p->tasks = p->images * p->groups * p->row_blocks * p->col_groups;
}

ConvPlan conv_plan(const ConvShape *s, const Version *v, uint32_t lanes, uint32_t registers) {
    ConvPlan p = {.lanes = lanes, .registers = registers};
    plan_channels(&p, s, v);
    plan_terms(&p, s);
    plan_rows(&p, s, v);
    plan_tiles(&p, v);
    uint32_t slab_blocks = p.blocks + (p.rest > 0);
    p.terms_bytes = align_bytes((p.n_terms + p.n_tails) * sizeof(int32_t));
    p.rows_bytes = align_bytes((size_t)p.block_units * p.unit * sizeof(float *));
    p.slab_bytes = p.staged ? align_bytes(p.block_pitch * slab_blocks * sizeof(float)) : 0;
    CHECK(p.block_pitch * slab_blocks <= INT32_MAX);
    return p;
}

// Parts get contiguous ranges of tasks, so parts split along the axis that varies slowest.
ConvTask conv_task(const ConvPlan *p, const Version *v, uint32_t index) {
    ConvTask t = {0};
    uint32_t cols = p->col_groups;
    if (v->split == SPLIT_COLUMNS) {
        t.row_block = index % p->row_blocks, index /= p->row_blocks;
        t.image = index % p->images, index /= p->images;
        t.col_group = index % cols, t.group = index / cols;
        return t;
    }
    uint32_t halves = v->split == SPLIT_BOTH && cols % 2 == 0 ? 2 : 1;
    cols /= halves;
    t.col_group = index % cols, index /= cols;
    t.row_block = index % p->row_blocks, index /= p->row_blocks;
    t.col_group += index % halves * cols, index /= halves;
    t.group = index % p->groups, t.image = index / p->groups;
    return t;
}

uint32_t conv_tasks(const ConvShape *s, const Isa *isa, const Version *v) {
    return conv_plan(s, v, isa->lanes, isa->registers).tasks;
}

size_t conv_scratch(const ConvShape *s, const Isa *isa, const Version *v) {
    ConvPlan p = conv_plan(s, v, isa->lanes, isa->registers);
    return p.terms_bytes + p.rows_bytes + p.slab_bytes;
}

// Bytes of the whole convolution and of one task.
typedef struct Sizes {
    size_t weights, input, output;
    size_t task_weights, task_input, task_output;
} Sizes;

static Sizes sizes(const ConvShape *s, const ConvPlan *p) {
    Sizes z = {.weights = p->panel * p->vecs * p->groups * sizeof(float),
               .input = p->image_pitch * s->n * sizeof(float),
               .output = p->out_image * s->n * sizeof(float)};
    z.task_weights = z.weights / p->groups / p->col_groups;
    z.task_output = z.output / p->tasks;
    size_t pixels = (size_t)p->block_units * p->unit;
    z.task_input = p->staged ? p->slab_bytes : pixels * p->ic * sizeof(float);
    return z;
}

// How often the weights are read from L3: once per part that uses them, or once per block of rows
// if they do not stay in L2 between blocks.
static size_t weight_reads(const ConvPlan *p, const Version *v, const Sizes *z, size_t l2,
                           uint32_t parts) {
    size_t blocks = (size_t)p->images * p->row_blocks;
    bool   by_columns = v->split == SPLIT_COLUMNS;
    size_t kept = by_columns ? z->task_weights : z->weights / p->groups;
    size_t sharing = by_columns ? (parts > p->col_groups ? parts / p->col_groups : 1) : parts;
    if (kept + z->task_input > l2 || blocks < sharing) return blocks;
    return sharing < blocks ? sharing : blocks;
}

// How often the input is read from L3: once, or once per column group that rereads it.
static size_t input_reads(const ConvPlan *p, const Version *v, const Sizes *z, size_t l2,
                          uint32_t parts) {
    bool by_columns = v->split == SPLIT_COLUMNS && p->row_blocks * p->images > 1;
    if (by_columns && z->input + z->task_weights > l2) return p->col_groups;
    if (by_columns) return parts < p->col_groups ? parts : p->col_groups;
    if (z->task_input + z->task_weights / 2 > l2) return p->vec_groups;
    size_t sharing = parts > p->row_blocks * p->images ? parts / (p->row_blocks * p->images) : 1;
    return sharing < p->col_groups ? sharing : p->col_groups;
}

Traffic conv_traffic(const ConvShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts) {
    ConvPlan p = conv_plan(s, v, isa->lanes, isa->registers);
    Sizes    z = sizes(s, &p);
    size_t   weights = weight_reads(&p, v, &z, caches->l2, parts);
    size_t   input = input_reads(&p, v, &z, caches->l2, parts);
    size_t   passes = z.task_output > caches->l2 / 2 ? 2 * p.n_depths - 1 : 1;
    Traffic  t = {0, z.weights * weights + z.input * input + z.output * passes};
    if (weights > 1) t.l3_bytes += z.weights;
    if (input > 1) t.l3_bytes += z.input;
    if (passes > 1) t.l3_bytes += z.output;
    return t;
}

static ConvPlan plan(const ConvShape *s, const Isa *isa, bool plain) {
    Version v = {.pack = plain ? CONV_PLAIN : 0};
    return conv_plan(s, &v, isa->lanes, isa->registers);
}

size_t conv_pack_bytes(const ConvShape *s, const Isa *isa, bool plain) {
    ConvPlan p = plan(s, isa, plain);
    return p.panel * p.vecs * p.groups * sizeof(float);
}

// Weights of one tap of one input channel, for the vector of output channels that starts at
// `first` of group g. Output channels of other joined groups get zeros.
static void pack_vector(const ConvShape *s, const ConvPlan *p, uint32_t g, uint32_t first,
                        uint32_t channel, uint32_t tap, const float *weights, float *out) {
    uint32_t ic = s->ic / s->groups, oc = s->oc / s->groups;
    for (uint32_t i = 0; i < p->lanes; i++) {
        uint32_t column = first + i;
        bool     sees = column < p->oc && column / oc == channel / ic;
        size_t   row = (size_t)g * p->oc + column;
        out[i] = sees ? weights[(row * ic + channel % ic) * p->taps + tap] : 0;
    }
}

// Depth order: blocks of channels, taps, channels of a block.
static void pack_panel(const ConvShape *s, const ConvPlan *p, uint32_t g, uint32_t first,
                       const float *weights, float *out) {
    for (uint32_t b = 0; b < p->ic; b += p->block) {
        uint32_t channels = p->ic - b < p->block ? p->ic - b : p->block;
        for (uint32_t tap = 0; tap < p->taps; tap++)
            for (uint32_t k = 0; k < channels; k++, out += p->lanes)
                pack_vector(s, p, g, first, b + k, tap, weights, out);
    }
}

void conv_pack(const ConvShape *s, const Isa *isa, bool plain, const float *w, float *out) {
    ConvPlan p = plan(s, isa, plain);
    for (uint32_t g = 0; g < p.groups; g++)
        for (uint32_t v = 0; v < p.vecs; v++, out += p.panel)
            pack_panel(s, &p, g, v * p.lanes, w, out);
}

// Tile cost model, fitted to tiles with their operands in L1. Unit: a quarter of one vector FMA. A
// tile of 12 or more accumulators keeps two FMA units busy; smaller ones stall.
enum { TILE_STALL = 2, TILE_FULL = 12, TILE_MIN = 32, TILE_START = 200 };

// Half of L2 holds reused data, the other half streams.
enum { TASKS_MAX = 4096, PIXELS_MIN = 24, LINE_BYTES = 64 };

// A block of rows that is made for another thread has at least so many pixels and multiplications.
enum { SHARED_PIXELS = 48, SHARED_MACS = 1 << 20, SHARED_MOST = 16, EVEN_PERCENT = 5 };

typedef struct Search {
    const ConvShape *s;
    uint32_t         lanes, registers;
    uint8_t          pack;
    CacheSizes       caches;
} Search;

static uint16_t narrow(size_t x) { return (uint16_t)(x < UINT16_MAX ? x : UINT16_MAX); }

// Cost of one depth step of a tile.
static uint32_t tile_cost(uint32_t rows, uint32_t vecs) {
    uint32_t products = 4 * rows * vecs, loads = 4 * (rows + vecs);
    uint32_t cost = max_u32(max_u32(products, loads), TILE_MIN);
    return cost + (rows * vecs < TILE_FULL ? TILE_STALL : 0);
}

// Cost of all pixels, cut into near-equal tiles of at most `rows` rows and `vecs` vectors.
static uint64_t pixels_cost(uint32_t pixels, uint32_t rows, uint32_t vecs, uint32_t depth) {
    const EvenSplit tiles = even_split(pixels, rows);
    uint64_t        cost = (uint64_t)(tiles.n - tiles.longer) * tile_cost(tiles.size, vecs);
    if (tiles.longer > 0) cost += (uint64_t)tiles.longer * tile_cost(tiles.size + 1, vecs);
    return cost * depth + (uint64_t)tiles.n * TILE_START;
}

static uint64_t tiling_cost(const Search *r, const ConvPlan *p, uint32_t vecs) {
    const EvenSplit groups = even_split(p->vecs, vecs);
    const uint32_t  depth = (uint32_t)(p->panel / p->lanes), n = groups.size;
    uint64_t        cost = (groups.n - groups.longer) *
                    pixels_cost(p->pixels, tile_most_rows(r->registers, n), n, depth);
    if (groups.longer == 0) return cost;
    return cost + groups.longer *
                      pixels_cost(p->pixels, tile_most_rows(r->registers, n + 1), n + 1, depth);
}

// Tile widths in vectors, cheapest first.
static void rank_tiles(const Search *r, const ConvPlan *p, uint8_t *vecs) {
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

// Rows (pixels if not staged) per `bytes` of input.
static uint32_t rows_of(const Search *r, const ConvPlan *p, size_t bytes) {
    const ConvShape *s = r->s;
    size_t           column = (size_t)p->ic * sizeof(float);
    if (!p->staged) {
        // Pixels skipped by the stride still share cache lines with those read.
        size_t shared = LINE_BYTES / (p->block * sizeof(float));
        column *= shared > s->sw ? s->sw : shared > 0 ? shared : 1;
        return (uint32_t)(bytes / column);
    }
    size_t row = column * p->width * p->planes, halo = (size_t)(s->kh - 1) * s->dh;
    size_t rows = bytes / row;
    return rows > halo ? (uint32_t)((rows - halo) / p->step_y) : 0;
}

static uint16_t rows_within(const Search *r, const ConvPlan *p, size_t bytes) {
    uint32_t units = p->pixels / p->unit;
    uint32_t few = ceil_div(min_u32(PIXELS_MIN, p->pixels), p->unit);
    uint32_t rows = min_u32(max_u32(rows_of(r, p, bytes), few), units);
    return rows == units ? 0 : narrow(rows);
}

// Input channels per `bytes` of weights of one tile width; 0: all of them.
static uint16_t depth_within(const ConvPlan *p, uint32_t vecs, size_t bytes) {
    size_t each = p->panel / p->ic * vecs * sizeof(float);
    size_t blocks = bytes / (each * p->block);
    if (blocks >= p->blocks || p->block == 1) return 0;
    return narrow((blocks > 0 ? blocks : 1) * p->block);
}

static void add(const Search *r, Version v, Version *out, uint32_t *n, uint32_t max) {
    ConvPlan p = conv_plan(r->s, &v, r->lanes, r->registers);
    if (p.tasks > max_u32(TASKS_MAX, p.images * p.groups)) return;
    v.tile_rows = (uint8_t)p.tile_rows;
    v.tile_vecs = (uint8_t)p.tile_vecs;
    if (p.n_depths == 1) v.depth = 0;
    if (p.row_blocks == 1) v.rows = 0;
    if (p.col_groups == 1) v.columns = 0;
    version_add(v, out, n, max);
}

// Time that `parts` threads lose by an uneven division of tasks, in percent.
static uint32_t imbalance(uint32_t tasks, uint32_t parts) {
    return 100 * ceil_div(tasks, parts) * parts / tasks - 100;
}

// Least blocks of rows, up to `most`, that divide evenly between two threads and almost so between
// four; otherwise between two.
static uint32_t even_blocks(uint32_t blocks, uint32_t others, uint32_t most) {
    uint32_t two = blocks;
    bool     found = imbalance(blocks * others, 2) <= EVEN_PERCENT;
    for (uint32_t b = blocks; b <= most; b++) {
        bool even = imbalance(b * others, 2) <= EVEN_PERCENT;
        if (even && imbalance(b * others, 4) <= 3 * EVEN_PERCENT) return b;
        if (even && !found) two = b;
        found = found || even;
    }
    return two;
}

// A large cache holds whole images: fewer rows than fit, so that a few threads get equal work.
static uint16_t shared_rows(const ConvPlan *p, uint16_t rows, uint32_t tile_vecs) {
    uint32_t units = p->pixels / p->unit, blocks = rows > 0 ? ceil_div(units, rows) : 1;
    uint32_t others = p->images * p->groups * ceil_div(p->vecs, tile_vecs);
    uint64_t macs = (uint64_t)p->pixels * p->panel * ceil_div(p->vecs, tile_vecs) * tile_vecs;
    uint64_t small = macs * p->groups * p->images / others / SHARED_MACS;
    uint32_t most = min_u32(min_u32(p->pixels / SHARED_PIXELS, units), SHARED_MOST);
    if (small < most) most = (uint32_t)small;
    uint32_t even = even_blocks(blocks, others, most);
    return even == blocks ? rows : narrow(ceil_div(units, even));
}

// Cache blockings: rows per block, vectors per task, and the axis that parts split first.
static void add_blocks(const Search *r, const ConvPlan *p, Version v, Version *out, uint32_t *n,
                       uint32_t max) {
    size_t   l2 = r->caches.l2;
    uint16_t near = rows_within(r, p, l2 / 2), small = rows_within(r, p, l2 / 8);
    uint16_t tiny = rows_within(r, p, r->caches.l1 / 2);
    uint16_t even = shared_rows(p, near, v.tile_vecs);
    uint16_t tile = v.tile_vecs, quarter = narrow(ceil_div(p->vecs, 4));
    const struct {
        uint16_t rows, columns;
        uint8_t  split;
    } options[] = {
        {even, tile, SPLIT_ROWS}, {near, tile, SPLIT_ROWS},     {0, quarter, SPLIT_COLUMNS},
        {small, 0, SPLIT_ROWS},   {small, quarter, SPLIT_BOTH}, {near, 0, SPLIT_ROWS},
        {tiny, tile, SPLIT_BOTH}, {small, tile, SPLIT_ROWS},    {0, tile, SPLIT_COLUMNS}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        v.rows = options[i].rows;
        v.columns = options[i].columns;
        v.split = options[i].split;
        add(r, v, out, n, max);
    }
}

uint32_t conv_versions(const ConvShape *s, const Isa *isa, bool plain, const CacheSizes *caches,
                       Version *out, uint32_t max) {
    Search   r = {s, isa->lanes, isa->registers, plain ? CONV_PLAIN : 0, *caches};
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
        } options[] = {{ORDER_WEIGHT_STATIONARY, 0, 0},
                       {ORDER_WEIGHT_STATIONARY, 0, near},
                       {ORDER_INPUT_STATIONARY, 0, 0},
                       {ORDER_INPUT_STATIONARY, 0, depth_within(&p, vecs[t], caches->l2 / 4)},
                       {ORDER_WEIGHT_STATIONARY, CONV_STAGED, near}};
        for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
            v.order = options[i].order;
            v.depth = options[i].depth;
            v.pack = r.pack | (p.staged ? 0 : options[i].staged);
            ConvPlan q = conv_plan(s, &v, r.lanes, r.registers);
            add_blocks(&r, &q, v, out, &n, max);
        }
    }
    return n;
}
