// Parameters of com.microsoft's attention with key and value caches, and of its rotary embedding.
#include <inttypes.h>
#include <math.h>

#include "model/attr.h"
#include "model/infer/infer.h"
#include "model/params/attention.h"

static Err reject_inputs(const OpCall *c, uint32_t first, const char *what) {
    for (uint32_t i = first; i < c->node->n_in; i++)
        if (c->in[i] != NULL)
            return err_set(ERR_UNSUPPORTED, "input %u (%s) is not supported", i, what);
    return ERR_OK;
}

// The caches of keys and values: [batch, kv_heads, past, size] each, or neither.
static Err read_caches(const OpCall *c, uint32_t first, Attention *a) {
    const Tensor *k = infer_input(c, first), *v = infer_input(c, first + 1);
    a->past = 0;
    if (k == NULL && v == NULL) return ERR_OK;
    if (k == NULL || v == NULL)
        return err_set(ERR_INVALID, "past_key and past_value must be given together");
    uint64_t type = dtype_bit(c->in[0]->dtype);
    TRY(infer_check_type(k, type, "past_key"));
    TRY(infer_check_type(v, type, "past_value"));
    int64_t sizes[2] = {a->size, a->v_size};
    for (uint32_t i = 0; i < 2; i++) {
        const Tensor *t = i == 0 ? k : v;
        if (t->rank != 4 || t->dims[0] != a->batch || t->dims[1] != a->kv_heads ||
            t->dims[2] != k->dims[2] || t->dims[3] != sizes[i] || t->dims[2] > INT64_MAX / 2)
            return err_set(ERR_INVALID,
                           "past_key and past_value must be [%" PRId64 ", %" PRId64
                           ", length, %" PRId64 "]",
                           a->batch, a->kv_heads, sizes[i]);
    }
    a->past = k->dims[2];
    return ERR_OK;
}

static Err read_scale(const Node *n, Attention *a) {
    a->scale = attr_float(n, "scale", 0);
    a->softcap = attr_float(n, "softcap", 0);
    if (a->scale == 0) a->scale = a->size > 0 ? 1 / sqrtf((float)a->size) : 1;
    if (!(a->softcap >= 0) || !isfinite(a->softcap) || !isfinite(a->scale))
        return err_set(ERR_INVALID, "scale or softcap is out of range");
    return ERR_OK;
}

static Err check_width(const Tensor *t, const Attention *a, int64_t heads, DType type,
                       const char *what) {
    if (t == NULL) return err_set(ERR_INVALID, "%s is missing", what);
    TRY(infer_check_type(t, dtype_bit(type), what));
    if (t->rank == 3 && t->dims[0] == a->batch && t->dims[1] == a->queries &&
        t->dims[2] == heads * a->size)
        return ERR_OK;
    return err_set(ERR_INVALID, "%s must be [batch, length, %" PRId64 " heads of %" PRId64 "]",
                   what, heads, a->size);
}

static Err read_group_heads(const OpCall *c, GroupAttention *g) {
    const Node   *n = c->node;
    const Tensor *q = c->in[0], *k = infer_input(c, 1), *v = infer_input(c, 2);
    int64_t       heads = attr_int(n, "num_heads", 0), kv_heads = attr_int(n, "kv_num_heads", 0);
    Attention    *a = &g->heads;
    if (heads < 1 || heads > INT32_MAX || kv_heads < 1 || heads % kv_heads != 0)
        return err_set(ERR_INVALID, "num_heads must be a multiple of kv_num_heads");
    TRY(infer_check_type(q, TYPES_FLOAT, "query"));
    g->joined = k == NULL && v == NULL;
    int64_t all = g->joined ? heads + 2 * kv_heads : heads;
    if (q->rank != 3 || q->dims[2] % all != 0)
        return err_set(ERR_INVALID, "query must be [batch, length, %" PRId64 " heads]", all);
    *a = (Attention){.batch = q->dims[0], .heads = heads, .kv_heads = kv_heads, .packed = true};
    a->queries = a->fresh = q->dims[1];
    a->size = a->v_size = q->dims[2] / all;
    if (g->joined) return ERR_OK;
    TRY(check_width(k, a, kv_heads, q->dtype, "key"));
    return check_width(v, a, kv_heads, q->dtype, "value");
}

