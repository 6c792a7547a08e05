#include "model/params/rnn.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "model/attr.h"
#include "model/infer/infer.h"

typedef struct FnRow {
    const char *name;
    bool        has_alpha, has_beta;
    float       alpha, beta;  // defaults
} FnRow;

static const FnRow rows[RNN_FN_COUNT] = {
    [RNN_RELU] = {"Relu", false, false, 0, 0},
    [RNN_TANH] = {"Tanh", false, false, 0, 0},
    [RNN_SIGMOID] = {"Sigmoid", false, false, 0, 0},
    [RNN_AFFINE] = {"Affine", true, true, 1, 0},
    [RNN_LEAKY_RELU] = {"LeakyRelu", true, false, 0.01F, 0},
    [RNN_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1, 0},
    [RNN_SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
    [RNN_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2F, 0.5F},
    [RNN_ELU] = {"Elu", true, false, 1, 0},
    [RNN_SOFTSIGN] = {"Softsign", false, false, 0, 0},
    [RNN_SOFTPLUS] = {"Softplus", false, false, 0, 0},
};

static int32_t gates_of(OpId op) { return op == OP_LSTM ? 4 : op == OP_GRU ? 3 : 1; }
static int32_t fns_of(OpId op) { return op == OP_LSTM ? 3 : op == OP_GRU ? 2 : 1; }

static Err find_fn(Str name, RnnFn *out) {
    for (int i = 0; i < RNN_FN_COUNT; i++)
        if (strlen(rows[i].name) == name.len && strncasecmp(rows[i].name, name.at, name.len) == 0) {
            *out = (RnnFn)i;
            return ERR_OK;
        }
    return err_set(ERR_UNSUPPORTED, "activation '%.*s' is not supported",
                   (int)(name.len < 32 ? name.len : 32), name.at);
}

static void default_fns(OpId op, Rnn *r) {
    for (int d = 0; d < 2; d++) {
        r->fn[d][0] = op == OP_RNN ? RNN_TANH : RNN_SIGMOID;
        r->fn[d][1] = r->fn[d][2] = RNN_TANH;
    }
}

// The lists of alphas and betas have one entry for each activation that takes one, in order.
static Err read_fns(const Node *n, Rnn *r) {
    uint32_t     n_names = 0, n_alpha = 0, n_beta = 0, alpha = 0, beta = 0;
    const Str   *names = attr_strings(n, "activations", &n_names);
    const float *alphas = attr_floats(n, "activation_alpha", &n_alpha);
    const float *betas = attr_floats(n, "activation_beta", &n_beta);
    int32_t      each = fns_of(n->op), want = each * r->directions;
    default_fns(n->op, r);
    if (n_names != 0 && n_names != (uint32_t)want)
        return err_set(ERR_INVALID, "has %u activations, needs %d", n_names, want);
    for (int32_t i = 0; i < want; i++) {
        RnnFn *f = &r->fn[i / each][i % each];
        if (n_names != 0) TRY(find_fn(names[i], f));
        const FnRow *row = &rows[*f];
        r->alpha[i / each][i % each] =
            row->has_alpha && alpha < n_alpha ? alphas[alpha++] : row->alpha;
        r->beta[i / each][i % each] = row->has_beta && beta < n_beta ? betas[beta++] : row->beta;
    }
    return ERR_OK;
}

static Err read_direction(const Node *n, Rnn *r) {
    const char *s = attr_str(n, "direction", "forward");
    bool        both = strcasecmp(s, "bidirectional") == 0;
    r->reversed = strcasecmp(s, "reverse") == 0;
    r->directions = both ? 2 : 1;
    if (both || r->reversed || strcasecmp(s, "forward") == 0) return ERR_OK;
    return err_set(ERR_INVALID, "direction '%.32s' is unknown", s);
}

// Checks type and shape of an optional input.
static Err check_shape(const OpCall *c, uint32_t i, DType t, int32_t rank, const int64_t *dims,
                       const char *what) {
    const Tensor *have = infer_input(c, i);
    if (have == NULL) return ERR_OK;
    Tensor want = tensor_of(t, rank, dims, NULL);
    char   text[96];
    TRY(infer_check_type(have, dtype_bit(t), what));
    if (tensor_same_shape(have, &want)) return ERR_OK;
    tensor_shape_text(&want, text, sizeof text);
    return err_set(ERR_INVALID, "%s must have shape %s", what, text);
}

static Err check_shapes(const OpCall *c, const Rnn *r) {
    DType   t = c->in[0]->dtype;
    int64_t d = r->directions, rows_w = r->gates * r->hidden;
    int64_t state[3] = {d, r->batch, r->hidden};
    if (r->batch_first) state[0] = r->batch, state[1] = d;
    TRY(check_shape(c, 1, t, 3, (int64_t[]){d, rows_w, r->input}, "W"));
    TRY(check_shape(c, 2, t, 3, (int64_t[]){d, rows_w, r->hidden}, "R"));
    TRY(check_shape(c, 3, t, 2, (int64_t[]){d, 2 * rows_w}, "B"));
    TRY(check_shape(c, 4, DT_I32, 1, (int64_t[]){r->batch}, "sequence_lens"));
    TRY(check_shape(c, 5, t, 3, state, "initial_h"));
    TRY(check_shape(c, 6, t, 3, state, "initial_c"));
    return check_shape(c, 7, t, 2, (int64_t[]){d, 3 * r->hidden}, "P");
}

Err rnn_read(const OpCall *c, Rnn *r) {
    const Node   *n = c->node;
    const Tensor *x = c->in[0], *recurrent = c->in[2];
    *r = (Rnn){.gates = gates_of(n->op), .batch_first = attr_int(n, "layout", 0) != 0};
    if (x->rank != 3 || recurrent->rank != 3)
        return err_set(ERR_INVALID, "X has rank %d and R rank %d, both must be 3", x->rank,
                       recurrent->rank);
    r->steps = x->dims[r->batch_first ? 1 : 0];
    r->batch = x->dims[r->batch_first ? 0 : 1];
    r->input = x->dims[2];
    r->hidden = recurrent->dims[2];
    int64_t declared = attr_int(n, "hidden_size", r->hidden);
    if (r->hidden < 1 || r->hidden > INT32_MAX || declared != r->hidden)
        return err_set(ERR_INVALID, "hidden_size is %" PRId64 ", R has %" PRId64, declared,
                       r->hidden);
    r->linear_before_reset = attr_int(n, "linear_before_reset", 0) != 0;
    r->input_forget = attr_int(n, "input_forget", 0) != 0;
    r->clip = attr_float(n, "clip", 0);
    if (!(r->clip >= 0)) return err_set(ERR_INVALID, "clip is %g", (double)r->clip);
    TRY(read_direction(n, r));
    TRY(read_fns(n, r));
    return check_shapes(c, r);
}

enum { INPUT_W_SCALE = 8, INPUT_R_SCALE = 10 };  // inputs, each followed by its zero point

static Err float_weight(const Tensor *bytes, DType t, Tensor *plain) {
    TRY(infer_check_type(bytes, dtype_bit(DT_I8) | dtype_bit(DT_U8), "of weights"));
    if (bytes->rank != 3)
        return err_set(ERR_INVALID, "weights have rank %d, must be 3", bytes->rank);
    *plain =
        (Tensor){.dtype = t, .rank = 3, .dims = {bytes->dims[0], bytes->dims[2], bytes->dims[1]}};
    return ERR_OK;
}

// Scale and zero point: one per direction, or one per direction and gate row.
static Err check_scale(const OpCall *c, uint32_t at, const Tensor *bytes) {
    for (uint32_t i = at; i < at + 2; i++) {
        const Tensor *t = infer_input(c, i);
        TRY(infer_present(c, i));
        bool fits = t->rank == 1 || (t->rank == 2 && t->dims[1] == bytes->dims[2]);
        if (!fits || t->dims[0] != bytes->dims[0] || t->dtype != (i == at ? DT_F32 : bytes->dtype))
            return err_set(ERR_INVALID, "the shape or type of input %u does not match its weights",
                           i);
    }
    return ERR_OK;
}

Err rnn_read_quantized(const OpCall *c, QuantizedRnn *out) {
    TRY(infer_check_type(c->in[0], dtype_bit(DT_F32), "X"));
    TRY(float_weight(c->in[1], DT_F32, &out->w));
    TRY(float_weight(c->in[2], DT_F32, &out->r));
    TRY(check_scale(c, INPUT_W_SCALE, c->in[1]));
    TRY(check_scale(c, INPUT_R_SCALE, c->in[2]));
    out->node = *c->node;
    out->node.op = OP_LSTM;
    out->node.version = 14;
    out->node.n_in = 8;
    for (uint32_t i = 0; i < 8; i++) out->in[i] = infer_input(c, i);
    out->in[1] = &out->w;
    out->in[2] = &out->r;
    out->call = *c;
    out->call.node = &out->node;
    out->call.in = out->in;
    return ERR_OK;
}
