// Matrix products, Einsum, attention and recurrent layers.
#include <inttypes.h>

#include "model/params/attention.h"
#include "model/params/einsum.h"
#include "model/infer/infer.h"
#include "model/params/quant.h"
#include "model/params/rnn.h"

#define TYPES_MATMUL                                                                               \
    (TYPES_FLOAT | dtype_bit(DT_I32) | dtype_bit(DT_I64) | dtype_bit(DT_U32) | dtype_bit(DT_U64))

// NumPy's rule: a vector is a row on the left and a column on the right; its added 1 is dropped.
static Err matmul_shape(const Tensor *a, const Tensor *b, Tensor *out) {
    if (a->rank < 1 || b->rank < 1) return err_set(ERR_INVALID, "an operand is a scalar");
    int64_t ka = a->dims[a->rank - 1], kb = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (ka != kb)
        return err_set(ERR_INVALID, "inner dimensions %" PRId64 " and %" PRId64 " differ", ka, kb);
    Tensor stack = {.rank = 0};
    Tensor sa = tensor_of(a->dtype, a->rank > 2 ? a->rank - 2 : 0, a->dims, NULL);
    Tensor sb = tensor_of(b->dtype, b->rank > 2 ? b->rank - 2 : 0, b->dims, NULL);
    TRY(infer_broadcast(&sa, &stack));
    TRY(infer_broadcast(&sb, &stack));
    if (a->rank > 1) stack.dims[stack.rank++] = a->dims[a->rank - 2];
    if (b->rank > 1) stack.dims[stack.rank++] = b->dims[b->rank - 1];
    out->rank = stack.rank;
    for (int32_t i = 0; i < stack.rank; i++) out->dims[i] = stack.dims[i];
    return ERR_OK;
}

Err infer_matmul(const OpCall *c, Tensor *out) {
    const Tensor *a = c->in[0], *b = c->in[1];
    TRY(infer_check_type(a, TYPES_MATMUL, "A"));
    TRY(infer_check_type(b, dtype_bit(a->dtype), "B"));
    out->dtype = a->dtype;
    return matmul_shape(a, b, out);
}

// The zero point or scale of a matrix has one element, one per row (of a) or column (of b), or the
// matrix's shape with 1 in the other dimension.
static Err check_granularity(const Tensor *t, const Tensor *of, bool rows, const char *what) {
    int32_t axis = rows ? of->rank - 2 : of->rank - 1;
    bool    one = t->rank == 0 || (t->rank == 1 && t->dims[0] == 1);
    if (one) return ERR_OK;
    if (t->rank == 1 && axis >= 0 && of->rank > 1 && t->dims[0] == of->dims[axis]) return ERR_OK;
    bool same = t->rank == of->rank && t->rank > 1;
    for (int32_t i = 0; i < t->rank && same; i++) {
        bool shared = i == (rows ? of->rank - 1 : of->rank - 2);
        same = t->dims[i] == (shared ? 1 : of->dims[i]);
    }
    if (same) return ERR_OK;
    return err_set(ERR_INVALID, "the shape of %s does not fit its matrix", what);
}

static Err matmul_zero(const Tensor *t, const Tensor *of, bool rows, const char *what) {
    if (t == NULL) return ERR_OK;
    if (t->dtype != of->dtype)
        return err_set(ERR_INVALID, "%s is %s, must be %s", what, dtype_name(t->dtype),
                       dtype_name(of->dtype));
    return check_granularity(t, of, rows, what);
}

// Columns of b, each of which may have a scale; 1 for a vector.
static int64_t matmul_columns(const Tensor *b) { return b->rank > 1 ? b->dims[b->rank - 1] : 1; }

static Err matmul_scale(const Tensor *t, const Tensor *of, bool rows, const char *what) {
    TRY(infer_check_type(t, dtype_bit(DT_F32) | dtype_bit(DT_F16) | dtype_bit(DT_BF16), what));
    return check_granularity(t, of, rows, what);
}

Err infer_matmul_integer(const OpCall *c, Tensor *out) {
    const Tensor *a = c->in[0], *b = c->in[1];
    TRY(infer_check_type(a, TYPES_BYTE, "A"));
    TRY(infer_check_type(b, TYPES_BYTE, "B"));
    TRY(matmul_shape(a, b, out));
    TRY(matmul_zero(infer_input(c, 2), a, true, "a_zero_point"));
    TRY(matmul_zero(infer_input(c, 3), b, false, "b_zero_point"));
    out->dtype = DT_I32;
    return ERR_OK;
}

