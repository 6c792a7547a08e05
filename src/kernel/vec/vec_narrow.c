// Weights of 16, 8 and 4 bits, widened to floats: in registers for products of few rows, which are
// bound by the bandwidth of the weights, or as panels that products of many rows then read.
#include "kernel/narrow_weights.h"
#include "kernel/vec/vec_half.h"
#include "kernel/vec/vec_int.h"

#define UNROLL VEC_UNROLL(16)

// Number i of each word, times 2^(bits * i) unless it is the last: the mask leaves it where it is.
VEC_INLINE Vf number_at(Vi words, const uint32_t i, const uint32_t bits) {
    if (i == 32 / bits - 1) return __builtin_convertvector((Vi)((Vu)words >> (32 - bits)), Vf);
    return __builtin_convertvector(words & vi_set((int32_t)(((1U << bits) - 1) << bits * i)), Vf);
}

// What a factor of number i is multiplied by to make up for its place in the word.
VEC_INLINE float place_scale(const uint32_t i, const uint32_t bits) {
    return i == 32 / bits - 1 ? 1 : 1.0F / (float)(1U << bits * i);
}

VEC_INLINE Vf load_half(const uint16_t *p, const GemmWeights kind) {
    return kind == GEMM_F16 ? vf_load_f16(p) : vf_load_bf16(p);
}

VEC_INLINE void widen_half(const uint16_t *from, uint32_t k, const GemmWeights kind, float *to) {
    for (size_t i = 0; i < (size_t)k * VEC_LANES; i += VEC_LANES)
        vf_store(to + i, load_half(from + i, kind));
}

// Scale and offset of a block of one panel.
typedef struct BlockScale {
    Vf scale, offset;
} BlockScale;

VEC_INLINE BlockScale block_scale(const GemmShape *s, const char *block, const uint32_t bits) {
    const float *at = (const float *)(const void *)block;
    const Vf     scale = vf_load(at);
    return (BlockScale){scale,
                        s->zeros ? vf_load(at + VEC_LANES) : -(float)(1U << (bits - 1)) * scale};
}

VEC_INLINE const int32_t *block_words(const GemmShape *s, const char *block) {
    return (const int32_t *)(const void *)block + (s->zeros ? 2 : 1) * VEC_LANES;
}

VEC_INLINE void widen_panel(const GemmShape *s, const char *panel, const uint32_t bits, float *to) {
    const uint32_t per = 32 / bits;
    for (uint32_t k = 0; k < s->k; k += s->block, panel += narrow_block_bytes(s, VEC_LANES)) {
        const BlockScale b = block_scale(s, panel, bits);
        const int32_t   *words = block_words(s, panel);
        uint32_t         end = min_u32(s->k - k, s->block), i = 0;
        for (; i + per <= end; i += per, words += VEC_LANES) {
            const Vi w = *(const ViAny *)words;
            UNROLL for (uint32_t j = 0; j < per; j++, to += VEC_LANES)
                vf_store(to, number_at(w, j, bits) * (b.scale * place_scale(j, bits)) + b.offset);
        }
        for (uint32_t j = 0; i + j < end; j++, to += VEC_LANES) {
            const Vi w = (Vi)((Vu) * (const ViAny *)words >> (j * bits)) & vi_set((1 << bits) - 1);
            vf_store(to, __builtin_convertvector(w, Vf) * b.scale + b.offset);
        }
    }
}

void VEC(narrow_widen)(const GemmShape *s, const void *weights, uint32_t column, uint32_t columns,
                       float *to) {
    size_t panel = narrow_panel_bytes(s, VEC_LANES);
    for (uint32_t i = 0; i < columns; i++, to += (size_t)s->k * VEC_LANES) {
        const char *from = (const char *)weights + (column + i) * panel;
        switch (s->weights) {
        case GEMM_U4: widen_panel(s, from, 4, to); break;
        case GEMM_U8: widen_panel(s, from, 8, to); break;
        case GEMM_F16: widen_half((const void *)from, s->k, GEMM_F16, to); break;
        case GEMM_BF16:
        case GEMM_F32:
        default: widen_half((const void *)from, s->k, GEMM_BF16, to); break;
        }
    }
}

