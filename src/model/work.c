#include "model/work.h"

#include "model/attr.h"
#include "model/params/einsum.h"

static int64_t times(int64_t a, int64_t b) {
    int64_t r = 0;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t plus(int64_t a, int64_t b) {
    int64_t r = 0;
    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static bool known(const Tensor *t) { return t != NULL && tensor_known(t); }

static int64_t count_from(const Tensor *t, int32_t axis) {
    int64_t n = 1;
    for (int32_t i = axis; i < t->rank; i++) n = times(n, t->dims[i]);
    return n;
}

static int64_t bytes_of(const Tensor *t) {
    return known(t) ? times(count_from(t, 0), (int64_t)dtype_size(t->dtype)) : 0;
}

// Each output element takes one multiplication per weight of its channel.
static int64_t conv_macs(const Tensor *w, const Tensor *out) {
    return known(w) && known(out) ? times(count_from(out, 0), count_from(w, 1)) : 0;
}

// Each input element is multiplied with every weight of its channel.
static int64_t transposed_macs(const Tensor *x, const Tensor *w) {
    return known(x) && known(w) ? times(count_from(x, 0), count_from(w, 1)) : 0;
}

static int64_t matmul_macs(const Tensor *a, const Tensor *out) {
    if (!known(a) || !known(out) || a->rank == 0) return 0;
    return times(count_from(out, 0), a->dims[a->rank - 1]);
}

static int64_t gemm_macs(const Node *n, const Tensor *a, const Tensor *out) {
    if (!known(a) || !known(out) || a->rank != 2) return 0;
    return times(count_from(out, 0), a->dims[attr_int(n, "transA", 0) != 0 ? 0 : 1]);
}

// x: steps x batch x inputs, w: directions x gates x inputs, r: directions x gates x hidden
static int64_t recurrent_macs(const Tensor *x, const Tensor *w, const Tensor *r) {
    if (!known(x) || !known(w) || !known(r) || x->rank != 3) return 0;
    return times(times(x->dims[0], x->dims[1]), plus(count_from(w, 0), count_from(r, 0)));
}

// One multiplication per combination of all labels' indices; none with a single operand.
static int64_t einsum_macs(const Node *n, const Tensor *const *in) {
    Einsum  e;
    int64_t macs = 1;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!known(in[i])) return 0;
    if (n->n_in < 2 || einsum_read(&(OpCall){.node = n, .in = in}, &e) != ERR_OK) return 0;
    for (int32_t i = 0; i < e.n; i++) macs = times(macs, e.dims[i]);
    return macs;
}

int64_t work_macs(const Node *n, const Tensor *const *in, const Tensor *out) {
    switch (n->op) {
    case OP_Conv:
    case OP_ConvInteger: return conv_macs(in[1], out);
    case OP_QLinearConv: return conv_macs(in[3], out);
    case OP_ConvTranspose: return transposed_macs(in[0], in[1]);
    case OP_Gemm: return gemm_macs(n, in[0], out);
    case OP_MatMul:
    case OP_MatMulInteger:
    case OP_MsMatMulNBits:
    case OP_QLinearMatMul: return matmul_macs(in[0], out);
    case OP_LSTM:
    case OP_GRU:
    case OP_MsDynamicQuantizeLSTM:
    case OP_RNN: return recurrent_macs(in[0], in[1], in[2]);
    case OP_Einsum: return einsum_macs(n, in);
    default: return 0;
    }
}

// True for learned parameters; false for limits, scales, shapes and statistics.
static bool learned(const Node *n, uint32_t i, const Tensor *t) {
    bool byte = t->dtype == DT_I8 || t->dtype == DT_U8;
    switch (n->op) {
    case OP_BatchNormalization: return i == 1 || i == 2;
    case OP_Clip:
    case OP_Pad:
    case OP_Resize:
    case OP_Upsample:
    case OP_QuantizeLinear: return false;
    case OP_DequantizeLinear: return i == 0;
    case OP_ConvInteger:
    case OP_MatMulInteger: return i < 2 && byte;
    case OP_QLinearMatMul: return (i == 0 || i == 3) && byte;
    case OP_QLinearConv: return i == 3 || i == 8;
    case OP_MsMatMulNBits: return i == 1 || i == 5;
    case OP_MsGatherBlockQuantized: return i == 0;
    case OP_MsGroupQueryAttention:
    case OP_MsRotaryEmbedding:
    case OP_RotaryEmbedding: return false;
    default: return dtype_is_float(t->dtype) && t->rank > 0;
    }
}

// Weights in one element of a constant: those of block-quantised matrices share bytes.
static int64_t weights_per_element(const Node *n, uint32_t i) {
    uint32_t data = n->op == OP_MsMatMulNBits ? 1 : 0;
    if ((n->op != OP_MsMatMulNBits && n->op != OP_MsGatherBlockQuantized) || i != data) return 1;
    int64_t bits = attr_int(n, "bits", 4);
    return bits > 0 && bits < 8 ? 8 / bits : 1;
}

static void add_constant(Work *w, const Node *n, uint32_t i, const Tensor *t) {
    w->weight_bytes = plus(w->weight_bytes, bytes_of(t));
    if (known(t) && learned(n, i, t))
        w->params = plus(w->params, times(count_from(t, 0), weights_per_element(n, i)));
}

Work work_of(const Node *n, const Tensor *const *in, const bool *constant, const Tensor *out) {
    Work w = {.macs = work_macs(n, in, out)};
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (in[i] == NULL) continue;
        if (constant[i])
            add_constant(&w, n, i, in[i]);
        else
            w.in_bytes = plus(w.in_bytes, bytes_of(in[i]));
    }
    for (uint32_t i = 0; i < n->n_out; i++) w.out_bytes = plus(w.out_bytes, bytes_of(&out[i]));
    return w;
}

