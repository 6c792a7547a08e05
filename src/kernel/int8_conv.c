#include "kernel/int8_conv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/carve.h"
#include "base/err.h"
#include "kernel/blocking.h"

enum { PAIR_MAX = 128 };  // 255 * 128 fits 16 bits

Int8Shape int8_product(uint32_t m, uint32_t n, uint32_t k, bool x_signed) {
    return (Int8Shape){.conv = {.n = 1,
                                .ic = k,
                                .ih = m,
                                .iw = 1,
                                .oc = n,
                                .oh = m,
                                .ow = 1,
                                .kh = 1,
                                .kw = 1,
                                .sh = 1,
                                .sw = 1,
                                .dh = 1,
                                .dw = 1,
                                .groups = 1},
                       .x_pitch = k,
                       .y_pitch = n,
                       .x_signed = x_signed};
}

// The fewest groups that, run together, fill whole vectors of outputs and quads of inputs.
static uint32_t groups_together(const ConvShape *s, uint32_t lanes) {
    uint32_t ic = s->ic / s->groups, oc = s->oc / s->groups;
    for (uint32_t m = 1; m < s->groups; m++)
        if (s->groups % m == 0 && m * ic % INT8_QUAD == 0 && m * oc % lanes == 0) return m;
    return s->groups;
}

static bool is_padded(const ConvShape *s) {
    return s->pt > 0 || s->pl > 0 || (s->oh - 1) * s->sh + (s->kh - 1) * s->dh >= s->ih ||
           (s->ow - 1) * s->sw + (s->kw - 1) * s->dw >= s->iw;
}

static void plan_channels(Int8Plan *p, const ConvShape *s) {
    p->groups = s->groups / groups_together(s, p->lanes);
    p->ic = s->ic / p->groups;
    p->oc = s->oc / p->groups;
    p->vecs = ceil_div(p->oc, p->lanes);
    p->tap_quads = ceil_div(p->ic, INT8_QUAD);
    p->quads = s->kh * s->kw * p->tap_quads;
}

// Quads must not reach beyond the last pixel of x.
static void plan_source(Int8Plan *p, const Int8Shape *all) {
    const ConvShape *s = &all->conv;
    uint32_t         deep = p->tap_quads * INT8_QUAD;
    p->staged = is_padded(s) || all->x_signed || deep > all->x_pitch;
    p->unit = p->staged ? s->ow : 1;
    p->pixels = s->oh * s->ow;
    p->step_x = p->staged && s->kw == 1 ? 1 : s->sw;
    p->step_y = p->staged && s->kh == 1 ? 1 : s->sh;
    p->pitch = all->x_pitch;
    if (p->staged && (p->groups > 1 || p->pitch < deep)) p->pitch = deep;
}

static void plan_rows(Int8Plan *p, const ConvShape *s, const Version *v) {
    uint32_t units = p->pixels / p->unit;
    p->row_blocks = ceil_div(units, clamp_u32(v->rows > 0 ? v->rows : units, 1, units));
    p->block_units = ceil_div(units, p->row_blocks);
    p->width = p->staged ? (s->ow - 1) * p->step_x + (s->kw - 1) * s->dw + 1 : s->iw;
    p->height = p->staged ? (p->block_units - 1) * p->step_y + (s->kh - 1) * s->dh + 1 : s->ih;
    p->row_pitch = (size_t)p->width * p->pitch;
}

// The taps of a kernel row are one term if their channels are contiguous.
static void plan_terms(Int8Plan *p, const ConvShape *s) {
    bool joined = s->kw == 1 || (s->dw == 1 && p->pitch == p->tap_quads * INT8_QUAD);
    p->n_terms = joined ? s->kh : s->kh * s->kw;
    p->term_quads = joined ? s->kw * p->tap_quads : p->tap_quads;
}

