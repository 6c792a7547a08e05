#include "compile/spec.h"

int32_t spec_channel_axis(IrKind k, const Tensor *out) {
    return k == IR_GEMM || k == IR_MATMUL ? out->rank - 1 : 1;
}

bool spec_arg_mode(const Tensor *arg, const Tensor *out, int32_t axis, ElementwiseMode *mode) {
    if (arg->dtype != DT_F32 || arg->rank > out->rank) return false;
    if (tensor_count(arg) == 1) {
        *mode = EWISE_SCALAR;
        return true;
    }
    bool    same = true, along = true;
    int32_t lead = out->rank - arg->rank;
    for (int32_t i = 0; i < out->rank; i++) {
        int64_t d = i < lead ? 1 : arg->dims[i - lead];
        same = same && d == out->dims[i];
        along = along && d == (i == axis ? out->dims[i] : 1);
    }
    *mode = same ? EWISE_CONTIGUOUS : EWISE_PER_LANE;
    return same || along;
}