Err infer_matmul_qlinear(const OpCall *c, Tensor *out) {
    const Tensor *a = c->in[0], *b = c->in[3];
    TRY(infer_check_type(a, TYPES_BYTE, "a"));
    TRY(infer_check_type(b, TYPES_BYTE, "b"));
    TRY(infer_check_type(c->in[7], TYPES_BYTE, "y_zero_point"));
    TRY(matmul_shape(a, b, out));
    // With a vector as operand, only one scale and zero point per operand.
    for (uint32_t i = 1; i < 8 && (a->rank < 2 || b->rank < 2); i++)
        if (i != 3 && tensor_count(c->in[i]) != 1)
            return err_set(ERR_INVALID, "a vector operand takes one scale and zero point only");
    TRY(matmul_scale(c->in[1], a, true, "a_scale"));
    TRY(matmul_zero(c->in[2], a, true, "a_zero_point"));
    TRY(matmul_scale(c->in[4], b, false, "b_scale"));
    TRY(matmul_zero(c->in[5], b, false, "b_zero_point"));
    TRY(matmul_scale(c->in[6], out, true, "y_scale"));
    out->dtype = c->in[7]->dtype;
    return matmul_zero(c->in[7], out, true, "y_zero_point");
}

static Err gemm_bias(const OpCall *c, const Tensor *bias, DType type, const Tensor *out) {
    if (bias == NULL) return ERR_OK;
    TRY(infer_check_type(bias, dtype_bit(type), "C"));
    TRY(infer_check_broadcast(bias, out, "C"));
    bool strict = c->node->op == OP_Gemm && c->node->version < 7;
    if (strict && attr_int(c->node, "broadcast", 0) == 0 && !tensor_same_shape(bias, out))
        return err_set(ERR_INVALID, "C must have the shape of the product: broadcast is 0");
    return ERR_OK;
}

static Err gemm_shape(const Node *n, const Tensor *a, const Tensor *b, DType type, Tensor *out) {
    int32_t ta = attr_int(n, "transA", 0) != 0, tb = attr_int(n, "transB", 0) != 0;
    if (a->rank != 2 || b->rank != 2)
        return err_set(ERR_INVALID, "A has rank %d and B rank %d, both must be 2", a->rank,
                       b->rank);
    if (a->dims[1 - ta] != b->dims[tb])
        return err_set(ERR_INVALID, "inner dimensions %" PRId64 " and %" PRId64 " differ",
                       a->dims[1 - ta], b->dims[tb]);
    *out = tensor_of(type, 2, (int64_t[]){a->dims[ta], b->dims[1 - tb]}, NULL);
    return ERR_OK;
}

Err infer_gemm(const OpCall *c, Tensor *out) {
    const Tensor *a = c->in[0], *b = c->in[1];
    TRY(infer_check_type(a, TYPES_NUMBER, "A"));
    TRY(infer_check_type(b, dtype_bit(a->dtype), "B"));
    TRY(gemm_shape(c->node, a, b, a->dtype, out));
    return gemm_bias(c, infer_input(c, 2), out->dtype, out);
}

Err infer_einsum(const OpCall *c, Tensor *out) {
    Einsum e;
    TRY(einsum_read(c, &e));
    TRY(infer_check_type(c->in[0], TYPES_NUMBER, "Inputs"));
    for (uint32_t i = 1; i < c->node->n_in; i++)
        TRY(infer_check_type(c->in[i], dtype_bit(c->in[0]->dtype), "Inputs"));
    if (e.n_out > TENSOR_MAX_RANK) return err_set(ERR_INVALID, "the result has rank %d", e.n_out);
    *out = tensor_of(c->in[0]->dtype, e.n_out, e.dims, NULL);
    return ERR_OK;
}

// The bias of an integer product with float output: sum * a_scale * b_scale + bias.
static Err product_bias(const Tensor *bias, DType t, const Tensor *out) {
    if (bias == NULL) return ERR_OK;
    TRY(infer_check_type(bias, dtype_bit(t), "bias"));
    if (bias->rank == 1 && out->rank > 0 && bias->dims[0] == out->dims[out->rank - 1])
        return ERR_OK;
    return err_set(ERR_INVALID, "the bias must be a list with one element per column");
}

Err infer_matmul_to_float(const OpCall *c, Tensor *out) {
    const Tensor *a = c->in[0], *b = c->in[1];
    TRY(infer_check_type(a, TYPES_BYTE, "A"));
    TRY(infer_check_type(b, TYPES_BYTE, "B"));
    TRY(matmul_shape(a, b, out));
    TRY(quant_scale(c->in[2], 1, "a_scale"));
    TRY(quant_scale(c->in[3], matmul_columns(b), "b_scale"));
    TRY(quant_zero(infer_input(c, 4), a->dtype, 1, "a_zero_point"));
    TRY(quant_zero(infer_input(c, 5), b->dtype, matmul_columns(b), "b_zero_point"));
    out->dtype = DT_F32;
    return product_bias(infer_input(c, 6), DT_F32, out);
}

Err infer_matmul_dynamic(const OpCall *c, Tensor *out) {
    const Tensor *a = c->in[0], *b = c->in[1];
    TRY(infer_check_type(a, dtype_bit(DT_F32), "A"));
    TRY(infer_check_type(b, TYPES_BYTE, "B"));
    TRY(matmul_shape(a, b, out));
    TRY(quant_scale(c->in[2], matmul_columns(b), "b_scale"));
    TRY(quant_zero(infer_input(c, 3), b->dtype, matmul_columns(b), "b_zero_point"));
    out->dtype = DT_F32;
    return product_bias(infer_input(c, 4), DT_F32, out);
}

