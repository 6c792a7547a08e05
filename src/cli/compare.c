#include "cli/compare.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/tensor.h"

static bool close_enough(double got, double want, Tolerance t) {
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want)) return got == want;
    return fabs(got - want) <= t.absolute + t.relative * fabs(want);
}

static Err compare_strings(const Tensor *got, const Tensor *want) {
    const Str *a = got->data, *b = want->data;
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (a[i].len != b[i].len || (a[i].len > 0 && memcmp(a[i].at, b[i].at, a[i].len) != 0))
            return err_set(ERR_INVALID, "element %" PRId64 " is '%.*s', expected '%.*s'", i,
                           (int)a[i].len, a[i].at, (int)b[i].len, b[i].at);
    return ERR_OK;
}

static Err compare_elements(const Tensor *got, const Tensor *want, Tolerance t) {
    for (int64_t i = 0; i < tensor_count(want); i++) {
        Err e =
            compare_values(&((const Tensor *)got->data)[i], &((const Tensor *)want->data)[i], t);
        if (e != ERR_OK) return err_add(e, "element %" PRId64, i);
    }
    return ERR_OK;
}

Err compare_values(const Tensor *got, const Tensor *want, Tolerance t) {
    if (got->dtype != want->dtype)
        return err_set(ERR_INVALID, "type %s, expected %s", dtype_name(got->dtype),
                       dtype_name(want->dtype));
    if (!tensor_same_shape(got, want)) {
        char a[128], b[128];
        tensor_shape_text(got, a, sizeof a);
        tensor_shape_text(want, b, sizeof b);
        return err_set(ERR_INVALID, "shape %s, expected %s", a, b);
    }
    if (want->dtype == DT_STR) return compare_strings(got, want);
    if (want->dtype == DT_SEQ || want->dtype == DT_OPT) return compare_elements(got, want, t);
    if (!dtype_is_number(want->dtype) && want->dtype != DT_BOOL)
        return err_set(ERR_UNSUPPORTED, "type %s cannot be compared", dtype_name(want->dtype));
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (!close_enough(tensor_get_f64(got, i), tensor_get_f64(want, i), t))
            return err_set(ERR_INVALID, "element %" PRId64 " is %.9g, expected %.9g", i,
                           tensor_get_f64(got, i), tensor_get_f64(want, i));
    return ERR_OK;
}
