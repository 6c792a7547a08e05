#include "model/quant.h"

#include <inttypes.h>

#include "model/attr.h"
#include "model/infer.h"

static bool is_one(const Tensor *t) { return t->rank == 0 || (t->rank == 1 && t->dims[0] == 1); }

static Err quant_count(const Tensor *t, int64_t count, const char *what) {
    if (is_one(t) || (t->rank == 1 && t->dims[0] == count)) return ERR_OK;
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

// A scale of x's own rank, with one number for each block along the axis.
static Err blocks_fit(const Tensor *x, const Tensor *scale, int32_t axis, int64_t block) {
    bool fits = block > 0 && scale->rank == x->rank;
    for (int32_t i = 0; i < x->rank && fits; i++) {
        int64_t n = x->dims[i];
        if (i == axis) n = n / block + (n % block != 0);
        fits = scale->dims[i] == n;
    }
    return fits ? ERR_OK
                : err_set(ERR_INVALID, "the scale does not fit blocks of %" PRId64 " along axis %d",
                          block, axis);
}

static int64_t product(const int64_t *dims, int32_t from, int32_t to) {
    int64_t n = 1;
    for (int32_t i = from; i < to; i++)
        if (__builtin_mul_overflow(n, dims[i], &n)) return 0;
    return n;
}

Err quant_layout(const Node *n, const Tensor *x, const Tensor *scale, const Tensor *zero,
                 QuantLayout *out) {
    int32_t axis = 0;
    int64_t block = attr_int(n, "block_size", 0);
    if (zero != NULL && !tensor_same_shape(scale, zero) && !(is_one(scale) && is_one(zero)))
        return err_set(ERR_INVALID, "scale and zero point have different shapes");
    if (is_one(scale) && block == 0) {
        *out = (QuantLayout){.outer = 1, .axis = 1, .inner = product(x->dims, 0, x->rank)};
        return ERR_OK;
    }
    TRY(infer_axis(attr_int(n, "axis", 1), x->rank, &axis));
    if (block != 0)
        TRY(blocks_fit(x, scale, axis, block));
    else if (scale->rank != 1 || scale->dims[0] != x->dims[axis])
        return err_set(ERR_INVALID,
                       "the scale must hold %" PRId64 " numbers, one per index of axis %d",
                       x->dims[axis], axis);
    *out = (QuantLayout){.outer = product(x->dims, 0, axis),
                         .axis = x->dims[axis],
                         .inner = product(x->dims, axis + 1, x->rank),
                         .block = block != 0 ? block : -1};
    return ERR_OK;
}
