#include "model/onnx_type.h"

#include "model/onnx_tensor.h"
#include "onnx.pb-c.h"

static Err read_dims(Arena *a, const Onnx__TensorShapeProto *p, Value *v) {
    if (p->n_dim > TENSOR_MAX_RANK)
        return err_set(ERR_UNSUPPORTED, "rank %zu is above %d", p->n_dim, TENSOR_MAX_RANK);
    v->type.rank = (int32_t)p->n_dim;
    for (size_t i = 0; i < p->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = p->dim[i];
        v->type.dims[i] = DIM_UNKNOWN;
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            v->type.dims[i] = d->dim_value < 0 ? DIM_UNKNOWN : d->dim_value;
        if (d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM) continue;
        if (d->dim_param == NULL || d->dim_param[0] == '\0') continue;
        if (v->symbols == NULL) v->symbols = arena_new(a, const char *, p->n_dim);
        v->symbols[i] = d->dim_param;
    }
    return ERR_OK;
}

static Err read_tensor(Arena *a, const Onnx__TypeProto__Tensor *p, Value *v) {
    v->type.dtype = onnx_dtype(p->elem_type);
    if (v->type.dtype == DT_NONE && p->elem_type != 0)
        return err_set(ERR_UNSUPPORTED, "element type %d is not supported", p->elem_type);
    return p->shape != NULL ? read_dims(a, p->shape, v) : ERR_OK;
}

// A sequence or optional: the type of its elements hangs below, as deep as the file goes.
static Err read_nested(Arena *a, DType dtype, const Onnx__TypeProto *elem, Value *v) {
    int64_t open = DIM_UNKNOWN;
    v->type = tensor_of(dtype, 1, &open, NULL);
    if (elem == NULL) return ERR_OK;
    Value inner = {0};
    TRY(onnx_type(a, elem, &inner));
    Tensor *kept = arena_new(a, Tensor, 1);
    *kept = inner.type;
    kept->data = (void *)inner.elem;
    v->elem = kept;
    return ERR_OK;
}

static Err read_type(Arena *a, const Onnx__TypeProto *p, Value *v) {
    switch ((int)p->value_case) {
    case ONNX__TYPE_PROTO__VALUE__NOT_SET: return ERR_OK;
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE: return read_tensor(a, p->tensor_type, v);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return read_nested(a, DT_SEQ, p->sequence_type->elem_type, v);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return read_nested(a, DT_OPT, p->optional_type->elem_type, v);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return err_set(ERR_UNSUPPORTED, "maps are not supported");
    default: return err_set(ERR_UNSUPPORTED, "sparse values are not supported");
    }
}

Err onnx_type(Arena *a, const Onnx__TypeProto *p, Value *v) {
    Value now = *v;
    now.type = (Tensor){.rank = RANK_UNKNOWN};
    now.symbols = NULL;
    now.elem = NULL;
    TRY(read_type(a, p, &now));
    *v = now;
    return ERR_OK;
}
