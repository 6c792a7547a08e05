// Normalization, softmax and reductions.
#include <math.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "kernel/ref/ref_elementwise.h"
#include "kernel/ref/ref_norm.h"
#include "kernel/ref/ref_reduce.h"
#include "model/infer/infer_params.h"

// Statistics per channel, and the scale and shift made from them.
typedef struct ChannelStats {
    double *mul, *add, *mean, *variance;
} ChannelStats;

static Err stats_alloc(const OpCall *c, int64_t channels, ChannelStats *b) {
    double *room = arena_try(c->scratch, (size_t)channels, 4 * sizeof *room, _Alignof(double));
    if (room == NULL) return err_set(ERR_LIMIT, "no memory for the statistics of the channels");
    *b = (ChannelStats){room, room + channels, room + 2 * channels, room + 3 * channels};
    return ERR_OK;
}

// Outputs 1 and 2 are running statistics; 3 and 4, before operator set 14, those of the batch.
static void batch_outputs(const OpCall *c, const ChannelStats *b, int64_t channels, Tensor *out) {
    const bool   trains = infer_batch_norm_trains(c->node);
    const double momentum = trains ? (double)attr_float(c->node, "momentum", 0.9f) : 1;
    for (uint32_t k = 1; k < c->node->n_out; k++) {
        const double *own = k % 2 == 1 ? b->mean : b->variance;
        const Tensor *was = c->in[k % 2 == 1 ? 3 : 4];
        const double  share = k < 3 ? momentum : 0;
        WORK_EACH (i, channels) {
            double kept = share == 0 ? 0 : share * tensor_get_f64(was, i);
            tensor_set(&out[k], i, kept + (share == 1 ? 0 : (1 - share) * own[i]));
        }
    }
}

Err run_batch_norm(const OpCall *c, Tensor *out) {
    const Node   *n = c->node;
    const Tensor  x = infer_channels(c->in[0], n->version >= 9 || attr_int(n, "spatial", 1) != 0);
    const double  epsilon = (double)attr_float(n, "epsilon", 1e-5f);
    const int64_t channels = x.dims[1];
    const bool    along[TENSOR_MAX_RANK] = {true, false, true};
    Tensor        y = x;
    ChannelStats  b;
    y.data = out[0].data;
    TRY(stats_alloc(c, channels, &b));
    WORK_EACH (i, channels) {
        b.mean[i] = tensor_get_f64(c->in[3], i);
        b.variance[i] = tensor_get_f64(c->in[4], i);
    }
    if (infer_batch_norm_trains(n)) ref_moments(along, &x, b.mean, b.variance);
    WORK_EACH (i, channels) {
        b.mul[i] = tensor_get_f64(c->in[1], i) / sqrt(b.variance[i] + epsilon);
        b.add[i] = tensor_get_f64(c->in[2], i) - b.mean[i] * b.mul[i];
    }
    ref_affine(b.mul, b.add, &x, &y);
    batch_outputs(c, &b, channels, out);
    return ERR_OK;
}

// y = y * scale + bias (NULL: none), both broadcast to y.
static void scale_and_shift(const Tensor *scale, const Tensor *bias, Tensor *y) {
    ref_binary(REF_MUL, y, scale, y);
    if (bias != NULL) ref_binary(REF_ADD, y, bias, y);
}

// A vector as a tensor [a, b, 1, ...] with `ones` trailing ones.
static Tensor view(const Tensor *t, int64_t a, int64_t b, int32_t ones) {
    Tensor v = {.dtype = t->dtype, .rank = 2 + ones, .dims = {a, b}, .data = t->data};
    for (int32_t i = 0; i < ones; i++) v.dims[2 + i] = 1;
    return v;
}

Err run_instance_norm(const OpCall *c, Tensor *out) {
    Tensor  x = infer_channels(c->in[0], true), y = x;
    RefNorm p = {.kind = REF_NORM_VARIANCE,
                 .along = {false, false, true},
                 .epsilon = (double)attr_float(c->node, "epsilon", 1e-5f)};
    y.data = out[0].data;
    ref_norm(&p, &x, &y);
    Tensor scale = view(c->in[1], x.dims[1], 1, 0), bias = view(c->in[2], x.dims[1], 1, 0);
    scale_and_shift(&scale, &bias, &y);
    return ERR_OK;
}

// As [N, groups, channels of a group, pixels]. Before operator set 21 the scale is per group.
Err run_group_norm(const OpCall *c, Tensor *out) {
    const Tensor  x3 = infer_channels(c->in[0], true);
    const int64_t groups = attr_int(c->node, "num_groups", 1), each = x3.dims[1] / groups;
    const int64_t own = c->node->version < 21 ? 1 : each;
    const int64_t dims[] = {x3.dims[0], groups, each, x3.dims[2]};
    Tensor        x = tensor_of(x3.dtype, 4, dims, x3.data), y = x;
    RefNorm       p = {.kind = REF_NORM_VARIANCE,
                       .along = {false, false, true, true},
                       .epsilon = (double)attr_float(c->node, "epsilon", 1e-5f)};
    y.data = out[0].data;
    ref_norm(&p, &x, &y);
    Tensor scale = view(c->in[1], groups, own, 1), bias = view(c->in[2], groups, own, 1);
    scale_and_shift(&scale, &bias, &y);
    return ERR_OK;
}

static void from_axis(int32_t axis, bool along[TENSOR_MAX_RANK]) {
    for (int32_t i = 0; i < TENSOR_MAX_RANK; i++) along[i] = i >= axis;
}