Int8Plan int8_plan(const Int8Shape *all, const Version *v, uint32_t lanes, uint32_t registers) {
    const ConvShape *s = &all->conv;
    Int8Plan         p = {.lanes = lanes, .registers = registers};
    plan_channels(&p, s);
    plan_source(&p, all);
    plan_rows(&p, s, v);
    plan_terms(&p, s);
    p.tile_vecs = clamp_u32(v->tile_vecs, 1, min_u32(p.vecs, INT8_TILE_VECS));
    p.tile_rows = clamp_u32(v->tile_rows, 1, int8_tile_most_rows(registers, p.tile_vecs));
    p.vec_groups = ceil_div(p.vecs, p.tile_vecs);
    uint32_t each = v->columns > 0 ? ceil_div(v->columns, p.tile_vecs) : p.vec_groups;
    p.col_groups = ceil_div(p.vec_groups, clamp_u32(each, 1, p.vec_groups));
    p.tasks = checked_tasks((uint64_t)s->n * p.groups * p.row_blocks * p.col_groups);
    p.terms_bytes = align_bytes(p.quads * sizeof(int32_t) + p.n_terms * sizeof(int32_t));
    p.rows_bytes = align_bytes((size_t)p.block_units * p.unit * sizeof(void *));
    p.slab_bytes = p.staged ? align_bytes(p.row_pitch * p.height + INT8_QUAD) : 0;
    p.sums_bytes = align_bytes((size_t)INT8_TILE_ROWS * INT8_TILE_VECS * lanes * sizeof(int32_t));
    CHECK(p.row_pitch * p.height <= INT32_MAX);
    return p;
}

uint32_t int8_tasks(const Int8Shape *s, const Isa *isa, const Version *v) {
    return int8_plan(s, v, isa->lanes, isa->registers).tasks;
}

size_t int8_scratch(const Int8Shape *s, const Isa *isa, const Version *v) {
    Int8Plan p = int8_plan(s, v, isa->lanes, isa->registers);
    return p.terms_bytes + p.rows_bytes + p.slab_bytes + p.sums_bytes;
}

// Packing.

// Moves as much of a pair of weights as the instruction adds without saturation.
static void take_pair(int16_t *rest, int8_t *out) {
    int32_t first = rest[0] < -128 ? -128 : rest[0] > 127 ? 127 : rest[0];
    int32_t second = rest[1] < -128 ? -128 : rest[1] > 127 ? 127 : rest[1];
    if (first > 0 && first + second > PAIR_MAX) second = PAIR_MAX - first;
    if (first < 0 && first + second < -PAIR_MAX) second = -PAIR_MAX - first;
    out[0] = (int8_t)first;
    out[1] = (int8_t)second;
    rest[0] = (int16_t)(rest[0] - first);
    rest[1] = (int16_t)(rest[1] - second);
}

enum { MOST_LANES = 16 };

typedef struct Packing {
    const Int8Shape *s;
    const int16_t   *w;
    Int8Plan         p;
    bool             saturates;
} Packing;

// A quad of all lanes: writes what fits and leaves the rest; true if anything is left.
static bool take_quad(const Packing *k, int16_t *rest, int8_t *out) {
    int32_t left = 0;
    for (uint32_t i = 0; !k->saturates && i < k->p.lanes * INT8_QUAD; i++) {
        const int16_t x = rest[i] < -128 ? -128 : rest[i] > 127 ? 127 : rest[i];
        out[i] = (int8_t)x;
        rest[i] = (int16_t)(rest[i] - x);
        left |= rest[i];
    }
    if (!k->saturates) return left != 0;
    for (uint32_t i = 0; i < k->p.lanes * INT8_QUAD; i += 2) {
        take_pair(rest + i, out + i);
        left |= rest[i] | rest[i + 1];
    }
    return left != 0;
}

// Weight of an output channel of a group as run, for an input channel and tap of that group.
static int16_t weight_at(const Packing *k, uint32_t group, uint32_t o, uint32_t i, uint32_t tap) {
    const ConvShape *s = &k->s->conv;
    uint32_t         ic = s->ic / s->groups, oc = s->oc / s->groups, taps = s->kh * s->kw;
    if (o >= k->p.oc || i >= k->p.ic || o / oc != i / ic) return 0;
    return k->w[(((size_t)group * k->p.oc + o) * ic + i % ic) * taps + tap];
}

