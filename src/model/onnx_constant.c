#include "model/onnx_constant.h"

#include <string.h>

#include "onnx.pb-c.h"

static Tensor list_of(DType t, uint32_t n, const void *data) {
    int64_t dim = n;
    return tensor_of(t, 1, &dim, (void *)data);
}

static Err scalar(OnnxFile *f, DType t, const void *from, Tensor *out) {
    size_t bytes = dtype_size(t);
    *out = tensor_of(t, 0, NULL, arena_alloc(f->arena, 1, bytes, TENSOR_ALIGN));
    memcpy(out->data, from, bytes);
    return ERR_OK;
}

// The union of all forms; which names go with which kind is op_check's table.
static Err from_attr(OnnxFile *f, const Attr *a, Tensor *out) {
    switch (a->kind) {
    case ATTR_TENSOR: *out = *a->v.t; return ERR_OK;
    case ATTR_FLOAT: return scalar(f, DT_F32, &a->v.f, out);
    case ATTR_INT: return scalar(f, DT_I64, &a->v.i, out);
    case ATTR_STRING: return scalar(f, DT_STR, &a->v.s, out);
    case ATTR_FLOATS: *out = list_of(DT_F32, a->n, a->v.floats); return ERR_OK;
    case ATTR_INTS: *out = list_of(DT_I64, a->n, a->v.ints); return ERR_OK;
    case ATTR_STRINGS: *out = list_of(DT_STR, a->n, a->v.strings); return ERR_OK;
    default: return err_set(ERR_INVALID, "attribute '%s' is no constant", a->name);
    }
}

static bool right_form(const Attr *a) {
    static const struct {
        const char *name;
        AttrKind    kind;
    } forms[] = {{"value", ATTR_TENSOR},         {"value_float", ATTR_FLOAT},
                 {"value_floats", ATTR_FLOATS},  {"value_int", ATTR_INT},
                 {"value_ints", ATTR_INTS},      {"value_string", ATTR_STRING},
                 {"value_strings", ATTR_STRINGS}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, a->name) == 0) return forms[i].kind == a->kind;
    return false;
}

Err onnx_constant(OnnxFile *f, const Onnx__NodeProto *p, Tensor *out) {
    if (p->n_input != 0 || p->n_output != 1 || p->n_attribute != 1)
        return err_set(ERR_INVALID, "needs no input, one output and one attribute");
    const Onnx__AttributeProto *a = p->attribute[0];
    if (a->sparse_tensor != NULL && a->name != NULL && strcmp(a->name, "sparse_value") == 0)
        return onnx_tensor_sparse(&f->store, a->sparse_tensor, out);
    if (a->g != NULL) return err_set(ERR_INVALID, "a graph is no constant");
    Attr attr;
    TRY(onnx_attr(f, NULL, a, NULL, &attr));
    if (!right_form(&attr))
        return err_set(ERR_INVALID, "attribute '%s' of kind %d is no form of a constant", attr.name,
                       attr.kind);
    return from_attr(f, &attr, out);
}
