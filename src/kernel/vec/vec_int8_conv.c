#include <math.h>

#include "kernel/blocking.h"
#include "kernel/vec/vec_byte_scale.h"
#include "kernel/vec/vec_byte_pack.h"

int8_conv_fn  VEC(int8_conv);
ewise_span_fn VEC_SHARED(ewise_span);

#define UNROLL VEC_UNROLL(4)

enum { REGISTERS = VEC_LANES == 16 ? 32 : 16, FLIP = 0x80 };

// One task: a group of columns over one block of rows.
typedef struct Task {
    uint32_t image, group, row_block, col_group;
} Task;

typedef struct Run {
    const Int8Conv *c;
    Int8Plan        p;
    int32_t        *terms, *quad_at;
    const uint8_t **rows;
    uint8_t        *slab;
    int32_t        *sums;
    Task            at;  // its rows are in scratch
    uint32_t        first, pixels;
    bool            ready;
} Run;

static void fill_terms(const Run *r) {
    const ConvShape *s = &r->c->shape.conv;
    const Int8Plan  *p = &r->p;
    const uint32_t   across = p->n_terms / s->kh;  // terms per kernel row
    for (uint32_t i = 0; i < p->n_terms; i++)
        r->terms[i] =
            (int32_t)(i / across * s->dh * p->row_pitch + (size_t)(i % across) * s->dw * p->pitch);
    for (uint32_t i = 0; i < p->quads; i++) {
        const uint32_t tap = i / p->tap_quads;
        r->quad_at[i] = (int32_t)(tap / s->kw * s->dh * p->row_pitch +
                                  (size_t)(tap % s->kw) * s->dw * p->pitch +
                                  (size_t)(i % p->tap_quads) * INT8_QUAD);
    }
}

// Copies n bytes, with the sign bit flipped if x is signed.
static void copy_bytes(const uint8_t *from, size_t n, bool flip, uint8_t *to) {
    memcpy(to, from, n);
    for (size_t i = 0; flip && i < n; i++) to[i] ^= FLIP;
}

// Copies one input row; from is NULL for rows above and below the input.
static void stage_row(const Run *r, const uint8_t *from, uint8_t pad, uint8_t *to) {
    const ConvShape *s = &r->c->shape.conv;
    const Int8Plan  *p = &r->p;
    const uint32_t   x_pitch = r->c->shape.x_pitch, by = p->step_x < s->sw ? s->sw : 1;
    const bool       flip = r->c->shape.x_signed;
    if (from == NULL || s->pl > 0 || (uint64_t)(p->width - 1) * by >= (uint64_t)s->iw + s->pl)
        memset(to, pad, p->row_pitch);
    if (from == NULL) return;
    if (by == 1 && p->pitch == x_pitch) {
        const uint32_t left = min_u32(s->pl, p->width), n = min_u32(p->width - left, s->iw);
        copy_bytes(from, (size_t)n * x_pitch, flip, to + (size_t)left * x_pitch);
        return;
    }
    const uint32_t bytes = min_u32(p->ic, p->pitch);
    for (uint32_t i = 0; i < p->width; i++) {
        const int64_t x = (int64_t)i * by - s->pl;
        if (x >= 0 && x < s->iw)
            copy_bytes(from + (size_t)x * x_pitch, bytes, flip, to + (size_t)i * p->pitch);
    }
}

static void stage(const Run *r, const uint8_t *x, uint32_t first_row) {
    const ConvShape *s = &r->c->shape.conv;
    const Int8Plan  *p = &r->p;
    const uint32_t   down = p->step_y < s->sh ? s->sh : 1;  // input rows between staged rows
    const uint8_t    pad = (uint8_t)(r->c->x_zero ^ (r->c->shape.x_signed ? FLIP : 0));
    const size_t     line = (size_t)s->iw * r->c->shape.x_pitch;
    const uint32_t   rows = (r->pixels / p->unit - 1) * p->step_y + (s->kh - 1) * s->dh + 1;
    for (uint32_t i = 0; i < rows; i++) {
        const int64_t row = (int64_t)first_row * s->sh + (int64_t)i * down - s->pt;
        stage_row(r, row >= 0 && row < s->ih ? x + (size_t)row * line : NULL, pad,
                  r->slab + i * p->row_pitch);
    }
}

