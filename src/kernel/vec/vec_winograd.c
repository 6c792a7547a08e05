// Winograd convolution: input transform, one matrix product per point, output transform.
#include "kernel/winograd.h"

#include "base/err.h"
#include "kernel/vec/vec_int.h"

winograd_fn VEC(winograd);

// Adjacent tiles in one row of tiles of one image.
typedef struct WinogradRow {
    uint32_t image, y, x, n;
} WinogradRow;

VEC_INLINE WinogradRow winograd_row(const WinogradPlan *p, uint32_t tile, uint32_t end,
                                    uint32_t most) {
    WinogradRow r = {.x = tile % p->tiles_x, .n = end - tile};
    uint32_t    row = tile / p->tiles_x;
    r.image = row / p->tiles_y;
    r.y = row % p->tiles_y;
    if (r.n > p->tiles_x - r.x) r.n = p->tiles_x - r.x;
    if (r.n > most) r.n = most;
    return r;
}

// F(4x4, 3x3) uses the points 0, +-WINOGRAD_P, +-WINOGRAD_Q and infinity: among points with
// squares and cubes that are exact floats, these have about the smallest rounding error.
#define WINOGRAD_P 0.625F
#define WINOGRAD_Q 1.5F

// The values along one direction of a tile: six, or four with e and f unused.
typedef struct Six {
    Vf a, b, c, d, e, f;
} Six;

VEC_INLINE Six six_load(const float *at, size_t stride, const uint32_t n) {
    const Vf none = {0};
    return (Six){vf_load(at),
                 vf_load(at + stride),
                 vf_load(at + 2 * stride),
                 vf_load(at + 3 * stride),
                 n > 4 ? vf_load(at + 4 * stride) : none,
                 n > 4 ? vf_load(at + 5 * stride) : none};
}

VEC_INLINE void six_store(float *at, size_t stride, Six v, const uint32_t n) {
    vf_store(at, v.a);
    if (n > 1) vf_store(at + stride, v.b);
    if (n > 2) vf_store(at + 2 * stride, v.c);
    if (n > 3) vf_store(at + 3 * stride, v.d);
    if (n > 4) vf_store(at + 4 * stride, v.e);
    if (n > 5) vf_store(at + 5 * stride, v.f);
}

// A strip is this many tiles wide; channel blocks that share a cache line of results are
// transformed together. Strip and results stay in L1.
enum { STRIP_TILES = 8, STRIP_COLUMNS_MAX = STRIP_TILES * 4 + 2, CHANNEL_BLOCKS = 16 / VEC_LANES };

static _Alignas(64) const float zeros[STRIP_COLUMNS_MAX * VEC_LANES];

// Input transform along one direction: values at the points.
VEC_INLINE Six evaluate(Six x, const uint32_t m) {
    Six v = {0};
    if (m == 2) {
        v.a = x.c - x.a;
        v.b = x.c + x.b;
        v.c = x.c - x.b;
        v.d = x.d - x.b;
        return v;
    }
    const Vf p = vf_set(WINOGRAD_P), pp = p * p, q = vf_set(WINOGRAD_Q), qq = q * q;
    const Vf even_p = x.e - qq * x.c, odd_p = x.d - qq * x.b;
    const Vf even_q = x.e - pp * x.c, odd_q = x.d - pp * x.b;
    v.a = even_q - qq * (x.c - pp * x.a);
    v.b = even_p + p * odd_p;
    v.c = even_p - p * odd_p;
    v.d = even_q + q * odd_q;
    v.e = even_q - q * odd_q;
    v.f = (x.f - pp * x.d) - qq * odd_q;
    return v;
}

// Transforms the columns of a row of tiles to strip[column][point]. Columns outside the image are
// 0.
VEC_INLINE void fill_strip(const ConvShape *s, const float *plane, const uint32_t m, WinogradRow r,
                           float *strip) {
    const uint32_t t = m + 2;
    const int32_t  top = (int32_t)(r.y * m) - (int32_t)s->pt;
    const int32_t  left = (int32_t)(r.x * m) - (int32_t)s->pl, n = (int32_t)(r.n * m + 2);
    const int32_t  width = (int32_t)s->iw, height = (int32_t)s->ih;
    int32_t        first = left < 0 ? -left : 0, last = left + n > width ? width - left : n;
    if (first > n) first = n;
    if (last < first) last = first;
    const float *from[6];
    for (int32_t i = 0; i < 6; i++) {
        const int32_t y = top + i;
        const bool    inside = i < (int32_t)t && y >= 0 && y < height && first < last;
        from[i] = inside ? plane + ((size_t)y * s->iw + (size_t)(left + first)) * VEC_LANES : zeros;
    }
    const size_t step = (size_t)t * VEC_LANES;
    memset(strip, 0, (size_t)first * step * sizeof *strip);
    float *to = strip + (size_t)first * step;
    for (size_t at = 0; at < (size_t)(last - first) * VEC_LANES; at += VEC_LANES, to += step) {
        Six x = {vf_load(from[0] + at), vf_load(from[1] + at), vf_load(from[2] + at),
                 vf_load(from[3] + at), vf_load(from[4] + at), vf_load(from[5] + at)};
        six_store(to, VEC_LANES, evaluate(x, m), t);
    }
    memset(to, 0, (size_t)(n - last) * step * sizeof *strip);
}

