// ONNX keeps sequences and optionals in a second schema that no package installs. Both have the
// same few fields, so they are read off the wire here.
#include "model/onnx_value.h"

#include <stdbool.h>

#include "model/onnx_proto.h"
#include "model/onnx_tensor.h"
#include "model/onnx_wire.h"
#include "onnx.pb-c.h"

enum { FIELD_TENSOR = 3, FIELD_SEQUENCE = 5, FIELD_OPTIONAL = 7, NESTED_MAX = 8 };

static Err read_tensor(const void *bytes, size_t n, Arena *a, Tensor *out) {
    void *p = NULL;
    TRY(onnx_unpack(&onnx__tensor_proto__descriptor, bytes, n, a, &p));
    OnnxStore s = onnx_store(a, NULL);
    return onnx_tensor(&s, p, out);
}

static bool is_element(const WireField *f) {
    return f->type == WIRE_BYTES && (f->number == FIELD_TENSOR || f->number == FIELD_SEQUENCE ||
                                     f->number == FIELD_OPTIONAL);
}

static Err count_elements(const uint8_t *at, const uint8_t *end, int64_t *n) {
    const uint8_t *base = at;
    while (at < end) {
        WireField f;
        TRY(onnx_wire_next(base, &at, end, &f));
        if (is_element(&f)) ++*n;
    }
    return ERR_OK;
}

static Err read_nested(const uint8_t *at, const uint8_t *end, DType kind, int depth, Arena *a,
                       Tensor *out);

static Err read_element(const WireField *f, int depth, Arena *a, Tensor *out) {
    if (f->number == FIELD_TENSOR) return read_tensor(f->at, f->len, a, out);
    DType kind = f->number == FIELD_SEQUENCE ? DT_SEQ : DT_OPT;
    return read_nested(f->at, f->at + f->len, kind, depth + 1, a, out);
}

static Err read_nested(const uint8_t *at, const uint8_t *end, DType kind, int depth, Arena *a,
                       Tensor *out) {
    if (depth > NESTED_MAX) return err_set(ERR_LIMIT, "nested deeper than %d", NESTED_MAX);
    int64_t n = 0;
    TRY(count_elements(at, end, &n));
    if (kind == DT_OPT && n > 1) return err_set(ERR_INVALID, "an optional holds %d values", (int)n);
    Tensor *elements = arena_try(a, (size_t)n, sizeof(Tensor), TENSOR_ALIGN);
    if (elements == NULL) return err_set(ERR_LIMIT, "no room for the elements");
    *out = tensor_of(kind, 1, &n, elements);
    const uint8_t *base = at;
    for (int64_t i = 0; at < end;) {
        WireField f;
        TRY(onnx_wire_next(base, &at, end, &f));
        if (is_element(&f)) TRY(read_element(&f, depth, a, &elements[i++]));
    }
    return ERR_OK;
}

Err onnx_value(const void *bytes, size_t n, DType kind, Arena *a, Tensor *out) {
    const uint8_t *at = bytes;
    if (kind == DT_SEQ || kind == DT_OPT) return read_nested(at, at + n, kind, 1, a, out);
    return read_tensor(bytes, n, a, out);
}
