// com.microsoft's operators of exported decoders: attention with caches, rotary embedding, products
// and look-ups of block-quantised weights.
#include <math.h>

#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "kernel/ref/ref_attention.h"
#include "kernel/ref/ref_block_quant.h"
#include "kernel/ref/ref_elementwise.h"
#include "model/params/block_quant.h"

static int64_t at(const RefHeads *h, int64_t b, int64_t n, int64_t s) {
    return h->at + b * h->batch + n * h->head + s * h->step;
}

static void copy_row(const Tensor *from, int64_t at, int64_t size, Tensor *to, int64_t into) {
    WORK_EACH (i, size) tensor_set(to, into + i, tensor_get_f64(from, at + i));
}

// A cache [batch, heads, past, size] with new rows from row n_past[b] on: [batch, heads, rows,
// size].
typedef struct CacheJoin {
    const Tensor  *past;  // NULL: none
    const int64_t *n_past;
    RefHeads       fresh;
    int64_t        batch, heads, past_rows, fresh_rows, rows, size;
} CacheJoin;

static void join_head(const CacheJoin *j, int64_t b, int64_t n, Tensor *to) {
    int64_t head = b * j->heads + n;
    for (int64_t s = 0; s < j->n_past[b] && !work_stopped(); s++)
        copy_row(j->past, (head * j->past_rows + s) * j->size, j->size, to,
                 (head * j->rows + s) * j->size);
    for (int64_t s = 0; s < j->fresh_rows && !work_stopped(); s++)
        copy_row(j->fresh.t, at(&j->fresh, b, n, s), j->size, to,
                 (head * j->rows + j->n_past[b] + s) * j->size);
}

// Into `out` (zeroed), or without it into a temporary; *heads is its layout.
static Err join_cache(const OpCall *c, const CacheJoin *j, Tensor *out, RefHeads *heads) {
    Tensor shape = {.rank = 4, .dims = {j->batch, j->heads, j->rows, j->size}};
    if (out == NULL) {
        out = arena_try_new(c->scratch, Tensor, 1);
        if (out == NULL) return err_set(ERR_LIMIT, "no memory for a tensor");
        TRY(run_alloc(c, &shape, c->in[0]->dtype, out));
    }
    for (int64_t i = 0; i < j->batch * j->heads && !work_stopped(); i++)
        join_head(j, i / j->heads, i % j->heads, out);
    *heads = run_heads(out, false, j->heads, j->rows, j->size);
    return ERR_OK;
}

// GroupQueryAttention: operands, and per sequence its keys and the past among them.
typedef struct GroupRun {
    GroupAttention g;
    int64_t       *total, *n_past;
    RefHeads       q, k, v;
    Tensor         ids;  // positions [batch, length]
} GroupRun;

static Err group_lengths(const OpCall *c, GroupRun *r) {
    const Attention *a = &r->g.heads;
    r->total = arena_try_new(c->scratch, int64_t, (size_t)a->batch);
    r->n_past = arena_try_new(c->scratch, int64_t, (size_t)a->batch);
    if (r->total == NULL || r->n_past == NULL) return err_set(ERR_LIMIT, "no memory for lengths");
    for (int64_t b = 0; b < a->batch; b++) {
        TRY(group_attention_length(&r->g, c->in[5]->data, b, &r->total[b]));
        r->n_past[b] = group_attention_past(&r->g, r->total[b]);
    }
    return ERR_OK;
}

static void group_operands(const OpCall *c, GroupRun *r) {
    const Attention *a = &r->g.heads;
    int64_t          all = a->heads + 2 * a->kv_heads;
    if (!r->g.joined) {
        r->q = run_heads(c->in[0], true, a->heads, a->queries, a->size);
        r->k = run_heads(c->in[1], true, a->kv_heads, a->queries, a->size);
        r->v = run_heads(c->in[2], true, a->kv_heads, a->queries, a->size);
        return;
    }
    r->q = r->k = r->v = run_heads(c->in[0], true, all, a->queries, a->size);
    r->k.at = a->heads * a->size;
    r->v.at = (a->heads + a->kv_heads) * a->size;
}

// Replaces heads of Q or K by rotated ones.
static Err rotate(const OpCall *c, const GroupRun *r, int64_t heads, RefHeads *x) {
    const Attention *a = &r->g.heads;
    Tensor           shape = {.rank = 3, .dims = {a->batch, a->queries, heads * a->size}};
    Tensor          *y = arena_try_new(c->scratch, Tensor, 1);
    if (y == NULL) return err_set(ERR_LIMIT, "no memory for a tensor");
    TRY(run_alloc(c, &shape, c->in[0]->dtype, y));
    RefRotary p = {.batch = a->batch,
                   .heads = heads,
                   .length = a->queries,
                   .size = a->size,
                   .rotated = r->g.rotated,
                   .interleaved = r->g.interleaved,
                   .x = *x,
                   .to = run_heads(NULL, true, heads, a->queries, a->size),
                   .y = y,
                   .cosines = c->in[7],
                   .sines = c->in[8],
                   .ids = &r->ids};
    *x = p.to;
    x->t = y;
    return ref_rotary(&p);
}

