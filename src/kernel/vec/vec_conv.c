#include <string.h>

#include "kernel/conv_plan.h"
#include "kernel/vec/vec_int.h"

// The rows of which image and group are in place: pointers to pixels, and the staged copy.
typedef struct Place {
    uint32_t image, group, row_block;
    uint32_t first, pixels;
} Place;

typedef struct Run {
    const Conv    *c;
    const ConvPlan p;
    int32_t       *terms;
    const float  **rows;
    float         *slab;
    Place          place;
} Run;

conv_fn VEC(conv);

static void fill_terms(const Run *r) {
    const ConvShape *s = &r->c->shape;
    const ConvPlan  *p = &r->p;
    int32_t         *t = r->terms;
    uint32_t         row = p->row_terms / s->kh;  // terms of one row of taps
    for (uint32_t b = 0; b < p->blocks; b++)
        for (uint32_t i = 0; i < p->row_terms; i++)
            *t++ = (int32_t)(b * p->block_pitch + i / row * s->dh * p->row_pitch +
                             (size_t)(i % row) * s->dw * p->block);
    for (uint32_t i = 0; i < p->n_tails; i++)
        *t++ = (int32_t)(p->blocks * p->block_pitch + i / s->kw * s->dh * p->row_pitch +
                         (size_t)(i % s->kw) * s->dw * p->block);
}

// One row of a block with its padding; from is the row of x, or NULL above and below it.
static void stage_row(const Run *r, const float *from, float *to) {
    const ConvShape *s = &r->c->shape;
    size_t           block = r->p.block, width = r->p.width;
    size_t           left = s->pl < width ? s->pl : width;
    size_t           n = width - left < s->iw ? width - left : s->iw;
    if (from == NULL) left = width, n = 0;
    memset(to, 0, left * block * sizeof *to);
    if (n > 0) memcpy(to + left * block, from, n * block * sizeof *to);
    memset(to + (left + n) * block, 0, (width - left - n) * block * sizeof *to);
}

// The same where a row has one tap: what the stride leaves out is not copied.
static void stage_sparse(const Run *r, const float *from, float *to) {
    const ConvShape *s = &r->c->shape;
    const size_t     block = r->p.block;
    for (uint32_t i = 0; i < r->p.width; i++, to += block) {
        const int64_t x = (int64_t)i * s->sw - s->pl;
        if (from == NULL || x < 0 || x >= s->iw)
            memset(to, 0, block * sizeof *to);
        else if (block == VEC_LANES)
            vf_store(to, vf_load(from + x * VEC_LANES));
        else
            *to = from[x];
    }
}

static void stage(const Run *r, const float *x, uint32_t first_row) {
    const ConvShape *s = &r->c->shape;
    const ConvPlan  *p = &r->p;
    const size_t     pitch = (size_t)s->iw * p->block;
    const uint32_t   down = p->step_y < s->sh ? s->sh : 1;  // rows of x to the next one staged
    const bool       sparse = p->step_x < s->sw;
    for (uint32_t b = 0; b < p->blocks + (p->rest > 0); b++) {
        const float *plane = x + (size_t)b * s->ih * pitch;
        float       *to = r->slab + b * p->block_pitch;
        for (uint32_t i = 0; i < p->height; i++, to += p->row_pitch) {
            const int64_t row = (int64_t)first_row * s->sh + (int64_t)i * down - s->pt;
            const float  *from = row >= 0 && row < s->ih ? plane + (size_t)row * pitch : NULL;
            if (sparse)
                stage_sparse(r, from, to);
            else
                stage_row(r, from, to);
        }
    }
}

static void point(const Run *r, const float *source, uint32_t first) {
    const ConvShape *s = &r->c->shape;
    const ConvPlan  *p = &r->p;
    uint32_t         y = first / s->ow, x = first % s->ow;
    const float     *row = source + (size_t)y * p->step_y * p->row_pitch;
    for (uint32_t i = 0; i < r->place.pixels; i++) {
        r->rows[i] = row + (size_t)x * p->step_x * p->block;
        if (++x < s->ow) continue;
        x = 0;
        row += p->step_y * p->row_pitch;
    }
}