// Products of few rows: the operands of one part.
typedef struct Rows {
    const Gemm  *g;
    const float *a;  // rows, of integers scaled by their place in a word and padded to blocks
    size_t       a_row;
    const float *sums;          // of a by block: [rows][blocks]
    size_t       panel, block;  // bytes
} Rows;

static void scale_row(const GemmShape *s, const float *a, float *to, float *sums) {
    uint32_t bits = narrow_bits(s), per = 32 / bits, block = s->block;
    for (uint32_t i = 0; i < narrow_depth(s); i++) {
        float x = i < s->k ? a[i] : 0;
        if (i % block == 0) sums[i / block] = 0;
        sums[i / block] += x;
        to[i] = x * place_scale(i % per, bits);
    }
}

static Rows prepare(const Gemm *g, float *scratch) {
    const GemmShape *s = &g->shape;
    GemmScratch      l = gemm_scratch_layout(s, &g->version, VEC_LANES);
    Rows             r = {.g = g, .a = g->a, .a_row = s->a.row};
    r.panel = narrow_panel_bytes(s, VEC_LANES);
    if (!narrow_has_blocks(s)) return r;
    r.block = narrow_block_bytes(s, VEC_LANES);
    r.a = scratch;
    r.a_row = l.copy_row;
    r.sums = scratch + l.sums;
    for (uint32_t i = 0; i < s->m; i++)
        scale_row(s, g->a + i * s->a.row, scratch + i * l.copy_row,
                  scratch + l.sums + (size_t)i * narrow_blocks(s));
    return r;
}

// Adds the products of one block to acc. One row has two sums per vector: more FMAs in flight.
VEC_INLINE void add_block(const Rows *r, const char *w, uint32_t b, const uint32_t bits,
                          const uint32_t rows, const uint32_t vecs, Vf *acc) {
    const GemmShape *s = &r->g->shape;
    const uint32_t   per = 32 / bits, sets = rows == 1 ? 2 : 1;
    const int32_t   *words = block_words(s, w);
    const float     *a = r->a + (size_t)b * s->block;
    const size_t     panel = r->panel / sizeof *words;
    Vf               sum[2 * GEMM_WIDEN_ROWS * 2] = {0};
    for (uint32_t k = 0; k < s->block; k += per, words += VEC_LANES, a += per) {
        Vi q[4];
        UNROLL for (uint32_t v = 0; v < vecs; v++) q[v] = *(const ViAny *)(words + v * panel);
        UNROLL for (uint32_t i = 0; i < per; i++) {
            Vf x[4];
            UNROLL for (uint32_t v = 0; v < vecs; v++) x[v] = number_at(q[v], i, bits);
            UNROLL for (uint32_t j = 0; j < rows; j++) {
                const Vf y = vf_set(a[j * r->a_row + i]);
                UNROLL for (uint32_t v = 0; v < vecs; v++) sum[(i % sets * rows + j) * vecs + v] +=
                    y * x[v];
            }
        }
    }
    UNROLL for (uint32_t v = 0; v < vecs; v++) {
        const BlockScale c = block_scale(s, w + v * r->panel, bits);
        UNROLL for (uint32_t j = 0; j < rows; j++) {
            const uint32_t at = j * vecs + v;
            Vf             all = sum[at];
            if (sets == 2) all += sum[vecs + at];
            acc[at] += all * c.scale + c.offset * r->sums[(size_t)j * narrow_blocks(s) + b];
        }
    }
}

VEC_INLINE void add_blocks(const Rows *r, uint32_t column, const uint32_t bits, const uint32_t rows,
                           const uint32_t vecs, Vf *acc) {
    const char *w = (const char *)r->g->b + column * r->panel;
    for (uint32_t b = 0; b < narrow_blocks(&r->g->shape); b++, w += r->block)
        add_block(r, w, b, bits, rows, vecs, acc);
}

