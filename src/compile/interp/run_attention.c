// Attention, rotary and token embeddings.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "kernel/ref/ref_attention.h"
#include "kernel/ref/ref_elementwise.h"
#include "kernel/ref/ref_norm.h"
#include "model/params/attention.h"

RefHeads run_heads(const Tensor *t, bool packed, int64_t heads, int64_t length, int64_t size) {
    RefHeads h = {.t = t, .batch = heads * length * size};
    h.head = packed ? size : length * size;
    h.step = packed ? heads * size : size;
    return h;
}

RefAttention run_attention_params(const Attention *a) {
    return (RefAttention){.batch = a->batch,
                          .heads = a->heads,
                          .kv_heads = a->kv_heads,
                          .queries = a->queries,
                          .keys = a->past + a->fresh,
                          .size = a->size,
                          .v_size = a->v_size,
                          .scale = (double)a->scale,
                          .softcap = (double)a->softcap,
                          .stage = a->stage};
}

// Causal mask: a query attends to the past and to keys up to its own position.
static void mask_future(const Attention *a, Tensor *bias) {
    int64_t keys = a->past + a->fresh;
    double *v = bias->data;
    WORK_EACH (i, tensor_count(bias))
        if (i % keys > i / keys % a->queries + a->past) v[i] = (double)-INFINITY;
}

// Mask and causal mask as an additive bias: [batch, heads, queries, keys].
static Err make_bias(const OpCall *c, const Attention *a, Tensor *bias) {
    const Tensor *mask = infer_input(c, 3);
    Tensor        shape = {.rank = 4, .dims = {a->batch, a->heads, a->queries, a->past + a->fresh}};
    TRY(run_alloc_f64(c, &shape, bias));
    if (mask != NULL) {
        Tensor real;
        TRY(run_alloc_f64(c, mask, &real));
        WORK_EACH (i, tensor_count(mask)) {
            double v = tensor_get_f64(mask, i);
            if (mask->dtype == DT_BOOL) v = v != 0 ? 0 : (double)-INFINITY;
            ((double *)real.data)[i] = v;
        }
        ref_binary(REF_ADD, bias, &real, bias);
    }
    if (a->causal) mask_future(a, bias);
    return ERR_OK;
}

// [batch, heads, past + fresh, size]: the KV cache, then the new keys or values.
static void join_past(const Tensor *past, RefHeads fresh, const Attention *a, int64_t size,
                      Tensor *to) {
    int64_t keys = a->past + a->fresh;
    WORK_EACH (i, a->batch * a->kv_heads * keys * size) {
        int64_t h = i % size, s = i / size % keys, n = i / size / keys % a->kv_heads;
        int64_t b = i / size / keys / a->kv_heads;
        double  v = s < a->past
                        ? tensor_get_f64(past, ((b * a->kv_heads + n) * a->past + s) * size + h)
                        : tensor_get_f64(fresh.t, b * fresh.batch + n * fresh.head +
                                                      (s - a->past) * fresh.step + h);
        tensor_set(to, i, v);
    }
}

static Err present_of(const OpCall *c, const Attention *a, uint32_t which, int64_t size,
                      Tensor *out, RefHeads *heads) {
    const Tensor *fresh = c->in[which];
    int64_t       keys = a->past + a->fresh;
    Tensor        shape = {.rank = 4, .dims = {a->batch, a->kv_heads, keys, size}}, room;
    if (out == NULL) {
        TRY(run_alloc(c, &shape, fresh->dtype, &room));
        out = arena_try_new(c->scratch, Tensor, 1);
        if (out == NULL) return err_set(ERR_LIMIT, "no memory for a tensor");
        *out = room;
    }
    join_past(infer_input(c, which + 3), run_heads(fresh, a->packed, a->kv_heads, a->fresh, size),
              a, size, out);
    *heads = run_heads(out, false, a->kv_heads, keys, size);
    return ERR_OK;
}

Err run_attention(const OpCall *c, Tensor *out) {
    Attention a;
    Tensor    bias;
    TRY(attention_read(c, &a));
    RefAttention p = run_attention_params(&a);
    TRY(present_of(c, &a, 1, a.size, c->node->n_out > 1 ? &out[1] : NULL, &p.k));
    TRY(present_of(c, &a, 2, a.v_size, c->node->n_out > 2 ? &out[2] : NULL, &p.v));
    p.q = run_heads(c->in[0], a.packed, a.heads, a.queries, a.size);
    p.y = &out[0];
    p.to = run_heads(&out[0], a.packed, a.heads, a.queries, a.v_size);
    if (c->node->n_out > 3) p.scores = &out[3];
    if (infer_input(c, 3) != NULL || a.causal) {
        TRY(make_bias(c, &a, &bias));
        p.bias = &bias;
    }
    return ref_attention(&p, c->scratch);
}

// mask_index: number of keys per sequence, or a 0/1 mask by key, or by query and key.
static bool is_masked_ms(const Tensor *mask, int64_t b, int64_t q, int64_t k, int64_t n) {
    const int32_t *v = mask->data;
    if (mask->rank == 1) return k >= v[b];
    return v[mask->rank == 2 ? b * n + k : (b * n + q) * n + k] == 0;
}