static void set_pixel_pointers(const Run *r, const uint8_t *source, uint32_t first) {
    const ConvShape *s = &r->c->shape.conv;
    const Int8Plan  *p = &r->p;
    uint32_t         x = first % s->ow;
    const uint8_t   *row = source + (size_t)(first / s->ow) * p->step_y * p->row_pitch;
    for (uint32_t i = 0; i < r->pixels; i++) {
        r->rows[i] = row + (size_t)x * p->step_x * p->pitch;
        if (++x < s->ow) continue;
        x = 0;
        row += p->step_y * p->row_pitch;
    }
}

static void prepare_rows(Run *r, const Task *t) {
    const ConvShape *s = &r->c->shape.conv;
    const Int8Plan  *p = &r->p;
    if (r->ready && r->at.image == t->image && r->at.group == t->group &&
        r->at.row_block == t->row_block)
        return;
    const uint32_t units = p->pixels / p->unit;
    const uint32_t first = block_start(units, p->row_blocks, t->row_block);
    const uint32_t end = block_start(units, p->row_blocks, t->row_block + 1);
    const uint8_t *x = (const uint8_t *)r->c->x + (size_t)t->group * p->ic +
                       (size_t)t->image * s->ih * s->iw * r->c->shape.x_pitch;
    r->ready = true;
    r->at = *t;
    r->first = first * p->unit;
    r->pixels = (end - first) * p->unit;
    if (p->staged) stage(r, x, first);
    set_pixel_pointers(r, p->staged ? r->slab : x, p->staged ? 0 : r->first);
}

// The output channels of one tile.
typedef struct Columns {
    uint32_t vec, vecs;   // among all vectors
    uint32_t channel, n;  // first channel, and how many are stored
    bool     packs;       // all scales are below 1
    int32_t  start[INT8_TILE_VECS * VEC_LANES];
    float    scale[INT8_TILE_VECS * VEC_LANES];
} Columns;

static void set_columns(const Run *r, uint32_t j, Columns *c) {
    const Int8Conv *a = r->c;
    const Int8Plan *p = &r->p;
    const uint32_t  vec = block_start(p->vecs, p->vec_groups, j);
    const int32_t   zero = a->x_zero + (a->shape.x_signed ? FLIP : 0);
    c->vecs = block_start(p->vecs, p->vec_groups, j + 1) - vec;
    c->vec = r->at.group * p->vecs + vec;
    c->channel = r->at.group * p->oc + vec * VEC_LANES;
    c->n = min_u32(c->vecs * VEC_LANES, p->oc - vec * VEC_LANES);
    Vf most = {0};
    for (uint32_t i = 0; i < c->vecs * VEC_LANES; i += VEC_LANES) {
        const size_t at = (size_t)c->vec * VEC_LANES + i;
        const Vi     bias = a->bias != NULL ? vi_load(a->bias + at) : (Vi){0};
        vi_store(c->start + i, bias - vi_load(a->weights.sums + at) * zero);
        if (a->out.kind == INT8_SUMS) continue;
        const Vf scale = vf_load(a->out.scale + at) * a->out.factor;
        vf_store(c->scale + i, scale);
        most = vf_max(most, vf_abs(scale));
    }
    c->packs = vf_top(most) < 1;
}

#ifdef __AVX2__
// Bounds and zero point of what is stored.
typedef struct Bounds {
    float   lo, hi;
    int32_t zero;
} Bounds;

VEC_INLINE void store_rows(const Run *r, const Columns *c, uint32_t rows, const uint32_t vecs,
                           const bool is_signed, const bool adds, const bool whole, const Bounds *b,
                           uint8_t *to) {
    const Vi       lo = all_bytes(b->lo + (float)b->zero), hi = all_bytes(b->hi + (float)b->zero);
    const Vi       zero = vi_set((int32_t)((uint32_t)(b->zero & 0xffff) * 0x10001U));
    const int32_t *sums = r->sums;
    const uint8_t *added = adds ? r->c->out.added + (to - (uint8_t *)r->c->y) : NULL;
    const Direct   direct = adds ? direct_of(&r->c->out) : (Direct){0};
    const size_t   pitch = r->c->shape.y_pitch;
    const uint32_t all = whole ? vecs * VEC_LANES : c->n;
    Vf             scale[INT8_TILE_VECS];
    uint32_t       n[INT8_TILE_VECS];
    UNROLL for (uint32_t v = 0; v < vecs; v++) {
        scale[v] = vf_load(c->scale + (size_t)v * VEC_LANES);
        n[v] = whole ? VEC_LANES : min_u32(VEC_LANES, all - v * VEC_LANES);
    }
    for (uint32_t k = 0; k < rows; k++) {
        Vi q[INT8_TILE_VECS] = {0};
        UNROLL for (uint32_t v = 0; v < vecs; v++) {
            const int32_t *at = sums + (size_t)v * VEC_LANES;
            q[v] = adds ? summed(&direct, at, scale[v], added + v * VEC_LANES, n[v])
                        : scaled_sums(at, scale[v]);
        }
        store_some(to, clip_packed(packed(q, is_signed, zero), is_signed, lo, hi), all);
        sums += (size_t)vecs * VEC_LANES;
        to += pitch;
        if (adds) added += pitch;
    }
}