// Transforms the rows of one tile to inputs[row point][column point].
VEC_INLINE void fill_tile(const float *strip, const uint32_t m, size_t stride, float *inputs) {
    const uint32_t t = m + 2;
    for (uint32_t i = 0; i < t; i++) {
        Six x = six_load(strip + (size_t)i * VEC_LANES, (size_t)t * VEC_LANES, t);
        six_store(inputs + i * t * stride, stride, evaluate(x, m), t);
    }
}

VEC_INLINE void transform_inputs(const Winograd *w, const WinogradPlan *p, const uint32_t m,
                                 uint32_t begin, uint32_t end, uint32_t channel, uint32_t channels,
                                 float *inputs) {
    const ConvShape   *s = &w->shape;
    const size_t       plane = (size_t)s->ih * s->iw * VEC_LANES;
    _Alignas(64) float strip[STRIP_COLUMNS_MAX * 6 * VEC_LANES];
    WinogradRow        r;
    for (uint32_t tile = begin; tile < end; tile += r.n) {
        r = winograd_row(p, tile, end, STRIP_TILES);
        for (uint32_t c = channel; c < channel + channels; c++) {
            fill_strip(s, w->x + ((size_t)r.image * p->channels + c) * plane, m, r, strip);
            for (uint32_t i = 0; i < r.n; i++)
                fill_tile(strip + (size_t)(i * m * (m + 2)) * VEC_LANES, m, p->point_stride,
                          inputs + (tile - begin + i) * p->tile_stride + c * VEC_LANES);
        }
    }
}

// Transforms tiles [begin, end) of the batch, all input channels, to the plan's layout of inputs.
static void input_transform(const Winograd *w, const WinogradPlan *p, uint32_t begin, uint32_t end,
                            float *inputs) {
    for (uint32_t c = 0; c < p->channels; c += CHANNEL_BLOCKS) {
        uint32_t n = p->channels - c < CHANNEL_BLOCKS ? p->channels - c : CHANNEL_BLOCKS;
        if (p->m == 2)
            transform_inputs(w, p, 2, begin, end, c, n, inputs);
        else
            transform_inputs(w, p, 4, begin, end, c, n, inputs);
    }
}

// The outputs of one tile.
typedef struct TileOutput {
    const float *add;  // NULL: none
    float       *y;
    size_t       stride;         // floats between output rows
    uint32_t     rows, columns;  // inside the image
} TileOutput;

// Output transform along one direction: from values at the points to the m outputs.
VEC_INLINE Six interpolate(Six x, const uint32_t m) {
    Six y = {0};
    if (m == 2) {
        y.a = x.a + (x.b + x.c);
        y.b = x.d + (x.b - x.c);
        return y;
    }
    const Vf p = vf_set(WINOGRAD_P), pp = p * p, q = vf_set(WINOGRAD_Q), qq = q * q;
    const Vf ppp = pp * p, qqq = qq * q;
    const Vf even_p = x.b + x.c, odd_p = x.b - x.c, even_q = x.d + x.e, odd_q = x.d - x.e;
    y.a = x.a + (even_p + even_q);
    y.b = p * odd_p + q * odd_q;
    y.c = pp * even_p + qq * even_q;
    y.d = ppp * odd_p + (qqq * odd_q + x.f);
    return y;
}

VEC_INLINE void store_output(const TileOutput *to, size_t at, Vf v, Vf lo, Vf hi) {
    if (to->add != NULL) v += vf_load(to->add + at);
    vf_store(to->y + at, vf_min(hi, vf_max(lo, v)));
}

