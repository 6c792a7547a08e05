#include "compile/run_fused.h"

#include "base/number.h"
#include "compile/run.h"
#include "compile/run_product.h"
#include "compile/run_view.h"
#include "kernel/ref_binary.h"
#include "kernel/ref_matmul.h"
#include "kernel/ref_unary.h"

static void clip(const Fused *f, Tensor *y) {
    for (int64_t i = 0; i < tensor_count(y); i++) {
        double v = number_f64(y, i);
        if (v < (double)f->a) number_set(y, i, (double)f->a);
        if (v > (double)f->b) number_set(y, i, (double)f->b);
    }
}

Err run_activation(const Node *n, Tensor *y) {
    static const RefUnary fns[] = {
        [FUSED_RELU] = REF_RELU,
        [FUSED_TANH] = REF_TANH,
        [FUSED_SIGMOID] = REF_SIGMOID,
        [FUSED_LEAKY_RELU] = REF_LEAKY_RELU,
        [FUSED_HARD_SIGMOID] = REF_HARD_SIGMOID,
    };
    Fused f;
    TRY(fused_read(n, &f));
    if (f.fn == FUSED_CLIP)
        clip(&f, y);
    else if (f.fn != FUSED_NONE)
        ref_unary(fns[f.fn], f.a, f.b, y, y);
    return ERR_OK;
}

Err run_fused_conv(const OpCall *c, Tensor *out) {
    TRY(run_conv(c, out));
    if (infer_in(c, 3) != NULL) ref_binary(REF_ADD, &out[0], c->in[3], &out[0]);
    return run_activation(c->node, &out[0]);
}

Err run_fused_gemm(const OpCall *c, Tensor *out) {
    TRY(run_gemm(c, out));
    return run_activation(c->node, &out[0]);
}

Err run_fused_matmul(const OpCall *c, Tensor *out) {
    const Tensor *a = c->in[0], *b = c->in[1];
    RefMatMul     p = {.trans_a = a->rank > 1 && attr_int(c->node, "transA", 0) != 0,
                       .trans_b = b->rank > 1 && attr_int(c->node, "transB", 0) != 0};
    Tensor        product;
    TRY(run_wide(c, &out[0], &product));
    TRY(run_product(c, &p, a, b, &product));
    ref_gemm_add((double)attr_float(c->node, "alpha", 1), &product, 0, NULL, &out[0]);
    return ERR_OK;
}