// Caches [positions, rotated / 2]; positions_ids, if given, are int64 [batch, length].
static Err read_group_rotary(const OpCall *c, GroupAttention *g) {
    const Tensor    *cosines = infer_input(c, 7), *sines = infer_input(c, 8);
    const Tensor    *ids = infer_input(c, 9);
    const Attention *a = &g->heads;
    if (attr_int(c->node, "do_rotary", 0) == 0) return ERR_OK;
    if (cosines == NULL || sines == NULL)
        return err_set(ERR_INVALID, "do_rotary needs cos_cache and sin_cache");
    TRY(infer_check_type(cosines, dtype_bit(c->in[0]->dtype), "cos_cache"));
    TRY(infer_check_type(sines, dtype_bit(c->in[0]->dtype), "sin_cache"));
    if (cosines->rank != 2 || !tensor_same_shape(cosines, sines) || cosines->dims[1] < 1 ||
        cosines->dims[1] > a->size / 2)
        return err_set(ERR_INVALID,
                       "cos_cache and sin_cache must be [positions, at most %" PRId64 "]",
                       a->size / 2);
    if (ids != NULL && (ids->dtype != DT_I64 || ids->rank != 2 || ids->dims[0] != a->batch ||
                        ids->dims[1] != a->queries))
        return err_set(ERR_INVALID, "position_ids must be int64 [batch, length]");
    g->rotated = 2 * cosines->dims[1];
    g->interleaved = attr_int(c->node, "rotary_interleaved", 0) != 0;
    return ERR_OK;
}

static Err read_group_options(const OpCall *c, GroupAttention *g) {
    const Node *n = c->node;
    int64_t     window = attr_int(n, "local_window_size", -1);
    TRY(read_scale(n, &g->heads));
    if (attr_int(n, "smooth_softmax", 0) > 0 || attr_int(n, "qk_output", 0) != 0 ||
        attr_int(n, "sliding_window_cache", 0) != 0 || n->n_out > 3)
        return err_set(ERR_UNSUPPORTED,
                       "smooth_softmax, qk_output and sliding_window_cache are not supported");
    TRY(reject_inputs(c, 11, "head_sink, scales of a quantised cache, norms of Q and K"));
    g->heads.causal = attr_int(n, "causal", 1) != 0;
    if (window == 0 || window < -1 || (window > 0 && !g->heads.causal))
        return err_set(
            ERR_INVALID,
            "local_window_size %" PRId64 " must be -1, or positive with causal attention", window);
    g->heads.window = window > 0 ? window : 0;
    return ERR_OK;
}

static Err read_lengths(const OpCall *c, GroupAttention *g) {
    const Tensor    *lens = infer_input(c, 5), *total = infer_input(c, 6);
    const Attention *a = &g->heads;
    if (lens == NULL || total == NULL)
        return err_set(ERR_INVALID, "seqlens_k and total_sequence_length must be given");
    if (lens->dtype != DT_I32 || tensor_count(lens) != a->batch || lens->rank > 2 ||
        total->dtype != DT_I32 || tensor_count(total) != 1)
        return err_set(ERR_INVALID,
                       "seqlens_k must be int32 [%" PRId64 "] and total_sequence_length one int32",
                       a->batch);
    g->total = g->present = DIM_UNKNOWN;
    if (total->data == NULL) return ERR_OK;
    g->total = *(const int32_t *)total->data;
    if (g->total < a->queries)
        return err_set(ERR_INVALID,
                       "total_sequence_length %" PRId64 " is below the %" PRId64 " new positions",
                       g->total, a->queries);
    g->present = g->total > a->past ? g->total : a->past;
    g->prompt = g->total == a->queries;
    return ERR_OK;
}