VEC_INLINE void one_tile(const float *products, const uint32_t m, Vf bias, Vf lo, Vf hi,
                         const TileOutput *to) {
    const uint32_t     t = m + 2;
    _Alignas(64) float half[4 * 6 * VEC_LANES];
    for (uint32_t j = 0; j < t; j++) {
        Six x = six_load(products + (size_t)j * VEC_LANES, (size_t)t * VEC_LANES, t);
        six_store(half + (size_t)j * VEC_LANES, (size_t)t * VEC_LANES, interpolate(x, m), m);
    }
    for (uint32_t i = 0; i < to->rows; i++) {
        Six    x = six_load(half + (size_t)(i * t) * VEC_LANES, VEC_LANES, t);
        Six    y = interpolate(x, m);
        size_t at = i * to->stride;
        store_output(to, at, y.a + bias, lo, hi);
        if (to->columns > 1) store_output(to, at + VEC_LANES, y.b + bias, lo, hi);
        if (m > 2 && to->columns > 2) store_output(to, at + 2 * VEC_LANES, y.c + bias, lo, hi);
        if (m > 2 && to->columns > 3) store_output(to, at + 3 * VEC_LANES, y.d + bias, lo, hi);
    }
}

// One tile and one vector of output channels. Whole tiles take a specialised copy without bounds.
VEC_INLINE void output_tile(const Winograd *w, const uint32_t m, const float *products, size_t at,
                            uint32_t vec, uint32_t rows, uint32_t columns) {
    const Epilogue *f = &w->epilogue;
    const Vf        bias = f->bias != NULL ? vf_load(f->bias + vec * VEC_LANES) : (Vf){0};
    const Vf        lo = vf_set(f->lo), hi = vf_set(f->hi);
    TileOutput      to = {f->add != NULL ? f->add + at : NULL, w->y + at,
                     (size_t)w->shape.ow * VEC_LANES, rows, columns};
    if (rows < m || columns < m) {
        one_tile(products, m, bias, lo, hi, &to);
        return;
    }
    to.rows = to.columns = m;
    if (to.add == NULL)  // NOLINT(bugprone-branch-clone): each copy is inlined for its own case
        one_tile(products, m, bias, lo, hi, &to);
    else
        one_tile(products, m, bias, lo, hi, &to);
}

VEC_INLINE void transform_outputs(const Winograd *w, const WinogradPlan *p, const uint32_t m,
                                  uint32_t begin, uint32_t end, uint32_t first, uint32_t last,
                                  const float *products) {
    const ConvShape *s = &w->shape;
    WinogradRow      r;
    for (uint32_t tile = begin; tile < end; tile += r.n) {
        r = winograd_row(p, tile, end, UINT32_MAX);
        const uint32_t rows = min_u32(m, s->oh - r.y * m);
        for (uint32_t i = 0; i < r.n; i++) {
            const uint32_t x = (r.x + i) * m;
            const float   *from = products + (tile - begin + i) * p->product_stride;
            for (uint32_t v = first; v < last; v++, from += p->points * VEC_LANES) {
                size_t plane = ((size_t)r.image * p->vecs + v) * s->oh + r.y * m;
                output_tile(w, m, from, (plane * s->ow + x) * VEC_LANES, v, rows,
                            min_u32(m, s->ow - x));
            }
        }
    }
}

static void run_program(const Winograd *w, const WinogradPlan *p, uint32_t begin, uint32_t end,
                        uint32_t first, uint32_t last) {
    const ConvShape *s = &w->shape;
    WinogradRow      r;
    for (uint32_t tile = begin; tile < end; tile += r.n) {
        r = winograd_row(p, tile, end, UINT32_MAX);
        const uint32_t top = r.y * p->m, bottom = min_u32(s->oh, top + p->m);
        const uint32_t left = r.x * p->m, right = min_u32(s->ow, left + r.n * p->m);
        for (uint32_t v = first; v < last; v++)
            for (uint32_t y = top; y < bottom; y++) {
                size_t row = ((size_t)r.image * p->vecs + v) * s->oh + y;
                epilogue_span(&w->epilogue, w->y, (row * s->ow + left) * VEC_LANES,
                              (size_t)v * VEC_LANES, (size_t)(right - left) * VEC_LANES);
            }
    }
}

// Transforms products of tiles [begin, end) and output-channel vectors [first, last) to results in
// y.
static void output_transform(const Winograd *w, const WinogradPlan *p, uint32_t begin, uint32_t end,
                             uint32_t first, uint32_t last, const float *products) {
    if (p->m == 2)
        transform_outputs(w, p, 2, begin, end, first, last, products);
    else
        transform_outputs(w, p, 4, begin, end, first, last, products);
    if (w->epilogue.program != NULL) run_program(w, p, begin, end, first, last);
}

typedef struct Job {
    const Winograd *w;
    WinogradPlan    p;
    float          *inputs, *products;
    const float   **rows;  // transformed channels of each tile of the block
} Job;

