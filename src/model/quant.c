#include "model/quant.h"

#include <inttypes.h>

static Err quant_count(const Tensor *t, int64_t count, const char *what) {
    bool one = t->rank == 0 || (t->rank == 1 && t->dims[0] == 1);
    if (one || (t->rank == 1 && t->dims[0] == count)) return ERR_OK;
    return err_set(ERR_INVALID, "%s must be one number or a list of %" PRId64, what, count);
}

Err quant_zero(const Tensor *t, DType type, int64_t count, const char *what) {
    if (t == NULL) return ERR_OK;
    if (t->dtype != type)
        return err_set(ERR_INVALID, "%s is %s, must be %s", what, dtype_name(t->dtype),
                       dtype_name(type));
    return quant_count(t, count, what);
}

Err quant_scale(const Tensor *t, int64_t count, const char *what) {
    if (t->dtype != DT_F32)
        return err_set(ERR_UNSUPPORTED, "%s is %s, must be float32", what, dtype_name(t->dtype));
    return quant_count(t, count, what);
}
