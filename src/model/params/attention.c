#include "model/params/attention.h"

#include <inttypes.h>
#include <math.h>

#include "model/attr.h"
#include "model/infer/infer.h"

// The dimensions of [batch, heads, length, size] or [batch, length, heads * size].
typedef struct Heads {
    int64_t batch, heads, length, size;
} Heads;

static Err read_heads(const Tensor *t, int64_t heads, const char *what, Heads *out) {
    if (t->rank == 4) {
        *out = (Heads){t->dims[0], t->dims[1], t->dims[2], t->dims[3]};
        return ERR_OK;
    }
    if (t->rank != 3) return err_set(ERR_INVALID, "%s has rank %d, must be 3 or 4", what, t->rank);
    if (heads < 1 || t->dims[2] % heads != 0)
        return err_set(ERR_INVALID,
                       "the width %" PRId64 " of %s does not divide by %" PRId64 " heads",
                       t->dims[2], what, heads);
    *out = (Heads){t->dims[0], heads, t->dims[1], t->dims[2] / heads};
    return ERR_OK;
}

// An optional cache [batch, kv_heads, past, size].
static Err read_past(const Tensor *t, const Attention *a, int64_t size, DType type, int64_t *past) {
    *past = 0;
    if (t == NULL) return ERR_OK;
    TRY(infer_check_type(t, dtype_bit(type), "past"));
    if (t->rank != 4 || t->dims[0] != a->batch || t->dims[1] != a->kv_heads || t->dims[3] != size ||
        t->dims[2] > INT64_MAX / 2)
        return err_set(ERR_INVALID, "the shape of a key or value cache does not fit");
    *past = t->dims[2];
    return ERR_OK;
}

static Err read_mask(const OpCall *c, const Attention *a) {
    const Tensor *mask = infer_input(c, 3);
    if (mask == NULL) return ERR_OK;
    Tensor all = {.rank = 4, .dims = {a->batch, a->heads, a->queries, a->past + a->fresh}};
    TRY(infer_check_type(mask, TYPES_FLOAT | dtype_bit(DT_BOOL), "attn_mask"));
    return infer_check_broadcast(mask, &all, "attn_mask");
}

static Err read_options(const Node *n, Attention *a) {
    a->scale = attr_float(n, "scale", a->size > 0 ? 1 / sqrtf((float)a->size) : 1);
    a->softcap = attr_float(n, "softcap", 0);
    a->causal = attr_int(n, "is_causal", 0) != 0;
    int64_t stage = attr_int(n, "qk_matmul_output_mode", 0);
    if (stage < 0 || stage > 3 || !(a->softcap >= 0) || !isfinite(a->scale))
        return err_set(ERR_INVALID, "scale, softcap or qk_matmul_output_mode is out of range");
    a->stage = (int32_t)stage;
    return ERR_OK;
}

Err attention_read(const OpCall *c, Attention *a) {
    const Node   *n = c->node;
    const Tensor *tq = c->in[0], *tk = c->in[1], *tv = c->in[2];
    int64_t       kv_heads = attr_int(n, "kv_num_heads", 0), past_v = 0;
    Heads         q, k, v;
    TRY(infer_check_type(tq, TYPES_FLOAT, "Q"));
    TRY(infer_check_type(tk, dtype_bit(tq->dtype), "K"));
    TRY(infer_check_type(tv, dtype_bit(tq->dtype), "V"));
    TRY(read_heads(tq, attr_int(n, "q_num_heads", 0), "Q", &q));
    TRY(read_heads(tk, kv_heads, "K", &k));
    TRY(read_heads(tv, kv_heads, "V", &v));
    if (q.batch != k.batch || q.batch != v.batch || q.size != k.size || k.heads != v.heads ||
        k.length != v.length || k.heads < 1 || q.heads % k.heads != 0 || tk->rank != tq->rank ||
        tv->rank != tq->rank || k.length > INT64_MAX / 2)
        return err_set(ERR_INVALID, "the shapes of Q, K and V do not match");
    if (infer_input(c, 6) != NULL)
        return err_set(ERR_UNSUPPORTED, "nonpad_kv_seqlen is not supported");
    *a = (Attention){.batch = q.batch,
                     .heads = q.heads,
                     .kv_heads = k.heads,
                     .queries = q.length,
                     .fresh = k.length,
                     .size = q.size,
                     .v_size = v.size,
                     .packed = tq->rank == 3};
    TRY(read_past(infer_input(c, 4), a, a->size, tq->dtype, &a->past));
    TRY(read_past(infer_input(c, 5), a, a->v_size, tq->dtype, &past_v));
    if (past_v != a->past) return err_set(ERR_INVALID, "key and value caches differ in length");
    TRY(read_options(n, a));
    return read_mask(c, a);
}