VEC_INLINE void store_whole(const Run *r, const Columns *c, uint32_t rows, const uint32_t vecs,
                            const bool is_signed, const bool adds, const Bounds *b, uint8_t *to) {
    if (c->n == vecs * VEC_LANES)
        store_rows(r, c, rows, vecs, is_signed, adds, true, b, to);
    else
        store_rows(r, c, rows, vecs, is_signed, adds, false, b, to);
}

VEC_INLINE void store_vectors(const Run *r, const Columns *c, uint32_t rows, const uint32_t vecs,
                              uint8_t *to) {
    const Int8Output   *o = &r->c->out;
    const Int8Residual *f = o->residual;
    const bool          adds = o->added != NULL;
    const Bounds b = adds ? (Bounds){f->lo, f->hi, f->to.zero} : (Bounds){o->lo, o->hi, o->zero};
    const bool   is_signed = b.lo + (float)b.zero < 0;
    if (adds && is_signed)
        store_whole(r, c, rows, vecs, true, true, &b, to);
    else if (adds)
        store_whole(r, c, rows, vecs, false, true, &b, to);
    else if (is_signed)
        store_whole(r, c, rows, vecs, true, false, &b, to);
    else
        store_whole(r, c, rows, vecs, false, false, &b, to);
}

// Whole vectors of bytes, or parts where stores have a mask; false: the scales or the columns do
// not allow it.
static bool store_packed(const Run *r, const Columns *c, uint32_t rows, uint8_t *to) {
    if (!c->packs) return false;
#if VEC_LANES == 16
    if (c->vecs == 2) return store_vectors(r, c, rows, 2, to), true;
    if (c->vecs == 3) return store_vectors(r, c, rows, 3, to), true;
#endif
    if (c->vecs < INT8_TILE_VECS || (VEC_LANES < 16 && c->n < INT8_TILE_VECS * VEC_LANES))
        return false;
    store_vectors(r, c, rows, INT8_TILE_VECS, to);
    return true;
}
#else
static bool store_packed(const Run *r, const Columns *c, uint32_t rows, uint8_t *to) {
    (void)r, (void)c, (void)rows, (void)to;
    return false;
}
#endif

// Vector by vector, so that its scale stays in a register.
static void store_vector_bytes(const Run *r, const Columns *c, uint32_t rows, uint8_t *to) {
    const Int8Output *o = &r->c->out;
    const Vf          lo = vf_set(o->lo), hi = vf_set(o->hi);
    const Vi          zero = vi_set(o->zero);
    const size_t      pitch = r->c->shape.y_pitch, row = (size_t)c->vecs * VEC_LANES;
    for (uint32_t i = 0; i < c->n; i += VEC_LANES) {
        const uint32_t n = min_u32(VEC_LANES, c->n - i);
        const Vf       scale = vf_load(c->scale + i);
        const int32_t *sums = r->sums + i;
        uint8_t       *y = to + i;
        for (uint32_t k = 0; k < rows; k++, sums += row, y += pitch) {
            const Vf x = vi_to_float(vi_load(sums)) * scale;
            vi_store_bytes(y, vf_quantize(x, lo, hi, zero), n);
        }
    }
}

