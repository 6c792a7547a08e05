// Attention operators with caches of keys and values, rotary embedding, and products with weights
// of a few bits.
#include <string.h>

#include "compile/lower/lower.h"
#include "compile/spec.h"
#include "kernel/fused_attention.h"
#include "model/infer/infer.h"
#include "model/params/attention.h"
#include "model/params/block_quant.h"

enum { MAX_IN = 16 };

static OpCall call_of(const Ir *ir, const Node *n, const Tensor *in[MAX_IN]) {
    for (uint32_t i = 0; i < n->n_in && i < MAX_IN; i++) in[i] = lower_type(ir, n, i);
    return (OpCall){.node = n, .in = in};
}

static bool sizes_fit(const Attention *a, int64_t keys) {
    return spec_dim_fits(a->batch) && spec_dim_fits(a->heads) && spec_dim_fits(a->queries) &&
           spec_dim_fits(a->size) && spec_dim_fits(a->v_size) && spec_dim_fits(keys) &&
           a->batch * a->heads * a->queries < INT32_MAX;
}

static AttentionStrides strides_of(bool packed, int64_t heads, int64_t length, int64_t size) {
    AttentionStrides s = {.batch = (size_t)(heads * length * size)};
    s.head = (size_t)(packed ? size : length * size);
    s.step = (size_t)(packed ? heads * size : size);
    return s;
}

// A mask that broadcasts to [batch, heads, queries, keys] and has all keys.
static bool mask_strides(const Tensor *mask, int64_t keys, AttentionStrides *out) {
    size_t stride[4] = {0}, step = 1;
    if (mask->dtype != DT_F32 || mask->rank < 1 || mask->rank > 4) return false;
    if (mask->dims[mask->rank - 1] != keys) return false;
    for (int32_t i = mask->rank - 1; i >= 0; i--) {
        if (mask->dims[i] != 1) stride[4 - mask->rank + i] = step;
        step *= (size_t)mask->dims[i];
    }
    *out = (AttentionStrides){stride[0], stride[1], stride[2]};
    return true;
}

static FusedAttentionShape shape_of(const Attention *a, int64_t keys) {
    return (FusedAttentionShape){.batch = (uint32_t)a->batch,
                                 .heads = (uint32_t)a->heads,
                                 .kv_heads = (uint32_t)a->kv_heads,
                                 .queries = (uint32_t)a->queries,
                                 .keys = (uint32_t)keys,
                                 .size = (uint32_t)a->size,
                                 .v_size = (uint32_t)a->v_size,
                                 .q = strides_of(a->packed, a->heads, a->queries, a->size),
                                 .y = strides_of(a->packed, a->heads, a->queries, a->v_size),
                                 .scale = a->scale,
                                 .softcap = a->softcap,
                                 .causal = a->causal,
                                 .past = (uint32_t)a->past,
                                 .window = (uint32_t)a->window};
}

static CacheAppend append_of(const Attention *a, int64_t size, int64_t rows, AttentionStrides x) {
    return (CacheAppend){.batch = (uint32_t)a->batch,
                         .heads = (uint32_t)a->kv_heads,
                         .size = (uint32_t)size,
                         .old_rows = (uint32_t)a->past,
                         .rows = (uint32_t)rows,
                         .fresh = (uint32_t)a->fresh,
                         .x = x};
}

// Output i of the node, or a value in its place that only this operator's layers read.
static uint32_t present_out(Ir *ir, const Node *n, uint32_t i, const Attention *a, int64_t rows,
                            int64_t size) {
    uint32_t v = lower_out(ir, n, i);
    if (v != IR_NONE) return v;
    Tensor t = {.dtype = DT_F32, .rank = 4, .dims = {a->batch, a->kv_heads, rows, size}};
    return ir_computed(ir, n->name, t);
}

static void *copy_spec(Ir *ir, const void *spec, size_t bytes) {
    void *own = arena_alloc(ir->arena, 1, bytes, _Alignof(max_align_t));
    memcpy(own, spec, bytes);
    return own;
}

// The values that a cache layer reads; the results go to outputs 1 and 2 of the node.
static void add_cache(Ir *ir, const Node *n, const uint32_t in[CACHE_OPERANDS],
                      const CacheSpec *spec, uint32_t out[2]) {
    const Attention *a = &spec->group.heads;
    out[0] = present_out(ir, n, 1, a, spec->keys.rows, a->size);
    out[1] = present_out(ir, n, 2, a, spec->values.rows, a->v_size);
    IrLayer *l = ir_layer(ir, IR_CACHE, n, CACHE_OPERANDS, 2);
    for (uint32_t i = 0; i < CACHE_OPERANDS; i++) l->in[i] = in[i];
    l->out[0] = out[0];
    l->out[1] = out[1];
    l->spec = copy_spec(ir, spec, sizeof *spec);
}