Err run_layer_norm(const OpCall *c, Tensor *out) {
    const Node *n = c->node;
    const bool  plain = n->op == OP_LayerNormalization;
    RefNorm     p = {.kind = plain ? REF_NORM_VARIANCE : REF_NORM_RMS,
                     .epsilon = (double)attr_float(n, "epsilon", 1e-5f)};
    int32_t     axis = 0;
    TRY(infer_axis(attr_int(n, "axis", -1), c->in[0]->rank, &axis));
    from_axis(axis, p.along);
    if (plain && n->n_out > 1) p.mean = &out[1];
    if (plain && n->n_out > 2) p.inverse = &out[2];
    if (!plain && n->n_out > 1) p.inverse = &out[1];
    ref_norm(&p, c->in[0], &out[0]);
    scale_and_shift(c->in[1], infer_input(c, 2), &out[0]);
    return ERR_OK;
}

// Adds the skip connection (and a bias), then normalizes the rows.
Err run_skip_norm(const OpCall *c, Tensor *out) {
    const Node   *n = c->node;
    const bool    plain = n->op == OP_MsSkipLayerNorm;
    const Tensor *beta = plain ? infer_input(c, 3) : NULL, *bias = infer_input(c, plain ? 4 : 3);
    RefNorm       p = {.kind = plain ? REF_NORM_VARIANCE : REF_NORM_RMS,
                       .epsilon = (double)attr_float(n, "epsilon", 1e-12f)};
    Tensor       *sum = n->n_out > 3 ? &out[3] : &out[0];
    ref_binary(REF_ADD, c->in[0], c->in[1], sum);
    if (bias != NULL) ref_binary(REF_ADD, sum, bias, sum);
    from_axis(c->in[0]->rank - 1, p.along);
    if (n->n_out > 1) p.mean = &out[1];
    if (n->n_out > 2) p.inverse = &out[2];
    ref_norm(&p, sum, &out[0]);
    scale_and_shift(c->in[2], beta, &out[0]);
    return ERR_OK;
}

Err run_axes_norm(const OpCall *c, Tensor *out) {
    RefNorm p = {.kind = REF_NORM_DEVIATION, .epsilon = 1e-9};
    TRY(infer_norm_axes(c, p.along));
    if (c->node->op == OP_LpNormalization)
        p.kind = attr_int(c->node, "p", 2) == 1 ? REF_NORM_L1 : REF_NORM_L2;
    ref_norm(&p, c->in[0], &out[0]);
    return ERR_OK;
}

Err run_lrn(const OpCall *c, Tensor *out) {
    const Node  *n = c->node;
    const RefLrn p = {.alpha = (double)attr_float(n, "alpha", 1e-4f),
                      .beta = (double)attr_float(n, "beta", 0.75f),
                      .bias = (double)attr_float(n, "bias", 1),
                      .size = attr_int(n, "size", 1)};
    const Tensor x = infer_channels(c->in[0], true);
    ref_lrn(&p, &x, &out[0]);
    return ERR_OK;
}

static RefReduce reduction_of(OpId op) {
    switch (op) {
    case OP_ReduceL1: return REF_REDUCE_L1;
    case OP_ReduceL2: return REF_REDUCE_L2;
    case OP_ReduceLogSum: return REF_REDUCE_LOG_SUM;
    case OP_ReduceLogSumExp: return REF_REDUCE_LOG_SUM_EXP;
    case OP_ReduceMax: return REF_REDUCE_MAX;
    case OP_ReduceMean: return REF_REDUCE_MEAN;
    case OP_ReduceMin: return REF_REDUCE_MIN;
    case OP_ReduceProd: return REF_REDUCE_PROD;
    case OP_ReduceSum: return REF_REDUCE_SUM;
    case OP_ReduceSumSquare: return REF_REDUCE_SUM_SQUARE;
    default: return REF_REDUCE_COUNT;
    }
}

Err run_reduce(const OpCall *c, Tensor *out) {
    bool along[TENSOR_MAX_RANK], known = false;
    TRY(infer_reduce_axes(c, along, &known));
    ref_reduce(reduction_of(c->node->op), along, c->in[0], &out[0]);
    return ERR_OK;
}

Err run_arg(const OpCall *c, Tensor *out) {
    const Node *n = c->node;
    int32_t     axis = 0;
    TRY(infer_axis(attr_int(n, "axis", 0), c->in[0]->rank, &axis));
    ref_arg(n->op == OP_ArgMax, attr_int(n, "select_last_index", 0) != 0, axis, c->in[0], &out[0]);
    return ERR_OK;
}

Err run_cumsum(const OpCall *c, Tensor *out) {
    int64_t  given = 0;
    uint32_t n = 0;
    int32_t  axis = 0;
    TRY(infer_read_ints(c->in[1], &given, 1, &n));
    TRY(infer_axis(given, c->in[0]->rank, &axis));
    ref_cumsum(attr_int(c->node, "exclusive", 0) != 0, attr_int(c->node, "reverse", 0) != 0, axis,
               c->in[0], &out[0]);
    return ERR_OK;
}

Err run_softmax(const OpCall *c, Tensor *out) {
    bool    along[TENSOR_MAX_RANK];
    int64_t n = 1;
    TRY(infer_softmax_axes(c, along));
    for (int32_t i = 0; i < c->in[0]->rank; i++)
        if (along[i]) n *= c->in[0]->dims[i];
    double *row = arena_try_new(c->scratch, double, (size_t)n);
    if (row == NULL)
        return err_set(ERR_LIMIT, "no memory for a row of %lld elements", (long long)n);
    const OpId op = c->node->op;
    ref_softmax(op == OP_Softmax      ? REF_SOFTMAX
                : op == OP_LogSoftmax ? REF_LOG_SOFTMAX
                                      : REF_HARDMAX,
                along, c->in[0], &out[0], row);
    return ERR_OK;
}