VEC_INLINE void add_halves(const Rows *r, uint32_t column, const GemmWeights kind,
                           const uint32_t rows, const uint32_t vecs, Vf *acc) {
    const uint16_t *w = (const uint16_t *)r->g->b + column * r->panel / sizeof *w;
    const uint32_t  depth = r->g->shape.k, steps = rows == 1 ? 2 : 1;
    Vf              sum[2 * GEMM_WIDEN_ROWS * 2] = {0};
    uint32_t        k = 0;
    for (; k + steps <= depth; k += steps)
        UNROLL for (uint32_t i = 0; i < steps; i++) UNROLL for (uint32_t v = 0; v < vecs; v++) {
            const Vf x =
                load_half(w + v * r->panel / sizeof *w + (size_t)(k + i) * VEC_LANES, kind);
            UNROLL for (uint32_t j = 0; j < rows; j++) sum[(i * rows + j) * vecs + v] +=
                vf_set(r->a[j * r->a_row + k + i]) * x;
        }
    for (; k < depth; k++)
        UNROLL for (uint32_t v = 0; v < vecs; v++) sum[v] +=
            vf_set(r->a[k]) * load_half(w + v * r->panel / sizeof *w + (size_t)k * VEC_LANES, kind);
    UNROLL for (uint32_t i = 0; i < rows * vecs; i++) acc[i] =
        steps == 2 ? sum[i] + sum[rows * vecs + i] : sum[i];
}

VEC_INLINE void store_cell(const Rows *r, uint32_t column, const uint32_t rows, const uint32_t vecs,
                           const Vf *acc) {
    const Gemm     *g = r->g;
    const Epilogue *f = &g->epilogue;
    const Vf        lo = vf_set(f->lo), hi = vf_set(f->hi);
    for (uint32_t v = 0; v < vecs; v++) {
        uint32_t at = (column + v) * VEC_LANES, n = min_u32(g->shape.n - at, VEC_LANES);
        const Vf bias = f->bias != NULL ? vf_load(f->bias + at) : vf_set(0);
        for (uint32_t j = 0; j < rows; j++) {
            size_t to = j * g->shape.y.row + at;
            Vf     x = acc[j * vecs + v] + bias;
            if (f->add != NULL) x += vf_load_part(f->add + to, n);
            vf_store_part(g->y + to, vf_min(hi, vf_max(lo, x)), n);
        }
    }
}

VEC_INLINE void cell(const Rows *r, uint32_t column, const uint32_t rows, const uint32_t vecs) {
    Vf acc[GEMM_WIDEN_ROWS * 2] = {0};
    switch (r->g->shape.weights) {
    case GEMM_U4: add_blocks(r, column, 4, rows, vecs, acc); break;
    case GEMM_U8: add_blocks(r, column, 8, rows, vecs, acc); break;
    case GEMM_F16: add_halves(r, column, GEMM_F16, rows, vecs, acc); break;
    case GEMM_BF16:
    case GEMM_F32:
    default: add_halves(r, column, GEMM_BF16, rows, vecs, acc); break;
    }
    store_cell(r, column, rows, vecs, acc);
}

static void one_row_cells(const Rows *r, uint32_t from, uint32_t end) {
    for (; from + 4 <= end; from += 4) cell(r, from, 1, 4);
    for (; from < end; from++) cell(r, from, 1, 1);
}

#define ROW_CELLS(n)                                                                               \
    static void row_cells_##n(const Rows *r, uint32_t from, uint32_t end) {                        \
        for (; from + 2 <= end; from += 2) cell(r, from, n, 2);                                    \
        for (; from < end; from++) cell(r, from, n, 1);                                            \
    }
ROW_CELLS(2)
ROW_CELLS(3)
ROW_CELLS(4)
#undef ROW_CELLS

void VEC(narrow_rows)(const Gemm *g, Part part) {
    const GemmShape *s = &g->shape;
    const GemmGrid   grid = gemm_grid(s, &g->version, VEC_LANES);
    uint32_t         t, end, vectors = ceil_div(s->n, VEC_LANES);
    part_range(part, grid.across, &t, &end);
    if (t == end) return;
    Rows     r = prepare(g, part.scratch);
    uint32_t from = t * grid.columns, to = min_u32(end * grid.columns, vectors);
    switch (s->m) {
    case 1: one_row_cells(&r, from, to); break;
    case 2: row_cells_2(&r, from, to); break;
    case 3: row_cells_3(&r, from, to); break;
    default: row_cells_4(&r, from, to); break;
    }
    if (g->epilogue.program == NULL) return;
    uint32_t column = from * VEC_LANES;
    VEC(gemm_program)(g, 0, 0, s->m, column, min_u32(s->n, to * VEC_LANES) - column);
}