static Err group_rotary(const OpCall *c, GroupRun *r) {
    const Attention *a = &r->g.heads;
    Tensor           shape = {.rank = 2, .dims = {a->batch, a->queries}};
    if (r->g.rotated == 0) return ERR_OK;
    TRY(run_alloc(c, &shape, DT_I64, &r->ids));
    for (int64_t i = 0; i < a->batch * a->queries; i++)
        ((int64_t *)r->ids.data)[i] = r->n_past[i / a->queries] + i % a->queries;
    if (infer_input(c, 9) != NULL) r->ids = *c->in[9];
    TRY(rotate(c, r, a->heads, &r->q));
    return rotate(c, r, a->kv_heads, &r->k);
}

// Hides keys beyond the sequence, after the query, and before its window.
static void group_mask(const GroupRun *r, Tensor *bias) {
    const Attention *a = &r->g.heads;
    double          *v = bias->data;
    int64_t          heads = bias->dims[1], keys = r->g.total;
    WORK_EACH (i, tensor_count(bias)) {
        int64_t j = i % keys, s = i / keys % a->queries, b = i / keys / a->queries / heads;
        int64_t end = a->causal ? r->n_past[b] + s + 1 : r->total[b];
        if (end > r->total[b]) end = r->total[b];
        if (j >= end || (a->window > 0 && j < end - a->window)) v[i] = (double)-INFINITY;
    }
}

static Err group_bias(const OpCall *c, const GroupRun *r, Tensor *bias) {
    const Attention *a = &r->g.heads;
    const Tensor    *add = infer_input(c, 10);
    Tensor shape = {.rank = 4, .dims = {a->batch, add != NULL ? a->heads : 1, a->queries}};
    shape.dims[3] = r->g.total;
    TRY(run_alloc_f64(c, &shape, bias));
    if (add != NULL) {
        Tensor real;
        TRY(run_alloc_f64(c, add, &real));
        WORK_EACH (i, tensor_count(add)) ((double *)real.data)[i] = tensor_get_f64(add, i);
        ref_binary(REF_ADD, bias, &real, bias);
    }
    group_mask(r, bias);
    return ERR_OK;
}

static CacheJoin group_cache(const OpCall *c, const GroupRun *r, uint32_t past, RefHeads fresh) {
    const Attention *a = &r->g.heads;
    return (CacheJoin){.past = infer_input(c, past),
                       .n_past = r->n_past,
                       .fresh = fresh,
                       .batch = a->batch,
                       .heads = a->kv_heads,
                       .past_rows = a->past,
                       .fresh_rows = a->queries,
                       .rows = r->g.present,
                       .size = a->size};
}

Err run_attention_group(const OpCall *c, Tensor *out) {
    GroupRun r = {0};
    Tensor   bias;
    TRY(group_attention_read(c, &r.g));
    TRY(group_lengths(c, &r));
    group_operands(c, &r);
    TRY(group_rotary(c, &r));
    const Attention *a = &r.g.heads;
    RefAttention     p = run_attention_params(a);
    CacheJoin        keys = group_cache(c, &r, 3, r.k), values = group_cache(c, &r, 4, r.v);
    TRY(join_cache(c, &keys, c->node->n_out > 1 ? &out[1] : NULL, &p.k));
    TRY(join_cache(c, &values, c->node->n_out > 2 ? &out[2] : NULL, &p.v));
    TRY(group_bias(c, &r, &bias));
    p.keys = r.g.total;
    p.q = r.q;
    p.bias = &bias;
    p.y = &out[0];
    p.to = run_heads(&out[0], true, a->heads, a->queries, a->size);
    return ref_attention(&p, c->scratch);
}

// Adds the part of the bias that belongs to one projection.
static Err add_bias(const OpCall *c, const Tensor *x, int64_t from, Tensor *out) {
    const Tensor *bias = infer_input(c, 3);
    *out = *x;
    if (bias == NULL) return ERR_OK;
    int64_t width = x->dims[x->rank - 1];
    TRY(run_alloc_f64(c, x, out));
    WORK_EACH (i, tensor_count(x))
        ((double *)out->data)[i] = tensor_get_f64(x, i) + tensor_get_f64(bias, from + i % width);
    return ERR_OK;
}

// key_padding_mask: number of keys per sequence, or a 0/1 mask by key, or by query and key.
static bool is_padding(const Tensor *mask, const Attention *a, int64_t b, int64_t s, int64_t k) {
    const int32_t *v = mask->data;
    int64_t        keys = a->past + a->fresh;
    if (mask->rank == 1) return k >= v[b];
    return v[mask->rank == 2 ? b * keys + k : (b * a->queries + s) * keys + k] == 0;
}