static Err check_group_bias(const OpCall *c, const GroupAttention *g) {
    const Tensor    *bias = infer_input(c, 10);
    const Attention *a = &g->heads;
    if (bias == NULL || g->total == DIM_UNKNOWN) return ERR_OK;
    Tensor all = {.rank = 4, .dims = {a->batch, a->heads, a->queries, g->total}};
    TRY(infer_check_type(bias, dtype_bit(c->in[0]->dtype), "attention_bias"));
    return infer_check_broadcast(bias, &all, "attention_bias");
}

Err group_attention_read(const OpCall *c, GroupAttention *g) {
    *g = (GroupAttention){0};
    TRY(read_group_heads(c, g));
    TRY(read_caches(c, 3, &g->heads));
    TRY(read_group_rotary(c, g));
    TRY(read_group_options(c, g));
    TRY(read_lengths(c, g));
    return check_group_bias(c, g);
}

int64_t group_attention_past(const GroupAttention *g, int64_t total) {
    return g->prompt ? 0 : total - g->heads.queries;
}

Err group_attention_length(const GroupAttention *g, const int32_t *seqlens, int64_t b,
                           int64_t *total) {
    *total = (int64_t)seqlens[b] + 1;
    int64_t past = group_attention_past(g, *total);
    if (*total < 1 || *total > g->total || past < 0 || past > g->heads.past)
        return err_set(ERR_INVALID,
                       "seqlens_k of sequence %" PRId64 " is %" PRId64 ": with %" PRId64
                       " new positions it must lie within the cache of %" PRId64
                       " and total_sequence_length %" PRId64,
                       b, *total - 1, g->heads.queries, g->heads.past, g->total);
    return ERR_OK;
}

// Keys or values of MultiHeadAttention: of this sequence, or of another one with heads apart.
static Err read_multi_keys(const Tensor *t, const Attention *a, const char *what, int64_t *length,
                           int64_t *size) {
    if (t == NULL)
        return err_set(ERR_UNSUPPORTED, "%s is absent: joined Q, K and V are not supported", what);
    bool apart = t->rank == 4;
    if ((!apart && t->rank != 3) || t->dims[0] != a->batch ||
        (apart ? t->dims[1] != a->heads : t->dims[2] % a->heads != 0) ||
        t->dims[apart ? 2 : 1] > INT64_MAX / 2)
        return err_set(ERR_INVALID,
                       "%s must be [batch, length, width] or [batch, heads, length, size]", what);
    *length = t->dims[apart ? 2 : 1];
    *size = apart ? t->dims[3] : t->dims[2] / a->heads;
    return ERR_OK;
}

static Err check_multi_masks(const OpCall *c, const Attention *a) {
    const Tensor *mask = infer_input(c, 4), *bias = infer_input(c, 5), *add = infer_input(c, 3);
    int64_t       keys = a->past + a->fresh, width = (2 * a->size + a->v_size) * a->heads;
    Tensor        all = {.rank = 4, .dims = {a->batch, a->heads, a->queries, keys}};
    if (add != NULL) {
        TRY(infer_check_type(add, dtype_bit(c->in[0]->dtype), "bias"));
        if (add->rank != 1 || add->dims[0] != width || c->in[1]->rank == 4)
            return err_set(ERR_INVALID, "bias must have %" PRId64 " elements", width);
    }
    if (bias != NULL) {
        TRY(infer_check_type(bias, dtype_bit(c->in[0]->dtype), "attention_bias"));
        TRY(infer_check_broadcast(bias, &all, "attention_bias"));
    }
    if (mask == NULL) return ERR_OK;
    TRY(infer_check_type(mask, dtype_bit(DT_I32), "key_padding_mask"));
    bool fits = mask->rank >= 1 && mask->rank <= 3 && mask->dims[0] == a->batch;
    if (fits && mask->rank > 1) fits = mask->dims[mask->rank - 1] == keys;
    if (fits && mask->rank == 3) fits = mask->dims[1] == a->queries;
    return fits ? ERR_OK
                : err_set(ERR_UNSUPPORTED, "a key_padding_mask of this shape is not supported");
}

