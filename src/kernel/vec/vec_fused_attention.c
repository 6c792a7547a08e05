#include "kernel/fused_attention.h"
#include "kernel/vec/vec_int.h"
#include "kernel/vec/vec_math.h"
#include "kernel/vec/vec_transpose.h"

#define UNROLL VEC_UNROLL(16)

attention_fn VEC(attention);

// State of one part. Its scratch keeps the packed panels of the last head.
typedef struct Run {
    const FusedAttention *a;
    FusedAttentionShape   shape;  // with the keys of the current sequence
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
    const FusedAttentionShape *s = &r->shape;
    uint32_t from = head / (s->heads / s->kv_heads), id = batch * s->kv_heads + from;
    if (r->open == id) return;
    r->open = id;
    r->shape.keys = attention_keys(r->a, batch);
    r->plan = fused_attention_plan(s, &r->a->version, VEC_LANES);
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

// Scores of one query: capped, masked, and -INFINITY outside its keys. Returns the largest.
typedef struct ScoreRow {
    const FusedAttentionShape *s;
    const float               *mask;  // of all keys; NULL: none
    KeyRange                   keys;
    uint32_t                   begin, end;  // whole vectors around the keys
} ScoreRow;

static ScoreRow score_row(const FusedAttention *a, uint32_t batch, uint32_t head, uint32_t query) {
    ScoreRow r = {.s = &a->shape, .keys = attention_range(a, batch, query)};
    if (a->mask != NULL) r.mask = a->mask + row_at(&a->shape.mask, batch, head, query);
    r.begin = r.keys.first / VEC_LANES * VEC_LANES;
    r.end = (r.keys.end + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
    return r;
}

static void cap_scores(const ScoreRow *r, float *score) {
    const float cap = r->s->softcap;
    for (uint32_t j = r->begin; j < r->end; j += VEC_LANES)
        vf_store(score + j, vf_tanh(vf_load(score + j) * (1 / cap)) * cap);
}

static void choose_scores(const ScoreRow *r, float *score) {
    const Vf otherwise = vf_set(r->s->otherwise);
    uint32_t j = r->begin;
    for (; j + VEC_LANES <= r->keys.end; j += VEC_LANES)
        vf_store(score + j,
                 vf_choose((Vi)(vf_load(r->mask + j) != 0.0f), vf_load(score + j), otherwise));
    for (; j < r->keys.end; j++)
        if (r->mask[j] == 0) score[j] = r->s->otherwise;
}

static float mask_scores(const ScoreRow *r, float *score) {
    const bool added = r->mask != NULL && !r->s->chosen;
    Vf         top = vf_set(-INFINITY);
    if (r->mask != NULL && !added) choose_scores(r, score);
    for (uint32_t j = r->begin; j < r->keys.first; j++) score[j] = -INFINITY;
    for (uint32_t j = r->keys.end; j < r->end; j++) score[j] = -INFINITY;
    for (uint32_t j = r->begin; j < r->end; j += VEC_LANES) {
        Vf x = vf_load(score + j);
        if (added) {
            uint32_t n = r->keys.end - j;
            x += n >= VEC_LANES ? vf_load(r->mask + j) : vf_load_some(r->mask + j, n);
            vf_store(score + j, x);
        }
        top = vf_max(top, x);
    }
    return vf_top(top);
}

// Replaces scores by e^(score - max), and by 0 outside the query's keys, up to `all`; returns the
// reciprocal of their sum.
static float exp_scores(const ScoreRow *r, float *score, size_t all) {
    if (r->s->softcap > 0) cap_scores(r, score);
    const float top = mask_scores(r, score);
    const Vf    down = vf_set(isinf(top) ? INFINITY : top);
    Vf          sum = {0};
    for (uint32_t j = r->begin; j < r->end; j += VEC_LANES) {
        const Vf x = vf_exp(vf_load(score + j) - down);
        vf_store(score + j, x);
        sum += x;
    }
    memset(score, 0, r->begin * sizeof *score);
    if (r->end < all) memset(score + r->end, 0, (all - r->end) * sizeof *score);
    const float whole = vf_sum(sum);
    return whole > 0 ? 1 / whole : whole;
}

static void scale_row(float *y, uint32_t n, float by) {
    uint32_t j = 0;
    for (; j + VEC_LANES <= n; j += VEC_LANES) vf_store(y + j, vf_load(y + j) * by);
    for (; j < n; j++) y[j] *= by;
}

// Keys that any query of the block attends to.
static uint32_t last_key(const FusedAttention *a, const QueryBlock *p) {
    return attention_range(a, p->batch, p->row + p->rows - 1).end;
}

static void run_block(const Run *r, const QueryBlock *p) {
    const FusedAttention      *a = r->a;
    const FusedAttentionShape *s = &r->shape;
    const FusedAttentionPlan  *plan = &r->plan;
    float                     *scores = r->scratch + plan->scores, *sums = r->scratch + plan->sums;
    float                     *gemm = r->scratch + plan->gemm;
    float                     *y = a->y + row_at(&s->y, p->batch, p->head, p->row);
    GemmShape                  to_scores = plan->to_scores;
    to_scores.n = (last_key(a, p) + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
    to_scores.y.row = plan->row;
    multiply(&to_scores, &plan->scores_version, p->rows,
             a->q + row_at(&s->q, p->batch, p->head, p->row), r->scratch + plan->keys, scores,
             gemm);
    for (uint32_t i = 0; i < p->rows; i++) {
        ScoreRow row = score_row(a, p->batch, p->head, p->row + i);
        sums[i] = exp_scores(&row, scores + i * plan->row, plan->row);
    }
    multiply(&plan->to_values, &plan->values_version, p->rows, scores, r->scratch + plan->values, y,
             gemm);
    for (uint32_t i = 0; i < p->rows; i++) scale_row(y + i * s->y.step, s->v_size, sums[i]);
}

static void run_panels(const FusedAttention *a, Part part) {
    const FusedAttentionShape *s = &a->shape;
    Run      r = {.a = a, .shape = *s, .scratch = part.scratch, .open = UINT32_MAX};
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

// In place: queries that share a head of keys and values, ATTENTION_ROWS at a time.
typedef struct SharedHead {
    const FusedAttention *a;
    const float          *k, *v;
    uint32_t              rows;
    const float          *q[ATTENTION_ROWS];
    float                *y[ATTENTION_ROWS], *scores[ATTENTION_ROWS];
    ScoreRow              row[ATTENTION_ROWS];
    uint32_t              begin, end;  // keys of any of the rows
} SharedHead;

// Dot products of a query with VEC_LANES keys from key j on; keys beyond the last give rubbish.
VEC_INLINE Vf dots(const FusedAttentionShape *s, const float *q, const float *k, uint32_t n) {
    Vf       sum[VEC_LANES] = {0};
    uint32_t whole = s->size / VEC_LANES * VEC_LANES;
    for (uint32_t h = 0; h < s->size; h += VEC_LANES) {
        const bool some = h == whole;
        const Vf   x = some ? vf_load_some(q + h, s->size - whole) : vf_load(q + h);
        UNROLL for (uint32_t i = 0; i < VEC_LANES; i++) {
            const float *at = k + (size_t)(i < n ? i : 0) * s->k.step + h;
            sum[i] += x * (some ? vf_load_some(at, s->size - whole) : vf_load(at));
        }
    }
    vec_transpose(sum);
    Vf all = sum[0];
    UNROLL for (uint32_t i = 1; i < VEC_LANES; i++) all += sum[i];
    return all;
}

static void score_keys(const SharedHead *h) {
    const FusedAttentionShape *s = &h->a->shape;
    for (uint32_t j = h->begin; j < h->end; j += VEC_LANES)
        for (uint32_t i = 0; i < h->rows; i++)
            vf_store(h->scores[i] + j,
                     dots(s, h->q[i], h->k + j * s->k.step, h->end - j) * s->scale);
}

// Weighted sums of the values, `vecs` vectors of them (or `some` lanes of one) for all rows.
VEC_INLINE void sum_values(const SharedHead *h, uint32_t at, const uint32_t vecs, uint32_t some,
                           const float *by) {
    const FusedAttentionShape *s = &h->a->shape;
    Vf                         sum[ATTENTION_ROWS][2] = {0};
    for (uint32_t j = h->begin; j < h->end; j++) {
        Vf x[2];
        UNROLL for (uint32_t v = 0; v < vecs; v++) x[v] =
            vf_load_part(h->v + j * s->v.step + at + (size_t)v * VEC_LANES, some);
        UNROLL for (uint32_t i = 0; i < ATTENTION_ROWS; i++) {
            const Vf w = vf_set(h->scores[i][j]);
            UNROLL for (uint32_t v = 0; v < vecs; v++) sum[i][v] += w * x[v];
        }
    }
    for (uint32_t i = 0; i < h->rows; i++)
        UNROLL for (uint32_t v = 0; v < vecs; v++)
            vf_store_part(h->y[i] + at + (size_t)v * VEC_LANES, sum[i][v] * by[i], some);
}

static void weigh_values(const SharedHead *h, const float *by) {
    uint32_t at = 0, n = h->a->shape.v_size;
    for (; at + 2 * VEC_LANES <= n; at += 2 * VEC_LANES) sum_values(h, at, 2, VEC_LANES, by);
    for (; at + VEC_LANES <= n; at += VEC_LANES) sum_values(h, at, 1, VEC_LANES, by);
    if (at < n) sum_values(h, at, 1, n - at, by);
}

static void run_shared(SharedHead *h) {
    float by[ATTENTION_ROWS] = {0};
    h->begin = UINT32_MAX, h->end = 0;
    for (uint32_t i = 0; i < h->rows; i++) {
        if (h->row[i].begin < h->begin) h->begin = h->row[i].begin;
        if (h->row[i].keys.end > h->end) h->end = h->row[i].keys.end;
    }
    score_keys(h);
    size_t all = (h->end + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
    for (uint32_t i = 0; i < h->rows; i++) by[i] = exp_scores(&h->row[i], h->scores[i], all);
    for (uint32_t i = h->rows; i < ATTENTION_ROWS; i++) h->scores[i] = h->scores[0];
    weigh_values(h, by);
}

static void run_in_place(const FusedAttention *a, Part part) {
    const FusedAttentionShape *s = &a->shape;
    uint32_t                   group = s->heads / s->kv_heads, t, end;
    size_t                     row = (s->keys + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
    part_range(part, s->batch * s->kv_heads, &t, &end);
    for (; t < end; t++) {
        uint32_t   batch = t / s->kv_heads, shared = t % s->kv_heads;
        SharedHead h = {.a = a};
        h.k = a->k + row_at(&s->k, batch, shared, 0);
        h.v = a->v + row_at(&s->v, batch, shared, 0);
        for (uint32_t i = 0; i < group * s->queries; i += h.rows) {
            h.rows = group * s->queries - i;
            if (h.rows > ATTENTION_ROWS) h.rows = ATTENTION_ROWS;
            for (uint32_t j = 0; j < h.rows; j++) {
                uint32_t head = shared * group + (i + j) / s->queries, query = (i + j) % s->queries;
                h.q[j] = a->q + row_at(&s->q, batch, head, query);
                h.y[j] = a->y + row_at(&s->y, batch, head, query);
                h.scores[j] = (float *)part.scratch + j * row;
                h.row[j] = score_row(a, batch, head, query);
            }
            run_shared(&h);
        }
    }
}

void VEC(attention)(const FusedAttention *a, Part part) {
    if (a->version.pack == ATTENTION_IN_PLACE)
        run_in_place(a, part);
    else
        run_panels(a, part);
}
