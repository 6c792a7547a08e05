#include "compile/run_view.h"

Tensor run_column(const Tensor *t, int32_t ones) {
    Tensor v = *t;
    if (tensor_count(t) == 1) {
        v.rank = 0;
    } else if (t->rank == 1) {
        v.rank = 1 + ones;
        for (int32_t i = 1; i < v.rank; i++) v.dims[i] = 1;
    }
    return v;
}

Tensor run_matrix(const Tensor *t, bool left) {
    Tensor v = *t;
    if (t->rank != 1) return v;
    v.rank = 2;
    v.dims[left ? 0 : 1] = 1;
    v.dims[left ? 1 : 0] = t->dims[0];
    return v;
}

Err run_room(const OpCall *c, const Tensor *t, DType type, Tensor *out) {
    *out = *t;
    out->dtype = type;
    return tensor_room(out, c->scratch);
}

Err run_wide(const OpCall *c, const Tensor *t, Tensor *out) { return run_room(c, t, DT_F64, out); }
