#include "kernel/vec_wino.h"

#include "base/check.h"
#include "kernel/vec_tile.h"

typedef struct Job {
    const Wino   *w;
    WinoPlan      p;
    float        *inputs, *products;
    const float **rows;  // where the transformed channels of each tile of the block begin
} Job;

// Groups of near-equal size: the first `longer` have one more than `size`.
typedef struct Cut {
    uint32_t n, size, longer;
} Cut;

static Cut cut(uint32_t all, uint32_t most) {
    uint32_t n = wino_groups(all, most);
    return (Cut){n, all / n, all % n};
}

// The register tiles of both sizes of groups of tiles, with so many vectors.
typedef struct Runs {
    TileFn *longer, *shorter;
} Runs;

static Runs runs_of(const Cut *high, uint32_t vecs) {
    return (Runs){high->longer > 0 ? VEC(tile_find)(high->size + 1, vecs) : NULL,
                  VEC(tile_find)(high->size, vecs)};
}

// All groups of tiles with one group of vectors: t comes with its weights and the first tile's out.
static void multiply_rows(const Job *j, Tile *t, const Cut *high, const Runs *runs, size_t next) {
    t->rows = j->rows;
    for (uint32_t r = 0; r < high->n; r++) {
        const bool     longer = r < high->longer;
        const uint32_t rows = high->size + longer;
        t->ahead = next + (r > 0) * (size_t)t->depth * VEC_LANES / 2;
        TileFn *const run = longer ? runs->longer : runs->shorter;
        if (run != NULL) run(t);
        t->rows += rows;
        t->out += rows * t->row_stride;
    }
}

// Products of all tiles of the block and the vectors [first, last) of columns, at all points.
static void multiply(const Job *j, uint32_t tiles, uint32_t first, uint32_t last) {
    const WinoPlan *p = &j->p;
    const size_t    panel = (size_t)j->w->shape.ic * VEC_LANES;
    const Cut       high = cut(tiles, j->w->version.tile_rows);
    const Cut       wide = cut(last - first, j->w->version.tile_vecs);
    const Runs      shorter = runs_of(&high, wide.size);
    const Runs      longer = wide.longer > 0 ? runs_of(&high, wide.size + 1) : shorter;
    int32_t         term;
    Tile            t = {.terms = &term,
                         .n_terms = 1,
                         .depth = j->w->shape.ic,
                         .weight_stride = p->points * panel,
                         .row_stride = p->product_stride,
                         .vec_stride = p->points * VEC_LANES};
    for (uint32_t i = 0; i < p->points; i++) {
        // After the last point of these columns comes the first one of the next.
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
    if (fresh) VEC(wino_inputs)(j->w, &j->p, begin, end, j->inputs);
    multiply(j, end - begin, first, last);
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
