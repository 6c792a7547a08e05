#include <string.h>

#include "kernel/blocking.h"
#include "kernel/conv_plan.h"
#include "kernel/vec/vec_int.h"

// The block of rows in scratch: its pixel pointers and staged copy.
typedef struct RowBlock {
    uint32_t image, group, row_block;
    uint32_t first, pixels;
} RowBlock;

typedef struct Run {
    const Conv    *c;
    const ConvPlan p;
    int32_t       *terms;
    const float  **rows;
    float         *slab;
    RowBlock       block;
} Run;

conv_fn VEC(conv);

// Offset of term i of a block of channels, `per_row` terms to a kernel row.
static size_t term_offset(const Run *r, uint32_t i, uint32_t per_row) {
    const ConvShape *s = &r->c->shape;
    const uint32_t   row = i / per_row;
    return row / s->kh * r->p.plane_pitch + (size_t)(row % s->kh) * s->dh * r->p.row_pitch +
           (size_t)(i % per_row) * s->dw * r->p.block;
}

static void fill_terms(const Run *r) {
    const ConvShape *s = &r->c->shape;
    const ConvPlan  *p = &r->p;
    int32_t         *t = r->terms;
    uint32_t         row = p->row_terms / (p->planes * s->kh);
    for (uint32_t b = 0; b < p->blocks; b++)
        for (uint32_t i = 0; i < p->row_terms; i++)
            *t++ = (int32_t)(b * p->block_pitch + term_offset(r, i, row));
    for (uint32_t i = 0; i < p->n_tails; i++)
        *t++ = (int32_t)(p->blocks * p->block_pitch + term_offset(r, i, s->kw));
}

// Copies one input row with padding; from is NULL for rows above and below the input.
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

// The same for kernel width 1: skips the columns that the stride skips.
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

// One plane of a block of channels; NULL: it is outside the input.
static void stage_plane(const Run *r, const float *plane, uint32_t first_row, float *to) {
    const ConvShape *s = &r->c->shape;
    const ConvPlan  *p = &r->p;
    const uint32_t   down = p->step_y < s->sh ? s->sh : 1;  // input rows between staged rows
    const bool       sparse = p->step_x < s->sw;
    for (uint32_t i = 0; i < p->height; i++, to += p->row_pitch) {
        const int64_t row = (int64_t)first_row * s->sh + (int64_t)i * down - s->pt;
        const float  *from = NULL;
        if (plane != NULL && row >= 0 && row < s->ih) from = plane + (size_t)row * s->iw * p->block;
        if (sparse)
            stage_sparse(r, from, to);
        else
            stage_row(r, from, to);
    }
}

// x: the channels of the group. out_plane: output plane of a 3-D convolution.
static void stage(const Run *r, const float *x, uint32_t out_plane, uint32_t first_row) {
    const ConvShape *s = &r->c->shape;
    const ConvPlan  *p = &r->p;
    const uint32_t   depth = s->kd > 0 ? s->id : 1;
    const size_t     area = (size_t)s->ih * s->iw * p->block;
    for (uint32_t b = 0; b < p->blocks + (p->rest > 0); b++, x += depth * area)
        for (uint32_t k = 0; k < p->planes; k++) {
            const int64_t plane = (int64_t)out_plane * s->sd + (int64_t)k * s->dd - s->pf;
            stage_plane(r, plane >= 0 && plane < depth ? x + (size_t)plane * area : NULL, first_row,
                        r->slab + b * p->block_pitch + k * p->plane_pitch);
        }
}

static void set_pixel_pointers(const Run *r, const float *source, uint32_t first) {
    const ConvShape *s = &r->c->shape;
    const ConvPlan  *p = &r->p;
    uint32_t         y = first / s->ow, x = first % s->ow;
    const float     *row = source + (size_t)y * p->step_y * p->row_pitch;
    for (uint32_t i = 0; i < r->block.pixels; i++) {
        r->rows[i] = row + (size_t)x * p->step_x * p->block;
        if (++x < s->ow) continue;
        x = 0;
        row += p->step_y * p->row_pitch;
    }
}

static void prepare_rows(Run *r, const ConvTask *t) {
    const ConvPlan *p = &r->p;
    RowBlock       *at = &r->block;
    if (at->pixels > 0 && at->image == t->image && at->group == t->group &&
        at->row_block == t->row_block)
        return;
    uint32_t units = p->pixels / p->unit;
    uint32_t first = block_start(units, p->row_blocks, t->row_block);
    uint32_t end = block_start(units, p->row_blocks, t->row_block + 1);
    *at = (RowBlock){t->image, t->group, t->row_block, first * p->unit, (end - first) * p->unit};
    const ConvShape *s = &r->c->shape;
    const uint32_t   plane = t->image % p->out_depth;
    const float *x = r->c->x + t->image / p->out_depth * p->image_pitch + t->group * p->group_pitch;
    if (p->staged) {
        stage(r, x, plane, first);
        set_pixel_pointers(r, r->slab, 0);
    } else if (p->merged) {
        for (uint32_t i = first; i < end; i++) r->rows[i - first] = x + i * p->image_pitch;
    } else {
        set_pixel_pointers(r, x + (size_t)plane * s->sd * s->ih * s->iw * p->block, first);
    }
}

static void set_depth(const Run *r, Tile *t, uint32_t d) {
    const ConvPlan *p = &r->p;
    uint32_t        from = block_start(p->blocks, p->n_depths, d);
    uint32_t        to = block_start(p->blocks, p->n_depths, d + 1);
    t->terms = r->terms + from * p->row_terms;
    t->n_terms = (to - from) * p->row_terms;
    t->accumulate = d > 0;
    t->last = d + 1 == p->n_depths;
    t->n_tails = t->last ? p->n_tails : 0;
}