Err infer_gemm_quant(const OpCall *c, Tensor *out) {
    const Tensor *a = c->in[0], *b = c->in[3], *y_scale = infer_input(c, 7),
                 *y_zero = infer_input(c, 8);
    TRY(infer_check_type(a, TYPES_BYTE, "A"));
    TRY(infer_check_type(b, TYPES_BYTE, "B"));
    TRY(gemm_shape(c->node, a, b, DT_F32, out));
    TRY(quant_scale(c->in[1], 1, "a_scale"));
    TRY(quant_zero(c->in[2], a->dtype, 1, "a_zero_point"));
    TRY(quant_scale(c->in[4], out->dims[1], "b_scale"));
    TRY(quant_zero(c->in[5], b->dtype, out->dims[1], "b_zero_point"));
    TRY(gemm_bias(c, infer_input(c, 6), DT_I32, out));
    if (y_scale == NULL) return ERR_OK;
    TRY(quant_scale(y_scale, 1, "y_scale"));
    out->dtype = y_zero != NULL ? y_zero->dtype : a->dtype;
    TRY(infer_check_type(out, TYPES_BYTE, "y_zero_point"));
    return quant_zero(y_zero, out->dtype, 1, "y_zero_point");
}

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

static Err check_table(const Tensor *t, int64_t width, const char *what) {
    TRY(infer_check_type(t, dtype_bit(DT_F32), what));
    if (t->rank == 2 && t->dims[1] == width) return ERR_OK;
    return err_set(ERR_INVALID, "%s must have rows of %" PRId64, what, width);
}

static Err check_ids(const Tensor *t, const Tensor *ids, const char *what) {
    if (t == NULL) return ERR_OK;
    TRY(infer_check_type(t, dtype_bit(DT_I32), what));
    if (tensor_same_shape(t, ids)) return ERR_OK;
    return err_set(ERR_INVALID, "%s must have the shape of input_ids", what);
}

// Inputs: input_ids, segment_ids, word, position and segment embeddings, gamma, beta, mask,
// position_ids.
Err infer_embed_norm(const OpCall *c, Tensor *out) {
    const Tensor *ids = c->in[0], *segment_ids = infer_input(c, 1), *segments = infer_input(c, 4);
    static const uint32_t needed[] = {2, 3, 5, 6};
    for (size_t i = 0; i < 4; i++) TRY(infer_present(c, needed[i]));
    if (ids->rank != 2 || c->in[2]->rank != 2)
        return err_set(ERR_INVALID, "input_ids and word_embedding must have rank 2");
    int64_t width = c->in[2]->dims[1];
    TRY(check_ids(ids, ids, "input_ids"));
    TRY(check_ids(segment_ids, ids, "segment_ids"));
    TRY(check_ids(infer_input(c, 7), ids, "mask"));
    TRY(check_ids(infer_input(c, 8), ids, "position_ids"));
    TRY(check_table(c->in[2], width, "word_embedding"));
    TRY(check_table(c->in[3], width, "position_embedding"));
    if (segment_ids != NULL && segments == NULL)
        return err_set(ERR_INVALID, "segment_ids without segment_embedding");
    if (segments != NULL) TRY(check_table(segments, width, "segment_embedding"));
    for (uint32_t i = 5; i < 7; i++) {
        TRY(infer_check_type(c->in[i], dtype_bit(DT_F32), "gamma or beta"));
        if (c->in[i]->rank != 1 || c->in[i]->dims[0] != width)
            return err_set(ERR_INVALID, "gamma and beta must have %" PRId64 " elements", width);
    }
    out[0] = tensor_of(DT_F32, 3, (int64_t[]){ids->dims[0], ids->dims[1], width}, NULL);
    if (c->node->n_out > 1) out[1] = tensor_of(DT_I32, 1, ids->dims, NULL);
    if (c->node->n_out > 2) out[2] = out[0];
    return ERR_OK;
}

Err infer_rnn(const OpCall *c, Tensor *out) {
    Rnn   r;
    DType t = c->in[0]->dtype;
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "X"));
    TRY(rnn_read(c, &r));
    int64_t d = r.directions;
    int64_t all[4] = {r.steps, d, r.batch, r.hidden}, last[3] = {d, r.batch, r.hidden};
    if (r.batch_first) {
        all[0] = last[0] = r.batch;
        all[1] = r.steps;
        all[2] = last[1] = d;
    }
    for (uint32_t i = 0; i < c->node->n_out; i++)
        out[i] = i == 0 ? tensor_of(t, 4, all, NULL) : tensor_of(t, 3, last, NULL);
    return ERR_OK;
}

Err infer_lstm_dynamic(const OpCall *c, Tensor *out) {
    QuantizedRnn plain;
    TRY(rnn_read_quantized(c, &plain));
    return infer_rnn(&plain.call, out);
}