static void gather_quad(const Packing *k, uint32_t vec, uint32_t quad, int16_t *out) {
    uint32_t group = vec / k->p.vecs, first = vec % k->p.vecs * k->p.lanes;
    uint32_t tap = quad / k->p.tap_quads, channel = quad % k->p.tap_quads * INT8_QUAD;
    uint32_t taps = k->s->conv.kh * k->s->conv.kw;
    if (k->p.groups == k->s->conv.groups && first + k->p.lanes <= k->p.oc &&
        channel + INT8_QUAD <= k->p.ic) {
        const size_t   each = (size_t)k->p.ic * taps;
        const int16_t *w = k->w + ((size_t)group * k->p.oc + first) * each + tap;
        w += (size_t)channel * taps;
        for (uint32_t l = 0; l < k->p.lanes; l++, w += each)
            for (uint32_t i = 0; i < INT8_QUAD; i++) out[l * INT8_QUAD + i] = w[(size_t)i * taps];
        return;
    }
    for (uint32_t l = 0; l < k->p.lanes; l++)
        for (uint32_t i = 0; i < INT8_QUAD; i++)
            out[l * INT8_QUAD + i] = weight_at(k, group, first + l, channel + i, tap);
}

static Packing packing(const Int8Shape *s, const Isa *isa, const int16_t *w) {
    Packing    k = {s, w, int8_plan(s, &(Version){0}, isa->lanes, isa->registers), false};
    Int8Traits t = {0};
    isa->int8_traits(&t);
    k.saturates = !t.adds_quads;
    CHECK(isa->lanes <= MOST_LANES);
    return k;
}

static uint32_t count_extra(const Packing *k) {
    int16_t  rest[MOST_LANES * INT8_QUAD];
    int8_t   out[MOST_LANES * INT8_QUAD];
    uint32_t n = 0;
    for (uint32_t v = 0; v < k->p.groups * k->p.vecs; v++)
        for (uint32_t q = 0; q < k->p.quads; q++) {
            gather_quad(k, v, q, rest);
            while (take_quad(k, rest, out)) n++;
        }
    return n;
}

// Layout of the packed weights in their memory; a NULL base only measures.
typedef struct PackLayout {
    size_t quads, extra_quads, extra_index, extra_start, sums, end;
} PackLayout;

static PackLayout pack_layout(const Packing *k, uint32_t extra) {
    size_t     vecs = (size_t)k->p.groups * k->p.vecs, quad = (size_t)k->p.lanes * INT8_QUAD;
    PackLayout l = {0};
    l.extra_quads = align_bytes(vecs * k->p.quads * quad);
    l.extra_index = l.extra_quads + align_bytes(extra * quad);
    l.extra_start = l.extra_index + align_bytes(extra * sizeof(uint32_t));
    l.sums = l.extra_start + align_bytes((vecs + 1) * sizeof(uint32_t));
    l.end = l.sums + align_bytes(vecs * k->p.lanes * sizeof(int32_t));
    return l;
}

size_t int8_pack_bytes(const Int8Shape *s, const Isa *isa, const int16_t *w) {
    Packing k = packing(s, isa, w);
    return pack_layout(&k, count_extra(&k)).end;
}

static void add_sums(uint32_t lanes, const int16_t *quad, int32_t *sums) {
    for (uint32_t l = 0; l < lanes; l++)
        for (uint32_t i = 0; i < INT8_QUAD; i++) sums[l] += quad[l * INT8_QUAD + i];
}

Int8Weights int8_pack(const Int8Shape *s, const Isa *isa, const int16_t *w, void *memory) {
    Packing    k = packing(s, isa, w);
    PackLayout l = pack_layout(&k, count_extra(&k));
    char      *at = memory;
    size_t     quad = (size_t)k.p.lanes * INT8_QUAD;
    int8_t    *to = (int8_t *)at, *extra = (int8_t *)at + l.extra_quads;
    uint32_t  *index = (uint32_t *)(void *)(at + l.extra_index), n = 0;
    uint32_t  *start = (uint32_t *)(void *)(at + l.extra_start);
    int32_t   *sums = (int32_t *)(void *)(at + l.sums);
    memset(sums, 0, l.end - l.sums);
    for (uint32_t v = 0; v < k.p.groups * k.p.vecs; v++) {
        start[v] = n;
        for (uint32_t q = 0; q < k.p.quads; q++, to += quad) {
            int16_t rest[MOST_LANES * INT8_QUAD];
            gather_quad(&k, v, q, rest);
            add_sums(k.p.lanes, rest, sums + (size_t)v * k.p.lanes);
            if (!take_quad(&k, rest, to)) continue;
            bool more = true;
            while (more) {
                more = take_quad(&k, rest, extra + n * quad);
                index[n++] = q;
            }
        }
    }
    start[k.p.groups * k.p.vecs] = n;
    return (Int8Weights){(int8_t *)at, extra, index, start, sums};
}