// The output channels of vector group j: bias, and offsets into weights and y.
typedef struct OutputVectors {
    const float *bias;
    size_t       at, out;  // offsets into weights and y
    uint32_t     vec, vecs;
} OutputVectors;

static OutputVectors output_vectors(const Run *r, uint32_t d, uint32_t j) {
    const ConvPlan *p = &r->p;
    uint32_t        vec = block_start(p->vecs, p->vec_groups, j);
    OutputVectors   c = {.vec = r->block.group * p->vecs + vec};
    c.vecs = block_start(p->vecs, p->vec_groups, j + 1) - vec;
    c.at = c.vec * p->panel + block_start(p->blocks, p->n_depths, d) * p->block_weights;
    c.bias = r->c->epilogue.bias != NULL ? r->c->epilogue.bias + (size_t)c.vec * VEC_LANES : NULL;
    c.out = r->block.image / p->out_depth * p->out_image + c.vec * p->vec_stride +
            (size_t)(r->block.image % p->out_depth) * p->pixels * p->row_stride;
    return c;
}

static void set_tile(const Run *r, Tile *t, const OutputVectors *c, uint32_t pixel) {
    size_t out = c->out + (r->block.first + pixel) * r->p.row_stride;
    t->rows = r->rows + pixel;
    t->weights = r->c->weights + c->at;
    t->bias = c->bias;
    t->out = r->c->y + out;
    t->add = r->c->epilogue.add != NULL ? r->c->epilogue.add + out : NULL;
}

static EvenSplit split_pixels(const Run *r, uint32_t vecs) {
    const ConvPlan *p = &r->p;
    uint32_t        rows = p->tile_rows;
    if (vecs < p->tile_vecs) {
        uint32_t most = VEC(tile_rows)(vecs);
        rows = rows * p->tile_vecs / vecs;
        rows = rows < most ? rows : most;
    }
    return even_split(r->block.pixels, rows);
}

static void run_program(const Run *r, const OutputVectors *c) {
    const bool     joined = r->p.row_stride == VEC_LANES;
    const uint32_t spans = joined ? 1 : r->block.pixels;
    const size_t   n = joined ? (size_t)r->block.pixels * VEC_LANES : VEC_LANES;
    for (uint32_t v = 0; v < c->vecs; v++)
        for (uint32_t i = 0; i < spans; i++)
            epilogue_span(&r->c->epilogue, r->c->y,
                          c->out + v * r->p.vec_stride + (r->block.first + i) * r->p.row_stride,
                          (size_t)(c->vec + v) * VEC_LANES, n);
}

// Floats from the weights of vector group j to those used next, possibly by another task; the
// distance may wrap around.
static size_t next_weights(const Run *r, const OutputVectors *c, uint32_t d, uint32_t j,
                           uint32_t from, uint32_t to) {
    if (j + 1 == to && d + 1 < r->p.n_depths) return output_vectors(r, d + 1, from).at - c->at;
    return j + 1 < r->p.vec_groups ? c->vecs * r->p.panel : 0;
}

// Weights of one vector group stay in cache while pixels stream.
static void run_weight_stationary(const Run *r, Tile *t, uint32_t from, uint32_t to) {
    for (uint32_t d = 0; d < r->p.n_depths; d++) {
        set_depth(r, t, d);
        for (uint32_t j = from; j < to; j++) {
            const OutputVectors c = output_vectors(r, d, j);
            const EvenSplit     cut = split_pixels(r, c.vecs);
            t->prefetch = next_weights(r, &c, d, j, from, to);
            set_tile(r, t, &c, 0);
            t->n_tiles = cut.longer;
            if (cut.longer > 0) VEC(tile_find)(cut.size + 1, c.vecs)(t);
            set_tile(r, t, &c, cut.longer * (cut.size + 1));
            t->n_tiles = cut.n - cut.longer;
            VEC(tile_find)(cut.size, c.vecs)(t);
            if (t->last && r->c->epilogue.program != NULL) run_program(r, &c);
        }
    }
}

// Pixels of one tile stay in cache while weights stream.
static void run_input_stationary(const Run *r, Tile *t, uint32_t from, uint32_t to) {
    const EvenSplit cut = split_pixels(r, r->p.tile_vecs);
    for (uint32_t d = 0; d < r->p.n_depths; d++) {
        set_depth(r, t, d);
        for (uint32_t i = 0, pixel = 0; i < cut.n; i++) {
            const uint32_t rows = cut.size + (i < cut.longer);
            for (uint32_t j = from; j < to; j++) {
                const OutputVectors c = output_vectors(r, d, j);
                set_tile(r, t, &c, pixel);
                VEC(tile_find)(rows, c.vecs)(t);
            }
            pixel += rows;
        }
    }
    if (r->c->epilogue.program == NULL) return;
    for (uint32_t j = from; j < to; j++) {
        const OutputVectors c = output_vectors(r, 0, j);
        run_program(r, &c);
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
    prepare_rows(r, task);
    uint32_t from = block_start(p->vec_groups, p->col_groups, task->col_group);
    uint32_t to = block_start(p->vec_groups, p->col_groups, task->col_group + 1);
    if (r->c->version.order == ORDER_INPUT_STATIONARY)
        run_input_stationary(r, &t, from, to);
    else
        run_weight_stationary(r, &t, from, to);
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
