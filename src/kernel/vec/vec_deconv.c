#include <string.h>

#include "kernel/blocking.h"
#include "kernel/deconv.h"
#include "kernel/vec/vec_int.h"

typedef struct Run {
    const Deconv    *c;
    const DeconvPlan p;
    int32_t         *terms;
    const float    **rows;  // [block_rows][x.count]: input of each pixel of a phase
    float           *slab;
    uint32_t         ready;  // 1 + index of the staged block of rows; 0: none
} Run;

typedef struct Block {
    uint32_t image, plane, first, rows;  // of the output; rows per phase
    uint32_t from, to;                   // vector groups
} Block;

deconv_fn VEC(deconv);

static void stage_row(const Run *r, const float *from, float *to) {
    const DeconvAxis *a = &r->p.x;
    for (uint32_t i = 0; i < r->p.width; i++) {
        int64_t at = (int64_t)i + a->low;
        Vf      x = {0};
        if (from != NULL && at >= 0 && at < a->in) x = vf_load(from + at * VEC_LANES);
        vf_store(to + (size_t)i * VEC_LANES, x);
    }
}

// x NULL: a plane outside of the volume.
static void stage_plane(const Run *r, const Block *b, const float *x, float *to) {
    const DeconvPlan *p = &r->p;
    size_t            pitch = (size_t)p->x.in * VEC_LANES;
    for (uint32_t i = 0; i < b->rows + p->y.reach; i++, to += p->row_pitch) {
        int64_t row = (int64_t)b->first + i + p->y.low;
        bool    inside = x != NULL && row >= 0 && row < p->y.in;
        stage_row(r, inside ? x + (size_t)row * pitch : NULL, to);
    }
}

// The planes that the taps in depth of the output plane's phase read, in the order of the taps.
static void stage_block(const Run *r, const Block *b, const float *x, float *to) {
    const DeconvPlan *p = &r->p;
    size_t            plane = (size_t)p->y.in * p->x.in * VEC_LANES;
    for (uint32_t tap = 0; tap < p->z.taps; tap++) {
        if (deconv_phase(&p->z, tap) != b->plane % p->z.stride) continue;
        int64_t at = (int64_t)(b->plane / p->z.stride) + deconv_at(&p->z, tap);
        stage_plane(r, b, at >= 0 && at < p->z.in ? x + (size_t)at * plane : NULL, to);
        to += p->plane_pitch;
    }
}

static void stage(Run *r, const Block *b, uint32_t id) {
    const DeconvPlan *p = &r->p;
    if (r->ready == id + 1) return;
    r->ready = id + 1;
    uint32_t blocks = p->blocks + (p->rest > 0);
    size_t   volume = (size_t)p->z.in * p->y.in * p->x.in * VEC_LANES;
    for (uint32_t k = 0; k < blocks; k++)
        stage_block(r, b, r->c->x + ((size_t)b->image * blocks + k) * volume,
                    r->slab + k * p->block_pitch);
    for (uint32_t j = 0; j < b->rows; j++)
        for (uint32_t i = 0; i < p->x.count; i++)
            r->rows[j * p->x.count + i] = r->slab + j * p->row_pitch + (size_t)i * VEC_LANES;
}

// One phase: its coordinates, number of taps and weights.
typedef struct Phase {
    uint32_t     z, y, x, taps;
    const float *weights;
} Phase;

static int32_t *fill_plane(const Run *r, const Phase *f, size_t plane, int32_t *t) {
    const DeconvPlan *p = &r->p;
    for (uint32_t y = 0; y < p->y.taps; y++) {
        if (deconv_phase(&p->y, y) != f->y) continue;
        size_t row = plane + (size_t)(deconv_at(&p->y, y) - p->y.low) * p->row_pitch;
        for (uint32_t x = 0; x < p->x.taps; x++)
            if (deconv_phase(&p->x, x) == f->x)
                *t++ = (int32_t)row + (deconv_at(&p->x, x) - p->x.low) * VEC_LANES;
    }
    return t;
}

static void fill_terms(const Run *r, Phase *f) {
    const DeconvPlan *p = &r->p;
    int32_t          *t = r->terms;
    size_t            plane = 0;
    for (uint32_t z = 0; z < p->z.taps; z++) {
        if (deconv_phase(&p->z, z) != f->z) continue;
        t = fill_plane(r, f, plane, t);
        plane += p->plane_pitch;
    }
    f->taps = (uint32_t)(t - r->terms);
    uint32_t n = f->taps * (p->blocks + (p->rest > 0));
    for (uint32_t i = f->taps; i < n; i++)
        r->terms[i] = r->terms[i - f->taps] + (int32_t)p->block_pitch;
}

// One output row of a phase, in near-equal tiles.
static void run_row(const Run *r, Tile *t, const float **rows, uint32_t n, uint32_t vecs) {
    const EvenSplit cut = even_split(n, r->p.tile_rows);
    t->rows = rows;
    t->n_tiles = cut.longer;
    if (cut.longer > 0) VEC(tile_find)(cut.size + 1, vecs)(t);
    size_t done = (size_t)cut.longer * (cut.size + 1);
    t->rows += done;
    t->out += done * t->row_stride;
    if (t->add != NULL) t->add += done * t->row_stride;
    t->n_tiles = cut.n - cut.longer;
    VEC(tile_find)(cut.size, vecs)(t);
}