// Versions.

typedef struct List {
    const Int8Shape  *s;
    const Isa        *isa;
    const CacheSizes *caches;
    Int8Plan          p;
    Version          *out;
    uint32_t          n, max;
} List;

// Cycles per quad of all tiles: two multiplications per row and vector at two per cycle, two loads
// per cycle.
static double tile_cycles(const List *l, uint32_t rows, uint32_t vecs) {
    uint32_t tiles = ceil_div(l->p.pixels, rows), panels = ceil_div(l->p.vecs, vecs);
    double   sum = 0;
    for (uint32_t i = 0; i < 2; i++) {  // full panels, then the last one
        uint32_t v = i == 0 ? vecs : l->p.vecs - (panels - 1) * vecs;
        double   r = (double)l->p.pixels / tiles;
        double   one = fmax(r * v, (r + r * v) / 2) + 0.5;
        sum += one * tiles * (i == 0 ? panels - 1 : 1);
    }
    return sum;
}

static uint16_t block_of(uint32_t n, size_t fits, uint32_t unit) {
    uint32_t top = UINT16_MAX / unit * unit;
    if (fits > top) fits = top;
    uint32_t blocks = ceil_div(n, max_u32((uint32_t)fits / unit, 1) * unit);
    uint32_t size = ceil_div(ceil_div(n, max_u32(blocks, 1)), unit) * unit;
    return (uint16_t)max_u32(min_u32(size, top), unit);
}

static Version basic(const List *l, uint32_t rows, uint32_t vecs, BlockOrder order, Split split) {
    (void)l;
    return (Version){.algo = ALGO_INT8,
                     .order = (uint8_t)order,
                     .split = (uint8_t)split,
                     .tile_rows = (uint8_t)rows,
                     .tile_vecs = (uint8_t)vecs};
}

enum { FEW = 4, LARGE = 1 << 20 };  // tasks; multiplications

static bool is_large(const Int8Plan *p) {
    return (double)p->pixels * p->vecs * p->lanes * p->quads * INT8_QUAD >= LARGE;
}

// Units of rows with inputs and outputs of that many bytes.
static size_t rows_fit(const List *l, size_t bytes) {
    const Int8Plan *p = &l->p;
    size_t          in = (size_t)p->ic * l->s->conv.sh * l->s->conv.sw + (size_t)p->vecs * p->lanes;
    return bytes / max_u32((uint32_t)(in * p->unit), 1);
}

// Rows per task; fewer than fit, if a large layer would have less than FEW tasks.
static uint16_t rows_of(const List *l, size_t bytes, uint32_t rows) {
    const Int8Plan *p = &l->p;
    const uint32_t  units = p->pixels / p->unit;
    size_t          fits = rows_fit(l, bytes), share = ceil_div(units, FEW);
    if (is_large(p) && fits > share) fits = p->unit == 1 ? round_up((uint32_t)share, rows) : share;
    return block_of(units, fits, p->unit == 1 ? rows : 1);
}

// Whether a share of the pixels is only a few tiles, of which the last ones are not full, while the
// output channels can be shared out instead.
static bool prefers_columns(const Int8Plan *p, uint32_t rows, uint32_t vecs) {
    enum { TILES = 16 };
    return is_large(p) && p->pixels < FEW * TILES * rows && ceil_div(p->vecs, vecs) >= FEW;
}

// All pixels by a share of the output channels.
static Version shared_columns(const List *l, uint32_t rows, uint32_t vecs, size_t fit_vecs) {
    const Int8Plan *p = &l->p;
    Version         v = basic(l, rows, vecs, ORDER_WEIGHT_STATIONARY, SPLIT_COLUMNS);
    size_t          share = ceil_div(p->vecs, FEW);
    v.rows = block_of(p->pixels / p->unit, rows_fit(l, l->caches->l2 / 2), p->unit == 1 ? rows : 1);
    v.columns = block_of(p->vecs, fit_vecs < share ? fit_vecs : share, vecs);
    return v;
}