// Register tile code for both group sizes, `vecs` vectors wide.
typedef struct Runs {
    TileFn *longer, *shorter;
} Runs;

static Runs runs_of(const EvenSplit *high, uint32_t vecs) {
    return (Runs){high->longer > 0 ? VEC(tile_find)(high->size + 1, vecs) : NULL,
                  VEC(tile_find)(high->size, vecs)};
}

// All groups of tiles with one group of vectors; t has the weights and the out of the first tile.
static void multiply_rows(const Job *j, Tile *t, const EvenSplit *high, const Runs *runs,
                          size_t next) {
    t->rows = j->rows;
    for (uint32_t r = 0; r < high->n; r++) {
        const bool     longer = r < high->longer;
        const uint32_t rows = high->size + longer;
        t->prefetch = next + (r > 0) * (size_t)t->depth * VEC_LANES / 2;
        TileFn *const run = longer ? runs->longer : runs->shorter;
        if (run != NULL) run(t);
        t->rows += rows;
        t->out += rows * t->row_stride;
    }
}

// Matrix products of all tiles of the block with output-channel vectors [first, last), at all
// points.
static void multiply(const Job *j, uint32_t tiles, uint32_t first, uint32_t last) {
    const WinogradPlan *p = &j->p;
    const size_t        panel = (size_t)j->w->shape.ic * VEC_LANES;
    const EvenSplit     high = even_split(tiles, j->w->version.tile_rows);
    const EvenSplit     wide = even_split(last - first, j->w->version.tile_vecs);
    const Runs          shorter = runs_of(&high, wide.size);
    const Runs          longer = wide.longer > 0 ? runs_of(&high, wide.size + 1) : shorter;
    int32_t             term;
    Tile                t = {.terms = &term,
                             .n_terms = 1,
                             .depth = j->w->shape.ic,
                             .weight_stride = p->points * panel,
                             .row_stride = p->product_stride,
                             .vec_stride = p->points * VEC_LANES};
    for (uint32_t i = 0; i < p->points; i++) {
        // The weights after the last point are those of the next columns' first point.
        const bool   end = i + 1 == p->points;
        const size_t next = end ? (last - first) * t.weight_stride - i * panel : panel;
        term = (int32_t)(i * p->point_stride);
        for (uint32_t c = 0, vec = 0; c < wide.n; c++) {
            t.weights = j->w->weights + (first + vec) * t.weight_stride + i * panel;
            t.out = j->products + vec * t.vec_stride + i * VEC_LANES;
            multiply_rows(j, &t, &high, c < wide.longer ? &longer : &shorter, next);
            vec += wide.size + (c < wide.longer);
        }
    }
}

static void run_task(const Job *j, uint32_t block, uint32_t strip, bool fresh) {
    uint32_t begin, end, first, last;
    part_range((Part){block, j->p.blocks, NULL}, j->p.tiles, &begin, &end);
    part_range((Part){strip, j->p.strips, NULL}, j->p.vecs, &first, &last);
    if (fresh) input_transform(j->w, &j->p, begin, end, j->inputs);
    multiply(j, end - begin, first, last);
    output_transform(j->w, &j->p, begin, end, first, last, j->products);
}

// A part is a rectangle of blocks and strips, or a contiguous range of all of them.
void VEC(winograd)(const Winograd *w, Part part) {
    Job      j = {.w = w, .p = winograd_plan(&w->shape, VEC_LANES, &w->version)};
    uint32_t block = 0, blocks = j.p.blocks, strip = 0, strips = j.p.strips, begin = 0, end;
    CHECK(j.p.inputs <= INT32_MAX);  // point offsets are int32_t terms of a tile
    j.inputs = part.scratch;
    j.products = j.inputs + j.p.inputs;
    j.rows = (const float **)(j.products + j.p.products);
    for (uint32_t i = 0; i < j.p.most; i++) j.rows[i] = j.inputs + i * j.p.tile_stride;
    if (w->version.split == SPLIT_ROWS) part_range(part, j.p.blocks, &block, &blocks);
    if (w->version.split == SPLIT_COLUMNS) part_range(part, j.p.strips, &strip, &strips);
    blocks -= block;
    strips -= strip;
    end = blocks * strips;
    if (w->version.split == SPLIT_BOTH) part_range(part, blocks * strips, &begin, &end);
    uint32_t ready = UINT32_MAX;
    for (uint32_t i = begin; i < end; i++) {
        bool     by_block = w->version.order == ORDER_INPUT_STATIONARY;
        uint32_t b = block + (by_block ? i / strips : i % blocks);
        uint32_t s = strip + (by_block ? i % strips : i / blocks);
        run_task(&j, b, s, b != ready);
        ready = b;
    }
}