static IrLayer *add_attention(Ir *ir, const Node *n, const FusedAttentionShape *s, uint32_t q,
                              uint32_t k, uint32_t v) {
    IrLayer *l = lower_add(ir, n, 0, IR_ATTENTION, ATTENTION_OPERANDS, s, sizeof *s);
    l->in[ATTENTION_Q] = q;
    l->in[ATTENTION_K] = k;
    l->in[ATTENTION_V] = v;
    return l;
}

static bool has_output(const Node *n, uint32_t i) { return i < n->n_out && n->out[i] != NO_VALUE; }

// ONNX's and MultiHeadAttention: `past` is the first of the caches' inputs.
static bool add_plain(Ir *ir, const Node *n, const Attention *a, uint32_t mask, uint32_t past) {
    const Tensor       *kt = lower_type(ir, n, 1), *vt = lower_type(ir, n, 2);
    int64_t             keys = a->past + a->fresh;
    FusedAttentionShape s = shape_of(a, keys);
    AttentionStrides    k = strides_of(kt->rank == 3, a->kv_heads, a->fresh, a->size);
    AttentionStrides    v = strides_of(vt->rank == 3, a->kv_heads, a->fresh, a->v_size);
    if (mask != IR_NONE && !mask_strides(ir_type(ir, mask), keys, &s.mask)) return false;
    uint32_t at[2] = {lower_in(ir, n, 1), lower_in(ir, n, 2)}, q = lower_in(ir, n, 0);
    if (lower_in(ir, n, past) != IR_NONE || has_output(n, 1) || has_output(n, 2)) {
        CacheSpec spec = {.keys = append_of(a, a->size, keys, k),
                          .values = append_of(a, a->v_size, keys, v),
                          .group = {.heads = *a}};
        uint32_t  in[CACHE_OPERANDS];
        for (uint32_t i = 0; i < CACHE_OPERANDS; i++) in[i] = IR_NONE;
        in[CACHE_KEYS] = at[0], in[CACHE_VALUES] = at[1];
        in[CACHE_OLD_KEYS] = lower_in(ir, n, past);
        in[CACHE_OLD_VALUES] = lower_in(ir, n, past + 1);
        add_cache(ir, n, in, &spec, at);
        k = strides_of(false, a->kv_heads, keys, a->size);
        v = strides_of(false, a->kv_heads, keys, a->v_size);
    }
    s.k = k;
    s.v = v;
    add_attention(ir, n, &s, q, at[0], at[1])->in[ATTENTION_MASK] = mask;
    return true;
}

bool lower_attention(Ir *ir, const Node *n) {
    const Tensor *in[MAX_IN] = {0};
    OpCall        c = call_of(ir, n, in);
    Attention     a;
    if (!lower_is_float(ir, n, 0) || has_output(n, 3) || attention_read(&c, &a) != ERR_OK)
        return false;
    return sizes_fit(&a, a.past + a.fresh) && add_plain(ir, n, &a, lower_in(ir, n, 3), 4);
}

bool lower_attention_multi(Ir *ir, const Node *n) {
    const Tensor *in[MAX_IN] = {0};
    OpCall        c = call_of(ir, n, in);
    Attention     a;
    if (!lower_is_float(ir, n, 0) || attention_read_multi(&c, &a) != ERR_OK) return false;
    if (lower_in(ir, n, 3) != IR_NONE || lower_in(ir, n, 4) != IR_NONE) return false;
    return sizes_fit(&a, a.past + a.fresh) && add_plain(ir, n, &a, lower_in(ir, n, 5), 6);
}

// GroupQueryAttention: the cache with rotated keys, rotated queries, attention.

static RotateShape group_rotation(const GroupAttention *g, int64_t heads, bool ids, int64_t angles,
                                  AttentionStrides x) {
    const Attention *a = &g->heads;
    return (RotateShape){.batch = (uint32_t)a->batch,
                         .heads = (uint32_t)heads,
                         .length = (uint32_t)a->queries,
                         .size = (uint32_t)a->size,
                         .rotated = (uint32_t)g->rotated,
                         .interleaved = g->interleaved,
                         .x = x,
                         .y = strides_of(true, heads, a->queries, a->size),
                         .rows = ids ? ROTARY_IDS : ROTARY_AFTER,
                         .angles = (uint32_t)angles};
}