static void put_in_place(Run *r, const ConvTask *t) {
    const ConvPlan *p = &r->p;
    Place          *at = &r->place;
    if (at->pixels > 0 && at->image == t->image && at->group == t->group &&
        at->row_block == t->row_block)
        return;
    uint32_t units = p->pixels / p->unit;
    uint32_t first = conv_cut(units, p->row_blocks, t->row_block);
    uint32_t end = conv_cut(units, p->row_blocks, t->row_block + 1);
    *at = (Place){t->image, t->group, t->row_block, first * p->unit, (end - first) * p->unit};
    const float *x = r->c->x + t->image * p->image_pitch + t->group * p->group_pitch;
    if (p->staged) {
        stage(r, x, first);
        point(r, r->slab, 0);
    } else if (p->merged) {
        for (uint32_t i = first; i < end; i++) r->rows[i - first] = x + i * p->image_pitch;
    } else {
        point(r, x, first);
    }
}

static void set_depth(const Run *r, Tile *t, uint32_t d) {
    const ConvPlan *p = &r->p;
    uint32_t        from = conv_cut(p->blocks, p->n_depths, d);
    uint32_t        to = conv_cut(p->blocks, p->n_depths, d + 1);
    t->terms = r->terms + from * p->row_terms;
    t->n_terms = (to - from) * p->row_terms;
    t->more = d > 0;
    t->last = d + 1 == p->n_depths;
    t->n_tails = t->last ? p->n_tails : 0;
}

// What a tile of vector group j has besides its rows.
typedef struct Columns {
    const float *bias;
    size_t       at, out;  // from the weights, from y
    uint32_t     vec, vecs;
} Columns;

static Columns columns(const Run *r, uint32_t d, uint32_t j) {
    const ConvPlan *p = &r->p;
    uint32_t        vec = conv_cut(p->vecs, p->vec_groups, j);
    Columns         c = {.vec = r->place.group * p->vecs + vec};
    c.vecs = conv_cut(p->vecs, p->vec_groups, j + 1) - vec;
    c.at = c.vec * p->panel + conv_cut(p->blocks, p->n_depths, d) * p->block_weights;
    c.bias = r->c->epilogue.bias != NULL ? r->c->epilogue.bias + (size_t)c.vec * VEC_LANES : NULL;
    c.out = r->place.image * p->out_image + c.vec * p->vec_stride;
    return c;
}

static void set_columns(const Run *r, Tile *t, const Columns *c, uint32_t pixel) {
    size_t out = c->out + (r->place.first + pixel) * r->p.row_stride;
    t->rows = r->rows + pixel;
    t->weights = r->c->weights + c->at;
    t->bias = c->bias;
    t->out = r->c->y + out;
    t->add = r->c->epilogue.add != NULL ? r->c->epilogue.add + out : NULL;
}

// Sizes of near-equal tiles over the pixels in place: the first `longer` have one row more.
typedef struct Cut {
    uint32_t tiles, rows, longer;
} Cut;

static Cut cut_pixels(const Run *r, uint32_t vecs) {
    const ConvPlan *p = &r->p;
    uint32_t        rows = p->tile_rows;
    if (vecs < p->tile_vecs) {
        uint32_t most = VEC(tile_rows)(vecs);
        rows = rows * p->tile_vecs / vecs;
        rows = rows < most ? rows : most;
    }
    uint32_t n = r->place.pixels, tiles = (n + rows - 1) / rows;
    return (Cut){tiles, n / tiles, n % tiles};
}

static void run_chain_span(const Run *r, size_t out, uint32_t vec, size_t n) {
    const Epilogue  *f = &r->c->epilogue;
    ElementwiseInput in[EWISE_MAX_ARGS] = {{r->c->y + out, EWISE_CONTIGUOUS}};
    for (uint32_t i = 1; i < f->program->n_args; i++) {
        in[i] = f->args[i];
        if (in[i].mode == EWISE_CONTIGUOUS) in[i].at += out;
        if (in[i].mode == EWISE_PER_LANE) in[i].at += (size_t)vec * VEC_LANES;
    }
    VEC(ewise_span)(f->program, in, r->c->y + out, n);
}