Err work_node(const ShapedGraph *s, uint32_t node, Arena *scratch, Work *w) {
    const Node    *n = &s->graph->nodes[node];
    size_t         mark = scratch->used;
    const Tensor **in = arena_try_new(scratch, const Tensor *, n->n_in);
    bool          *constant = arena_try_new(scratch, bool, n->n_in);
    Tensor        *out = arena_try_new(scratch, Tensor, n->n_out);
    if (in == NULL || constant == NULL || out == NULL)
        return err_set(ERR_LIMIT, "node '%s' has too many inputs and outputs", n->name);
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (n->in[i] == NO_VALUE) continue;
        in[i] = &s->values[n->in[i]];
        constant[i] = s->graph->values[n->in[i]].constant;
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        out[i] = n->out[i] != NO_VALUE ? s->values[n->out[i]] : (Tensor){.rank = RANK_UNKNOWN};
    *w = work_of(n, in, constant, out);
    arena_rewind(scratch, mark);
    return ERR_OK;
}

static void add_constants(const ShapedGraph *s, const Node *n, bool *seen, Work *w) {
    for (uint32_t i = 0; i < n->n_in; i++) {
        uint32_t v = n->in[i];
        if (v == NO_VALUE || !s->graph->values[v].constant || seen[v]) continue;
        seen[v] = true;
        add_constant(w, n, i, &s->values[v]);
    }
}

Err work_total(const ShapedGraph *s, Arena *scratch, Work *w) {
    size_t mark = scratch->used;
    bool  *seen = arena_try_new(scratch, bool, s->graph->n_values);
    if (seen == NULL) return err_set(ERR_LIMIT, "the model has too many values to add up");
    Work sum = {0};
    for (uint32_t i = 0; i < s->graph->n_nodes; i++) {
        add_constants(s, &s->graph->nodes[i], seen, &sum);
        if (s->folded[i]) continue;
        Work one = {0};
        TRY(work_node(s, i, scratch, &one));
        sum.macs = plus(sum.macs, one.macs);
        sum.in_bytes = plus(sum.in_bytes, one.in_bytes);
        sum.out_bytes = plus(sum.out_bytes, one.out_bytes);
    }
    arena_rewind(scratch, mark);
    *w = sum;
    return ERR_OK;
}