// Operands of the new heads: of their own, or parts of input 0.
typedef struct GroupOperands {
    uint32_t         q, k, v;
    AttentionStrides qs, ks;
    size_t           k_at, v_at;
} GroupOperands;

static GroupOperands group_operands(const Ir *ir, const Node *n, const GroupAttention *g) {
    const Attention *a = &g->heads;
    GroupOperands o = {.q = lower_in(ir, n, 0), .k = lower_in(ir, n, 1), .v = lower_in(ir, n, 2)};
    o.qs = strides_of(true, a->heads, a->queries, a->size);
    o.ks = strides_of(true, a->kv_heads, a->queries, a->size);
    if (!g->joined) return o;
    o.k = o.v = o.q;
    o.qs = o.ks = strides_of(true, a->heads + 2 * a->kv_heads, a->queries, a->size);
    o.k_at = (size_t)(a->heads * a->size);
    o.v_at = (size_t)((a->heads + a->kv_heads) * a->size);
    return o;
}

static void add_group_cache(Ir *ir, const Node *n, const GroupAttention *g, const GroupOperands *o,
                            uint32_t out[2]) {
    const Attention *a = &g->heads;
    CacheSpec        s = {.keys = append_of(a, a->size, g->present, o->ks),
                          .values = append_of(a, a->size, g->present, o->ks),
                          .k_at = o->k_at,
                          .v_at = o->v_at,
                          .group = *g};
    uint32_t         in[CACHE_OPERANDS] = {
                o->k,    o->v,   lower_in(ir, n, 3), lower_in(ir, n, 4), lower_in(ir, n, 5), IR_NONE,
                IR_NONE, IR_NONE};
    if (g->rotated > 0) {
        in[CACHE_COSINES] = lower_in(ir, n, 7);
        in[CACHE_SINES] = lower_in(ir, n, 8);
        in[CACHE_POSITIONS] = lower_in(ir, n, 9);
        s.rotate = group_rotation(g, a->kv_heads, in[CACHE_POSITIONS] != IR_NONE,
                                  lower_type(ir, n, 7)->dims[0], o->ks);
    }
    add_cache(ir, n, in, &s, out);
}

static uint32_t add_group_rotary(Ir *ir, const Node *n, const GroupAttention *g,
                                 const GroupOperands *o) {
    const Attention *a = &g->heads;
    uint32_t         ids = lower_in(ir, n, 9);
    RotarySpec       s = {.group = *g};
    Tensor           t = {.dtype = DT_F32, .rank = 3, .dims = {a->batch, a->queries, 0}};
    t.dims[2] = a->heads * a->size;
    s.shape = group_rotation(g, a->heads, ids != IR_NONE, lower_type(ir, n, 7)->dims[0], o->qs);
    uint32_t y = ir_computed(ir, n->name, t);
    IrLayer *l = ir_layer(ir, IR_ROTARY, n, ROTARY_OPERANDS, 1);
    l->in[ROTARY_X] = o->q;
    l->in[ROTARY_COSINES] = lower_in(ir, n, 7);
    l->in[ROTARY_SINES] = lower_in(ir, n, 8);
    l->in[ROTARY_POSITIONS] = ids;
    l->in[ROTARY_LENGTHS] = lower_in(ir, n, 5);
    l->out[0] = y;
    l->spec = copy_spec(ir, &s, sizeof s);
    return y;
}

bool lower_attention_group(Ir *ir, const Node *n) {
    const Tensor    *in[MAX_IN] = {0};
    OpCall           c = call_of(ir, n, in);
    GroupAttention   g;
    const Attention *a = &g.heads;
    uint32_t         mask = lower_in(ir, n, 10), cache[2];
    if (!lower_is_float(ir, n, 0) || group_attention_read(&c, &g) != ERR_OK) return false;
    if (g.total == DIM_UNKNOWN || !sizes_fit(a, g.present)) return false;
    if (g.rotated > 0 && !spec_dim_fits(in[7]->dims[0])) return false;
    FusedAttentionShape s = shape_of(a, g.total);
    if (mask != IR_NONE && !mask_strides(ir_type(ir, mask), g.total, &s.mask)) return false;
    GroupOperands o = group_operands(ir, n, &g);
    s.q = o.qs;
    s.k = s.v = strides_of(false, a->kv_heads, g.present, a->size);
    s.lengths = true;
    s.last = !g.prompt;
    add_group_cache(ir, n, &g, &o, cache);
    if (g.rotated > 0) {
        o.q = add_group_rotary(ir, n, &g, &o);
        s.q = strides_of(true, a->heads, a->queries, a->size);
    }
    IrLayer *l = add_attention(ir, n, &s, o.q, cache[0], cache[1]);
    l->in[ATTENTION_MASK] = mask;
    l->in[ATTENTION_LENGTHS] = lower_in(ir, n, 5);
    return true;
}