static Err multi_bias(const OpCall *c, const Attention *a, Tensor *bias) {
    const Tensor *mask = infer_input(c, 4), *add = infer_input(c, 5);
    double        hide = (double)attr_float(c->node, "mask_filter_value", -10000);
    int64_t       keys = a->past + a->fresh;
    Tensor        shape = {.rank = 4, .dims = {a->batch, a->heads, a->queries, keys}};
    TRY(run_alloc_f64(c, &shape, bias));
    double *v = bias->data;
    WORK_EACH (i, tensor_count(bias)) {
        int64_t k = i % keys, s = i / keys % a->queries, b = i / keys / a->queries / a->heads;
        if (mask != NULL && is_padding(mask, a, b, s, k)) v[i] = hide;
        if (a->causal && k > s + a->past) v[i] = (double)-INFINITY;
    }
    if (add == NULL) return ERR_OK;
    Tensor real;
    TRY(run_alloc_f64(c, add, &real));
    WORK_EACH (i, tensor_count(add)) ((double *)real.data)[i] = tensor_get_f64(add, i);
    ref_binary(REF_ADD, bias, &real, bias);
    return ERR_OK;
}

static Err multi_cache(const OpCall *c, const Attention *a, uint32_t which, const Tensor *fresh,
                       Tensor *out, RefHeads *heads) {
    int64_t *n_past = arena_try_new(c->scratch, int64_t, (size_t)a->batch);
    int64_t  size = which == 1 ? a->size : a->v_size;
    if (n_past == NULL) return err_set(ERR_LIMIT, "no memory for lengths");
    for (int64_t b = 0; b < a->batch; b++) n_past[b] = a->past;
    CacheJoin j = {.past = infer_input(c, which + 5),
                   .n_past = n_past,
                   .fresh = run_heads(fresh, fresh->rank == 3, a->heads, a->fresh, size),
                   .batch = a->batch,
                   .heads = a->heads,
                   .past_rows = a->past,
                   .fresh_rows = a->fresh,
                   .rows = a->past + a->fresh,
                   .size = size};
    return join_cache(c, &j, out, heads);
}

Err run_attention_multi(const OpCall *c, Tensor *out) {
    Attention a;
    Tensor    q, k, v, bias;
    TRY(attention_read_multi(c, &a));
    RefAttention p = run_attention_params(&a);
    int64_t      width = a.heads * a.size;
    TRY(add_bias(c, c->in[0], 0, &q));
    TRY(add_bias(c, c->in[1], width, &k));
    TRY(add_bias(c, c->in[2], 2 * width, &v));
    TRY(multi_cache(c, &a, 1, &k, c->node->n_out > 1 ? &out[1] : NULL, &p.k));
    TRY(multi_cache(c, &a, 2, &v, c->node->n_out > 2 ? &out[2] : NULL, &p.v));
    TRY(multi_bias(c, &a, &bias));
    p.q = run_heads(&q, true, a.heads, a.queries, a.size);
    p.bias = &bias;
    p.y = &out[0];
    p.to = run_heads(&out[0], true, a.heads, a.queries, a.v_size);
    return ref_attention(&p, c->scratch);
}

// One id stands for consecutive positions from it on.
static Err spread_ids(const OpCall *c, const Rotary *r, Tensor *ids) {
    Tensor shape = {.rank = 2, .dims = {r->batch, r->length}};
    *ids = *c->in[1];
    if (!r->first_id) return ERR_OK;
    TRY(run_alloc(c, &shape, DT_I64, ids));
    int64_t first = *(const int64_t *)c->in[1]->data;
    if (first < 0 || first > INT64_MAX / 2)
        return err_set(ERR_INVALID, "rotary embedding: the first position is out of range");
    WORK_EACH (i, r->batch * r->length) ((int64_t *)ids->data)[i] = first + i % r->length;
    return ERR_OK;
}

Err run_rotary_ms(const OpCall *c, Tensor *out) {
    Rotary r;
    Tensor ids;
    TRY(rotary_read_ms(c, &r));
    TRY(spread_ids(c, &r, &ids));
    return run_rotary_at(c, &r, 2, &ids, out);
}

static RefBlocks blocks_of(const OpCall *c, const BlockQuant *q, uint32_t data) {
    return (RefBlocks){.data = c->in[data],
                       .scales = c->in[2],
                       .zeros = infer_input(c, 3),
                       .columns = q->columns,
                       .block = q->block,
                       .blocks = q->blocks,
                       .row_bytes = q->row_bytes,
                       .zero_bytes = q->zero_bytes,
                       .bits = q->bits};
}

Err run_matmul_nbits(const OpCall *c, Tensor *out) {
    BlockQuant q;
    TRY(matmul_nbits_read(c, &q));
    RefBlocks p = blocks_of(c, &q, 1);
    return ref_blocks_matmul(&p, q.rows, c->in[0], infer_input(c, 5), &out[0], c->scratch);
}

Err run_gather_nbits(const OpCall *c, Tensor *out) {
    BlockQuant q;
    TRY(gather_nbits_read(c, &q));
    int64_t   count = c->in[0]->dims[0];
    RefBlocks p = blocks_of(c, &q, 0);
    return ref_blocks_gather(&p, count, count > 0 ? q.rows / count : 0, c->in[1], &out[0],
                             c->scratch);
}