static Err bias_ms(const OpCall *c, const Attention *a, Tensor *bias) {
    const Tensor *mask = infer_input(c, 3);
    double        hide = (double)attr_float(c->node, "mask_filter_value", -10000);
    int64_t       n = a->queries;
    Tensor        shape = {.rank = 4, .dims = {a->batch, 1, n, n}};
    TRY(run_alloc_f64(c, &shape, bias));
    for (int64_t i = 0; i < tensor_count(bias) && mask != NULL && !work_stopped(); i++)
        if (is_masked_ms(mask, i / n / n, i / n % n, i % n, n)) ((double *)bias->data)[i] = hide;
    if (a->causal) mask_future(a, bias);
    return ERR_OK;
}

Err run_attention_ms(const OpCall *c, Tensor *out) {
    Attention a;
    Tensor    qkv, bias;
    TRY(attention_read_ms(c, &a));
    int64_t      width = a.heads * a.size;
    RefAttention p = run_attention_params(&a);
    RefMatMul    plain = {0};
    Tensor       shape = {.rank = 3, .dims = {a.batch, a.queries, 3 * width}};
    TRY(run_alloc_f64(c, &shape, &qkv));
    TRY(run_product(c, &plain, c->in[0], c->in[1], &qkv));
    ref_gemm_add(1, &qkv, 1, infer_input(c, 2), &qkv);
    p.q = run_heads(&qkv, true, 3 * a.heads, a.queries, a.size);
    p.k = p.v = p.q;
    p.k.at = width;
    p.v.at = 2 * width;
    p.y = &out[0];
    p.to = run_heads(&out[0], true, a.heads, a.queries, a.size);
    TRY(bias_ms(c, &a, &bias));
    p.bias = &bias;
    return ref_attention(&p, c->scratch);
}

Err run_rotary_at(const OpCall *c, const Rotary *r, uint32_t tables, const Tensor *ids,
                  Tensor *out) {
    RefRotary p = {.batch = r->batch,
                   .heads = r->heads,
                   .length = r->length,
                   .size = r->size,
                   .rotated = r->rotated,
                   .interleaved = r->interleaved,
                   .x = run_heads(c->in[0], r->packed, r->heads, r->length, r->size),
                   .to = run_heads(NULL, r->packed, r->heads, r->length, r->size),
                   .y = &out[0],
                   .cosines = c->in[tables],
                   .sines = c->in[tables + 1],
                   .ids = ids};
    return ref_rotary(&p);
}

Err run_rotary(const OpCall *c, Tensor *out) {
    Rotary r;
    TRY(rotary_read(c, &r));
    return run_rotary_at(c, &r, 1, infer_input(c, 3), out);
}

// Adds row ids[i] of an embedding table (without ids: i modulo the length) to row i of y.
static Err add_embedding(const Tensor *table, const Tensor *ids, Tensor *y) {
    int64_t width = table->dims[1], length = y->dims[1];
    for (int64_t i = 0; i < y->dims[0] * length && !work_stopped(); i++) {
        int64_t row = ids != NULL ? ((const int32_t *)ids->data)[i] : i % length;
        if (row < 0 || row >= table->dims[0])
            return err_set(ERR_INVALID, "row %" PRId64 " of a table of %" PRId64, row,
                           table->dims[0]);
        for (int64_t h = 0; h < width; h++)
            ((float *)y->data)[i * width + h] += ((const float *)table->data)[row * width + h];
    }
    return ERR_OK;
}

static void count_mask(const Tensor *mask, Tensor *out) {
    int64_t length = mask->dims[1];
    WORK_EACH (i, tensor_count(mask))
        ((int32_t *)out->data)[i / length] += ((const int32_t *)mask->data)[i] != 0;
}

Err run_embed_norm(const OpCall *c, Tensor *out) {
    Tensor  sum;
    RefNorm norm = {.kind = REF_NORM_VARIANCE, .along = {false, false, true}};
    norm.epsilon = (double)attr_float(c->node, "epsilon", 1e-12F);
    TRY(run_alloc(c, &out[0], DT_F32, &sum));
    TRY(add_embedding(c->in[2], c->in[0], &sum));
    TRY(add_embedding(c->in[3], infer_input(c, 8), &sum));
    if (infer_input(c, 1) != NULL) TRY(add_embedding(c->in[4], c->in[1], &sum));
    ref_norm(&norm, &sum, &out[0]);
    ref_binary(REF_MUL, &out[0], c->in[5], &out[0]);
    ref_binary(REF_ADD, &out[0], c->in[6], &out[0]);
    if (c->node->n_out > 1 && infer_input(c, 7) != NULL) count_mask(c->in[7], &out[1]);
    if (c->node->n_out > 2 && tensor_count(&sum) > 0)
        memcpy(out[2].data, sum.data, (size_t)tensor_count(&sum) * sizeof(float));
    return ERR_OK;
}
