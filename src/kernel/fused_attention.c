#include "kernel/fused_attention.h"

#include "kernel/blocking.h"
#include "kernel/tile.h"

enum { FEW_QUERIES = 4 };

static uint32_t blocks(const FusedAttentionShape *s, const Version *v) {
    return ceil_div(s->queries, v->rows);
}

uint32_t fused_attention_tasks(const FusedAttentionShape *s, const Isa *isa, const Version *v) {
    (void)isa;
    if (v->pack == ATTENTION_IN_PLACE) return s->batch * s->kv_heads;
    return s->batch * s->heads * blocks(s, v);
}

// Version of a product of query rows with packed panels: one column block, one depth block.
static Version product(const Version *v, uint32_t rows, uint32_t vecs, uint32_t depth) {
    return (Version){.algo = ALGO_GEMM,
                     .order = ORDER_WEIGHT_STATIONARY,
                     .split = SPLIT_COLUMNS,
                     .tile_rows = (uint8_t)rows,
                     .tile_vecs = (uint8_t)vecs,
                     .rows = v->rows,
                     .columns = UINT16_MAX / 4 * 4,
                     .depth = (uint16_t)min_u32(max_u32(depth, 1), UINT16_MAX)};
}

FusedAttentionPlan fused_attention_plan(const FusedAttentionShape *s, const Version *v,
                                        uint32_t lanes) {
    FusedAttentionPlan p;
    uint32_t           rows = min_u32(v->rows, s->queries);
    p.row = round_up(s->keys, lanes);
    p.to_scores = gemm_shape(rows, (uint32_t)p.row, s->size);
    p.to_scores.a.row = s->q.step;
    p.to_values = gemm_shape(rows, s->v_size, s->keys);
    p.to_values.a.row = p.row;
    p.to_values.y.row = s->y.step;
    p.scores_version = product(v, v->tile_rows, v->tile_vecs, s->size);
    p.values_version = product(v, v->tile_rows, v->tile_vecs, s->keys);
    p.keys = 0;
    p.values = round_to_lines(p.row * s->size);
    p.scores = p.values + round_to_lines((size_t)round_up(s->v_size, lanes) * s->keys);
    p.sums = p.scores + round_to_lines(p.row * rows);
    p.gemm = p.sums + round_to_lines(rows);
    p.end = p.gemm + gemm_scratch_layout(&p.to_values, &p.values_version, lanes).end;
    return p;
}

size_t fused_attention_scratch(const FusedAttentionShape *s, const Isa *isa, const Version *v) {
    if (v->pack == ATTENTION_IN_PLACE)
        return (size_t)round_up(s->keys, isa->lanes) * ATTENTION_ROWS * sizeof(float);
    return fused_attention_plan(s, v, isa->lanes).end * sizeof(float);
}

// Query rows per block: their scores fill a quarter of L2; blocks are as equal as tiles allow.
static uint16_t rows_of(const FusedAttentionShape *s, size_t l2, uint32_t most_rows,
                        uint32_t tile) {
    size_t   fits = l2 / 4 / sizeof(float) / max_u32(s->keys, 1);
    uint32_t top = (uint32_t)(fits < most_rows ? fits : most_rows) / tile * tile;
    uint32_t n = (s->queries + max_u32(top, tile) - 1) / max_u32(top, tile);
    return (uint16_t)round_up(max_u32((s->queries + n - 1) / max_u32(n, 1), 1), tile);
}

// Few queries: packing the keys and values of a head would cost more than the products.
static void add_in_place(const FusedAttentionShape *s, uint32_t most, Version *out, uint32_t *n,
                         uint32_t max) {
    Version v = {.algo = ALGO_ATTENTION,
                 .split = SPLIT_ROWS,
                 .tile_rows = 1,
                 .tile_vecs = 2,
                 .pack = ATTENTION_IN_PLACE,
                 .rows = 1};
    if (!s->k_transposed && s->queries <= most) version_add(v, out, n, max);
}

uint32_t fused_attention_versions(const FusedAttentionShape *s, const Isa *isa,
                                  const CacheSizes *caches, Version *out, uint32_t max) {
    static const uint16_t rows[] = {64, 128, 32, 16};
    static const uint8_t  vecs[] = {2, 4, 3};
    uint32_t              n = 0;
    add_in_place(s, FEW_QUERIES, out, &n, max);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t j = 0; j < sizeof vecs && n < max; j++) {
            uint32_t tile =
                min_u32(tile_most_rows(isa->registers, vecs[j]), max_u32(s->queries, 1));
            Version v = {.algo = ALGO_ATTENTION,
                         .split = SPLIT_ROWS,
                         .tile_rows = (uint8_t)tile,
                         .tile_vecs = vecs[j],
                         .rows = rows_of(s, caches->l2, rows[i], tile)};
            version_add(v, out, &n, max);
        }
    add_in_place(s, 4 * FEW_QUERIES, out, &n, max);
    return n;
}

Traffic fused_attention_traffic(const FusedAttentionShape *s, const Isa *isa, const Version *v,
                                const CacheSizes *caches, uint32_t parts) {
    size_t head = (size_t)s->keys * (s->size + s->v_size) * sizeof(float);
    size_t row = ((size_t)s->size + s->v_size) * sizeof(float);
    size_t scratch = fused_attention_scratch(s, isa, v);
    size_t moved = (head + row * s->queries) * s->batch * s->heads;
    if (v->pack == ATTENTION_IN_PLACE)
        return (Traffic){0, (head * s->kv_heads + row * s->queries * s->heads) * s->batch};
    // Parts that share a head each pack it; panels larger than L2 are reread for each query block.
    if (parts > 1) moved += head * (parts - 1);
    size_t over = scratch > caches->l2 ? scratch - caches->l2 : 0;
    return (Traffic){over * parts, moved + over * s->batch * s->heads * blocks(s, v)};
}