static void run_chain(const Run *r, const Columns *c) {
    const bool     joined = r->p.row_stride == VEC_LANES;
    const uint32_t spans = joined ? 1 : r->place.pixels;
    const size_t   n = joined ? (size_t)r->place.pixels * VEC_LANES : VEC_LANES;
    for (uint32_t v = 0; v < c->vecs; v++)
        for (uint32_t i = 0; i < spans; i++)
            run_chain_span(r, c->out + v * r->p.vec_stride + (r->place.first + i) * r->p.row_stride,
                           c->vec + v, n);
}

// How far past the weights of vector group j are those that come next, also when they are another
// task's; distances wrap around.
static size_t next_weights(const Run *r, const Columns *c, uint32_t d, uint32_t j, uint32_t from,
                           uint32_t to) {
    if (j + 1 == to && d + 1 < r->p.n_depths) return columns(r, d + 1, from).at - c->at;
    return j + 1 < r->p.vec_groups ? c->vecs * r->p.panel : 0;
}

// Weights of a tile's columns stay while the pixels go past.
static void run_weights_stay(const Run *r, Tile *t, uint32_t from, uint32_t to) {
    for (uint32_t d = 0; d < r->p.n_depths; d++) {
        set_depth(r, t, d);
        for (uint32_t j = from; j < to; j++) {
            const Columns c = columns(r, d, j);
            const Cut     cut = cut_pixels(r, c.vecs);
            t->ahead = next_weights(r, &c, d, j, from, to);
            set_columns(r, t, &c, 0);
            t->n_tiles = cut.longer;
            if (cut.longer > 0) VEC(tile_find)(cut.rows + 1, c.vecs)(t);
            set_columns(r, t, &c, cut.longer * (cut.rows + 1));
            t->n_tiles = cut.tiles - cut.longer;
            VEC(tile_find)(cut.rows, c.vecs)(t);
            if (t->last && r->c->epilogue.program != NULL) run_chain(r, &c);
        }
    }
}

// Pixels of a tile stay while the weights go past.
static void run_input_stays(const Run *r, Tile *t, uint32_t from, uint32_t to) {
    const Cut cut = cut_pixels(r, r->p.tile_vecs);
    for (uint32_t d = 0; d < r->p.n_depths; d++) {
        set_depth(r, t, d);
        for (uint32_t i = 0, pixel = 0; i < cut.tiles; i++) {
            const uint32_t rows = cut.rows + (i < cut.longer);
            for (uint32_t j = from; j < to; j++) {
                const Columns c = columns(r, d, j);
                set_columns(r, t, &c, pixel);
                VEC(tile_find)(rows, c.vecs)(t);
            }
            pixel += rows;
        }
    }
    if (r->c->epilogue.program == NULL) return;
    for (uint32_t j = from; j < to; j++) {
        const Columns c = columns(r, 0, j);
        run_chain(r, &c);
    }
}

static void run_task(Run *r, const ConvTask *task) {
    const ConvPlan *p = &r->p;
    Tile            t = {.depth = p->term_depth,
                         .tail_depth = p->tail_depth,
                         .weight_stride = p->panel,
                         .row_stride = p->row_stride,
                         .vec_stride = p->vec_stride,
                         .lo = r->c->epilogue.lo,
                         .hi = r->c->epilogue.hi};
    put_in_place(r, task);
    uint32_t from = conv_cut(p->vec_groups, p->col_groups, task->col_group);
    uint32_t to = conv_cut(p->vec_groups, p->col_groups, task->col_group + 1);
    if (r->c->version.order == ORDER_INPUT_STATIONARY)
        run_input_stays(r, &t, from, to);
    else
        run_weights_stay(r, &t, from, to);
}

void VEC(conv)(const Conv *c, Part part) {
    Run r = {.c = c, .p = conv_plan(&c->shape, &c->version, VEC_LANES, VEC_LANES == 16 ? 32 : 16)};
    char *scratch = part.scratch;
    r.terms = (int32_t *)(void *)scratch;
    r.rows = (const float **)(void *)(scratch + r.p.terms_bytes);
    r.slab = (float *)(void *)(scratch + r.p.terms_bytes + r.p.rows_bytes);
    fill_terms(&r);
    uint32_t begin, end;
    part_range(part, r.p.tasks, &begin, &end);
    for (uint32_t i = begin; i < end; i++) {
        const ConvTask t = conv_task(&r.p, &c->version, i);
        run_task(&r, &t);
    }
}
