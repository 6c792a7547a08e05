#include "model/infer.h"
#include "model/resize.h"

Err infer_resize(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    Resize        r;
    TRY(resize_read(c, &r));
    TRY(infer_need(x, r.mode == RESIZE_NEAREST ? TYPES_TENSOR : TYPES_NUMBER, "X"));
    *out = (Tensor){.dtype = x->dtype, .rank = r.known ? x->rank : RANK_UNKNOWN};
    for (int32_t i = 0; i < out->rank; i++) out->dims[i] = r.out[i];
    return ERR_OK;
}
