#include "kernel/conv_plan.h"

#include "base/check.h"
#include "base/tensor.h"
#include "kernel/tile.h"

static uint32_t up(uint32_t a, uint32_t b) {
    CHECK(b > 0);
    return (a + b - 1) / b;
}

static size_t aligned(size_t bytes) {
    return (bytes + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

static uint32_t clamp(uint32_t x, uint32_t least, uint32_t most) {
    return x < least ? least : x > most ? most : x;
}

// Groups run together until their channels fill whole blocks on both sides, or all of them.
static uint32_t groups_together(const ConvShape *s, uint32_t lanes) {
    uint32_t ic = s->ic / s->groups, oc = s->oc / s->groups;
    for (uint32_t m = 1; m < s->groups; m++)
        if (s->groups % m == 0 && m * ic % lanes == 0 && m * oc % lanes == 0) return m;
    return s->groups;
}

static bool is_padded(const ConvShape *s) {
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
    p->vecs = up(p->oc, p->lanes);
    p->block_weights = (size_t)s->kh * s->kw * p->block * p->lanes;
    p->panel = (size_t)s->kh * s->kw * p->ic * p->lanes;
}

static void plan_terms(ConvPlan *p, const ConvShape *s) {
    bool joined = s->dw == 1 || s->kw == 1;  // a row of taps lies side by side
    p->row_terms = joined ? s->kh : s->kh * s->kw;
    p->term_depth = joined ? s->kw * p->block : p->block;
    p->n_terms = p->blocks * p->row_terms;
    p->n_tails = p->rest > 0 ? s->kh * s->kw : 0;
    p->tail_depth = p->rest;
}

static void plan_rows(ConvPlan *p, const ConvShape *s, const Version *v) {
    size_t plane = (size_t)s->ih * s->iw * p->block;
    size_t planes = up(s->ic, p->block);
    p->staged = (v->pack & CONV_STAGED) != 0 || is_padded(s) || plane * planes > INT32_MAX;
    p->merged = !p->staged && s->oh * s->ow == 1;
    p->images = p->merged ? 1 : s->n;
    p->pixels = p->merged ? s->n : s->oh * s->ow;
    p->unit = p->staged ? s->ow : 1;
    p->image_pitch = plane * planes;
    p->group_pitch = plane * (p->ic / p->block);
    uint32_t units = p->pixels / p->unit;
    p->row_blocks = up(units, clamp(v->rows > 0 ? v->rows : units, 1, units));
    p->block_units = up(units, p->row_blocks);
    p->step_x = p->staged && s->kw == 1 ? 1 : s->sw;
    p->step_y = p->staged && s->kh == 1 ? 1 : s->sh;
    p->width = p->staged ? (s->ow - 1) * p->step_x + (s->kw - 1) * s->dw + 1 : s->iw;
    p->height = p->staged ? (p->block_units - 1) * p->step_y + (s->kh - 1) * s->dh + 1 : s->ih;
    p->row_pitch = (size_t)p->width * p->block;
    p->block_pitch = p->row_pitch * p->height;
    size_t vec = (size_t)s->oh * s->ow * p->lanes;
    p->out_image = vec * up(s->oc, p->lanes);
    p->row_stride = p->merged ? p->out_image : p->lanes;
    p->vec_stride = vec;
}

static void plan_tiles(ConvPlan *p, const Version *v) {
    p->tile_vecs = clamp(v->tile_vecs, 1, p->vecs < TILE_MAX_VECS ? p->vecs : TILE_MAX_VECS);
    p->tile_rows = clamp(v->tile_rows, 1, tile_most_rows(p->registers, p->tile_vecs));
    p->vec_groups = up(p->vecs, p->tile_vecs);
    uint32_t each = v->columns > 0 ? up(v->columns, p->tile_vecs) : p->vec_groups;
    p->col_groups = up(p->vec_groups, clamp(each, 1, p->vec_groups));
    uint32_t deep = clamp(v->depth > 0 ? v->depth / p->block : p->blocks, 1, p->blocks);
    p->n_depths = p->blocks > 0 ? up(p->blocks, deep) : 1;
    p->tasks = p->images * p->groups * p->row_blocks * p->col_groups;
}

ConvPlan conv_plan(const ConvShape *s, const Version *v, uint32_t lanes, uint32_t registers) {
    ConvPlan p = {.lanes = lanes, .registers = registers};
    plan_channels(&p, s, v);
    plan_terms(&p, s);
    plan_rows(&p, s, v);
    plan_tiles(&p, v);
    uint32_t slab_blocks = p.blocks + (p.rest > 0);
    p.terms_bytes = aligned((p.n_terms + p.n_tails) * sizeof(int32_t));
    p.rows_bytes = aligned((size_t)p.block_units * p.unit * sizeof(float *));
    p.slab_bytes = p.staged ? aligned(p.block_pitch * slab_blocks * sizeof(float)) : 0;
    CHECK(p.block_pitch * slab_blocks <= INT32_MAX);
    return p;
}

// Parts get neighbouring tasks: what varies slowest is what they are cut along.
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
