// Random numbers: their shapes. The numbers follow from the seed, so that a run repeats.
#include <inttypes.h>

#include "model/move.h"

Err infer_random(const OpCall *c, Tensor *out) {
    MoveList shape;
    *out = (Tensor){0};
    TRY(move_dtype(c->node, "dtype", DT_F32, TYPES_FLOAT, &out->dtype));
    TRY(move_list(c, 0, "shape", &shape));
    if (!shape.given) return err_set(ERR_INVALID, "gives no shape");
    return move_dims(&shape, out);
}

static Err like(const OpCall *c, uint64_t types, Tensor *out) {
    *out = *c->in[0];
    out->data = NULL;
    return move_dtype(c->node, "dtype", out->dtype, types, &out->dtype);
}

Err infer_random_like(const OpCall *c, Tensor *out) { return like(c, TYPES_FLOAT, out); }

Err infer_bernoulli(const OpCall *c, Tensor *out) {
    TRY(infer_need(c->in[0], TYPES_FLOAT, "input"));
    return like(c, TYPES_NUMBER | dtype_bit(DT_BOOL), out);
}

Err infer_multinomial(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    int64_t       samples = attr_int(c->node, "sample_size", 1);
    TRY(infer_need(x, TYPES_FLOAT, "input"));
    if (x->rank != 2 || x->dims[1] < 1)
        return err_set(ERR_INVALID, "the input must be batches x classes");
    if (samples < 0) return err_set(ERR_INVALID, "sample_size is %" PRId64, samples);
    *out = (Tensor){.rank = 2, .dims = {x->dims[0], samples}};
    return move_dtype(c->node, "dtype", DT_I32, TYPES_INDEX, &out->dtype);
}
