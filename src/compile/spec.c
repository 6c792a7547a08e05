#include "compile/spec.h"

#include "model/attr.h"
#include "model/params/sliding_window.h"

enum { MAX_DIM = 1 << 24 };  // of a fast kernel; larger dimensions stay with the reference kernel

bool spec_dim_fits(int64_t x) { return x > 0 && x <= MAX_DIM; }

bool spec_window(const SlidingWindow *w, ConvShape *s) {
    if (w->rank < 1 || w->rank > 2) return false;
    int32_t y = w->rank - 2, x = w->rank - 1;
    for (int32_t i = 0; i < w->rank; i++)
        if (!spec_dim_fits(w->in[i]) || !spec_dim_fits(w->out[i]) || !spec_dim_fits(w->kernel[i]) ||
            !spec_dim_fits(w->stride[i]) || !spec_dim_fits(w->dilation[i]) || w->pad[i] < 0 ||
            w->pad[i] > MAX_DIM)
            return false;
    s->ih = s->oh = s->kh = s->sh = s->dh = 1;
    s->pt = 0;
    if (y >= 0) {
        s->ih = (uint32_t)w->in[y], s->oh = (uint32_t)w->out[y], s->kh = (uint32_t)w->kernel[y];
        s->sh = (uint32_t)w->stride[y], s->dh = (uint32_t)w->dilation[y];
        s->pt = (uint32_t)w->pad[y];
    }
    s->iw = (uint32_t)w->in[x], s->ow = (uint32_t)w->out[x], s->kw = (uint32_t)w->kernel[x];
    s->sw = (uint32_t)w->stride[x], s->dw = (uint32_t)w->dilation[x];
    s->pl = (uint32_t)w->pad[x];
    return true;
}

int32_t spec_channel_axis(IrKind k, const Tensor *out) {
    return k == IR_GEMM || k == IR_MATMUL || k == IR_INT8_GEMM ? out->rank - 1 : 1;
}

int32_t spec_concat_axis(const Ir *ir, const IrLayer *concat) {
    int64_t axis = attr_int(concat->node, "axis", 1);
    return (int32_t)(axis < 0 ? axis + ir_type(ir, concat->out[0])->rank : axis);
}

bool spec_arg_mode(const Tensor *arg, const Tensor *out, int32_t axis, ElementwiseMode *mode) {
    if (arg->dtype != DT_F32 || arg->rank > out->rank) return false;
    if (tensor_count(arg) == 1) {
        *mode = EWISE_SCALAR;
        return true;
    }
    bool    same = true, along = true;
    int32_t lead = out->rank - arg->rank;
    for (int32_t i = 0; i < out->rank; i++) {
        int64_t d = i < lead ? 1 : arg->dims[i - lead];
        same = same && d == out->dims[i];
        along = along && d == (i == axis ? out->dims[i] : 1);
    }
    *mode = same ? EWISE_CONTIGUOUS : EWISE_PER_LANE;
    return same || along;
}
