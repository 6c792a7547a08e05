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

Err run_wide(const OpCall *c, const Tensor *t, Tensor *wide) {
    size_t bytes = 0;
    *wide = *t;
    wide->dtype = DT_F64;
    TRY(tensor_measure(wide, &bytes));
    wide->data = arena_try(c->scratch, 1, bytes, TENSOR_ALIGN);
    if (wide->data == NULL) return err_set(ERR_LIMIT, "no room for %zu bytes", bytes);
    return ERR_OK;
}
