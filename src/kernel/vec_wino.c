#include "kernel/vec_wino.h"

#include "base/check.h"
#include "kernel/vec_tile.h"

typedef struct Job {
    const Wino   *w;
    WinoPlan      p;
    float        *inputs, *products;
    const float **rows;  // where the transformed channels of each tile of the block begin
} Job;

// Products of one point: all tiles of the block, the vectors [first, last) of columns.
static void multiply_point(const Job *j, uint32_t tiles, uint32_t first, uint32_t last,
                           uint32_t point) {
    const WinoPlan *p = &j->p;
    const Version  *v = &j->w->version;
    const size_t    ic = j->w->shape.ic;
    const int32_t   term = (int32_t)(point * p->point_stride);
    const uint32_t  wide = wino_groups(last - first, v->tile_vecs);
    const uint32_t  high = wino_groups(tiles, v->tile_rows);
    Tile            t = {.terms = &term,
                         .n_terms = 1,
                         .depth = (uint32_t)ic,
                         .weight_stride = p->points * ic * VEC_LANES,
                         .row_stride = p->product_stride,
                         .vec_stride = p->points * VEC_LANES};
    for (uint32_t c = 0; c < wide; c++) {
        uint32_t vec, vec_end, row, row_end;
        part_range((Part){c, wide, NULL}, last - first, &vec, &vec_end);
        t.weights = j->w->weights + ((first + vec) * p->points + point) * ic * VEC_LANES;
        for (uint32_t r = 0; r < high; r++) {
            part_range((Part){r, high, NULL}, tiles, &row, &row_end);
            t.rows = j->rows + row;
            t.ahead = (ic + (r > 0) * ic / 2) * VEC_LANES;  // the next point
            t.out = j->products + row * p->product_stride + vec * t.vec_stride + point * VEC_LANES;
            VEC(tile_find)(row_end - row, vec_end - vec)(&t);
        }
    }
}

static void run_task(const Job *j, uint32_t block, uint32_t strip, bool fresh) {
    uint32_t begin, end, first, last;
    part_range((Part){block, j->p.blocks, NULL}, j->p.tiles, &begin, &end);
    part_range((Part){strip, j->p.strips, NULL}, j->p.vecs, &first, &last);
    if (fresh) VEC(wino_inputs)(j->w, &j->p, begin, end, j->inputs);
    for (uint32_t i = 0; i < j->p.points; i++) multiply_point(j, end - begin, first, last, i);
    VEC(wino_outputs)(j->w, &j->p, begin, end, first, last, j->products);
}

// A part is a rectangle of blocks and strips, or a piece of the way through all of them.
void VEC(wino_run)(const Wino *w, Part part) {
    Job      j = {.w = w, .p = wino_plan(&w->shape, VEC_LANES, &w->version)};
    uint32_t block = 0, blocks = j.p.blocks, strip = 0, strips = j.p.strips, begin = 0, end;
    CHECK(j.p.inputs <= INT32_MAX);  // offsets of points are terms of a tile
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
        bool     by_block = w->version.order == ORDER_INPUT;
        uint32_t b = block + (by_block ? i / strips : i % blocks);
        uint32_t s = strip + (by_block ? i % strips : i / blocks);
        run_task(&j, b, s, b != ready);
        ready = b;
    }
}