// The bytes that would be stored otherwise are still in L1.
static void add_residual(const Run *r, const Columns *c, uint32_t rows, uint8_t *to) {
    const Int8Residual *f = r->c->out.residual;
    const ByteSum       s = {f->own, f->from, f->to, f->least, f->most};
    const uint8_t      *added = r->c->out.added + (to - (uint8_t *)r->c->y);
    for (uint32_t k = 0; k < rows; k++, to += r->c->shape.y_pitch, added += r->c->shape.y_pitch)
        sum_span(&s, to, added, c->n, to);
}

static void store_bytes(const Run *r, const Columns *c, uint32_t rows, uint8_t *to) {
    const bool adds = r->c->out.added != NULL, direct = adds && r->c->out.residual->is_direct;
    if ((!adds || direct) && store_packed(r, c, rows, to)) return;
    store_vector_bytes(r, c, rows, to);
    if (adds) add_residual(r, c, rows, to);
}

static void store_floats(const Run *r, const Columns *c, const int32_t *sums, size_t at) {
    const Epilogue *f = &r->c->out.epilogue;
    const Vf        lo = vf_set(f->lo), hi = vf_set(f->hi);
    float          *to = (float *)r->c->y + at;
    for (uint32_t i = 0; i < c->n; i += VEC_LANES) {
        const uint32_t n = min_u32(VEC_LANES, c->n - i);
        Vf             x = vi_to_float(vi_load(sums + i)) * vf_load(c->scale + i);
        if (f->bias != NULL) x += vf_load_part(f->bias + c->channel + i, n);
        if (f->add != NULL) x += vf_load_part(f->add + at + i, n);
        vf_store_part(to + i, vf_min(hi, vf_max(lo, x)), n);
    }
}

// Where a tile's results begin in y, in elements.
static size_t place_of(const Run *r, const Columns *c, uint32_t pixel) {
    const size_t first = (size_t)r->at.image * r->p.pixels + r->first + pixel;
    return first * r->c->shape.y_pitch + c->channel;
}

static void store_tile(const Run *r, const Columns *c, uint32_t pixel, uint32_t rows) {
    const Int8Conv *a = r->c;
    size_t          at = place_of(r, c, pixel);
    const int32_t  *sums = r->sums;
    if (a->out.kind == INT8_BYTES) {
        store_bytes(r, c, rows, (uint8_t *)a->y + at);
        return;
    }
    for (uint32_t i = 0; i < rows; i++, sums += c->vecs * VEC_LANES, at += a->shape.y_pitch) {
        if (a->out.kind == INT8_FLOATS)
            store_floats(r, c, sums, at);
        else
            memcpy((int32_t *)a->y + at, sums, c->n * sizeof *sums);
    }
}

// What a tile adds to its bytes is fetched while it multiplies.
static void fetch_added(const Run *r, const Columns *c, uint32_t pixel, uint32_t rows) {
    const uint8_t *at = r->c->out.added + place_of(r, c, pixel);
    for (uint32_t i = 0; i < rows; i++, at += r->c->shape.y_pitch) __builtin_prefetch(at);
}

static void run_tile(const Run *r, const Columns *c, uint32_t pixel, uint32_t rows) {
    const Int8Weights *w = &r->c->weights;
    const size_t       panel = (size_t)r->p.quads * INT8_QUAD * VEC_LANES;
    const Int8Tile     t = {.rows = r->rows + pixel,
                            .terms = r->terms,
                            .quad_at = r->quad_at,
                            .n_terms = r->p.n_terms,
                            .term_quads = r->p.term_quads,
                            .weights = w->quads + c->vec * panel,
                            .weight_stride = panel,
                            .extra_quads = w->extra_quads,
                            .extra_index = w->extra_index,
                            .extra_start = w->extra_start + c->vec,
                            .start = c->start,
                            .sums = r->sums};
    if (r->c->out.added != NULL) fetch_added(r, c, pixel, rows);
    VEC(int8_tile_find)(rows, c->vecs)(&t);
    store_tile(r, c, pixel, rows);
}

static EvenSplit split_pixels(const Run *r, uint32_t vecs) {
    uint32_t rows = r->p.tile_rows;
    if (vecs < r->p.tile_vecs)
        rows = min_u32(rows * r->p.tile_vecs / vecs, int8_tile_most_rows(REGISTERS, vecs));
    return even_split(r->pixels, rows);
}

