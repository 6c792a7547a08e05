// com.microsoft's operators of exported decoders: attention with caches, rotary embedding, products
// and look-ups of block-quantised weights.
#include "model/infer/infer.h"
#include "model/params/attention.h"
#include "model/params/block_quant.h"

Err infer_attention_group(const OpCall *c, Tensor *out) {
    GroupAttention g;
    DType          t = c->in[0]->dtype;
    TRY(group_attention_read(c, &g));
    const Attention *a = &g.heads;
    out[0] = tensor_of(t, 3, (int64_t[]){a->batch, a->queries, a->heads * a->size}, NULL);
    for (uint32_t i = 1; i < c->node->n_out; i++) {
        out[i] = tensor_of(t, 4, (int64_t[]){a->batch, a->kv_heads, g.present, a->size}, NULL);
        if (g.present == DIM_UNKNOWN) TRY(infer_unknown_shape(&out[i]));
    }
    return ERR_OK;
}

Err infer_attention_multi(const OpCall *c, Tensor *out) {
    Attention a;
    DType     t = c->in[0]->dtype;
    TRY(attention_read_multi(c, &a));
    int64_t keys = a.past + a.fresh, sizes[3] = {0, a.size, a.v_size}, width = 0;
    if (__builtin_mul_overflow(a.heads, a.v_size, &width))
        return err_set(ERR_LIMIT, "the output is too large");
    out[0] = tensor_of(t, 3, (int64_t[]){a.batch, a.queries, width}, NULL);
    for (uint32_t i = 1; i < c->node->n_out; i++)
        out[i] = tensor_of(t, 4, (int64_t[]){a.batch, a.heads, keys, sizes[i]}, NULL);
    return ERR_OK;
}

Err infer_rotary_ms(const OpCall *c, Tensor *out) {
    Rotary r;
    TRY(rotary_read_ms(c, &r));
    *out = infer_like(c->in[0]);
    return ERR_OK;
}

Err infer_matmul_nbits(const OpCall *c, Tensor *out) {
    BlockQuant q;
    TRY(matmul_nbits_read(c, &q));
    *out = infer_like(c->in[0]);
    out->dims[out->rank - 1] = q.rows;
    return ERR_OK;
}

Err infer_gather_nbits(const OpCall *c, Tensor *out) {
    const Tensor *data = c->in[0], *at = c->in[1];
    BlockQuant    q;
    TRY(gather_nbits_read(c, &q));
    TRY(infer_check_rank((int64_t)at->rank + data->rank - 1));
    *out = (Tensor){.dtype = c->in[2]->dtype, .rank = at->rank + data->rank - 1};
    for (int32_t i = 0; i < at->rank; i++) out->dims[i] = at->dims[i];
    for (int32_t i = 1; i < data->rank; i++) out->dims[at->rank + i - 1] = data->dims[i];
    out->dims[out->rank - 1] = q.columns;
    return ERR_OK;
}