Err attention_read_multi(const OpCall *c, Attention *a) {
    const Node   *n = c->node;
    const Tensor *q = c->in[0], *k = infer_input(c, 1), *v = infer_input(c, 2);
    int64_t       heads = attr_int(n, "num_heads", 0), values = 0;
    TRY(infer_check_type(q, TYPES_FLOAT, "query"));
    if (q->rank != 3 || heads < 1 || heads > INT32_MAX || q->dims[2] % heads != 0)
        return err_set(ERR_UNSUPPORTED, "query must be [batch, length, num_heads * size]");
    *a = (Attention){.batch = q->dims[0], .heads = heads, .kv_heads = heads, .packed = true};
    a->queries = q->dims[1];
    a->size = q->dims[2] / heads;
    int64_t size = 0;
    TRY(read_multi_keys(k, a, "key", &a->fresh, &size));
    TRY(read_multi_keys(v, a, "value", &values, &a->v_size));
    TRY(infer_check_type(k, dtype_bit(q->dtype), "key"));
    TRY(infer_check_type(v, dtype_bit(q->dtype), "value"));
    if (size != a->size || values != a->fresh || k->rank != v->rank)
        return err_set(ERR_INVALID, "the shapes of query, key and value do not match");
    TRY(read_caches(c, 6, a));
    TRY(reject_inputs(c, 8, "past_sequence_length, cache_indirection"));
    if (n->n_out > 3) return err_set(ERR_UNSUPPORTED, "output qk is not supported");
    TRY(read_scale(n, a));
    a->causal = attr_int(n, "unidirectional", 0) != 0;
    return check_multi_masks(c, a);
}

// Without rotary_embedding_dim the caches give the size of a head. One position id is that of the
// first position.
Err rotary_read_ms(const OpCall *c, Rotary *r) {
    const Node   *n = c->node;
    const Tensor *x = c->in[0], *ids = c->in[1], *cosines = c->in[2], *sines = c->in[3];
    int64_t       rotated = attr_int(n, "rotary_embedding_dim", 0);
    int64_t       heads = attr_int(n, "num_heads", 0);
    TRY(infer_check_type(x, TYPES_FLOAT, "input"));
    TRY(infer_check_type(ids, dtype_bit(DT_I64), "position_ids"));
    TRY(infer_check_type(cosines, dtype_bit(x->dtype), "cos_cache"));
    TRY(infer_check_type(sines, dtype_bit(x->dtype), "sin_cache"));
    if (attr_int(n, "is_packed_batching", 0) != 0 || attr_float(n, "scale", 1) != 1)
        return err_set(ERR_UNSUPPORTED, "is_packed_batching and scale are not supported");
    if (cosines->rank != 2 || !tensor_same_shape(cosines, sines) || cosines->dims[1] < 1 ||
        cosines->dims[1] > INT32_MAX)
        return err_set(ERR_INVALID, "cos_cache and sin_cache must be [positions, half a head]");
    if (x->rank != 3 && x->rank != 4)
        return err_set(ERR_INVALID, "input has rank %d, must be 3 or 4", x->rank);
    bool    packed = x->rank == 3;
    int64_t width = x->dims[x->rank - 1], size = packed ? 2 * cosines->dims[1] : width;
    if (packed && rotated > 0) size = heads > 0 ? width / heads : 0;
    if (rotated == 0) rotated = 2 * cosines->dims[1];
    if (size < 1 || width % size != 0 || rotated < 0 || rotated > size ||
        rotated != 2 * cosines->dims[1])
        return err_set(ERR_INVALID, "heads of input do not fit the caches");
    *r = (Rotary){.batch = x->dims[0],
                  .heads = packed ? width / size : x->dims[1],
                  .length = x->dims[packed ? 1 : 2],
                  .size = size,
                  .rotated = rotated,
                  .packed = packed,
                  .interleaved = attr_int(n, "interleaved", 0) != 0};
    bool one = tensor_count(ids) == 1 && ids->rank <= 1;
    if (!one && (ids->rank != 2 || ids->dims[0] != r->batch || ids->dims[1] != r->length))
        return err_set(ERR_INVALID, "position_ids must be [1] or [batch, length]");
    r->first_id = one;
    return ERR_OK;
}
