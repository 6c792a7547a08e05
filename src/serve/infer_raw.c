#include "serve/infer_raw.h"

#include <inttypes.h>
#include <string.h>

static Err read_strings(Tensor *t, unsigned char *bytes, size_t len, Arena *a) {
    int64_t n = tensor_count(t);
    if (n > (int64_t)(len / 4))
        return err_set(ERR_INVALID, "%" PRId64 " elements of BYTES need more than its %zu bytes", n,
                       len);
    TRY(tensor_room(t, a));
    Str   *out = t->data;
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t size = 0;
        if (len - at >= sizeof size) memcpy(&size, bytes + at, sizeof size);
        if (len - at < sizeof size || len - at - sizeof size < size)
            return err_set(ERR_INVALID, "element %" PRId64 " goes past the end of its %zu bytes", i,
                           len);
        out[i] = (Str){(const char *)bytes + at + sizeof size, size};
        at += sizeof size + size;
    }
    if (at != len)
        return err_set(ERR_INVALID, "its %" PRId64 " elements end at byte %zu of %zu", n, at, len);
    return ERR_OK;
}

static Err check_bools(const unsigned char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (bytes[i] > 1)
            return err_set(ERR_INVALID, "element %zu is %u: a BOOL is 0 or 1", i, bytes[i]);
    return ERR_OK;
}

Err infer_raw_read(Tensor *t, unsigned char *bytes, size_t len, Arena *a) {
    size_t need = 0;
    char   shape[160];
    if (t->dtype == DT_STR) return read_strings(t, bytes, len, a);
    TRY(tensor_measure(t, &need));
    if (need != len) {
        tensor_shape_text(t, shape, sizeof shape);
        return err_set(ERR_INVALID, "its shape %s takes %zu bytes, it has %zu", shape, need, len);
    }
    if (t->dtype == DT_BOOL) TRY(check_bools(bytes, len));
    t->data = bytes;
    if ((uintptr_t)bytes % dtype_size(t->dtype) == 0) return ERR_OK;
    TRY(tensor_room(t, a));
    memcpy(t->data, bytes, len);
    return ERR_OK;
}