static void add_tile(List *l, uint32_t rows, uint32_t vecs) {
    size_t panel = (size_t)l->p.quads * INT8_QUAD * l->p.lanes, l2 = l->caches->l2;
    if (prefers_columns(&l->p, rows, vecs))
        version_add(shared_columns(l, rows, vecs, l2 / 2 / panel), l->out, &l->n, l->max);
    Version v = basic(l, rows, vecs, ORDER_WEIGHT_STATIONARY, SPLIT_ROWS);
    v.rows = rows_of(l, l2 / 2, rows);
    Version few = basic(l, rows, vecs, ORDER_WEIGHT_STATIONARY, SPLIT_COLUMNS);
    few.rows = rows_of(l, l2 / 2, rows);
    few.columns = block_of(l->p.vecs, l2 / 2 / panel, vecs);
    Version both = few;
    both.split = SPLIT_BOTH;
    both.rows = rows_of(l, l2 / 8, rows);
    both.columns = block_of(l->p.vecs, (size_t)4 * vecs, vecs);
    Version input = basic(l, rows, vecs, ORDER_INPUT_STATIONARY, SPLIT_ROWS);
    input.rows = rows_of(l, l2 / 8, rows);
    bool tall = l->p.pixels > rows && panel * l->p.vecs < l2;
    version_add(tall ? v : few, l->out, &l->n, l->max);
    version_add(tall ? few : v, l->out, &l->n, l->max);
    version_add(both, l->out, &l->n, l->max);
    if (l->p.pixels > rows) version_add(input, l->out, &l->n, l->max);
}

uint32_t int8_versions(const Int8Shape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                       uint32_t max) {
    List l = {s, isa, caches, int8_plan(s, &(Version){0}, isa->lanes, isa->registers), out, 0, max};
    uint8_t  order[INT8_TILE_VECS];
    double   cost[INT8_TILE_VECS];
    uint32_t n = 0;
    for (uint32_t v = 1; v <= min_u32(l.p.vecs, INT8_TILE_VECS); v++) {
        double c = tile_cycles(&l, min_u32(int8_tile_most_rows(isa->registers, v), l.p.pixels), v);
        uint32_t at = n++;
        for (; at > 0 && c <= cost[at - 1]; at--)
            cost[at] = cost[at - 1], order[at] = order[at - 1];
        cost[at] = c;
        order[at] = (uint8_t)v;
    }
    for (uint32_t i = 0; i < n; i++)
        add_tile(&l, min_u32(int8_tile_most_rows(isa->registers, order[i]), l.p.pixels), order[i]);
    return l.n;
}

// Weights are read once per block of rows if they do not stay in L2, inputs once per group of
// columns of another part.
Traffic int8_traffic(const Int8Shape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts) {
    Int8Plan p = int8_plan(s, v, isa->lanes, isa->registers);
    size_t   weights = (size_t)p.groups * p.vecs * p.quads * INT8_QUAD * p.lanes;
    size_t   input = (size_t)s->conv.n * s->conv.ih * s->conv.iw * s->x_pitch;
    size_t   output = (size_t)s->conv.n * p.pixels * s->y_pitch, hot = 0;
    uint32_t by_columns = v->split == SPLIT_COLUMNS ? min_u32(parts, p.col_groups) : 1;
    uint32_t by_rows = v->split == SPLIT_COLUMNS ? 1 : min_u32(parts, p.row_blocks);
    size_t   own = weights / max_u32(by_columns, 1);
    uint32_t visits = v->split == SPLIT_COLUMNS || own <= caches->l2 / 2 ? by_rows : p.row_blocks;
    if (visits > 1) hot += weights;
    if (by_columns > 1) hot += input;
    return (Traffic){hot, weights * max_u32(visits, 1) + input * max_u32(by_columns, 1) + output};
}

double int8_cycles(const Int8Shape *s, const Isa *isa, const Version *v, uint32_t parts) {
    enum { OUTPUT = 8, TILE = 30 };  // cycles: requantising a vector, starting a tile
    Int8Plan p = int8_plan(s, v, isa->lanes, isa->registers);
    double   rows = (double)p.block_units * p.unit, vecs = (double)p.vecs / p.col_groups;
    double   task = rows * vecs * (p.quads + (double)OUTPUT);
    task += rows / p.tile_rows * vecs / p.tile_vecs * TILE + (double)p.slab_bytes / 16;
    return task * (parts > 1 ? ceil_div(p.tasks, parts) : p.tasks);
}
