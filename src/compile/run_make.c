// Operators that make tensors, on ref_make.
#include "compile/run.h"
#include "kernel/ref_make.h"
#include "model/move.h"

Err run_shape(const OpCall *c, Tensor *out) {
    int32_t first = 0;
    Tensor  shape;
    TRY(move_shape(c, &shape, &first));
    for (int64_t i = 0; i < shape.dims[0]; i++)
        ((int64_t *)out->data)[i] = c->in[0]->dims[first + i];
    return ERR_OK;
}

Err run_size(const OpCall *c, Tensor *out) {
    ((int64_t *)out->data)[0] = tensor_count(c->in[0]);
    return ERR_OK;
}

Err run_constant_of_shape(const OpCall *c, Tensor *out) {
    const Tensor *value = attr_tensor(c->node, "value");
    if (value != NULL) ref_fill(value->data, out);
    return ERR_OK;
}

Err run_eye_like(const OpCall *c, Tensor *out) {
    ref_eye(attr_int(c->node, "k", 0), out);
    return ERR_OK;
}

Err run_range(const OpCall *c, Tensor *out) {
    ref_range(c->in[0], c->in[2], out);
    return ERR_OK;
}

Err run_one_hot(const OpCall *c, Tensor *out) {
    MoveOneHot h;
    Tensor     shape;
    TRY(move_one_hot(c, &shape, &h));
    RefOneHot p = {h.outer, h.depth, h.inner, c->node->version >= 11};
    ref_one_hot(&p, c->in[0], c->in[2], out);
    return ERR_OK;
}

Err run_trilu(const OpCall *c, Tensor *out) {
    int64_t k = 0;
    bool    known = true;
    TRY(move_int(c, 1, &k, &known));
    ref_triangle(c->in[0], attr_int(c->node, "upper", 1) != 0, k, out);
    return ERR_OK;
}