// The blocks of input channels that a vector of output channels reads.
static void select_terms(const Run *r, const Phase *f, uint32_t vec, Tile *t) {
    const DeconvPlan *p = &r->p;
    const uint32_t    first = deconv_first_block(&r->c->shape, p, vec), end = first + p->span;
    t->terms = r->terms + (size_t)first * f->taps;
    t->n_terms = ((end < p->blocks ? end : p->blocks) - first) * f->taps;
    t->n_tails = end > p->blocks ? f->taps : 0;
}

static void run_phase(const Run *r, const Block *b, const Phase *f, Tile *t) {
    const DeconvPlan *p = &r->p;
    const Epilogue   *epilogue = &r->c->epilogue;
    const size_t      plane = (size_t)p->y.out * p->x.out * VEC_LANES;
    const uint32_t    n = (p->x.out - f->x + p->x.stride - 1) / p->x.stride;
    for (uint32_t j = b->from; j < b->to; j++) {
        uint32_t vec = block_start(p->vecs, p->vec_groups, j);
        uint32_t end = block_start(p->vecs, p->vec_groups, j + 1);
        select_terms(r, f, vec, t);
        t->weights = f->weights + vec * t->weight_stride;
        t->bias = epilogue->bias != NULL ? epilogue->bias + (size_t)vec * VEC_LANES : NULL;
        for (uint32_t i = 0; i < b->rows; i++) {
            uint32_t row = (b->first + i) * p->y.stride + f->y;
            if (row >= p->y.out) break;
            size_t out = (((size_t)b->image * p->vecs + vec) * p->z.out + b->plane) * plane +
                         ((size_t)row * p->x.out + f->x) * VEC_LANES;
            t->out = r->c->y + out;
            t->add = epilogue->add != NULL ? epilogue->add + out : NULL;
            run_row(r, t, r->rows + (size_t)i * p->x.count, n, end - vec);
        }
    }
}

static void run_program(const Run *r, const Block *b) {
    const DeconvPlan *p = &r->p;
    uint32_t          from = block_start(p->vecs, p->vec_groups, b->from);
    uint32_t          to = block_start(p->vecs, p->vec_groups, b->to);
    uint32_t          top = b->first * p->y.stride, end = (b->first + b->rows) * p->y.stride;
    if (end > p->y.out) end = p->y.out;
    for (uint32_t vec = from; vec < to; vec++) {
        size_t plane = ((size_t)b->image * p->vecs + vec) * p->z.out + b->plane;
        size_t row = plane * p->y.out + top;
        epilogue_span(&r->c->epilogue, r->c->y, row * p->x.out * VEC_LANES, (size_t)vec * VEC_LANES,
                      (size_t)(end - top) * p->x.out * VEC_LANES);
    }
}

// Taps of the phases in depth before this one.
static size_t before_plane_phase(const DeconvPlan *p, uint32_t phase) {
    size_t n = 0;
    for (uint32_t z = 0; z < p->z.taps; z++) n += deconv_phase(&p->z, z) < phase;
    return n * p->y.taps * p->x.taps;
}

static void run_block(const Run *r, const Block *b) {
    const DeconvPlan *p = &r->p;
    const ConvShape  *s = &r->c->shape;
    Phase             f = {.z = b->plane % p->z.stride, .weights = r->c->weights};
    Tile              t = {.depth = VEC_LANES,
                           .tail_depth = p->rest,
                           .row_stride = (size_t)p->x.stride * VEC_LANES,
                           .vec_stride = (size_t)p->z.out * p->y.out * p->x.out * VEC_LANES,
                           .lo = r->c->epilogue.lo,
                           .hi = r->c->epilogue.hi,
                           .last = 1};
    f.weights += before_plane_phase(p, f.z) * p->vecs * p->depth * VEC_LANES;
    for (f.y = 0; f.y < s->sh; f.y++)
        for (f.x = 0; f.x < s->sw; f.x++) {
            fill_terms(r, &f);
            t.weight_stride = (size_t)f.taps * p->depth * VEC_LANES;
            if (f.y < s->oh && f.x < s->ow) run_phase(r, b, &f, &t);
            f.weights += p->vecs * t.weight_stride;
        }
    if (r->c->epilogue.program != NULL) run_program(r, b);
}

void VEC(deconv)(const Deconv *c, Part part) {
    Run   r = {.c = c,
               .p = deconv_plan(&c->shape, &c->version, VEC_LANES, VEC_LANES == 16 ? 32 : 16)};
    char *scratch = part.scratch;
    r.terms = (int32_t *)(void *)scratch;
    r.rows = (const float **)(void *)(scratch + r.p.terms_bytes);
    r.slab = (float *)(void *)(scratch + r.p.terms_bytes + r.p.rows_bytes);
    uint32_t begin, end;
    part_range(part, r.p.tasks, &begin, &end);
    for (uint32_t i = begin; i < end; i++) {
        uint32_t cols = r.p.col_groups, group = i % cols, place = i / cols;
        uint32_t at = place % r.p.row_blocks, plane = place / r.p.row_blocks;
        uint32_t first = block_start(r.p.y.count, r.p.row_blocks, at);
        uint32_t last = block_start(r.p.y.count, r.p.row_blocks, at + 1);
        Block    b = {.image = plane / r.p.z.out,
                      .plane = plane % r.p.z.out,
                      .first = first,
                      .rows = last - first,
                      .from = block_start(r.p.vec_groups, cols, group),
                      .to = block_start(r.p.vec_groups, cols, group + 1)};
        stage(&r, &b, place);
        run_block(&r, &b);
    }
}