static Err read_mask_ms(const OpCall *c, const Attention *a) {
    const Tensor *mask = infer_input(c, 3);
    if (mask == NULL) return ERR_OK;
    TRY(infer_check_type(mask, dtype_bit(DT_I32), "mask_index"));
    int64_t all[3] = {a->batch, a->queries, a->queries};
    bool    fits = mask->rank >= 1 && mask->rank <= 3;
    for (int32_t i = 0; i < mask->rank && fits; i++) fits = mask->dims[i] == all[i];
    return fits ? ERR_OK : err_set(ERR_INVALID, "a mask_index of this shape is not supported");
}

Err attention_read_ms(const OpCall *c, Attention *a) {
    const Node   *n = c->node;
    const Tensor *x = c->in[0], *w = c->in[1], *bias = infer_input(c, 2);
    int64_t       heads = attr_int(n, "num_heads", 0);
    TRY(infer_check_type(x, TYPES_FLOAT, "input"));
    TRY(infer_check_type(w, dtype_bit(x->dtype), "weights"));
    if (x->rank != 3 || w->rank != 2 || w->dims[0] != x->dims[2] || heads < 1 ||
        heads > INT32_MAX || w->dims[1] % (3 * heads) != 0)
        return err_set(ERR_INVALID, "input and weights do not fit %" PRId64 " heads", heads);
    if (bias != NULL) {
        TRY(infer_check_type(bias, dtype_bit(x->dtype), "bias"));
        if (bias->rank != 1 || bias->dims[0] != w->dims[1])
            return err_set(ERR_INVALID, "the bias does not fit the weights");
    }
    for (uint32_t i = 4; i < n->n_in; i++)
        if (c->in[i] != NULL) return err_set(ERR_UNSUPPORTED, "input %u is not supported", i);
    if (n->n_out > 1 || attr_has(n, "qkv_hidden_sizes") || attr_int(n, "do_rotary", 0) != 0)
        return err_set(ERR_UNSUPPORTED,
                       "present, qkv_hidden_sizes and do_rotary are not supported");
    int64_t size = w->dims[1] / 3 / heads;
    *a = (Attention){.batch = x->dims[0], .heads = heads, .kv_heads = heads, .packed = true};
    a->queries = a->fresh = x->dims[1];
    a->size = a->v_size = size;
    TRY(read_options(n, a));
    a->causal = attr_int(n, "unidirectional", 0) != 0;
    return read_mask_ms(c, a);
}

Err rotary_read(const OpCall *c, Rotary *r) {
    const Node   *n = c->node;
    const Tensor *x = c->in[0], *cosines = c->in[1], *sines = c->in[2], *ids = infer_input(c, 3);
    Heads         h;
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    TRY(infer_check_type(cosines, dtype_bit(x->dtype), "cos_cache"));
    TRY(infer_check_type(sines, dtype_bit(x->dtype), "sin_cache"));
    TRY(read_heads(x, attr_int(n, "num_heads", 0), "X", &h));
    int64_t rotated = attr_int(n, "rotary_embedding_dim", 0);
    if (rotated == 0) rotated = h.size;
    bool fits = tensor_same_shape(cosines, sines) && rotated > 0 && rotated <= h.size &&
                rotated % 2 == 0 && cosines->rank == (ids != NULL ? 2 : 3) &&
                cosines->dims[cosines->rank - 1] == rotated / 2;
    if (ids == NULL)
        fits = fits && cosines->dims[0] == h.batch && cosines->dims[1] == h.length;
    else
        fits = fits && ids->dtype == DT_I64 && ids->rank == 2 && ids->dims[0] == h.batch &&
               ids->dims[1] == h.length;
    if (!fits)
        return err_set(ERR_INVALID, "the shapes of X, the caches and the positions do not match");
    *r = (Rotary){.batch = h.batch,
                  .heads = h.heads,
                  .length = h.length,
                  .size = h.size,
                  .rotated = rotated,
                  .packed = x->rank == 3,
                  .interleaved = attr_int(n, "interleaved", 0) != 0};
    return ERR_OK;
}
