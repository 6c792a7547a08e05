#include "kernel/fused_attention.h"
#include "kernel/vec/vec_int.h"
#include "kernel/vec/vec_math.h"

attention_fn VEC(attention);

// State of one part. Its scratch keeps the packed panels of the last head.
typedef struct Run {
    const FusedAttention *a;
    FusedAttentionPlan    plan;
    float                *scratch;
    uint32_t              open;  // sequence and head of the packed panels
} Run;

// A block of queries of one head.
typedef struct QueryBlock {
    uint32_t batch, head, row, rows;
} QueryBlock;

static size_t row_at(const AttentionStrides *s, uint32_t batch, uint32_t head, uint32_t step) {
    return batch * s->batch + head * s->head + step * s->step;
}

static void pack_head(Run *r, uint32_t batch, uint32_t head) {
    const FusedAttentionShape *s = &r->a->shape;
    uint32_t from = head / (s->heads / s->kv_heads), id = batch * s->kv_heads + from;
    if (r->open == id) return;
    r->open = id;
    VEC(gemm_panels)
    (s->keys, s->size, r->a->k + row_at(&s->k, batch, from, 0), s->k.step, !s->k_transposed,
     s->scale, r->scratch + r->plan.keys);
    VEC(gemm_panels)
    (s->v_size, s->keys, r->a->v + row_at(&s->v, batch, from, 0), s->v.step, false, 1,
     r->scratch + r->plan.values);
}

static void multiply(const GemmShape *shape, const Version *v, uint32_t rows, const float *a,
                     const float *panels, float *y, float *scratch) {
    Gemm g = {.shape = *shape, .version = *v, .a = a, .b = panels, .y = y};
    g.shape.m = rows;
    g.epilogue.lo = -INFINITY;
    g.epilogue.hi = INFINITY;
    VEC(gemm)(&g, (Part){0, 1, scratch});
}

// Sets the lanes beyond the last key to -INFINITY: softmax gives them 0.
static void mask_tail(uint32_t keys, float *score, size_t row) {
    for (size_t j = keys; j < row; j++) score[j] = -INFINITY;
}

static float add_mask(const float *mask, uint32_t keys, float *score, size_t row) {
    uint32_t whole = keys / VEC_LANES * VEC_LANES;
    Vf       top = vf_set(-INFINITY);
    for (size_t j = 0; j < row; j += VEC_LANES) {
        Vf x = vf_load(score + j);
        if (mask != NULL) {
            x += j < whole ? vf_load(mask + j) : vf_load_some(mask + j, keys - whole);
            vf_store(score + j, x);
        }
        top = vf_max(top, x);
    }
    return vf_top(top);
}

// Replaces scores by e^(score - max); returns the reciprocal of their sum.
static float exp_scores(const float *mask, uint32_t keys, float *score, size_t row) {
    mask_tail(keys, score, row);
    const float top = add_mask(mask, keys, score, row);
    const Vf    down = vf_set(isinf(top) ? INFINITY : top);
    Vf          sum = {0};
    for (size_t j = 0; j < row; j += VEC_LANES) {
        const Vf x = vf_exp(vf_load(score + j) - down);
        vf_store(score + j, x);
        sum += x;
    }
    const float all = vf_sum(sum);
    return all > 0 ? 1 / all : all;
}

static void scale_row(float *y, uint32_t n, float by) {
    uint32_t j = 0;
    for (; j + VEC_LANES <= n; j += VEC_LANES) vf_store(y + j, vf_load(y + j) * by);
    for (; j < n; j++) y[j] *= by;
}

static void run_block(const Run *r, const QueryBlock *p) {
    const FusedAttention      *a = r->a;
    const FusedAttentionShape *s = &a->shape;
    const FusedAttentionPlan  *plan = &r->plan;
    float                     *scores = r->scratch + plan->scores, *sums = r->scratch + plan->sums;
    float                     *gemm = r->scratch + plan->gemm;
    float                     *y = a->y + row_at(&s->y, p->batch, p->head, p->row);
    multiply(&plan->to_scores, &plan->scores_version, p->rows,
             a->q + row_at(&s->q, p->batch, p->head, p->row), r->scratch + plan->keys, scores,
             gemm);
    for (uint32_t i = 0; i < p->rows; i++) {
        const float *mask = a->mask;
        if (mask != NULL) mask += row_at(&s->mask, p->batch, p->head, p->row + i);
        sums[i] = exp_scores(mask, s->keys, scores + i * plan->row, plan->row);
    }
    multiply(&plan->to_values, &plan->values_version, p->rows, scores, r->scratch + plan->values, y,
             gemm);
    for (uint32_t i = 0; i < p->rows; i++) scale_row(y + i * s->y.step, s->v_size, sums[i]);
}

void VEC(attention)(const FusedAttention *a, Part part) {
    const FusedAttentionShape *s = &a->shape;
    Run      r = {a, fused_attention_plan(s, &a->version, VEC_LANES), part.scratch, UINT32_MAX};
    uint32_t blocks = (s->queries + a->version.rows - 1) / a->version.rows, t, end;
    part_range(part, s->batch * s->heads * blocks, &t, &end);
    for (; t < end; t++) {
        uint32_t   block = t % blocks, head = t / blocks % s->heads;
        QueryBlock p = {.batch = t / blocks / s->heads, .head = head};
        p.row = block * a->version.rows;
        p.rows = s->queries - p.row;
        if (p.rows > a->version.rows) p.rows = a->version.rows;
        pack_head(&r, p.batch, head);
        run_block(&r, &p);
    }
}
