#include "model/onnx_write_value.h"

#include "base/check.h"

enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_STRINGS = 6, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, TYPE_OPTIONAL = 9, TYPE_ELEM = 1, TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2, INFO_NAME = 1, INFO_TYPE = 2 };

static void emit_fill(Emit *e, const EmitTensor *x, size_t bytes) {
    if (e->out == NULL) {
        e->n += bytes;
        return;
    }
    size_t mark = x->scratch->used;
    void  *numbers = arena_alloc(x->scratch, 1, bytes, TENSOR_ALIGN);
    fill_make(x->fill, x->t, numbers);
    emit_raw(e, numbers, bytes);
    arena_rewind(x->scratch, mark);
}

static void emit_strings(Emit *e, const Tensor *t) {
    const Str *s = t->data;
    int64_t    n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) emit_bytes(e, TENSOR_STRINGS, s[i].at, s[i].len);
}

void onnx_emit_tensor(Emit *e, const void *self) {
    const EmitTensor *x = self;
    size_t            bytes = 0;
    CHECK(tensor_measure(x->t, &bytes) == ERR_OK);
    for (int32_t i = 0; i < x->t->rank; i++) emit_int(e, TENSOR_DIMS, x->t->dims[i]);
    emit_int(e, TENSOR_TYPE, x->t->dtype);
    if (x->t->dtype == DT_STR) emit_strings(e, x->t);
    if (x->name != NULL) emit_text(e, TENSOR_NAME, x->name);
    if (x->t->dtype == DT_STR) return;
    emit_head(e, TENSOR_RAW, bytes);
    if (x->t->data != NULL)
        emit_raw(e, x->t->data, bytes);
    else
        emit_fill(e, x, bytes);
}

typedef struct Dim {
    int64_t     value;
    const char *symbol;
} Dim;

static void emit_dim(Emit *e, const void *self) {
    const Dim *d = self;
    if (d->value >= 0)
        emit_int(e, DIM_VALUE, d->value);
    else if (d->symbol != NULL)
        emit_text(e, DIM_PARAM, d->symbol);
}

static void emit_shape(Emit *e, const void *self) {
    const Value *v = self;
    for (int32_t i = 0; i < v->type.rank; i++) {
        Dim d = {v->type.dims[i], v->symbols != NULL ? v->symbols[i] : NULL};
        emit_message(e, SHAPE_DIM, emit_dim, &d);
    }
}

static void emit_tensor_type(Emit *e, const void *self) {
    const Value *v = self;
    if (v->type.dtype != DT_NONE) emit_int(e, TYPE_ELEM, v->type.dtype);
    if (v->type.rank >= 0) emit_message(e, TYPE_SHAPE, emit_shape, v);
}

static void emit_nested_type(Emit *e, const void *self) {
    const Value *v = self;
    if (v->elem == NULL) return;
    Value inner = {.type = *v->elem, .elem = v->elem->data};
    emit_message(e, TYPE_ELEM, onnx_emit_type, &inner);
}

void onnx_emit_type(Emit *e, const void *self) {
    const Value *v = self;
    if (v->type.dtype == DT_SEQ)
        emit_message(e, TYPE_SEQUENCE, emit_nested_type, v);
    else if (v->type.dtype == DT_OPT)
        emit_message(e, TYPE_OPTIONAL, emit_nested_type, v);
    else if (v->type.dtype != DT_NONE || v->type.rank >= 0)
        emit_message(e, TYPE_TENSOR, emit_tensor_type, v);
}

void onnx_emit_info(Emit *e, const void *self) {
    const Value *v = self;
    emit_text(e, INFO_NAME, v->name);
    if (v->type.dtype != DT_NONE || v->type.rank >= 0)
        emit_message(e, INFO_TYPE, onnx_emit_type, v);
}
