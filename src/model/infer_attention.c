#include <inttypes.h>

#include "model/attention.h"
#include "model/infer.h"

Err infer_attention(const OpCall *c, Tensor *out) {
    Attention a;
    DType     t = c->in[0]->dtype;
    TRY(attention_read(c, &a));
    int64_t keys = a.past + a.fresh, width = 0;
    if (__builtin_mul_overflow(a.heads, a.v_size, &width))
        return err_set(ERR_LIMIT, "the output is too large");
    int64_t shapes[4][4] = {
        {a.batch, a.heads, a.queries, a.v_size},
        {a.batch, a.kv_heads, keys, a.size},
        {a.batch, a.kv_heads, keys, a.v_size},
        {a.batch, a.heads, a.queries, keys},
    };
    for (uint32_t i = 0; i < c->node->n_out; i++) out[i] = tensor_of(t, 4, shapes[i], NULL);
    if (a.packed) out[0] = tensor_of(t, 3, (int64_t[]){a.batch, a.queries, width}, NULL);
    return ERR_OK;
}

Err infer_attention_ms(const OpCall *c, Tensor *out) {
    Attention a;
    TRY(attention_read_ms(c, &a));
    *out = tensor_of(c->in[0]->dtype, 3, (int64_t[]){a.batch, a.queries, a.heads * a.size}, NULL);
    return ERR_OK;
}

Err infer_rotary(const OpCall *c, Tensor *out) {
    Rotary r;
    TRY(rotary_read(c, &r));
    return infer_same(c, out);
}

static Err table_fits(const Tensor *t, int64_t width, const char *what) {
    TRY(infer_need(t, dtype_bit(DT_F32), what));
    if (t->rank == 2 && t->dims[1] == width) return ERR_OK;
    return err_set(ERR_INVALID, "%s must have rows of %" PRId64, what, width);
}

static Err ids_fit(const Tensor *t, const Tensor *ids, const char *what) {
    if (t == NULL) return ERR_OK;
    TRY(infer_need(t, dtype_bit(DT_I32), what));
    if (tensor_same_shape(t, ids)) return ERR_OK;
    return err_set(ERR_INVALID, "%s must have the shape of input_ids", what);
}

// input_ids, segment_ids, word, position and segment tables, gamma, beta, mask, position_ids.
Err infer_embed_norm(const OpCall *c, Tensor *out) {
    const Tensor         *ids = c->in[0], *segment_ids = infer_in(c, 1), *segments = infer_in(c, 4);
    static const uint32_t needed[] = {2, 3, 5, 6};
    for (size_t i = 0; i < 4; i++)
        if (infer_in(c, needed[i]) == NULL)
            return err_set(ERR_INVALID, "input %u is missing", needed[i]);
    if (ids->rank != 2 || c->in[2]->rank != 2)
        return err_set(ERR_INVALID, "input_ids and word_embedding must have rank 2");
    int64_t width = c->in[2]->dims[1];
    TRY(ids_fit(ids, ids, "input_ids"));
    TRY(ids_fit(segment_ids, ids, "segment_ids"));
    TRY(ids_fit(infer_in(c, 7), ids, "mask"));
    TRY(ids_fit(infer_in(c, 8), ids, "position_ids"));
    TRY(table_fits(c->in[2], width, "word_embedding"));
    TRY(table_fits(c->in[3], width, "position_embedding"));
    if (segment_ids != NULL && segments == NULL)
        return err_set(ERR_INVALID, "segment_ids without segment_embedding");
    if (segments != NULL) TRY(table_fits(segments, width, "segment_embedding"));
    for (uint32_t i = 5; i < 7; i++) {
        TRY(infer_need(c->in[i], dtype_bit(DT_F32), "gamma or beta"));
        if (c->in[i]->rank != 1 || c->in[i]->dims[0] != width)
            return err_set(ERR_INVALID, "gamma and beta must hold %" PRId64 " numbers", width);
    }
    out[0] = tensor_of(DT_F32, 3, (int64_t[]){ids->dims[0], ids->dims[1], width}, NULL);
    if (c->node->n_out > 1) out[1] = tensor_of(DT_I32, 1, ids->dims, NULL);
    if (c->node->n_out > 2) out[2] = out[0];
    return ERR_OK;
}
