#include "compile/run.h"
#include "kernel/ref_arg.h"
#include "kernel/ref_cumsum.h"
#include "kernel/ref_reduce.h"
#include "kernel/ref_softmax.h"
#include "model/infer_math.h"

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
    TRY(infer_reduce_along(c, along, &known));
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
    TRY(infer_softmax_along(c, along));
    for (int32_t i = 0; i < c->in[0]->rank; i++)
        if (along[i]) n *= c->in[0]->dims[i];
    double *row = arena_try_new(c->scratch, double, (size_t)n);
    if (row == NULL) return err_set(ERR_LIMIT, "no room for a row of %lld numbers", (long long)n);
    const OpId op = c->node->op;
    ref_softmax(op == OP_Softmax      ? REF_SOFTMAX
                : op == OP_LogSoftmax ? REF_LOG_SOFTMAX
                                      : REF_HARDMAX,
                along, c->in[0], &out[0], row);
    return ERR_OK;
}