// RotaryEmbedding of its own.

static bool add_rotary(Ir *ir, const Node *n, const Rotary *r, uint32_t first, uint32_t ids) {
    const Tensor *angles = lower_type(ir, n, first);
    if (!spec_dim_fits(r->batch) || !spec_dim_fits(r->length) || !spec_dim_fits(r->heads) ||
        !spec_dim_fits(r->size) || !spec_dim_fits(angles->dims[0] * r->length))
        return false;
    RotarySpec s = {.shape = {.batch = (uint32_t)r->batch,
                              .heads = (uint32_t)r->heads,
                              .length = (uint32_t)r->length,
                              .size = (uint32_t)r->size,
                              .rotated = (uint32_t)r->rotated,
                              .interleaved = r->interleaved,
                              .x = strides_of(r->packed, r->heads, r->length, r->size),
                              .y = strides_of(r->packed, r->heads, r->length, r->size),
                              .angles = (uint32_t)angles->dims[0]}};
    s.shape.rows = ids == IR_NONE ? ROTARY_EACH : r->first_id ? ROTARY_FROM_ID : ROTARY_IDS;
    if (ids == IR_NONE) s.shape.angles = (uint32_t)(r->batch * r->length);
    IrLayer *l = lower_add(ir, n, 0, IR_ROTARY, ROTARY_OPERANDS, &s, sizeof s);
    l->in[ROTARY_COSINES] = lower_in(ir, n, first);
    l->in[ROTARY_SINES] = lower_in(ir, n, first + 1);
    l->in[ROTARY_POSITIONS] = ids;
    return true;
}

bool lower_rotary(Ir *ir, const Node *n) {
    const Tensor *in[MAX_IN] = {0};
    OpCall        c = call_of(ir, n, in);
    Rotary        r;
    if (!lower_is_float(ir, n, 0) || rotary_read(&c, &r) != ERR_OK) return false;
    return add_rotary(ir, n, &r, 1, lower_in(ir, n, 3));
}

bool lower_rotary_ms(Ir *ir, const Node *n) {
    const Tensor *in[MAX_IN] = {0};
    OpCall        c = call_of(ir, n, in);
    Rotary        r;
    if (!lower_is_float(ir, n, 0) || rotary_read_ms(&c, &r) != ERR_OK) return false;
    return add_rotary(ir, n, &r, 2, lower_in(ir, n, 1));
}

// MatMulNBits with constant weights of 4 or 8 bits.

static bool zeros_of(const Ir *ir, uint32_t zeros, BlockWeights *w) {
    if (zeros == IR_NONE) return true;
    if (!ir_is_const(ir, zeros)) return false;
    if (ir_type(ir, zeros)->dtype == DT_U8)
        w->zeros = ir_type(ir, zeros)->data;
    else
        w->float_zeros = ir_floats(ir, zeros);
    return true;
}

bool lower_matmul_nbits(Ir *ir, const Node *n) {
    const Tensor *in[MAX_IN] = {0};
    OpCall        c = call_of(ir, n, in);
    BlockQuant    q;
    GemmSpec      s = {.alpha = 1, .transposed = true};
    uint32_t      weight = lower_in(ir, n, 1), bias = lower_in(ir, n, 5);
    if (!lower_is_float(ir, n, 0) || matmul_nbits_read(&c, &q) != ERR_OK || q.bits == 2)
        return false;
    s.m = tensor_count(in[0]) / q.columns;
    s.k = q.columns;
    s.n = q.rows;
    s.weights = q.bits == 4 ? GEMM_U4 : GEMM_U8;
    s.block = (uint32_t)q.block;
    s.blocks.scales = ir_floats(ir, lower_in(ir, n, 2));
    if (!ir_is_const(ir, weight) || s.blocks.scales == NULL) return false;
    if (!zeros_of(ir, lower_in(ir, n, 3), &s.blocks)) return false;
    if (!spec_dim_fits(s.m) || !spec_dim_fits(s.k) || !spec_dim_fits(s.n)) return false;
    s.blocks.data = ir_type(ir, weight)->data;
    s.channels = (OutputChannels){.n = (uint32_t)s.n, .weight = weight};
    if (bias != IR_NONE) s.channels.bias = ir_floats(ir, bias);
    if (bias != IR_NONE && s.channels.bias == NULL) return false;
    lower_add(ir, n, 0, IR_GEMM, 1, &s, sizeof s);
    return true;
}