// Weights of one vector group stay in cache while pixels stream.
static void run_weight_stationary(const Run *r, uint32_t from, uint32_t to) {
    Columns c;
    for (uint32_t j = from; j < to; j++) {
        set_columns(r, j, &c);
        const EvenSplit cut = split_pixels(r, c.vecs);
        for (uint32_t i = 0, pixel = 0; i < cut.n; i++) {
            const uint32_t rows = cut.size + (i < cut.longer);
            run_tile(r, &c, pixel, rows);
            pixel += rows;
        }
    }
}

// Pixels of one tile stay in cache while weights stream.
static void run_input_stationary(const Run *r, uint32_t from, uint32_t to) {
    const EvenSplit cut = even_split(r->pixels, r->p.tile_rows);
    Columns         c;
    for (uint32_t i = 0, pixel = 0; i < cut.n; i++) {
        const uint32_t rows = cut.size + (i < cut.longer);
        for (uint32_t j = from; j < to; j++) {
            set_columns(r, j, &c);
            run_tile(r, &c, pixel, rows);
        }
        pixel += rows;
    }
}

// The epilogue's program over the columns of a task, row by row.
static void run_program(const Run *r, uint32_t from, uint32_t to) {
    const Epilogue  *f = &r->c->out.epilogue;
    const Int8Plan  *p = &r->p;
    const uint32_t   first = block_start(p->vecs, p->vec_groups, from) * VEC_LANES;
    const uint32_t   last = block_start(p->vecs, p->vec_groups, to) * VEC_LANES;
    const uint32_t   channel = r->at.group * p->oc + first, n = min_u32(last, p->oc) - first;
    ElementwiseInput in[EWISE_MAX_ARGS];
    for (uint32_t i = 0; i < r->pixels; i++) {
        const size_t at =
            ((size_t)r->at.image * p->pixels + r->first + i) * r->c->shape.y_pitch + channel;
        float *y = (float *)r->c->y + at;
        in[0] = (ElementwiseInput){y, EWISE_CONTIGUOUS};
        for (uint32_t j = 1; j < f->program->n_args; j++) {
            in[j] = f->args[j];
            if (in[j].mode != EWISE_SCALAR)
                in[j].at += in[j].mode == EWISE_CONTIGUOUS ? at : channel;
            if (in[j].mode == EWISE_PER_LANE) in[j].mode = EWISE_CONTIGUOUS;
        }
        VEC_SHARED(ewise_span)(f->program, in, y, n);
    }
}

// Parts get contiguous ranges of tasks, so parts split along the axis that varies slowest.
static Task task_of(const Int8Plan *p, const Version *v, uint32_t index) {
    Task t = {0};
    if (v->split == SPLIT_COLUMNS) {
        t.row_block = index % p->row_blocks, index /= p->row_blocks;
        t.col_group = index % p->col_groups, index /= p->col_groups;
    } else {
        t.col_group = index % p->col_groups, index /= p->col_groups;
        t.row_block = index % p->row_blocks, index /= p->row_blocks;
    }
    t.group = index % p->groups;
    t.image = index / p->groups;
    return t;
}

void VEC(int8_conv)(const Int8Conv *c, Part part) {
    Run   r = {.c = c, .p = int8_plan(&c->shape, &c->version, VEC_LANES, REGISTERS)};
    char *scratch = part.scratch;
    r.terms = (int32_t *)(void *)scratch;
    r.quad_at = r.terms + r.p.n_terms;
    r.rows = (const uint8_t **)(void *)(scratch += r.p.terms_bytes);
    r.slab = (uint8_t *)(scratch += r.p.rows_bytes);
    r.sums = (int32_t *)(void *)(scratch + r.p.slab_bytes);
    fill_terms(&r);
    uint32_t begin, end;
    part_range(part, r.p.tasks, &begin, &end);
    for (uint32_t i = begin; i < end; i++) {
        const Task t = task_of(&r.p, &c->version, i);
        prepare_rows(&r, &t);
        const uint32_t from = block_start(r.p.vec_groups, r.p.col_groups, t.col_group);
        const uint32_t to = block_start(r.p.vec_groups, r.p.col_groups, t.col_group + 1);
        if (c->version.order == ORDER_INPUT_STATIONARY)
            run_input_stationary(&r, from, to);
        else
            run_weight_stationary(&r, from, to);
        if (c->out.kind == INT8_FLOATS && c->out.epilogue.program != NULL)
            run_program(&r, from, to);
    }
}
